"""What the scheduling queue keeps to where the recorded queues leave it open, one rule a test."""

import pytest

from scheduler_core.clock import Clock
from scheduler_core.framework.cluster_event import NODE_ADD
from scheduler_core.objects.pod import pod_from
from scheduler_core.queue.checkpoint import queue_checkpoint, restore_queue
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo, QueueMove
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


def test_a_pod_that_changes_while_active_takes_its_new_place(clock: Clock, queue: SchedulingQueue) -> None:
    old = make_pod("a")
    queue.add(old)
    advance(clock, 1)
    queue.add(make_pod("b", priority=1))
    queue.update(old, make_pod("a", priority=2))
    assert [info.key for info in queue.active_pods()] == ["default/a", "default/b"]
    assert len(queue) == 2


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


def test_a_checkpoint_of_another_version_or_into_a_used_queue_is_refused(
    clock: Clock, queue: SchedulingQueue
) -> None:
    document = queue_checkpoint(queue)
    with pytest.raises(ValueError, match="version 7"):
        restore_queue(queue, {**document, "version": 7}, parse=pod_from)
    queue.add(make_pod("p"))
    with pytest.raises(ValueError, match="new queue"):
        restore_queue(queue, document, parse=pod_from)
