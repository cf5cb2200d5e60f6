"""What the judge's pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters import questions
from playground.clusters.board.nodes import pools_of
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.foreign import agreement
from playground.clusters.foreign.agreement import MOST_NAMED, Agreement, schedulers_of
from playground.clusters.foreign.words import TITLES, why
from playground.clusters.row_types import Cluster, ForeignDecision
from playground.engine.entries import explain_trace
from playground.web.cycles.present import view_cycle
from playground.web.looks import View
from playground.web.requests import HtmxHttpRequest, positive_int
from scheduler_core.releases import release_from
from scheduler_core.schema.tables import table_beside

LOOKS: Final[Mapping[str, Sequence[str]]] = table_beside(__package__, "looks.yaml")["verdicts"]
UNNAMED: Final = ("", "default-scheduler")
AROUND_NS: Final = 30_000_000_000
"""The stretch of the timeline before a decision, and after it."""


def view_agreement(cluster: Cluster, found: Agreement) -> dict[str, Any]:
    """The head of a cluster's page, for `judge/body.html`.

    Returns
    -------
    dict
        `name` of the other scheduler: by the pods that name it, else by its program; of several how many they are.
        `ours` is our engine beside it, which may be a kube-scheduler itself. `x` and `width` of `pieces` are per cent.
        `common`: of those that disagree css, icon, number, verdict, plugin. `n_others` neither agree nor tie.
    """
    pieces, at = [], 0.0
    for verdict, (css, icon, fill, meaning) in LOOKS.items():
        if fill:
            n = found.counts[verdict]
            width = 100 * n / found.total if found.total else 0.0
            pieces.append(
                {"n": n, "css": css, "icon": icon, "fill": fill, "meaning": meaning, "x": at, "width": width}
            )
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
        "common": [(*LOOKS[verdict][:2], n, verdict, plugin) for plugin, verdict, n in found.common],
        "judge": "default-scheduler" if "default-scheduler" in names else names[0],
        "patch": release_from(cluster.release).patch,
        "no_node": found.kinds["no-node"],
        "n_all": found.total + found.counts["unknown"] + found.left,
        "n_others": found.total - found.agreed,
    }


def view_decision(row: ForeignDecision) -> View:
    """One decision as a row of the table; `by` is who decided, as the page calls it, `is_other` is highlighted."""
    css, icon, *_ = LOOKS[row.verdict]
    return {
        "row": row,
        "css": css,
        "icon": icon,
        "title": TITLES.get(row.verdict, "not judged yet"),
        "why": why(row),
        "by": row.program.partition("/")[0] if row.scheduler in UNNAMED else row.scheduler,
        "is_other": row.verdict in ("different", "infeasible"),
    }


def schedulers(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show how to start another scheduler here, and those that were seen."""
    context = {
        "found": schedulers_of(cluster),
        "server": request.build_absolute_uri(f"/k8s/{cluster.public_id}"),
        "wants_token": not settings.EMBEDDED,
    }
    return render(request, "judge/schedulers.html", context)


def judge(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The percentage, the decisions, and what those that disagree have in common. Looking has the rest judged."""
    found = agreement.agreement(cluster)
    verdict = request.GET.get("verdict", "")
    try:
        page, older = agreement.decisions(
            cluster, verdict=verdict, before=positive_int(request.GET.get("before"))
        )
    except InvalidInput as error:
        raise Http404(error.message) from None
    context = {
        "refused": _have_judged(cluster) if found.left else "",
        "view": view_agreement(cluster, found),
        "rows": [view_decision(row) for row in page],
        "next_before": older,
        "verdict": verdict,
    }
    return render(request, "judge/body.html" if request.htmx else "judge/page.html", context)


def _have_judged(cluster: Cluster) -> str:
    """Have a worker judge what waits; why it may not."""
    try:
        questions.ask_for_verdicts(cluster)
    except ClusterError as error:
        return error.message
    return ""


def decision(request: HttpRequest, cluster: Cluster, seq: int, kind: str) -> HttpResponse:
    """One decision: whose, and our cycle on the same state, node by node and plugin by plugin."""
    row = agreement.decision(cluster, seq, kind)
    context: dict[str, Any] = {
        "told": view_decision(row),
        "view": None,
        "around": [max(0, row.at_ns - cluster.start_ns + sign * AROUND_NS) // 1_000_000 for sign in (-1, 1)],
        "refused": "" if row.verdict else _have_judged(cluster),
    }
    if row.trace is not None:
        context["view"] = view_cycle(
            explain_trace(bytes(row.trace), full=True),
            part=request.GET.get("part"),
            page=positive_int(request.GET.get("page")) or 1,
            pools=pools_of(cluster),
        )
    return render(request, "judge/decision.html", context)
