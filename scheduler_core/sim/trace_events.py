"""A timeline as a file of Chrome's Trace Event Format, which ui.perfetto.dev opens.

Source: "Trace Event Format", the JSON object format; `ts` and `dur` are microseconds, here of virtual time since the
clock began. A cycle takes no virtual time: those of one moment follow one another a nanosecond an extension point, so
that they can be told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from scheduler_core.sim.outlook import brief_words, effect_of
from scheduler_core.sim.timeline import ON_A_NODE, CycleMark, Timeline
from scheduler_core.version import ENGINE_VERSION

QUEUE: Final = 1
SCHEDULER: Final = 2
CONTROLLERS: Final = 3
FIRST_NODE: Final = 4

Event = dict[str, Any]


def trace_events(timeline: Timeline, title: str = "") -> dict[str, Any]:
    """The file, JSON-able.

    Processes are the queue (a thread a pod: its states without a node), the scheduler (a thread a profile: a slice a
    cycle, its extension points within), the controllers (a thread each: an instant a run, its category whether it
    acts, takes away or looks) and each node (a thread a pod). A flow leads from a preempting cycle to where
    each of its victims ends.
    """
    return {
        "traceEvents": [*_named(QUEUE, "Queue"), *_named(SCHEDULER, "Scheduler"), *_Events(timeline).all()],
        "displayTimeUnit": "ms",
        "otherData": {"title": title, "engine": ENGINE_VERSION, "clock": "virtual"},
    }


class _Events:
    """Events of one timeline; numbers of processes and threads are in the order of the pods."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.nodes: dict[str, int] = {}
        self.threads: dict[tuple[int, str], int] = {}
        self._n_of: defaultdict[int, int] = defaultdict(int)

    def all(self) -> Iterator[Event]:
        for lane in self.timeline.pods:
            for span in lane.spans:
                in_queue = span.state not in ON_A_NODE or not span.node
                process = QUEUE
                if not in_queue:
                    if span.node not in self.nodes:
                        self.nodes[span.node] = FIRST_NODE + len(self.nodes)
                        yield from _named(self.nodes[span.node], span.node)
                    process = self.nodes[span.node]
                yield from self._thread(process, lane.pod)
                yield {
                    **self._at(process, lane.pod, span.from_ns),
                    "ph": "X",
                    "name": span.state,
                    "cat": "queue" if in_queue else "node",
                    "dur": _us(span.to_ns - span.from_ns),
                    "args": {"pod": lane.pod, **({"node": span.node} if span.node else {})},
                }
        cycles = sorted(
            ((cycle, lane.pod) for lane in self.timeline.pods for cycle in lane.cycles),
            key=lambda item: (item[0].at_ns, item[0].number),
        )
        starts = {}
        free_ns: defaultdict[str, int] = defaultdict(int)
        for cycle, pod in cycles:
            yield from self._thread(SCHEDULER, cycle.profile)
            yield from self._thread(QUEUE, pod)
            starts[cycle.number] = start_ns = max(cycle.at_ns, free_ns[cycle.profile])
            free_ns[cycle.profile] = start_ns + max(1, len(cycle.points))
            yield from self._cycle(cycle, pod, start_ns)
        yield from self._flows({cycle.number: cycle.profile for cycle, _ in cycles}, starts)
        yield from self._runs()

    def _runs(self) -> Iterator[Event]:
        if self.timeline.runs:
            yield from _named(CONTROLLERS, "Controllers")
        for run in self.timeline.runs:
            name = f"{run.controller} {run.subject}".rstrip()
            yield from self._thread(CONTROLLERS, name)
            yield {
                **self._at(CONTROLLERS, name, run.at_ns),
                "ph": "i",
                "s": "t",
                "name": brief_words(run),
                "cat": effect_of(run),
                "args": {"did": [*map(str, run.did)], "about": [*run.news]},
            }

    def _cycle(self, cycle: CycleMark, pod: str, start_ns: int) -> Iterator[Event]:
        told = {"pod": pod, "cycle": cycle.number, "outcome": cycle.outcome, "node": cycle.node}
        yield {
            **self._at(SCHEDULER, cycle.profile, start_ns),
            "ph": "X",
            "name": f"{cycle.number} {pod}",
            "cat": "cycle",
            "dur": max(1, len(cycle.points)) / 1000,
            "args": told,
        }
        for place, point in enumerate(cycle.points):
            yield {
                **self._at(SCHEDULER, cycle.profile, start_ns + place),
                "ph": "X",
                "name": point,
                "cat": "extension point",
                "dur": 0.001,
            }
        yield {
            **self._at(QUEUE, pod, cycle.at_ns),
            "ph": "i",
            "s": "t",
            "name": f"cycle {cycle.number}: {cycle.outcome}",
            "cat": "cycle",
            "args": told,
        }

    def _flows(self, profiles: dict[int, str], starts: dict[int, int]) -> Iterator[Event]:
        where = {
            lane.pod: [span for span in lane.spans if span.state == "terminating" and span.node]
            for lane in self.timeline.pods
        }
        for number, eviction in enumerate(self.timeline.evictions, 1):
            ends = [span for span in where.get(eviction.victim, ()) if span.from_ns == eviction.at_ns]
            if not ends or eviction.cycle not in starts:
                continue
            flow = {"name": "preemption", "cat": "preemption", "id": number}
            begun = self._at(SCHEDULER, profiles[eviction.cycle], starts[eviction.cycle])
            yield {**begun, **flow, "ph": "s", "args": {"preemptor": eviction.preemptor}}
            ended = self._at(self.nodes[ends[0].node], eviction.victim, eviction.at_ns)
            ended["ts"] = max(ended["ts"], begun["ts"])
            yield {**ended, **flow, "ph": "f", "bp": "e", "args": {"victim": eviction.victim}}

    def _thread(self, process: int, name: str) -> Iterator[Event]:
        if (process, name) not in self.threads:
            self._n_of[process] += 1
            self.threads[process, name] = self._n_of[process]
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": process,
                "tid": self._n_of[process],
                "args": {"name": name},
            }

    def _at(self, process: int, thread: str, at_ns: int) -> Event:
        return {
            "pid": process,
            "tid": self.threads[process, thread],
            "ts": _us(at_ns - self.timeline.from_ns),
        }


def _us(span_ns: int) -> float:
    return span_ns / 1000


def _named(process: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}
