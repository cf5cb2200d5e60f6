"""The timeline: lanes of pods, controllers and nodes in virtual time, of a cluster or a shared scenario; its trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from playground.clusters.board.nodes import node_uses
from playground.clusters.board.pods import count_pods
from playground.clusters.history.controllers import SCALES_PODS
from playground.clusters.history.cycles import sentences_of
from playground.clusters.history.story import cluster_timeline
from playground.clusters.row_types import Cluster
from playground.scenarios import selectors
from playground.scenarios.row_types import Scenario
from playground.web.amounts import cores, duration, name_parts, since_start
from playground.web.looks import PriorityScale, View, priority_scale
from playground.web.requests import HtmxHttpRequest, download, positive_int
from scheduler_core.sim.changes import ControllerRun
from scheduler_core.sim.outlook import LOOKS, brief_words, effect_of
from scheduler_core.sim.timeline import ON_A_NODE, PENDING, PodLane, Span, Timeline
from scheduler_core.sim.trace_events import trace_events

LANES, MOST_LANES = 10, 200
NODE_LANES = 3
EVENTS = 8
MS: Final = 1_000_000
N_BINS: Final = 90
STEPS: Final = 1000
"""Steps of a handle over the whole run."""
HEIGHT: Final = 60
"""Of a node's lane, in px."""
LANE_PX: Final = 1050
ORDERS: Final = {"": "Longest waits", "workload": "By name", "node": "By node"}
LEGEND: Final = {
    **{state: state for state in (*PENDING, *ON_A_NODE)},
    "permit": "waits at Permit",
}
_LABELS: Final = {
    "nominated": "nominated to {node}",
    "permit": "waits at Permit",
    "running": "on {node}",
    "terminating": "terminating",
}
CONTROLLERS: Final[Mapping[str, tuple[str, str]]] = {
    "cluster-autoscaler": ("Cluster autoscaler", "c-aut"),
    "descheduler": ("Descheduler", "c-des"),
    "karpenter": ("Karpenter (a model)", "c-aut"),
    "vertical-pod-autoscaler": ("Vertical pod autoscaler (a model)", "c-hpa"),
    SCALES_PODS: ("HPA", "c-hpa"),
    "scheduler": ("Scheduler", "c-sch"),
}
"""Name and style."""
RUN_LANES = 8
_STEPS_S: Final = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400, 604800)


def timeline(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """A cluster's timeline; the drawing alone for htmx."""
    nodes = {use.name: (use.cpu_milli, use.used_cpu_milli) for use in node_uses(cluster)}
    view = view_timeline(
        request.GET, cluster_timeline(cluster), priority_scale(cluster), nodes,
        lambda numbers: sentences_of(cluster, numbers),
    )  # fmt: skip
    view |= {
        "here": reverse("web:timeline", args=[cluster.public_id]),
        "trace_url": reverse("web:trace", args=[cluster.public_id]),
        "cycle_url": reverse("web:cycles", args=[cluster.public_id]),
        "pod_url": reverse("web:pods", args=[cluster.public_id]),
        "n_pods": count_pods(cluster),
    }
    return _answer(request, view)


def trace(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """The same as a file that ui.perfetto.dev opens."""
    return _file(cluster_timeline(cluster), cluster.name)


def share_timeline(request: HtmxHttpRequest, share: Scenario) -> HttpResponse:
    """A shared scenario's timeline, as its first run here recorded it."""
    found, state = selectors.timeline_of(share)
    pods, scale = state.get("pods") or (), PriorityScale([tuple(item) for item in state.get("classes") or ()])
    used: dict[str, int] = {}
    for pod in pods:
        used[pod["node_name"]] = used.get(pod["node_name"], 0) + pod["cpu_milli"]
    nodes = {
        node["name"]: (node["cpu_milli"], node.get("used_cpu_milli", used.get(node["name"], 0)))
        for node in state.get("nodes") or ()
    }
    view = view_timeline(
        request.GET, found, scale, nodes, lambda numbers: selectors.sentences_of(share, numbers)
    )
    view |= {
        "here": reverse("scenarios:timeline", args=[share.public_id]),
        "trace_url": reverse("scenarios:trace", args=[share.public_id]),
        "cycle_url": reverse("scenarios:page", args=[share.public_id]) + "cycles/",
        "n_pods": len(pods),
    }
    return _answer(request, view)


def share_trace(request: HttpRequest, share: Scenario) -> HttpResponse:
    """The same as a file."""
    return _file(selectors.timeline_of(share)[0], share.words)


def _answer(request: HtmxHttpRequest, view: View) -> HttpResponse:
    part = request.htmx and not request.htmx.history_restore_request
    return render(request, "timeline/body.html" if part else "timeline/page.html", {"tl": view})


def _file(found: Timeline, name: str) -> HttpResponse:
    return download(json.dumps(trace_events(found, name)), f"{name} timeline", "json", "application/json")


def view_timeline(
    asked: Mapping[str, str],
    found: Timeline,
    scale: PriorityScale,
    nodes: Mapping[str, tuple[int, int]],
    sentences: Callable[[Iterable[int]], Mapping[int, str]],
) -> View:
    """What the page draws of a stretch of time.

    Parameters
    ----------
    asked
        `from` and `to` in milliseconds since the clock began, `sort`, `q` (part of a pod's or node's name), `n` lanes.
    nodes
        Name -> millicores it has, and those in use now.
    sentences
        Of cycles by their numbers.
    """
    begun = found.from_ns
    ends = [positive_int(asked.get(name)) for name in ("from", "to")]
    first, last = found.bounds_of(*(None if ms is None else begun + ms * MS for ms in ends))
    q, sort = asked.get("q", "").strip(), asked.get("sort", "")
    sort = sort if sort in ORDERS else ""
    n = min(positive_int(asked.get("n")) or LANES, MOST_LANES)
    changed = [lane for lane in found.pods if _changes(lane, first, last) and lane.is_named(q)]
    groups = _alike(sorted(changed, key=_order(sort, first, last)))
    shown = groups[:n]
    lanes = [members[0] for members in shown]
    alike = {members[0].pod: len(members) for members in shown}
    axis = Axis(begun, first, last)
    evicted = {eviction.victim: eviction.preemptor for eviction in found.evictions}
    events = _events(lanes, first, last)
    words = sentences(number for _, _, number, _ in events[:EVENTS])
    kept = {"q": q, "sort": sort}
    return {
        "first": axis.since(first),
        "last": axis.since(last),
        "is_moment": found.is_moment,
        "total_ms": max(1, (found.to_ns - begun) // MS),
        "step_ms": max(1, (found.to_ns - begun) // MS // STEPS),
        "from_ms": (first - begun) // MS,
        "to_ms": -(-(last - begun) // MS),
        "brush": axis.of_whole(first, last, found),
        "view_box": (axis.min, axis.width),
        "ticks": axis.ticks(),
        "overview": _overview(found),
        "lanes": [
            _lane(lane, axis, scale, evicted.get(lane.pod, "")) | {"n_alike": alike[lane.pod]}
            for lane in lanes
        ],
        "controllers": run_lanes([run for run in found.runs if first <= run.at_ns <= last], axis),
        "nodes": _node_lanes(found, lanes, axis, scale, nodes),
        "n_shown": sum(map(len, shown)),
        "n_changed": len(changed),
        "n_all": len(found.pods),
        "more": _query(axis, first, last, **kept, n=min(n + 40, MOST_LANES))
        if n < min(len(groups), MOST_LANES)
        else "",
        "events": [_event(event, words, axis) | {"n_alike": alike[event[1]]} for event in events[:EVENTS]],
        "n_events": len(events),
        "q": q,
        "sort": sort,
        "in_order": ORDERS[sort].lower().replace("waits", "waits first"),
        "orders": [(key, name, _query(axis, first, last, q=q, sort=key)) for key, name in ORDERS.items()],
        "legend": LEGEND.items(),
        "whole": _asked(kept),
        "zoom_in": _query(axis, first + (last - first) // 4, last - (last - first) // 4, **kept),
        "zoom_out": _query(axis, first - (last - first) // 2, last + (last - first) // 2, **kept),
    }


class Axis:
    """Places in a stretch of virtual time."""

    def __init__(self, begun_ns: int, first_ns: int, last_ns: int) -> None:
        self.begun, self.first, self.last = begun_ns, first_ns, last_ns
        self.min, self.width = (first_ns - begun_ns) / MS, max((last_ns - first_ns) / MS, 0.001)

    def ms(self, at_ns: int) -> float:
        """Milliseconds since the clock began: the unit of the lanes."""
        return round((at_ns - self.begun) / MS, 3)

    def percent(self, at_ns: int) -> float:
        """Place within the stretch, 0 to 100."""
        return round(min(100.0, max(0.0, 100 * (at_ns - self.first) / (self.last - self.first))), 2)

    def since(self, at_ns: int) -> str:
        return since_start(at_ns, self.begun)

    def of_whole(self, first: int, last: int, found: Timeline) -> tuple[float, float]:
        """Where the stretch begins in the whole, and its width, in percent."""
        whole = max(1, found.to_ns - found.from_ns)
        return round(100 * (first - found.from_ns) / whole, 2), round(100 * (last - first) / whole, 2)

    def ticks(self) -> list[tuple[float, str]]:
        span_s = (self.last - self.first) / 1e9
        step = next((step for step in _STEPS_S if span_s / step <= 10), _STEPS_S[-1])
        step_ns = int(step * 1e9)
        places = range(
            -(-(self.first - self.begun) // step_ns) * step_ns, self.last - self.begun + 1, step_ns
        )
        return [(self.percent(self.begun + at), self.since(self.begun + at)) for at in places][:40]


def _query(axis: Axis, first: int, last: int, **more: Any) -> str:
    said = {"from": max(0, (first - axis.begun) // MS), "to": -(-(last - axis.begun) // MS), **more}
    return _asked(said)


def _asked(said: Mapping[str, Any]) -> str:
    query = urlencode({key: value for key, value in said.items() if value not in ("", 0)})
    return f"?{query}" if query else ""


def _changes(lane: PodLane, first: int, last: int) -> bool:
    """Whether something happens to a pod within a stretch."""
    return (
        any(first <= cycle.at_ns <= last for cycle in lane.cycles)
        or any(first < at_ns < last for span in lane.spans for at_ns in (span.from_ns, span.to_ns))
        or lane.waited_ns(first, last) > 0
    )


def _alike(lanes: Sequence[PodLane]) -> list[list[PodLane]]:
    """Equal lanes once: pods of one workload with the same stays, wherever they are."""
    found: dict[tuple[Any, ...], list[PodLane]] = {}
    for lane in lanes:
        stays = tuple(span[:3] for span in lane.spans)
        namespace = lane.pod.partition("/")[0]
        found.setdefault((namespace, lane.workload, lane.priority, stays), []).append(lane)
    return [*found.values()]


def _order(sort: str, first: int, last: int) -> Callable[[PodLane], Any]:
    def place(lane: PodLane) -> Any:
        node = next((span.node for span in reversed(lane.spans) if span.node), "~")
        waited = -lane.waited_ns(first, last)
        return {"": (waited, lane.pod), "workload": lane.pod, "node": (node, waited, lane.pod)}[sort]

    return place


def _lane(lane: PodLane, axis: Axis, scale: PriorityScale, evicted_for: str) -> View:
    spans = [span for span in lane.spans if span.to_ns > axis.first and span.from_ns < axis.last]
    cycles, seen = [], set()
    for cycle in lane.cycles:
        place = round(axis.percent(cycle.at_ns) * LANE_PX / 200)
        if axis.first <= cycle.at_ns <= axis.last and place not in seen:
            seen.add(place)
            cycles.append({"x": axis.ms(cycle.at_ns), "cycle": cycle})
    namespace, _, name = lane.pod.partition("/")
    evicted = (
        bool(spans) and lane.ended and spans[-1].state == "terminating" and lane.spans[-1].to_ns < axis.last
    )
    return {
        "pod": lane.pod,
        "namespace": namespace,
        "name": name,
        "mark": scale.mark(lane.priority, lane.priority_class),
        "spans": [_span(span, axis) for span in spans],
        "cycles": cycles,
        "gone": axis.percent(lane.spans[-1].to_ns) if evicted else None,
        "evicted_for": evicted_for,
        "sentence": _sentence(spans, axis, bool(lane.ended))
        + (f"; evicted for {evicted_for.rpartition('/')[2]}" if evicted_for else ""),
    }


def _span(span: Span, axis: Axis) -> View:
    x, end = axis.percent(span.from_ns), axis.percent(span.to_ns)
    took = duration(span.to_ns - span.from_ns)
    words = _LABELS.get(span.state, span.state).format(node=name_parts(span.node).tail)
    where = f" on {span.node}" if span.node else ""
    if span.state not in ON_A_NODE:
        words += f", {took}"
    return {
        "state": span.state,
        "from": axis.ms(span.from_ns),
        "width": axis.ms(span.to_ns) - axis.ms(span.from_ns),
        "x": x,
        "label": words if len(words) * 6.6 + 12 < (end - x) * LANE_PX / 100 else "",
        "on_dark": span.state in ("binding", *ON_A_NODE),
        "title": f"{LEGEND[span.state]}{where} from {axis.since(span.from_ns)}, {took}",
    }


def _sentence(spans: Sequence[Span], axis: Axis, is_over: bool) -> str:
    """What a lane shows, in words."""
    waits: dict[str, int] = {}
    for span in spans:
        if span.state not in ("running", "starting"):
            stayed = min(span.to_ns, axis.last) - max(span.from_ns, axis.first)
            waits[span.state] = waits.get(span.state, 0) + stayed
    parts = [f"{duration(ns)} {LEGEND[state].removeprefix('waits ')}" for state, ns in waits.items()]
    placed = next((span.node for span in reversed(spans) if span.state in ON_A_NODE), "")
    ended = (
        "gone"
        if is_over and spans and spans[-1].to_ns < axis.last
        else f"on {name_parts(placed).tail}"
        if placed
        else ""
    )
    return "; ".join(filter(None, (", ".join(parts), ended))) or "tried, at this moment alone"


def controller_name(controller: str, subject: str = "") -> str:
    """In words; of one with a subject, whose it is."""
    name = controller.rpartition("/")[2]
    words = CONTROLLERS.get(name, (name,))[0]
    return f"{words} of {subject.rpartition('/')[2]}" if subject else words


def controller_css(controller: str) -> str:
    """The style of its colour."""
    return CONTROLLERS.get(controller.rpartition("/")[2], ("", "c-sch"))[1]


def run_lanes(runs: Sequence[ControllerRun], axis: Axis) -> View:
    """A lane a controller, those that did most first; runs within two pixels are one mark.

    Parameters
    ----------
    runs
        Oldest first.
    """
    of: dict[tuple[str, str], list[ControllerRun]] = {}
    for run in runs:
        of.setdefault((run.controller, run.subject), []).append(run)
    order = sorted(of, key=lambda key: (-sum(bool(run.did) for run in of[key]), key))
    lanes = [
        {
            "name": controller_name(*key),
            "css": controller_css(key[0]),
            "marks": (marks := _marks(of[key], axis)),
            "newest": marks[-6:][::-1],
        }
        for key in order[:RUN_LANES]
    ]
    return {"lanes": lanes, "n_more": len(of) - len(lanes)}


def _marks(runs: Sequence[ControllerRun], axis: Axis) -> list[View]:
    places: dict[int, list[ControllerRun]] = {}
    for run in runs:
        places.setdefault(round(axis.percent(run.at_ns) * LANE_PX / 200), []).append(run)
    marks = []
    for some, following in zip(places.values(), [*[2 * place for place in places][1:], LANE_PX], strict=True):
        run = max(some, key=lambda one: (effect_of(one) != LOOKS, bool(one.did)))
        words = brief_words(run) + (f" and {len(some) - 1:,} more" if len(some) > 1 else "")
        lines = [*map(str, run.did)] or [*run.news] or [LOOKS]
        x = axis.percent(run.at_ns)
        marks.append({
            "x": x, "effect": effect_of(run), "words": words, "at": axis.since(run.at_ns),
            "label": words if effect_of(run) != LOOKS and x * LANE_PX / 100 + 20 + 6.2 * len(words) < following else "",
            "whole": "; ".join([*lines[:4], *(["and more"] if len(lines) > 4 else [])]),
        })  # fmt: skip
    return marks


def _node_lanes(
    found: Timeline,
    lanes: Sequence[PodLane],
    axis: Axis,
    scale: PriorityScale,
    nodes: Mapping[str, tuple[int, int]],
) -> list[View]:
    """The first nodes that the lanes name: height is cpu, an area a pod, those to which nothing happened below."""
    named = dict.fromkeys(
        span.node for lane in lanes for span in lane.spans if span.node in nodes and span.to_ns > axis.first
    )
    shown = [*named][:NODE_LANES]
    areas: dict[str, list[tuple[int, int, int, PodLane, str]]] = {name: [] for name in shown}
    for lane in found.pods:
        for span in lane.spans:
            if span.node in areas and (span.state in ON_A_NODE or span.state == "nominated"):
                areas[span.node].append((span.from_ns, span.to_ns, lane.cpu_milli, lane, span.state))
    views = []
    for name in shown:
        has, used = nodes[name]
        here = sum(cpu for _, to, cpu, _, state in areas[name] if to >= found.to_ns and state in ON_A_NODE)
        others, scaled = max(0, used - here), HEIGHT / max(1, has)
        slots: list[tuple[int, int, int, int]] = []
        drawn = []
        for start, end, cpu, lane, state in sorted(
            areas[name], key=lambda item: (item[0], -item[2], item[3].pod)
        ):
            # A pod keeps its place while it is there; the lowest one that is free all the time.
            floor = others
            for low, high, before, after in sorted(slots):
                if before < end and after > start and low < floor + cpu and high > floor:
                    floor = high
            if state != "nominated":
                slots.append((floor, floor + cpu, start, end))
            if end > axis.first and start < axis.last:
                drawn.append(
                    {
                        "pod": lane.pod,
                        "state": state,
                        "from": axis.ms(start),
                        "width": axis.ms(end) - axis.ms(start),
                        "y": round(HEIGHT - (floor + cpu) * scaled, 2),
                        "height": round(max(1.5, cpu * scaled), 2),
                        "css": scale.mark(lane.priority, lane.priority_class).css,
                        "title": f"{lane.pod}, {cores(cpu)} CPU, {state}",
                    }
                )
        views.append(
            {
                "name": name,
                "cpu": cores(has),
                "others": round(others * scaled, 2),
                "others_y": round(4 + HEIGHT - others * scaled, 2),
                "others_cpu": cores(others),
                "areas": drawn,
                "words": f"{name}, {cores(has)} CPU: {'; '.join(str(area['title']) for area in drawn)}",
            }
        )
    return views


def _overview(found: Timeline) -> View:
    """How many cycles each part of the whole had, and in how many no node was found."""
    step_s = max(0.001, (found.to_ns - found.from_ns) / 1e9 / N_BINS)
    step_ns = int(next((step for step in _STEPS_S if step >= step_s), _STEPS_S[-1]) * 1e9)
    n_bins = max(1, -(-(found.to_ns - found.from_ns) // step_ns))
    bins: dict[int, list[int]] = {}
    for lane in found.pods:
        for cycle in lane.cycles:
            counts = bins.setdefault(min((cycle.at_ns - found.from_ns) // step_ns, n_bins - 1), [0, 0])
            counts[0] += 1
            counts[1] += not cycle.node
    most = max((counts[0] for counts in bins.values()), default=1)
    return {
        "n_bins": n_bins,
        "step": duration(step_ns),
        "bars": [
            (place, round(40 * n / most, 2), round(40 * failed / most, 2))
            for place, (n, failed) in sorted(bins.items())
        ],
        "end": since_start(found.to_ns, found.from_ns),
    }


_Event = tuple[int, str, int, str]
"""When, of which pod, in which cycle, what."""


def _events(lanes: Sequence[PodLane], first: int, last: int) -> list[_Event]:
    return sorted(
        (cycle.at_ns, lane.pod, cycle.number, cycle.outcome)
        for lane in lanes
        for cycle in lane.cycles
        if first <= cycle.at_ns <= last
    )


def _event(event: _Event, words: Mapping[int, str], axis: Axis) -> View:
    at_ns, pod, number, outcome = event
    return {
        "at": axis.since(at_ns),
        "pod": pod,
        "number": number,
        "outcome": outcome,
        "words": words.get(number, "").removeprefix(f"{pod} "),
    }
