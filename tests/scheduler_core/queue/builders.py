"""Pods, nodes and queues for the tests of the queue."""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.cli.conformance_queue import default_registrations
from scheduler_core.clock import Clock
from scheduler_core.framework.cluster_event import ClusterEventWithHint
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import DEFAULT_SCHEDULER_NAME, Pod, pod_from
from scheduler_core.plugins.scheduling_gates import closed_gates
from scheduler_core.queue.hints import build_hint_map
from scheduler_core.queue.scheduling_queue import Rejection, SchedulingQueue
from tests.manifests import make_object, node
from tests.scheduler_core.stored import prepare

SECOND_NS = 1_000_000_000
START_NS = 1_767_225_600 * SECOND_NS + 300_000_000
"""2026-01-01T00:00:00.3Z: off the second on purpose."""


def make_pod(
    name: str,
    *,
    priority: int = 0,
    gates: Sequence[str] = (),
    node: str = "",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Pod:
    closed = [{"name": gate} for gate in gates]
    whole = {"priority": priority, "nodeName": node, "schedulingGates": closed, "containers": [{"name": "c"}]}
    return pod_from(
        prepare(make_object("v1", "Pod", name, uid=uid, labels=dict(labels or {}), spec=whole | spec))
    )


def make_node(name: str = "n1", *, allocatable: Mapping[str, str] | None = None, **spec: Any) -> Node:
    document = node(name, **spec)
    document["status"]["allocatable"].update(allocatable or {})
    return node_from(prepare(document))


def gates_check(pod: Pod) -> Rejection | None:
    reason = closed_gates(pod)
    return None if reason is None else Rejection(reason)


def make_queue(
    clock: Clock, table: Mapping[str, Sequence[ClusterEventWithHint]] | None = None, **options: Any
) -> SchedulingQueue:
    """A queue of the default profile; `table` replaces the real hints."""
    registered = table or default_registrations()
    options.setdefault("pre_enqueue", {DEFAULT_SCHEDULER_NAME: [("SchedulingGates", gates_check)]})
    return SchedulingQueue(clock, hints={DEFAULT_SCHEDULER_NAME: build_hint_map(registered)}, **options)
