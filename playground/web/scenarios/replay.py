"""Time travel in a cluster: board, queue and clock after any cycle, and a branch from there."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError
from playground.scenarios import selectors, services
from playground.web.access import get_cluster
from playground.web.numbers import positive_int
from playground.web.scenarios.past_board import view_past
from playground.web.scenarios.sharing import site_user
from playground.web.scenarios.timeline import view_timeline


@require_safe
@vary_on_headers("HX-Request")
def replay(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """The cluster after one of its cycles; the moment alone for htmx."""
    cluster = get_cluster(request, cluster_id)
    ticks = selectors.cluster_ticks(cluster)
    timeline = view_timeline(ticks, positive_int(request.GET.get("cycle")), cluster.start_ns)
    board, note = None, ""
    if timeline is not None:
        state, note = selectors.moment(cluster=cluster, cycle=timeline.number)
        if state is not None:
            board = view_past(state, pod=timeline.tick.pod, node=timeline.tick.node)
        elif not note and "wait" not in request.GET:
            services.request_moment(cluster=cluster, cycle=timeline.number)
    here = reverse("scenarios:replay", args=[cluster.public_id])
    context: dict[str, Any] = {
        "cluster": cluster,
        "tab": "replay",
        "timeline": timeline,
        "past": board,
        "note": note,
        "here": here,
        "cycle_url": reverse("web:cycles", args=[cluster.public_id]),
        "start_ns": cluster.start_ns,
        "branch_url": reverse("scenarios:replay-branch", args=[cluster.public_id]),
    }
    template = "scenarios/moment.html" if request.htmx else "scenarios/replay.html"
    return render(request, template, context)


@require_POST
def branch(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """A new cluster that begins as this one was after a cycle."""
    cluster = get_cluster(request, cluster_id)
    number = positive_int(request.POST.get("cycle")) or 1
    try:
        made = services.branch(cluster=cluster, cycle=number, owner=site_user(request))
    except ClusterError as error:
        messages.error(request, error.message)
        return redirect("scenarios:replay", cluster.public_id)
    messages.success(request, f"This cluster begins as {cluster.name} was after cycle {number}.")
    return redirect("web:board", made.public_id)
