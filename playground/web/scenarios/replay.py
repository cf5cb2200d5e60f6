"""Time travel in a cluster: board, queue and clock after any cycle, and a branch from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters.drive.runs import request_run
from playground.clusters.errors import ClusterError
from playground.scenarios import selectors, services
from playground.web.problems import Problem, problems_of
from playground.web.requests import HtmxHttpRequest, positive_int, site_user
from playground.web.scenarios.past_board import nothing_new, view_past
from playground.web.scenarios.timeline import view_timeline

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


def replay(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The cluster after one of its cycles; the moment alone for htmx."""
    return _page(request, cluster, request.GET.get("cycle"))


def _page(
    request: HtmxHttpRequest,
    cluster: Cluster,
    cycle: str | None,
    edit: str = "",
    problems: Sequence[Problem] = (),
    status: int = 200,
) -> HttpResponse:
    ticks = selectors.cluster_ticks(cluster)
    timeline = view_timeline(ticks, positive_int(cycle), cluster.start_ns)
    board, note = None, ""
    if timeline is not None:
        state, note = selectors.moment(cluster=cluster, cycle=timeline.number)
        if state is not None:
            board = view_past(state, pod=timeline.tick.pod, node=timeline.tick.node)
        elif not note and "wait" not in request.GET:
            services.request_moment(cluster=cluster, cycle=timeline.number)
    here = reverse("scenarios:replay", args=[cluster.public_id])
    context: dict[str, Any] = {
        "timeline": timeline,
        "past": board,
        "note": note,
        "here": here,
        "cycle_url": reverse("web:cycles", args=[cluster.public_id]),
        "start_ns": cluster.start_ns,
        "branch_url": reverse("scenarios:replay-branch", args=[cluster.public_id]),
        "edit": edit,
        "problems": problems,
    }
    if nothing_new(request, context):
        return HttpResponse(status=204)
    template = "scenarios/moment.html" if request.htmx else "scenarios/replay.html"
    return render(request, template, context, status=status)


def branch(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """A new cluster that begins as this one was after a cycle, with an edit if one was written."""
    number, edit = positive_int(request.POST.get("cycle")) or 1, request.POST.get("edit", "")
    try:
        made = services.branch(cluster=cluster, cycle=number, owner=site_user(request), edit=edit)
    except ClusterError as error:
        return _page(request, cluster, str(number), edit, problems_of(error, edit), error.status)
    messages.success(request, f"This cluster begins as {cluster.name} was after cycle {number}.")
    if edit.strip():
        request_run(cluster=made)
    return redirect("web:difference", made.public_id)
