"""What the scheduling queue keeps to where the recorded queues leave it open, one rule a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_core.clock import Clock
from scheduler_core.framework.cluster_event import (
    ASSIGNED_POD_ADD,
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
from scheduler_core.queue.checkpoint import queue_checkpoint, restore_queue
from scheduler_core.queue.hints import ALL_EVENTS, build_hint_map
from scheduler_core.queue.lanes import ActiveQueue
from scheduler_core.queue.moves import Lane, QueueMove
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.queue.scheduling_queue import SchedulingQueue
from tests.scheduler_core.queue.builders import SECOND_NS, START_NS, make_node, make_pod, make_queue


@pytest.fixture
def clock() -> Clock:
    return Clock(START_NS)


@pytest.fixture
def queue(clock: Clock) -> SchedulingQueue:
    return make_queue(clock)


def advance(clock: Clock, seconds: float) -> None:
    clock.move_to(clock.now_ns + int(seconds * SECOND_NS))


def try_once(queue: SchedulingQueue, *plugins: str, pending: tuple[str, ...] = ()) -> QueuedPodInfo:
    """Pop a pod and give it back as rejected by `plugins`."""
    info = queue.pop()
    assert info is not None
    info.unschedulable_plugins, info.pending_plugins = frozenset(plugins), frozenset(pending)
    queue.add_unschedulable(info)
    return info


def test_the_highest_priority_is_popped_first_and_among_equals_who_waits_longer(
    clock: Clock, queue: SchedulingQueue
) -> None:
    for name, priority in (("low", -1), ("early", 5), ("late", 5), ("high", 9)):
        queue.add(make_pod(name, priority=priority))
        advance(clock, 0.001)
    popped = [info.pod.name for info in iter(queue.pop, None)]
    assert popped == ["high", "early", "late", "low"]


def test_a_pod_that_changes_while_active_takes_its_new_place(clock: Clock, queue: SchedulingQueue) -> None:
    old = make_pod("a")
    queue.add(old)
    advance(clock, 1)
    queue.add(make_pod("b", priority=1))
    queue.update(old, make_pod("a", priority=2))
    assert [info.key for info in queue.active_pods()] == ["default/a", "default/b"]
    assert len(queue) == 2


def test_backoff_doubles_up_to_its_bound_and_ends_on_a_whole_second(
    clock: Clock, queue: SchedulingQueue
) -> None:
    queue.add(make_pod("p"))
    waits = []
    for _ in range(6):
        info = try_once(queue, "NodeName")
        assert queue.move_all(NODE_ADD, None, make_node()) == 1
        assert info.lane is Lane.BACKOFF
        expiration_ns = queue.expiration_ns(info)
        assert expiration_ns is not None and expiration_ns % SECOND_NS == 0
        waits.append((expiration_ns - START_NS // SECOND_NS * SECOND_NS) // SECOND_NS)
        clock.now_ns = START_NS
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_backoff_that_ends_in_the_current_second_is_not_over(clock: Clock, queue: SchedulingQueue) -> None:
    queue.add(make_pod("p"))
    info = try_once(queue, "NodeName")
    queue.move_all(NODE_ADD, None, make_node())
    deadline_ns = queue.next_deadline_ns()
    assert deadline_ns is not None
    assert deadline_ns == (queue.expiration_ns(info) or 0) + SECOND_NS
    clock.move_to(deadline_ns - 1)
    assert queue.flush_due() == queue.flush_backoff() == 0
    clock.move_to(deadline_ns)
    assert queue.flush_due() == 1
    assert info.lane is Lane.ACTIVE and info.entered_by == "BackoffComplete"


def test_an_empty_active_queue_is_helped_out_by_backoff_but_not_by_error_backoff(
    queue: SchedulingQueue,
) -> None:
    queue.add(make_pod("rejected"))
    try_once(queue, "NodeName")
    queue.move_all(NODE_ADD, None, make_node())
    queue.add(make_pod("failed"))
    failed = try_once(queue)
    assert failed.lane is Lane.ERROR_BACKOFF
    assert queue.can_pop()
    popped = queue.pop()
    assert popped is not None and popped.pod.name == "rejected"
    assert not queue.can_pop()
    assert queue.pop() is None


def test_a_rejection_ends_the_count_of_errors(clock: Clock, queue: SchedulingQueue) -> None:
    queue.add(make_pod("p"))
    for expected in (1, 2):
        info = try_once(queue)
        assert (info.consecutive_errors_count, info.unschedulable_count) == (expected, 0)
        advance(clock, 20)
        queue.flush_due()
    info = try_once(queue, "NodeName")
    assert (info.consecutive_errors_count, info.unschedulable_count, info.attempts) == (0, 1, 3)


def test_events_during_the_attempt_are_weighed_in_their_order_whatever_their_kinds(clock: Clock) -> None:
    asked = []

    def hint(pod: Pod, old: object, new: Any) -> QueueingHint:
        asked.append(new.name)
        return SKIP

    table = {
        "A": [
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), hint),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.ADD), hint),
        ],
        "B": [ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE))],
    }
    queue = make_queue(clock, table)
    for name in ("early", "late"):
        queue.add(make_pod(name))
    early = queue.pop()
    queue.move_all(NODE_ADD, None, make_node("n1"))
    late = queue.pop()
    assert early is not None and late is not None
    queue.move_all(ASSIGNED_POD_ADD, None, make_pod("x", node="n1"))
    queue.move_all(ASSIGNED_POD_DELETE, make_pod("x", node="n1"), None)
    queue.move_all(NODE_ADD, None, make_node("n2"))
    for info, names in ((late, ["x", "n2"]), (early, ["n1", "x", "n2"])):
        asked.clear()
        info.unschedulable_plugins = frozenset({"A"})
        assert queue.add_unschedulable(info) is Lane.UNSCHEDULABLE
        assert asked == names


def test_a_pod_that_comes_back_is_not_held_up_by_events_its_plugins_do_not_wait_for() -> None:
    active = ActiveQueue(lambda info: (0,))
    pod = make_pod("p")
    active.start(QueuedPodInfo(pod, pod.key, START_NS))
    for _ in range(100):
        active.add_event(ASSIGNED_POD_DELETE, pod, None)
    active.add_event(NODE_ADD, None, make_node())
    looked_at: list[ClusterEvent] = []

    def concerns(event: ClusterEvent) -> bool:
        looked_at.append(event)
        return event == NODE_ADD

    found = active.events_since_start(pod.uid, concerns)
    assert found is not None and [kept.event for kept in found] == [NODE_ADD]
    assert looked_at == [ASSIGNED_POD_DELETE, NODE_ADD]


def test_events_are_forgotten_when_no_pod_in_flight_needs_them(queue: SchedulingQueue) -> None:
    for name in ("a", "b"):
        queue.add(make_pod(name))
    first, second = queue.pop(), queue.pop()
    assert first is not None and second is not None
    queue.move_all(NODE_ADD, None, make_node())
    queue.done(second.pod.uid)
    assert len(queue_checkpoint(queue)["events"]) == 1
    queue.done(first.pod.uid)
    assert queue_checkpoint(queue)["events"] == []
    queue.done(first.pod.uid)


def test_a_hint_that_fails_counts_as_queue(clock: Clock) -> None:
    def broken(pod: Pod, old: object, new: object) -> QueueingHint:
        raise RuntimeError("no idea")

    moves: list[QueueMove] = []
    table = {"Broken": [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), broken)]}
    queue = make_queue(clock, table, observer=moves.append)
    queue.add(make_pod("p"))
    try_once(queue, "Broken")
    assert queue.move_all(NODE_ADD, None, make_node()) == 1
    assert (moves[-1].plugin, moves[-1].hint, moves[-1].reason) == ("Broken", "error", "no idea")


def test_hints_are_asked_only_for_pods_that_the_plugin_rejected(clock: Clock) -> None:
    asked = []

    def hint(pod: Pod, old: object, new: object) -> QueueingHint:
        asked.append(pod.name)
        return SKIP

    table = {
        "A": [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), hint)],
        "B": [ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), hint)],
    }
    queue = make_queue(clock, table)
    for name, plugin in (("a1", "A"), ("b1", "B"), ("a2", "A")):
        queue.add(make_pod(name))
        try_once(queue, plugin)
    queue.move_all(NODE_ADD, None, make_node())
    assert asked == ["a1", "a2"]
    queue.move_all(ASSIGNED_POD_ADD, None, make_pod("x", node="n1"))
    assert asked == ["a1", "a2"]


def test_a_gated_pod_waits_for_its_last_gate(queue: SchedulingQueue) -> None:
    old = make_pod("p", gates=["a", "b"])
    assert queue.add(old) is Lane.UNSCHEDULABLE
    info = queue.get("default/p")
    assert info is not None and info.gated and queue.n_gated == 1
    assert info.gating_reason == "waiting for scheduling gates: [a b]"
    fewer = make_pod("p", gates=["b"])
    assert queue.update(old, fewer) is Lane.UNSCHEDULABLE
    assert queue.update(fewer, make_pod("p")) is Lane.ACTIVE
    assert queue.n_gated == 0 and info.attempts == 0


def test_a_gated_pod_is_moved_by_no_wildcard_no_flush_and_no_activation(
    clock: Clock, queue: SchedulingQueue
) -> None:
    pod = make_pod("p", gates=["a"])
    queue.add(pod)
    queue.move_all(WILDCARD_EVENT)
    advance(clock, 1000)
    queue.flush_due()
    queue.flush_unschedulable()
    assert queue.activate([pod]) is False
    assert queue.lane_of("default/p") is Lane.UNSCHEDULABLE
    assert queue.next_deadline_ns() is None


def test_the_leftover_flush_runs_at_the_first_tick_after_five_minutes(
    clock: Clock, queue: SchedulingQueue
) -> None:
    advance(clock, 7)
    queue.add(make_pod("p"))
    info = try_once(queue, "NodeName")
    assert queue.next_deadline_ns() == START_NS + 330 * SECOND_NS
    clock.move_to(START_NS + 330 * SECOND_NS)
    assert queue.flush_due() == 1
    assert (info.lane, info.entered_by) == (Lane.ACTIVE, "UnschedulableTimeout")


def test_a_pod_deleted_and_created_again_during_its_attempt_is_there_once(queue: SchedulingQueue) -> None:
    queue.add(make_pod("p", uid="1"))
    info = queue.pop()
    assert info is not None
    queue.delete(info.pod)
    queue.add(make_pod("p", uid="2"))
    assert queue.add_unschedulable(info) is Lane.ACTIVE
    assert [waiting.pod.uid for waiting in queue.active_pods()] == ["2"]
    assert queue.in_flight_pods() == []


def test_the_same_pod_added_twice_is_tried_once_at_a_time(queue: SchedulingQueue) -> None:
    pod = make_pod("p")
    queue.add(pod)
    queue.add(pod)
    assert queue.pop() is not None
    queue.add(pod)
    assert queue.pop() is None
    assert len(queue) == 0


def test_a_pod_of_an_unknown_name_can_be_deleted_and_updated(queue: SchedulingQueue) -> None:
    queue.delete(make_pod("absent"))
    assert queue.update(None, make_pod("new")) is Lane.ACTIVE
    assert queue.update(make_pod("other"), make_pod("other")) is Lane.ACTIVE


def test_without_a_maximum_there_is_no_backoff(clock: Clock) -> None:
    queue = make_queue(clock, max_backoff_ns=0)
    queue.add(make_pod("p"))
    info = try_once(queue)
    assert info.lane is Lane.ACTIVE


def test_a_pod_that_becomes_gated_while_it_waits_is_held_back_when_it_would_back_off(
    queue: SchedulingQueue,
) -> None:
    old = make_pod("p")
    queue.add(old)
    info = try_once(queue, "NodeName")
    queue.update(old, make_pod("p", gates=["g"]))
    queue.move_all(NODE_ADD, None, make_node())
    assert (info.lane, info.gating_plugin) == (Lane.UNSCHEDULABLE, "SchedulingGates")
    assert info.unschedulable_plugins == {"NodeName", "SchedulingGates"}


def test_every_move_is_told_with_its_event_plugin_and_reason(clock: Clock) -> None:
    moves: list[QueueMove] = []
    queue = make_queue(clock, observer=moves.append)
    queue.add(make_pod("p", containers=[{"name": "c", "resources": {"requests": {"cpu": "8"}}}]))
    try_once(queue, "NodeResourcesFit")
    small, large = make_node("s"), make_node("l", allocatable={"cpu": "16"})
    queue.move_all(NODE_ADD, None, small)
    queue.move_all(NODE_ADD, None, large)
    assert [(move.source.value, move.target.value, move.event) for move in moves] == [
        ("", "activeQ", "UnschedulablePodAdd"),
        ("activeQ", "inFlight", "Pop"),
        ("inFlight", "unschedulable", "ScheduleAttemptFailure"),
        ("unschedulable", "unschedulable", "NodeAdd"),
        ("unschedulable", "backoffQ", "NodeAdd"),
    ]
    assert moves[3].sentence == (
        "NodeAdd left default/p among the unschedulable pods: NodeResourcesFit says Skip "
        "(even empty the node is too small for the pod)."
    )
    assert moves[4].sentence == (
        "NodeAdd moved default/p to the backoff queue: NodeResourcesFit says Queue "
        "(the new node is large enough for the pod)."
    )


def test_a_plugin_that_says_nothing_of_events_is_asked_about_all_of_them(clock: Clock) -> None:
    queue = make_queue(clock, {"Own": ALL_EVENTS})
    for event in (NODE_ADD, ASSIGNED_POD_DELETE):
        queue.add(make_pod("p"))
        info = try_once(queue, "Own")
        assert queue.move_all(event) == 1
        queue.delete(info.pod)


def test_node_add_without_update_node_taint_gets_the_extra_entry() -> None:
    table = build_hint_map({"A": [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), lambda *_: SKIP)]})
    taint = ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)
    ((plugin, hint),) = table.interested(taint)
    assert plugin == "A"
    assert hint(make_pod("p"), None, None).queues == QUEUE.queues
    assert [entry.event.action for entry in table.entries] == [ActionType.ADD, ActionType.UPDATE_NODE_TAINT]


def test_pods_of_another_profile_are_judged_by_its_own_table(clock: Clock) -> None:
    node_add = ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD))
    queue = SchedulingQueue(
        clock,
        hints={
            DEFAULT_SCHEDULER_NAME: build_hint_map({"A": [node_add]}),
            "second": build_hint_map({"B": [node_add]}),
        },
    )
    queue.add(make_pod("mine"))
    mine = try_once(queue, "A")
    queue.add(make_pod("theirs", schedulerName="second"))
    theirs = try_once(queue, "A")
    queue.move_all(NODE_ADD, None, make_node())
    assert (mine.lane, theirs.lane) == (Lane.BACKOFF, Lane.UNSCHEDULABLE)


def test_a_checkpoint_names_what_the_caller_keeps_and_embeds_the_rest(
    clock: Clock, queue: SchedulingQueue
) -> None:
    kept, embedded = make_pod("kept"), make_pod("embedded")
    queue.add(kept)
    queue.add(embedded)
    document = json.loads(json.dumps(queue_checkpoint(queue, lambda item: "k" if item is kept else None)))
    assert [manifest["metadata"]["name"] for manifest in document["manifests"]] == ["embedded"]
    restored = make_queue(clock)
    restore_queue(restored, document, parse=pod_from, named={"k": kept}.__getitem__)
    first = restored.get("default/kept")
    assert first is not None and first.pod is kept
    assert restored.lane_of("default/embedded") is Lane.ACTIVE


def test_a_checkpoint_of_another_version_or_into_a_used_queue_is_refused(
    clock: Clock, queue: SchedulingQueue
) -> None:
    document = queue_checkpoint(queue)
    with pytest.raises(ValueError, match="version 7"):
        restore_queue(queue, {**document, "version": 7}, parse=pod_from)
    queue.add(make_pod("p"))
    with pytest.raises(ValueError, match="new queue"):
        restore_queue(queue, document, parse=pod_from)


def test_a_new_unschedulable_pod_takes_the_lowest_free_place_and_pods_move_in_the_order_of_places(
    clock: Clock,
) -> None:
    moved: list[str] = []
    queue = make_queue(clock, observer=lambda move: moved.append(move.pod))
    for name in ("a", "b", "c"):
        queue.add(make_pod(name))
        try_once(queue, "Moody")
        advance(clock, 11)
    queue.delete(make_pod("b"))
    queue.add(make_pod("d"))
    try_once(queue, "Moody")
    assert [info.pod.name for info in queue.unschedulable_pods()] == ["a", "d", "c"]
    restored = make_queue(clock)
    restore_queue(restored, json.loads(json.dumps(queue_checkpoint(queue))), parse=pod_from)
    assert [info.pod.name for info in restored.unschedulable_pods()] == ["a", "d", "c"]
    restored.delete(make_pod("a"))
    restored.add(make_pod("e"))
    try_once(restored, "Moody")
    assert [info.pod.name for info in restored.unschedulable_pods()] == ["e", "d", "c"]
    moved.clear()
    queue.move_all(WILDCARD_EVENT, None, None)
    assert moved == ["default/a", "default/d", "default/c"]
