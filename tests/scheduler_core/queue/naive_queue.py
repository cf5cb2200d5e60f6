"""The queue as plainly as it can be told: lists, whole scans, one pass a second. The twin to compare with.

Written from the description of v1.34's queue, not from `scheduler_core.queue`: no heap, no index, no shared
log of events, no deadlines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.framework.cluster_event import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    ClusterEvent,
    ClusterEventWithHint,
    pod_update_events,
)
from scheduler_core.objects.pod import Pod

SECOND_NS = 1_000_000_000


@dataclass(eq=False)
class NaivePod:
    pod: Pod
    since_ns: int
    lane: str = "active"
    attempts: int = 0
    rejections: int = 0
    errors: int = 0
    plugins: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: bool = False


@dataclass(eq=False)
class NaiveAttempt:
    info: NaivePod
    uid: str
    events: list[tuple[ClusterEvent, Any, Any]] = field(default_factory=list)


class NaiveQueue:
    def __init__(
        self,
        now_ns: int,
        table: dict[str, list[ClusterEventWithHint]],
        initial_ns: int,
        maximum_ns: int,
        patience_ns: int,
        gate: str,
        is_gated: Callable[[Pod], bool],
    ) -> None:
        self.now_ns = self.origin_ns = now_ns
        self.table = table
        self.initial_ns, self.maximum_ns, self.patience_ns = initial_ns, maximum_ns, patience_ns
        self.gate, self.is_gated = gate, is_gated
        self.pods: list[NaivePod] = []
        self.attempts: list[NaiveAttempt] = []

    # What there is ------------------------------------------------------------------------------------------

    def find(self, key: str) -> NaivePod | None:
        return next((info for info in self.pods if info.pod.key == key), None)

    def lane(self, *names: str) -> list[NaivePod]:
        return [info for info in self.pods if info.lane in names]

    def urgency(self, info: NaivePod) -> tuple[int, int]:
        return (-info.pod.priority, info.since_ns)

    def ends_ns(self, info: NaivePod) -> int | None:
        count = info.errors or info.rejections
        if not count:
            return None
        wait_ns = min(self.initial_ns * 2 ** (count - 1), self.maximum_ns)
        return (info.since_ns + wait_ns) // SECOND_NS * SECOND_NS

    def backs_off(self, info: NaivePod) -> bool:
        ends_ns = self.ends_ns(info)
        return ends_ns is not None and ends_ns // SECOND_NS >= self.now_ns // SECOND_NS

    def snapshot(self) -> dict[str, Any]:
        def order(info: NaivePod) -> tuple[Any, ...]:
            return (self.ends_ns(info), *self.urgency(info))

        return {
            "active": [info.pod.key for info in sorted(self.lane("active"), key=self.urgency)],
            "backoff": [
                (info.pod.key, self.ends_ns(info)) for info in sorted(self.lane("backoff"), key=order)
            ],
            "errors": sorted((self.ends_ns(info), info.pod.key) for info in self.lane("errors")),
            "unschedulable": sorted(
                (info.pod.key, sorted(info.plugins), sorted(info.pending), info.gate)
                for info in self.lane("unschedulable")
            ),
            "in flight": [attempt.uid for attempt in self.attempts],
            "counts": sorted(
                (info.pod.key, info.attempts, info.rejections, info.errors, info.since_ns)
                for info in self.pods
            ),
        }

    # What happens -------------------------------------------------------------------------------------------

    def enter(self, info: NaivePod, lane: str) -> None:
        """Into activeQ or a backoff queue, unless the gate is closed."""
        info.gate = self.is_gated(info.pod)
        if info.gate:
            info.plugins.add(self.gate)
            lane = "unschedulable"
        elif lane == "backoff" and not info.plugins and not info.pending:
            lane = "errors"
        info.lane = lane
        if info not in self.pods:
            self.pods.append(info)

    def add(self, pod: Pod) -> None:
        present = self.find(pod.key)
        if present is not None:
            if self.is_gated(pod):
                return
            self.pods.remove(present)
        self.enter(NaivePod(pod, self.now_ns), "active")

    def update(self, old: Pod, new: Pod) -> None:
        events = pod_update_events(old, new)
        for attempt in self.attempts:
            if attempt.uid == new.uid:
                for other in self.attempts:
                    other.events += [(event, old, new) for event in events]
                return
        info = self.find(new.key)
        if info is None:
            self.add(new)
            return
        info.pod = new
        if info.lane != "unschedulable":
            return
        for event in events:
            self.requeue(info, self.weigh(info, event, old, new))
            if info.lane != "unschedulable":
                return

    def delete(self, key: str) -> None:
        self.pods = [info for info in self.pods if info.pod.key != key]

    def pop(self) -> NaivePod | None:
        while True:
            waiting = sorted(self.lane("active"), key=self.urgency) or sorted(
                self.lane("backoff"), key=lambda info: (self.ends_ns(info), *self.urgency(info))
            )
            if not waiting:
                return None
            info = waiting[0]
            self.pods.remove(info)
            info.attempts += 1
            if any(attempt.uid == info.pod.uid for attempt in self.attempts):
                continue
            info.plugins, info.pending, info.gate = set(), set(), False
            self.attempts.append(NaiveAttempt(info, info.pod.uid))
            return info

    def done(self, uid: str) -> None:
        self.attempts = [attempt for attempt in self.attempts if attempt.uid != uid]

    def fail(self, info: NaivePod, plugins: set[str], pending: set[str]) -> None:
        attempt = next(attempt for attempt in self.attempts if attempt.info is info)
        self.attempts.remove(attempt)
        if self.find(info.pod.key) is not None:
            return
        info.plugins, info.pending = set(plugins), set(pending)
        info.since_ns = self.now_ns
        if plugins or pending:
            info.rejections += 1
            info.errors = 0
        else:
            info.errors += 1
        answers = [self.weigh(info, *event) for event in attempt.events]
        self.requeue(info, max(answers, default=0) if plugins or pending else 1)

    def activate(self, pod: Pod) -> None:
        info = self.find(pod.key)
        if info is not None and info.lane != "active":
            was_checked = info.lane != "unschedulable"
            if was_checked:
                info.lane = "active"
            else:
                self.enter(info, "active")
            if info.lane == "active":
                return
        if any(attempt.uid == pod.uid for attempt in self.attempts):
            for attempt in self.attempts:
                attempt.events.append((FORCE_ACTIVATE, None, pod))

    def happen(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if not event.is_wildcard and not self.concerned(event):
            return
        self.move(self.lane("unschedulable"), event, old, new)

    def move(self, pods: list[NaivePod], event: ClusterEvent, old: Any, new: Any) -> None:
        for info in pods:
            if info.gate and self.gate not in self.concerned(event):
                continue
            answer = self.weigh(info, event, old, new)
            if answer:
                self.requeue(info, answer)
        for attempt in self.attempts:
            attempt.events.append((event, old, new))

    def wait_until(self, at_ns: int) -> None:
        """Pass every second and every 30-second tick on the way."""
        while self.now_ns < at_ns:
            n_ticks = (self.now_ns - self.origin_ns) // (30 * SECOND_NS) + 1
            tick_ns = self.origin_ns + n_ticks * 30 * SECOND_NS
            second_ns = (self.now_ns // SECOND_NS + 1) * SECOND_NS
            self.now_ns = min(tick_ns, second_ns, at_ns)
            if self.now_ns == tick_ns:
                late = [
                    info
                    for info in self.lane("unschedulable")
                    if self.now_ns - info.since_ns > self.patience_ns
                ]
                if late:
                    self.move([info for info in late if not info.gate], UNSCHEDULABLE_TIMEOUT, None, None)
            if self.now_ns == second_ns:
                for info in self.lane("backoff", "errors"):
                    if not self.backs_off(info):
                        info.lane = "active"

    # What it means ------------------------------------------------------------------------------------------

    def concerned(self, event: ClusterEvent) -> list[str]:
        return [
            plugin
            for plugin, registered in self.table.items()
            if any(registration.event.matches(event) for registration in registered)
        ]

    def weigh(self, info: NaivePod, event: ClusterEvent, old: Any, new: Any) -> int:
        """0: leave it, 1: after its backoff, 2: at once."""
        if not info.plugins and not info.pending:
            return 1
        if event.is_wildcard:
            return 1 if new is None or new.uid == info.pod.uid else 0
        answer = 0
        for plugin, registered in self.table.items():
            for registration in registered:
                if plugin not in info.plugins | info.pending or not registration.event.matches(event):
                    continue
                try:
                    queues = registration.hint is None or registration.hint(info.pod, old, new).queues
                except RuntimeError:
                    queues = True
                if queues:
                    answer = max(answer, 2 if plugin in info.pending else 1)
        return answer

    def requeue(self, info: NaivePod, answer: int) -> None:
        if answer == 0:
            info.lane = "unschedulable"
            if info not in self.pods:
                self.pods.append(info)
        else:
            self.enter(info, "backoff" if answer == 1 and self.backs_off(info) else "active")
