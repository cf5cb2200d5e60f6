"""A live cluster on its page: how far its follower is, its decisions beside ours, what waits, what is not known."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode

from playground.clusters.board.nodes import node_uses, pools_of
from playground.clusters.choices import QuestionKind
from playground.clusters.clock import virtual_now_ns
from playground.clusters.errors import InvalidInput
from playground.clusters.foreign import agreement, following
from playground.clusters.foreign.following import MINUTE_NS
from playground.clusters.memo import Memo
from playground.clusters.questions import is_stale, latest_question
from playground.clusters.row_types import Cluster, FollowedCluster, ForeignDecision, Question
from playground.engine.configuration import loaded_and_problem
from playground.web.judge import view_decision
from playground.web.looks import View, priority_scale
from playground.web.requests import HtmxHttpRequest, done, positive_int
from scheduler_core.clock import SECOND_NS
from scheduler_core.incident.verdicts import UNLIKE
from scheduler_core.objects.fields import format_time_ns

WINDOWS: Final[Mapping[int, str]] = {1: "Last hour", 6: "6 hours", 24: "Day"}
N_BINS: Final = 60
HEIGHT: Final = 44
"""Of a bar, in units of the drawing; the triangles are above it."""
STREAM: Final = 8
AT_ONCE: Final = 6
"""More new decisions than these, two a second, are shown when a person asks for them."""
LATE_NS: Final = {300 * SECOND_NS: "5 minutes", 3600 * SECOND_NS: "an hour"}
"""As `following.WAITS_S` has them for a machine."""
FIXES_S: Final = 60
"""Fixes that are younger are not looked for again."""
PARTS: Final = 6
_ANSWERS: Final[Memo[Mapping[str, Mapping[str, Any]]]] = Memo(32)
GROUPS: Final = 6
IN_TERMINAL: Final = 6
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "connecting": ("wait", "Connecting"),
    "following": ("ok", "Following, read-only"),
    "behind": ("warn", "Following, behind"),
    "paused": ("wait", "Judging is paused"),
    "lost": ("bad", "Lost"),
    "stopped": ("", "Stopped"),
}
"""Colour of the mark and words of each state of a follower."""
CAUSES: Final[Mapping[str, str]] = {
    "nodes": "nodes not seen",
    "filter": "a filter left out",
    "weight": "another weight",
    "score": "another score",
}


def followed(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """A live cluster; for htmx what moves by itself, or the span that is chosen."""
    row = following.found_follower(cluster)
    context: dict[str, Any] = {"followed": row, "server": request.build_absolute_uri("/").rstrip("/")}
    if row is None:
        return render(request, "followed/page.html", context)
    if request.htmx and request.htmx.target == "span":
        return render(
            request,
            "followed/span.html",
            context | _span(request, cluster, row, following.pending(cluster, 200)),
        )
    waiting = following.pending(cluster)
    context |= _now(request, cluster, row, waiting)
    if request.htmx and request.htmx.target == "now":
        return render(request, "followed/now.html", context | {"is_part": True})
    now_ns = virtual_now_ns(cluster)
    context |= _span(request, cluster, row, waiting) | {
        "present": (format_time_ns(now_ns), format_time_ns(now_ns + SECOND_NS)),
        "terminal": [_in_terminal(one) for one in reversed(context["rows"][:IN_TERMINAL])],
    }
    return render(request, "followed/page.html", context)


def _row(one: ForeignDecision) -> View:
    return view_decision(one) | {
        "clock": _clock(one.at_ns, tenths=True),
        "is_unexplained": one.verdict in UNLIKE and not one.cause,
    }


def _in_terminal(one: View) -> str:
    row = one["row"]
    where = f"on {row.node}" if row.node else "on no node"
    return f"{one['clock']}  {one['title']:<15}  {row.pod} {where}: {one['why']}"


def stop(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """End the follower's session."""
    row = following.stop(cluster=cluster)
    return done(request, f"Stopped following {row.source}.", "web:followed", cluster.public_id)


def pause(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Judge no decisions from now on, or judge again."""
    row = following.pause(cluster=cluster, paused=bool(request.POST.get("paused")))
    said = "Decisions are not judged from now on" if row.is_paused else "Decisions are judged again"
    return done(request, f"{said}.", "web:followed", cluster.public_id)


def _now(
    request: HtmxHttpRequest, cluster: Cluster, row: FollowedCluster, waiting: Sequence[following.Pending]
) -> View:
    state = following.state_of(row)
    verdict, before = request.GET.get("verdict", ""), positive_int(request.GET.get("before"))
    top = positive_int(request.GET.get("top"))
    try:
        page, older = agreement.decisions(cluster, verdict=verdict, before=before, limit=STREAM)
        newer = agreement.n_newer(cluster, top, verdict=verdict) if top and not before else 0
        if top and newer > AT_ONCE and request.htmx:
            # So many would push away what a person reads.
            page, older = agreement.decisions(cluster, verdict=verdict, before=top + 1, limit=STREAM)
        else:
            newer = 0
    except InvalidInput as error:
        raise Http404(error.message) from None
    said = positive_int(request.GET.get("said")) or 0
    minute = time.time_ns() // MINUTE_NS
    shown = {"verdict": verdict, "before": before, "top": page[0].seq if page else None, "said": minute}
    figures = following.figures_of(cluster)
    now_ns = virtual_now_ns(cluster)
    return {
        "state": state,
        "mark": STATES[state],
        "lag_s": row.lag_ms / 1000,
        "limits": {"days": settings.PLAYGROUND_FOLLOW_DAYS, "mb": settings.PLAYGROUND_FOLLOW_MB},
        "kept_from_ns": following.begins_ns(cluster, row),
        "objects": following.objects_of(cluster),
        "figures": figures,
        "causes": ", ".join(f"{n:,} {CAUSES[cause]}" for cause, n in sorted(figures.causes.items()) if cause),
        "rows": [_row(one) for one in page],
        "older": older,
        "verdict": verdict,
        "poll": f"?{urlencode({key: item for key, item in shown.items() if item})}",
        "n_new": newer,
        "said": f"{figures.n_judged:,} decisions judged, {figures.n_differ:,} differ"
        if said < minute
        else "",
        **_pending(cluster, waiting, now_ns),
        "gaps": _gaps(cluster, row),
        "n_pending": sum(one.n for one in waiting),
        "n_groups": len(waiting),
        "n_more_groups": max(0, len(waiting) - GROUPS),
        "is_cut": sum(one.n for one in waiting) >= following.MOST_PENDING,
    }


def _pending(cluster: Cluster, waiting: Sequence[following.Pending], now_ns: int) -> View:
    """Groups of pending pods with cause and best fix, as the page of fixes had them last, and those that wait long."""
    scale = priority_scale(cluster)
    question = latest_question(cluster, QuestionKind.FIX, {})
    answers = _ANSWERS.get((question.pk, question.state), lambda: _of_pods(question)) if question else {}
    rows = []
    for one in waiting[:GROUPS]:
        answer = answers.get("/".join(one.pod))
        waits_ns = max(0, now_ns - one.since_ns)
        rows.append(
            {
                "of": one,
                "mark": scale.mark(one.priority, one.priority_class),
                "waits_ns": waits_ns,
                "is_late": waits_ns > min(LATE_NS),
                "cause": answer["headline"] if answer else one.message or one.reason or "not tried yet",
                "best": answer["best"] if answer else None,
                "is_asked": answer is not None,
            }
        )
    late = []
    for longer_ns, longer in LATE_NS.items():
        causes: Counter[str] = Counter()
        for one in waiting:
            n = sum(now_ns - since_ns > longer_ns for since_ns in one.all_since_ns)
            causes[one.plugin or one.reason or "not tried"] += n
        if n := causes.total():
            late.append(
                {
                    "longer": longer,
                    "n": n,
                    "causes": [item for item in causes.most_common(4) if item[1]],
                }
            )
    return {
        "pending": rows,
        "late": late,
        "fixes_as_of": question.created if question is not None and answers else None,
        "asks_for_fixes": bool(waiting)
        and (question is None or (is_stale(cluster, question) and not _is_young(question))),
    }


def _of_pods(question: Question) -> Mapping[str, Mapping[str, Any]]:
    """An answer about all that is pending, by pod."""
    answer = question.answer or {}
    return {pod: workload for workload in answer.get("workloads") or () for pod in workload["pods"]}


def _is_young(question: Question) -> bool:
    return (timezone.now() - question.created).total_seconds() < FIXES_S


def _span(
    request: HttpRequest, cluster: Cluster, row: FollowedCluster, waiting: Sequence[following.Pending]
) -> View:
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
    parts = []
    for place in range(PARTS):
        low, high = (first + (last - first) * at // PARTS for at in (place, place + 1))
        within = [
            sum(column)
            for column in zip(*bins[place * N_BINS // PARTS : (place + 1) * N_BINS // PARTS], strict=True)
        ]
        words = {"begins": _clock(low * MINUTE_NS), "ends": _clock(high * MINUTE_NS)}
        parts.append(
            {
                "from": low,
                "to": high,
                **words,
                **dict(zip(("n", "n_no_node", "n_unlike"), within, strict=True)),
            }
        )
    begins_ns = max(from_ * MINUTE_NS, following.begins_ns(cluster, row))
    ends_ns = max(begins_ns + 1, to * MINUTE_NS)
    return {
        "span": {
            "parts": parts,
            "from_ms": max(0, begins_ns - cluster.start_ns) // 1_000_000,
            "to_ms": max(0, ends_ns - cluster.start_ns) // 1_000_000,
            **_choices(cluster, waiting),
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
            "to_time": format_time_ns(ends_ns),
            "n": chosen[0],
            "n_no_node": chosen[1],
            "n_unlike": chosen[2],
            "step": step,
        }
    }


def _choices(cluster: Cluster, waiting: Sequence[following.Pending]) -> View:
    """What could have been: a node of which kind more, which weights, and whose priority."""
    kinds: dict[str, list[str]] = {}
    for node, pool in pools_of(cluster).items():
        kinds.setdefault(pool, []).append(node)
    alike = [(nodes[0], f"{pool} ({len(nodes):,})") for pool, nodes in sorted(kinds.items())]
    return {
        "nodes": alike or [(use.name, use.name) for use in node_uses(cluster)[:20]],
        "weights": loaded_and_problem(cluster.config, cluster.release)[0].plans[0].weights.items(),
        "waiting": sorted({f"{one.pod[0]}/{one.name}" for one in waiting[:200]}),
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
