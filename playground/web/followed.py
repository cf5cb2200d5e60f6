"""A live cluster on its page: how far its follower is, its decisions beside ours, what waits, what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import InvalidInput
from playground.clusters.foreign import agreement, following
from playground.clusters.foreign.following import MINUTE_NS
from playground.clusters.row_types import Cluster, FollowedCluster
from playground.web.judge import view_decision
from playground.web.looks import View, priority_scale
from playground.web.requests import HtmxHttpRequest, done, positive_int
from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import format_time_ns

WINDOWS: Final[Mapping[int, str]] = {1: "Last hour", 6: "6 hours", 24: "Day"}
N_BINS: Final = 60
HEIGHT: Final = 44
"""Of a bar, in units of the drawing; the triangles are above it."""
STREAM: Final = 8
GROUPS: Final = 6
IN_TERMINAL: Final = 6
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "connecting": ("wait", "Connecting"),
    "following": ("ok", "Following, read-only"),
    "behind": ("warn", "Following, behind"),
    "lost": ("bad", "Lost"),
    "stopped": ("", "Stopped"),
}
"""Colour of the mark and words of each state of a follower."""


def followed(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """A live cluster; for htmx what moves by itself, or the span that is chosen."""
    row = following.found_follower(cluster)
    context: dict[str, Any] = {"followed": row, "server": request.build_absolute_uri("/").rstrip("/")}
    if row is None:
        return render(request, "followed/page.html", context)
    if request.htmx and request.htmx.target == "span":
        return render(request, "followed/span.html", context | _span(request, cluster, row))
    context |= _now(request, cluster, row)
    if request.htmx and request.htmx.target == "now":
        return render(request, "followed/now.html", context | {"is_part": True})
    now_ns = virtual_now_ns(cluster)
    context |= _span(request, cluster, row) | {
        "present": (format_time_ns(now_ns), format_time_ns(now_ns + SECOND_NS)),
        "terminal": [_in_terminal(one) for one in reversed(context["rows"][:IN_TERMINAL])],
    }
    return render(request, "followed/page.html", context)


def _in_terminal(one: View) -> str:
    row = one["row"]
    where = f"on {row.node}" if row.node else "on no node"
    return f"{one['clock']}  {one['title']:<15}  {row.pod} {where}: {one['why']}"


def stop(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """End the follower's session."""
    row = following.stop(cluster=cluster)
    return done(request, f"Stopped following {row.source}.", "web:followed", cluster.public_id)


def _now(request: HttpRequest, cluster: Cluster, row: FollowedCluster) -> View:
    state = following.state_of(row)
    verdict = request.GET.get("verdict", "")
    try:
        page, older = agreement.decisions(
            cluster, verdict=verdict, before=positive_int(request.GET.get("before")), limit=STREAM
        )
    except InvalidInput as error:
        raise Http404(error.message) from None
    counts = following.verdicts_of(cluster)
    waiting = following.pending(cluster)
    scale, now_ns = priority_scale(cluster), virtual_now_ns(cluster)
    return {
        "state": state,
        "mark": STATES[state],
        "lag_s": row.lag_ms / 1000,
        "limits": {"days": settings.PLAYGROUND_FOLLOW_DAYS, "mb": settings.PLAYGROUND_FOLLOW_MB},
        "kept_from_ns": following.begins_ns(cluster, row),
        "objects": following.objects_of(cluster),
        "counts": counts,
        "n_judged": sum(counts.values()),
        "n_differ": counts["different"] + counts["infeasible"],
        "rows": [view_decision(one) | {"clock": _clock(one.at_ns, tenths=True)} for one in page],
        "older": older,
        "verdict": verdict,
        "pending": [
            {
                "of": one,
                "mark": scale.mark(one.priority, one.priority_class),
                "waits_ns": max(0, now_ns - one.since_ns),
            }
            for one in waiting[:GROUPS]
        ],
        "gaps": _gaps(cluster, row),
        "n_pending": sum(one.n for one in waiting),
        "n_groups": len(waiting),
        "n_more_groups": max(0, len(waiting) - GROUPS),
        "is_cut": sum(one.n for one in waiting) >= following.MOST_PENDING,
    }


def _span(request: HttpRequest, cluster: Cluster, row: FollowedCluster) -> View:
    """Decisions by time, and the stretch of it that is chosen: all of it, where none is."""
    hours = positive_int(request.GET.get("hours")) or 1
    hours = hours if hours in WINDOWS else 1
    step = hours * 60 // N_BINS
    last = virtual_now_ns(cluster) // MINUTE_NS + 1
    first = last - hours * 60
    from_, to = (positive_int(request.GET.get(name)) for name in ("from", "to"))
    from_ = min(max(first, from_ or first), last - 1)
    to = min(max(from_ + 1, to or last), last)
    bins = [[0, 0, 0] for _ in range(N_BINS)]
    chosen = [0, 0, 0]
    for one in following.minutes(cluster, first * MINUTE_NS, last * MINUTE_NS):
        minute = one.at_ns // MINUTE_NS
        for place, n in enumerate((one.n, one.n_no_node, one.n_unlike)):
            bins[min(N_BINS - 1, (minute - first) // step)][place] += n
            chosen[place] += n if from_ <= minute < to else 0
    most = max((n for n, _, _ in bins), default=0) or 1
    bars = [
        (x, round(HEIGHT * n / most, 1), round(HEIGHT * failed / most, 1), unlike)
        for x, (n, failed, unlike) in enumerate(bins)
        if n
    ]
    begins_ns = max(from_ * MINUTE_NS, following.begins_ns(cluster, row))
    return {
        "span": {
            "hours": hours,
            "windows": WINDOWS,
            "first": first,
            "last": last,
            "from": from_,
            "to": to,
            "bars": bars,
            "n_bins": N_BINS,
            "height": HEIGHT + 12,
            "brush": (100 * (from_ - first) / (last - first), 100 * (to - from_) / (last - first)),
            "ticks": [
                (100 * place / 6, _clock((first + (last - first) * place // 6) * MINUTE_NS))
                for place in range(7)
            ],
            "begins": _clock(from_ * MINUTE_NS),
            "ends": _clock(to * MINUTE_NS),
            "from_time": format_time_ns(begins_ns),
            "to_time": format_time_ns(max(begins_ns + 1, to * MINUTE_NS)),
            "n": chosen[0],
            "n_no_node": chosen[1],
            "n_unlike": chosen[2],
            "step": step,
        }
    }


def _clock(at_ns: int, *, tenths: bool = False) -> str:
    moment = datetime.fromtimestamp(at_ns / SECOND_NS, UTC)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}" if tenths else f"{moment:%H:%M}"


def _gaps(cluster: Cluster, row: FollowedCluster) -> list[View]:
    """What cannot be known, with the command that grants it, where a right would."""
    gaps = []
    for fact in row.not_known:
        resource = ".".join(filter(None, (fact["resource"], fact["group"])))
        role = f"scheduling-follower-{fact['resource']}"
        gaps.append(
            {
                "title": fact["kind"],
                "words": fact["what"],
                "command": f"kubectl create clusterrole {role} --verb=get,list,watch --resource={resource}"
                if resource
                else "",
            }
        )
    if cluster.config is None:
        gaps.append(
            {
                "title": "The scheduler’s configuration",
                "words": "The default one is assumed: with other weights or plugins, decisions seem to differ.",
                "command": "kube-scheduler-playground follow --config FILE",
            }
        )
    return gaps
