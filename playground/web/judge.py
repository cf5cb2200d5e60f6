"""What the judge's pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters import questions
from playground.clusters.board.nodes import pools_of
from playground.clusters.errors import ClusterError, InvalidInput, NotFound
from playground.clusters.foreign import agreement
from playground.clusters.foreign.agreement import MOST_NAMED, Agreement, schedulers_of
from playground.engine.entries import explain_trace
from playground.engine.releases import patch_of
from playground.engine.verdict_words import TITLES, why
from playground.web.cycles.present import view_cycle
from playground.web.looks import View
from playground.web.problems import yaml_of
from playground.web.requests import HtmxHttpRequest, positive_int

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, ForeignDecision

LOOKS: Final = {
    "agree": ("ok", "ok"),
    "tie": ("wait", "dice"),
    "different": ("bad", "no"),
    "infeasible": ("warn", "err"),
    "unknown": ("dim", "info"),
    "": ("dim", "clock"),
}
UNNAMED: Final = ("", "default-scheduler")
BARS: Final = (("agree", "okf"), ("tie", "progw"), ("different", "badf"), ("infeasible", "warnf"))
MEANINGS: Final = {
    "agree": "the same node, or no node either",
    "tie": "tie: another node with the same points",
    "different": "different",
    "infeasible": "does not fit",
}


def view_agreement(cluster: Cluster, found: Agreement) -> dict[str, Any]:
    """The head of a cluster's page, for `judge/body.html`.

    Returns
    -------
    dict
        `name` of the other scheduler: by the pods that name it, else by its program; of several how many they are.
        `ours` is our engine beside it, which may be a kube-scheduler itself. `x` and `width` of `pieces` are per cent.
        `common`: of those that disagree css, icon, number, what, plugin. `n_others` neither agree nor tie.
    """
    pieces, at = [], 0.0
    for verdict, fill in BARS:
        n = found.counts[verdict]
        width = 100 * n / found.total if found.total else 0.0
        css, icon = LOOKS[verdict]
        pieces.append(
            {"verdict": verdict, "n": n, "css": css, "icon": icon, "fill": fill, "meaning": MEANINGS[verdict],
             "x": round(at, 2), "width": round(width, 2)}
        )  # fmt: skip
        at += width
    name = next(iter(found.schedulers), "")
    if name in UNNAMED and found.authors:
        name = found.authors[0].partition("/")[0]
    are_several = len(found.schedulers) > 1
    if are_several:
        more = "+" if len(found.schedulers) == MOST_NAMED else ""
        name = f"{len(found.schedulers)}{more} schedulers"
    profiles = (cluster.config or {}).get("profiles") or [{}]
    names = [str(profile.get("schedulerName") or "default-scheduler") for profile in profiles]
    return {
        "name": name,
        "are_several": are_several,
        "ours": "the playground" if name.startswith("kube-scheduler") else "kube-scheduler",
        "found": found,
        "per_cent": "" if found.per_cent is None else f"{found.per_cent:.1f}".removesuffix(".0"),
        "pieces": pieces,
        "common": [
            (*LOOKS[verdict], n, _have_in_common(plugin, verdict), plugin)
            for plugin, verdict, n in found.common
        ],
        "judge": "default-scheduler" if "default-scheduler" in names else names[0],
        "patch": patch_of(cluster.release),
        "no_node": found.kinds["no-node"],
        "n_all": found.total + found.counts["unknown"] + found.left,
        "n_others": found.total - found.agreed,
    }


def _have_in_common(plugin: str, verdict: str) -> str:
    if verdict == "infeasible":
        return "are against this filter" if plugin else "name a node that is not there"
    if plugin == "victims":
        return "evict other pods on the node"
    return (
        "differ most by this plugin"
        if plugin
        else "found no node where there is one, or made room needlessly"
    )


def view_decision(row: ForeignDecision) -> View:
    """One decision as a row of the table; `by` is who decided, as the page calls it, `is_other` is highlighted."""
    css, icon = LOOKS[row.verdict]
    return {
        "row": row,
        "css": css,
        "icon": icon,
        "title": TITLES.get(row.verdict, "not judged yet"),
        "why": why(row),
        "by": row.program.partition("/")[0] if row.scheduler in UNNAMED else row.scheduler,
        "is_other": row.verdict in ("different", "infeasible"),
    }


KUBECONFIG: Final = "kubeconfig.yaml"
TOKEN_PLACE: Final = "PUT-YOUR-TOKEN-HERE"
COMMAND: Final = f"kube-scheduler --kubeconfig {KUBECONFIG}"
NAME: Final = "my-scheduler"

STARTER: Final = f"""\
from kubernetes import client, config, watch

config.load_kube_config("{KUBECONFIG}")
api = client.CoreV1Api()
api.api_client.user_agent = "{NAME}/v1"
mine = "spec.schedulerName={NAME},spec.nodeName="
for event in watch.Watch().stream(api.list_pod_for_all_namespaces, field_selector=mine):
    if event["type"] == "ADDED":
        pod, node = event["object"].metadata, api.list_node().items[0].metadata.name  # choose better here
        to = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        body = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.name, uid=pod.uid), target=to)
        api.create_namespaced_binding(pod.namespace, body, _preload_content=False)
"""


def kubeconfig(server: str, name: str, *, wants_token: bool) -> str:
    """A kubeconfig as YAML.

    Parameters
    ----------
    server
        Of the cluster's Kubernetes API: ``http://127.0.0.1:8000/k8s/ID``.
    name
        Of the cluster, the user and the context in it.
    wants_token
        Whether the user has a place for a token; else each client that reaches the server may write.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": TOKEN_PLACE} if wants_token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml_of([document])


def schedulers(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """What a scheduler of one's own needs to start here, and those that were seen."""
    server = request.build_absolute_uri(f"/k8s/{cluster.public_id}")
    context = {
        "found": schedulers_of(cluster),
        "kubeconfig": kubeconfig(server, cluster.public_id, wants_token=not settings.EMBEDDED),
        "wants_token": not settings.EMBEDDED,
        "token_place": TOKEN_PLACE,
        "file": KUBECONFIG,
        "command": COMMAND,
        "starter": STARTER,
        "starter_name": NAME,
    }
    return render(request, "judge/schedulers.html", context)


def judge(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The percentage, the decisions, and what those that disagree have in common. Looking has the rest judged."""
    found = agreement.agreement(cluster)
    context: dict[str, Any] = {"cluster": cluster, "tab": "config", "sub": "judge"}
    if found.left:
        try:
            questions.ask_for_verdicts(cluster)
        except ClusterError as error:
            context["refused"] = error.message
    verdict = request.GET.get("verdict", "")
    try:
        page = agreement.decisions(cluster, verdict=verdict, before=positive_int(request.GET.get("before")))
    except InvalidInput as error:
        raise Http404(error.message) from None
    context |= {
        "view": view_agreement(cluster, found),
        "rows": [view_decision(row) for row in page.decisions],
        "next_before": page.next_before,
        "verdict": verdict,
    }
    return render(request, "judge/body.html" if request.htmx else "judge/page.html", context)


def decision(request: HttpRequest, cluster: Cluster, seq: int, kind: str) -> HttpResponse:
    """One decision: whose, and our cycle on the same state, node by node and plugin by plugin."""
    try:
        row = agreement.decision(cluster, seq, kind)
    except NotFound as error:
        raise Http404(error.message) from None
    context: dict[str, Any] = {
        "told": view_decision(row),
        "view": None,
    }
    if not row.verdict:
        try:
            questions.ask_for_verdicts(cluster)
        except ClusterError as error:
            context["refused"] = error.message
    if row.trace is not None:
        context["view"] = view_cycle(
            explain_trace(bytes(row.trace), full=True),
            part=request.GET.get("part"),
            page=positive_int(request.GET.get("page")) or 1,
            pools=pools_of(cluster),
        )
    return render(request, "judge/decision.html", context)
