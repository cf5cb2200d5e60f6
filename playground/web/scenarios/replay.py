"""Time travel in a cluster: board, queue and clock after any cycle, and a branch from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.clusters.drive.runs import request_run
from playground.clusters.errors import ClusterError
from playground.scenarios import selectors
from playground.scenarios.services import moments
from playground.web.problems import Problem, problems_of
from playground.web.requests import HtmxHttpRequest, positive_int, site_user
from playground.web.scenarios.past_board import moment_context, nothing_new

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
    context = moment_context(request, selectors.cluster_ticks(cluster), cycle, cluster=cluster) | {
        "here": reverse("scenarios:replay", args=[cluster.public_id]),
        "cycle_url": reverse("web:cycles", args=[cluster.public_id]),
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
        made = moments.branch(cluster=cluster, cycle=number, owner=site_user(request), edit=edit)
    except ClusterError as error:
        return _page(request, cluster, str(number), edit, problems_of(error, edit), error.status)
    messages.success(request, f"This cluster begins as {cluster.name} was after cycle {number}.")
    if edit.strip():
        request_run(cluster=made)
    return redirect("web:difference", made.public_id)
