"""Another scheduler: how to bring one, its decisions beside ours, and one of them opened up."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError, InvalidInput, NotFound
from playground.clusters.selectors import foreign
from playground.clusters.selectors.schedulers import schedulers_of
from playground.clusters.services import questions
from playground.engine.explain import explain_trace
from playground.web import own_scheduler
from playground.web.access import get_cluster
from playground.web.explanation import view_cycle
from playground.web.htmx import HtmxHttpRequest
from playground.web.judge import view_agreement, view_decision
from playground.web.numbers import positive_int


@require_safe
def schedulers(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """What a scheduler of one's own needs to start here, and those that were seen."""
    cluster = get_cluster(request, cluster_id)
    server = request.build_absolute_uri(f"/k8s/{cluster.public_id}")
    context = {
        "cluster": cluster,
        "tab": "config",
        "sub": "schedulers",
        "found": schedulers_of(cluster),
        "kubeconfig": own_scheduler.kubeconfig(server, cluster.public_id, wants_token=not settings.EMBEDDED),
        "wants_token": not settings.EMBEDDED,
        "token_place": own_scheduler.TOKEN_PLACE,
        "file": own_scheduler.KUBECONFIG,
        "command": own_scheduler.COMMAND,
        "starter": own_scheduler.STARTER,
        "starter_name": own_scheduler.NAME,
    }
    return render(request, "judge/schedulers.html", context)


@require_safe
@vary_on_headers("HX-Request")
def judge(request: HtmxHttpRequest, cluster_id: str) -> HttpResponse:
    """The percentage, the decisions, and what those that disagree have in common. Looking has the rest judged."""
    cluster = get_cluster(request, cluster_id)
    found = foreign.agreement(cluster)
    context: dict[str, Any] = {"cluster": cluster, "tab": "config", "sub": "judge"}
    if found.left:
        try:
            questions.ask_for_verdicts(cluster)
        except ClusterError as error:
            context["refused"] = error.message
    verdict = request.GET.get("verdict", "")
    try:
        page = foreign.decisions(cluster, verdict=verdict, before=positive_int(request.GET.get("before")))
    except InvalidInput as error:
        raise Http404(error.message) from None
    context |= {
        "view": view_agreement(cluster, found),
        "rows": [view_decision(row) for row in page.decisions],
        "next_before": page.next_before,
        "verdict": verdict,
    }
    return render(request, "judge/body.html" if request.htmx else "judge/page.html", context)


@require_safe
def decision(request: HttpRequest, cluster_id: str, seq: int, kind: str) -> HttpResponse:
    """One decision: whose, and our cycle on the same state, node by node and plugin by plugin."""
    cluster = get_cluster(request, cluster_id)
    try:
        row = foreign.decision(cluster, seq, kind)
    except NotFound as error:
        raise Http404(error.message) from None
    context: dict[str, Any] = {
        "cluster": cluster,
        "tab": "config",
        "sub": "judge",
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
        )
    return render(request, "judge/decision.html", context)
