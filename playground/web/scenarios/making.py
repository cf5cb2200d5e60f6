"""From a cluster to a share, and a share's steps done in a cluster one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from playground.clusters.errors import ClusterError
from playground.clusters.foreign.agreement import n_foreign_decisions
from playground.clusters.foreign.following import span_of
from playground.clusters.row_types import Cluster
from playground.scenarios import selectors
from playground.scenarios.services import comparing, forking
from playground.scenarios.services.forking import make_text
from playground.web.problems import problems_of
from playground.web.requests import done, download, positive_int, site_user
from playground.web.scenarios.shares import said_by, seen_by, shared_page, visibilities_for
from scheduler_core.incident.as_scenario import WhatIfSpan

Way = tuple[str, bool, WhatIfSpan | None]
"""Of a share: how its title ends, whether ours decides, and what is otherwise."""
BY_OURS: Way = ("decided by ours", True, None)


def share(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Make a scenario of the cluster: as a file, or as a link."""
    problems: list[Any] = []
    status = 200
    asked = request.POST if request.method == "POST" else request.GET
    cycle = positive_int(asked.get("cycle"))
    redact = bool(asked.get("redact"))
    title = asked.get("title", "").strip()[:300]
    ours = bool(asked.get("ours_decide"))
    span = asked.get("from", ""), asked.get("to", "")
    if request.method == "POST":
        try:
            chosen = span_of(cluster, *span)
            if asked.get("as") == "test":
                made = make_text(
                    cluster=cluster, redact=redact, title=title, ours_decide=True, span=chosen, test=True
                )
                return download(made.text, f"{cluster.name} test", "yaml", "application/yaml")
            if asked.get("as") == "both":
                kinds = [("as recorded", False, None), BY_OURS]
                return _beside(request, cluster, redact, chosen, title, kinds)
            if asked.get("as") == "what-if":
                words, what_if = forking.what_if_of(asked)
                return _beside(request, cluster, redact, chosen, title, [BY_OURS, (words, True, what_if)])
            made = make_text(
                cluster=cluster, cycle=cycle, redact=redact, title=title, ours_decide=ours, span=chosen
            )
            if asked.get("as") == "file":
                return download(made.text, cluster.name, "yaml", "application/yaml")
            shared = forking.make_from_cluster(
                cluster=cluster,
                made=made,
                owner=site_user(request),
                cycle=cycle,
                **seen_by(request),
                **said_by(request),
            )
        except ClusterError as error:
            problems, status = problems_of(error), error.status
        else:
            return shared_page(request, shared)
    context = {
        "state": selectors.origin_state(cluster, request.user),
        "problems": problems,
        "visibilities": visibilities_for(request),
        "is_local": settings.EMBEDDED,
        "last_cycle": cluster.next_cycle - 1,
        "cycle": cycle,
        "redact": redact,
        "ours_decide": ours,
        "n_foreign": n_foreign_decisions(cluster),
        "span": span if span[0] else None,
        "share_title": title or cluster.name,
        "note": asked.get("note", ""),
        "opens_at": asked.get("opens_at", ""),
    }
    return render(request, "scenarios/share.html", context, status=status)


def _beside(
    request: HttpRequest,
    cluster: Cluster,
    redact: bool,
    span: tuple[int, int] | None,
    title: str,
    kinds: Sequence[Way],
) -> HttpResponse:
    """Share the same in several ways; to them side by side."""
    seen = seen_by(request, otherwise="unlisted" if site_user(request) is None else "private")
    sides = []
    for words, ours, what_if in kinds:
        name = f"{title or cluster.name}: {words}"[:300]
        made = make_text(
            cluster=cluster, redact=redact, title=name, ours_decide=ours, span=span, what_if=what_if
        )
        shared = forking.make_from_cluster(
            cluster=cluster, made=made, owner=site_user(request), **seen, **said_by(request)
        )
        sides.append({"kind": "scenario", "id": shared.scenario.public_id})
    comparison = comparing.request_comparison(a=sides[0], b=sides[1], owner=site_user(request))
    return redirect("scenarios:compare", comparison.public_id)


def next_step(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Do the next step of the scenario this cluster was forked from."""
    words = forking.do_next_step(cluster=cluster)
    where = "scenarios:share" if request.POST.get("back") == "share" else "web:board"
    return done(request, f"Done: {words}.", where, cluster.public_id)
