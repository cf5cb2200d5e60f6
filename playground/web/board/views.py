"""Ticks for open pages. A tick says only that something changed; the page then asks for its fragments."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from playground.clusters import pulse
from playground.clusters.choices import ClockMode, QuestionKind
from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive.config import set_clock
from playground.clusters.drive.runs import cancel_run, decide_permit, request_run
from playground.clusters.errors import NotFound
from playground.clusters.foreign.agreement import n_foreign_decisions
from playground.clusters.history.cycles import cycles
from playground.clusters.history.queue import lanes_of, pending_groups
from playground.clusters.objects.queries import current_run
from playground.clusters.objects.write import set_cordon
from playground.clusters.pulse import HERE, RETRY, changes
from playground.clusters.questions import is_stale, latest_question
from playground.clusters.row_types import Cluster, Cycle, Run
from playground.clusters.trouble import why_clocks_wait, why_run_waits
from playground.scenarios.selectors import visible_scenarios
from playground.web.board.nodes import NODE_COLUMNS, BoardAddress, view_nodes
from playground.web.board.queue import GROUPED, inspect, reserved_nodes, view_lanes
from playground.web.listing import Alike, sorted_columns
from playground.web.looks import priority_scale
from playground.web.requests import HtmxHttpRequest, digest_of, done, get_cluster


async def tick_events(pk: int) -> AsyncIterator[bytes]:
    """Server-sent events of one cluster: ``tick`` on every change, a comment now and then to stay open."""
    yield RETRY
    async for stamp in changes(pk):
        yield HERE if stamp is None else f"event: tick\ndata: {stamp}\n\n".encode()


# Fragments a tick may bring anew: id of the root element, template. The order is that of `have`.
FRAGMENTS = (
    ("runbar", "board/runbar.html"),
    ("queue", "board/queue.html"),
    ("nodes-view", "board/nodes.html"),
    ("inspector", "board/inspector.html"),
    ("feed", "board/feed.html"),
)
STOP_POLLING = 286
GUIDED_CYCLES = 3
FEED_SHOWN = 20
LEAST_ALIKE = 3
"""Cycles from which on neighbours that ended alike are one entry of the feed."""


def board(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The whole board; its nodes alone where a filter or another view of them asks."""
    if not (request.htmx and request.htmx.target == "nodes-view") or request.htmx.history_restore_request:
        return page_of(request, cluster)
    context = _context(request, cluster)
    html = render_to_string("board/nodes.html", context, request)
    # The next tick brings what differs from this: nothing is known of the other fragments here.
    queue = render_to_string("board/queue.html", context, request)
    known = {"nodes-view": digest_of(html), "queue": digest_of(queue)}
    context["have"] = ".".join(known.get(root, "") for root, _ in FRAGMENTS)
    state = render_to_string("board/pulse_state.html", context, request)
    url = f"{reverse('web:board', args=[cluster.public_id])}{context['address'].href()}"
    parts = (html, _out_of_band(queue, "queue"), _out_of_band(state, "pulse-state"))
    return HttpResponse("".join(parts), headers={"HX-Push-Url": url})


def page_of(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """The board of a cluster the user may see."""
    context = _context(request, cluster)
    html = {root: render_to_string(template, context, request) for root, template in FRAGMENTS}
    context["have"] = ".".join(digest_of(part) for part in html.values())
    context["html"] = {root.partition("-")[0]: part for root, part in html.items()}
    if cluster.parent_share:
        context["from_share"] = visible_scenarios(request.user).filter(public_id=cluster.parent_share).first()
    return render(request, "board/page.html", context)


def live(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """Answer a tick: out of band, each fragment that is not what the page has, and the new digests.

    304 when nothing changed; 286 (stop asking) when the cluster is gone.
    """
    try:
        cluster = get_cluster(request, cluster_id)
    except NotFound:
        return HttpResponse(render_to_string("board/gone.html"), status=STOP_POLLING)
    stamp = pulse.stamps_of([cluster.pk])[cluster.pk]
    view = request.GET.urlencode()
    etag = f'"{hashlib.sha256(f"{stamp}|{view}".encode()).hexdigest()[:20]}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponseNotModified(headers={"ETag": etag})
    context = _context(request, cluster)
    had = request.GET.get("have", "").split(".")
    digests, changed = [], []
    for i, (root, template) in enumerate(FRAGMENTS):
        html = render_to_string(template, context, request)
        digest = digest_of(html)
        digests.append(digest)
        if i >= len(had) or had[i] != digest:
            changed.append(_out_of_band(html, root))
    context["have"] = ".".join(digests)
    state = _out_of_band(render_to_string("board/pulse_state.html", context, request), "pulse-state")
    response = HttpResponse("".join((state, *changed)))
    response["ETag"] = etag
    response["Cache-Control"] = "no-cache"
    return response


def ticks(request: HttpRequest, cluster: Cluster) -> HttpResponse | StreamingHttpResponse:
    """Server-sent ticks of one cluster. Refused under WSGI, where an endless answer would hold a worker."""
    if not isinstance(request, ASGIRequest):
        return HttpResponse(
            "Ticks need ASGI; the page polls instead.\n", status=501, content_type="text/plain"
        )
    response = StreamingHttpResponse(tick_events(cluster.pk), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def inspector(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The inspector of one node or pod; without htmx the board with it open."""
    asked = BoardAddress.read(request.GET)
    board_url = reverse("web:board", args=[cluster.public_id])
    if not request.htmx:
        return redirect(f"{board_url}{asked.href()}#inspector")
    selected = asked.selected
    address = _address_now(request).selecting(selected)
    queued, _ = lanes_of(cluster, full=False)
    context = {
        "address": address,
        "selected": selected,
        "inspected": inspect(cluster, priority_scale(cluster), selected, queued),
    }
    html = render_to_string("board/inspector.html", context, request)
    # The next tick shall ask about this one.
    state = format_html(
        '<input type="hidden" name="selected" id="pulse-selected" value="{}" hx-swap-oob="outerHTML">',
        selected,
    )
    # What is selected is in the address: a link carries it, and Back leads to what was selected before.
    return HttpResponse(html + state, headers={"HX-Push-Url": f"{board_url}{address.href()}"})


def run(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """Ask for a cycle, a run until idle, or the time up to the next timer."""
    until = request.POST.get("until", "cycle")
    if until == "time":
        left_ns = max(0, (cluster.next_deadline_ns or cluster.now_ns) - virtual_now_ns(cluster))
        until = f"{left_ns / 1e9:.9f}s"
    request_run(cluster=cluster, until=until)
    return _after_action(request, cluster)


def run_cancel(request: HtmxHttpRequest, cluster: Cluster, run: Run) -> HttpResponse:
    """Stop a run; what it has done stays done."""
    cancel_run(run=run)
    return _after_action(request, cluster)


def clock(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """Let the cluster's clock run with the wall clock (Auto), pause it, or do the other one (``toggle``)."""
    mode = request.POST.get("mode", "")
    if mode == "toggle":
        is_auto = cluster.clock_mode == ClockMode.REALTIME
        mode = ClockMode.PAUSED if is_auto else ClockMode.REALTIME
    set_clock(cluster=cluster, mode=mode)
    return _after_action(request, cluster)


def permit(request: HttpRequest, cluster: Cluster, namespace: str, name: str) -> HttpResponse:
    """Allow or reject a pod that waits at Permit."""
    decide_permit(cluster=cluster, namespace=namespace, name=name, decision=request.POST.get("decision", ""))
    request_run(cluster=cluster, until="idle")
    return redirect("web:board", cluster.public_id)


def cordon(request: HttpRequest, cluster: Cluster, name: str) -> HttpResponse:
    """Cordon a node, or lift the cordon."""
    on = request.POST.get("unschedulable") == "1"
    set_cordon(cluster=cluster, node=name, unschedulable=on)
    words = f"{name} is {'cordoned' if on else 'uncordoned'}."
    return done(request, words, "web:board", cluster.public_id, anchor=f"?node={name}#inspector")


def _after_action(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """Redirect to the board; htmx asks for what changed, as after a tick.

    The answer brings no part of the board itself: a tick may have been faster and have brought a newer one.
    """
    if not request.htmx:
        return redirect("web:board", cluster.public_id)
    # Nothing is swapped, which could meet a page that is just going away.
    return HttpResponse(status=204, headers={"HX-Trigger": "pulse"})


def _context(request: HttpRequest, cluster: Cluster) -> dict[str, Any]:
    scale = priority_scale(cluster)
    address = BoardAddress.read(request.GET)
    queued, counts = lanes_of(cluster, full=False)
    nodes = view_nodes(cluster, scale, address, reserved=reserved_nodes(queued))
    lanes = view_lanes(
        queued,
        counts,
        scale,
        now_ns=virtual_now_ns(cluster),
        groups=pending_groups(cluster, queued, counts, GROUPED),
        fixes=_fixes(cluster) if sum(counts[lane] for lane in GROUPED) else {},
        pick=address.pick,
    )
    ready = [item.name for item in queued["active"]]
    n_cycles = cluster.next_cycle - 1
    return {
        "cluster": cluster,
        "tab": "board",
        "nodes": nodes,
        "columns": sorted_columns(NODE_COLUMNS, address.sort or "name") if nodes["view"] == "table" else (),
        "lanes": lanes,
        "n_queued": sum(lane["count"] for lane in lanes if lane["key"] != "foreign"),
        "n_unschedulable": counts["unschedulable"],
        "feed": view_feed(cycles(cluster)),
        "n_cycles": n_cycles,
        "n_foreign": 0 if n_cycles else n_foreign_decisions(cluster),
        "guide": _guide(ready, n_cycles),
        "address": address,
        "selected": address.selected,
        "inspected": inspect(cluster, scale, address.selected, queued),
        "streams": isinstance(request, ASGIRequest),
        **_run_context(cluster),
    }


def _fixes(cluster: Cluster) -> dict[str, Mapping[str, Any]]:
    """The cause and the best fix of each pending pod: of the newest answer about all, as long as it holds."""
    question = latest_question(cluster, QuestionKind.FIX, {})
    if question is None or question.answer is None or is_stale(cluster, question):
        return {}
    return {pod: item for item in question.answer["workloads"] for pod in item["pods"]}


def view_feed(cycles: Sequence[Cycle]) -> list[Alike[Cycle]]:
    """Entries of the feed: neighbouring cycles of one workload with one end are one; its name begins the `key`."""

    def ended(cycle: Cycle) -> tuple[str, ...]:
        workload = cycle.pod_name.rpartition("-")[0] or cycle.pod_name
        return workload, cycle.pod_namespace, cycle.outcome, "" if cycle.node else cycle.message

    runs = [Alike(key, [*run]) for key, run in groupby(cycles, ended)]
    return [
        one
        for run in runs
        for one in ([run] if run.n >= LEAST_ALIKE else [Alike(run.key, [cycle]) for cycle in run.items])
    ][:FEED_SHOWN]


def _address_now(request: HtmxHttpRequest) -> BoardAddress:
    """What the page that asks shows; a plain board where that is not known."""
    return BoardAddress.read(QueryDict(urlsplit(request.htmx.current_url or "").query))


def _run_context(cluster: Cluster) -> Mapping[str, Any]:
    newest = current_run(cluster)
    is_open = newest is not None and newest.is_open
    deadline = cluster.next_deadline_ns
    is_auto = cluster.clock_mode == ClockMode.REALTIME
    now_ns = virtual_now_ns(cluster)
    return {
        "is_auto": is_auto,
        "now_ns": now_ns,
        "elapsed_ms": max(0, now_ns - cluster.start_ns) // 1_000_000,
        "run": newest,
        "run_open": is_open,
        "run_percent": round(100 * (newest.progress or 0)) if newest else 0,
        "run_words": _run_words(newest),
        "why_waiting": why_clocks_wait() if is_auto else why_run_waits(newest),
        "to_deadline_ns": max(0, deadline - now_ns) if deadline else None,
    }


def _run_words(newest: Run | None) -> str:
    """How the last run ended. The feed shows a single cycle already, and the clock the next timer."""
    if newest is None or newest.is_open or newest.stop == "cycle":
        return ""
    return (newest.message or f"{newest.cycles_done} cycles done").partition("; next:")[0]


def _guide(ready: Sequence[str], n_cycles: int) -> dict[str, Any] | None:
    """First steps beside the feed, for a user who has run hardly a cycle here; names of the next two pods."""
    if n_cycles >= GUIDED_CYCLES or not (ready or n_cycles):
        return None
    first, second = (*ready[:2], "", "")[:2]
    return {"n_cycles": n_cycles, "next": first, "after": second}


def _out_of_band(html: str, root: str) -> str:
    """Mark the root element to take the place of the one with its id."""
    return html.replace(f'id="{root}"', f'id="{root}" hx-swap-oob="outerHTML"', 1)
