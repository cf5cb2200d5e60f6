"""In whatever order things happen, the queue keeps its invariants, misses no deadline, and goes on as one restored.

What it ought to do was recorded of the real scheduler (`tests/scheduler_core/conformance`).
"""

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler_core.clock import Clock
from scheduler_core.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE,
    NODE_ADD,
    POD,
    QUEUE,
    SKIP,
    WILDCARD_EVENT,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler_core.objects.pod import DEFAULT_SCHEDULER_NAME, Pod, pod_from
from scheduler_core.plugins.scheduling_gates import SchedulingGates
from scheduler_core.queue.checkpoint import queue_checkpoint, restore_queue
from scheduler_core.queue.hints import HintEntry, HintMap, always_queue
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.queue.scheduling_queue import SchedulingQueue
from tests.scheduler_core.queue.builders import SECOND_NS, START_NS, gates_check, make_node, make_pod


def moody(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue, Skip or failure, as the two names have it."""
    mood = sum(map(ord, pod.name + (new or old).name)) % 3
    if mood == 2:
        raise RuntimeError("cannot say")
    return QUEUE if mood else SKIP


def stubborn(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return SKIP


UPDATES = ClusterEvent(POD, ActionType.UPDATE_POD_LABEL)
TABLE = {
    "Moody": [
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), moody),
        ClusterEventWithHint(UPDATES, moody),
    ],
    "Stubborn": [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), stubborn)],
    "Eager": [
        ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE)),
        ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
        ClusterEventWithHint(UPDATES),
    ],
    "SchedulingGates": SchedulingGates(None, None).events(),
}
PLUGINS = st.sets(st.sampled_from(["Moody", "Stubborn", "Eager"]), max_size=2)
NAMES = st.sampled_from("abcdef")
EVENTS = st.sampled_from(
    [NODE_ADD, ASSIGNED_POD_DELETE, ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL), WILDCARD_EVENT]
)
INITIAL_NS, MAXIMUM_NS, PATIENCE_NS = 1 * SECOND_NS, 6 * SECOND_NS, 45 * SECOND_NS


def fresh_queue(clock: Clock) -> SchedulingQueue:
    entries = [
        HintEntry(item.event, name, item.hint or always_queue) for name in TABLE for item in TABLE[name]
    ]
    return SchedulingQueue(
        clock,
        hints={DEFAULT_SCHEDULER_NAME: HintMap(entries)},
        pre_enqueue={DEFAULT_SCHEDULER_NAME: [("SchedulingGates", gates_check)]},
        initial_backoff_ns=INITIAL_NS,
        max_backoff_ns=MAXIMUM_NS,
        max_in_unschedulable_ns=PATIENCE_NS,
    )


class QueueMachine(RuleBasedStateMachine):
    """Drives a queue, and a twin that comes from its checkpoint now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(START_NS)
        self.queue, self.twin = fresh_queue(self.clock), fresh_queue(self.clock)
        self.pods: dict[str, Pod] = {}
        self.popped: list[tuple[QueuedPodInfo, QueuedPodInfo]] = []
        self.n_uids = 0

    def both(self, method: str, *args: Any) -> Any:
        """Have both do the same; what the first answers, which the twin answers, too."""
        first, second = (getattr(queue, method)(*args) for queue in (self.queue, self.twin))
        assert first == second, method
        return first

    def let_pass(self, milliseconds: int) -> None:
        """The clock stops at every deadline the queue names, and at no other moment."""
        target_ns = self.clock.now_ns + milliseconds * 1_000_000
        while (deadline_ns := self.both("next_deadline_ns")) is not None and deadline_ns <= target_ns:
            assert deadline_ns >= self.clock.now_ns, "a deadline was missed"
            self.clock.move_to(deadline_ns)
            self.both("flush_due")
            following_ns = self.queue.next_deadline_ns()
            assert following_ns is None or following_ns > deadline_ns, "a deadline does not go away"
        self.clock.move_to(target_ns)

    @rule(name=NAMES, priority=st.integers(-1, 1), gated=st.booleans())
    def add(self, name: str, priority: int, gated: bool) -> None:
        self.let_pass(1)
        if name in self.pods:
            return
        self.n_uids += 1
        gates = ["g"] if gated else ()
        pod = self.pods[name] = make_pod(name, priority=priority, gates=gates, uid=str(self.n_uids))
        self.both("add", pod)

    @rule(name=NAMES, label=st.sampled_from("xy"), gated=st.booleans())
    def update(self, name: str, label: str, gated: bool) -> None:
        self.let_pass(1)
        old = self.pods.get(name)
        if old is None:
            return
        gates = ["g"] if gated and old.scheduling_gates else ()
        new = make_pod(name, priority=old.priority, gates=gates, uid=old.uid, labels={"l": label})
        self.pods[name] = new
        self.both("update", old, new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.both("delete", pod)

    @rule(milliseconds=st.sampled_from([0, 3000]))
    def pop(self, milliseconds: int = 0) -> None:
        self.let_pass(milliseconds)
        assert self.queue.can_pop() == self.twin.can_pop()
        info, twin = self.queue.pop(), self.twin.pop()
        assert (info is None) == (twin is None)
        if info is not None and twin is not None:
            assert not any(info.pod.uid == other.pod.uid for other, _ in self.popped), "tried twice at once"
            self.popped.append((info, twin))

    @precondition(lambda self: self.popped)
    @rule(data=st.data(), plugins=PLUGINS, pending=PLUGINS)
    def fail(self, data: st.DataObject, plugins: set[str], pending: set[str]) -> None:
        self.give_back(data.draw(st.integers(0, len(self.popped) - 1)), plugins, pending)

    @rule(name=NAMES, node=st.sampled_from("nmk"), plugins=PLUGINS, pending=PLUGINS)
    def help_after_a_vain_try(self, name: str, node: str, plugins: set[str], pending: set[str]) -> None:
        """Most of what a queue sees: a pod comes, is tried and comes back."""
        self.add(name, 0, False)
        self.pop()
        if self.popped:
            self.give_back(-1, plugins, pending)
        self.happen(NODE_ADD, node)

    def give_back(self, which: int, plugins: set[str], pending: set[str]) -> None:
        self.let_pass(1)
        both = self.popped.pop(which)
        latest = self.pods.get(both[0].pod.name)
        if latest is None or latest.uid != both[0].pod.uid:
            self.both("done", both[0].pod.uid)
            return
        lanes = []
        for queue, info in zip((self.queue, self.twin), both, strict=True):
            info.pod = latest
            info.unschedulable_plugins, info.pending_plugins = frozenset(plugins), frozenset(pending)
            lanes.append(queue.add_unschedulable(info))
        assert lanes[0] is lanes[1]

    @precondition(lambda self: self.popped)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        info, _ = self.popped.pop(data.draw(st.integers(0, len(self.popped) - 1)))
        pod = self.pods.get(info.pod.name)
        if pod is not None and pod.uid == info.pod.uid:
            del self.pods[info.pod.name]
        self.both("done", info.pod.uid)

    @rule(event=EVENTS, name=st.sampled_from("nmk"))
    def happen(self, event: ClusterEvent, name: str) -> None:
        self.let_pass(1)
        old: Any = None
        new: Any = None
        if event == ASSIGNED_POD_DELETE:
            old = make_pod(name, node="n")
        elif event != WILDCARD_EVENT:
            new = make_node(name)
        self.both("move_all", event, old, new)

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        pod = self.pods.get(name)
        if pod is not None:
            self.both("activate", [pod])

    @rule(milliseconds=st.sampled_from([10, 700, 1000, 3500, 31_000, 90_000]))
    def wait(self, milliseconds: int) -> None:
        self.let_pass(milliseconds)

    @rule()
    def begin_anew(self) -> None:
        """From here on the twin is one that comes from a checkpoint."""
        self.twin = fresh_queue(self.clock)
        restore_queue(self.twin, json.loads(text_of(self.queue)), parse=pod_or_node)

    @invariant()
    def both_are_the_same_and_no_pod_is_lost(self) -> None:
        assert text_of(self.queue) == text_of(self.twin)
        self.queue.validate()
        uids = {info.pod.uid for info in self.queue._infos.values()}
        uids |= {pod.uid for pod in self.queue.in_flight_pods()}
        assert {pod.uid for pod in self.pods.values()} <= uids


def text_of(queue: SchedulingQueue) -> str:
    return json.dumps(queue_checkpoint(queue), sort_keys=True)


def pod_or_node(manifest: Any) -> Any:
    if manifest["kind"] == "Pod":
        return pod_from(manifest)
    return make_node(manifest["metadata"]["name"])


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(
    max_examples=30,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
