"""What is selected on the board, opened up beside it: a node, or a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playground.clusters.selectors.board_nodes import NodeUse, PodUse, node_uses, pods_on
from playground.clusters.selectors.cycle_pages import last_cycle_of, placed_by
from playground.clusters.selectors.pod_traces import find_pod
from playground.clusters.selectors.queue import LANE_TITLES, QueueItem
from playground.web.amounts import requested
from playground.web.priorities import PriorityMark, PriorityScale
from playground.web.story import cache_state, group_of

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster, Cycle, Pod

Lanes = Mapping[str, Sequence[QueueItem]]


@dataclass(frozen=True)
class PodRow:
    """A pod of the selected node."""

    pod: PodUse
    mark: PriorityMark
    cycle: int | None

    @property
    def key(self) -> str:
        """What selects it."""
        return f"{self.pod.namespace}/{self.pod.name}"


@dataclass(frozen=True)
class InspectedNode:
    """The selected node."""

    use: NodeUse
    pods: list[PodRow]
    labels: list[tuple[str, str]]

    @property
    def reserved(self) -> str:
        """What pods that wait at Permit hold there, in words; empty without one."""
        held = [row.pod for row in self.pods if row.pod.reserved]
        if not held:
            return ""
        cpu, memory = sum(pod.cpu_milli for pod in held), sum(pod.memory_bytes for pod in held)
        return f"{len(held)} reserved with {requested(cpu, memory)}"

    @property
    def title(self) -> str:
        """Its name."""
        return self.use.name


@dataclass(frozen=True)
class InspectedPod:
    """The selected pod.

    Attributes
    ----------
    lane, place
        Title of its queue lane, and its turn in activeQ, from 1; empty and None elsewhere, or far behind.
    why
        What the queue says of it.
    cache
        What the scheduler's cache holds of it.
    last
        Its last cycle.
    """

    pod: Pod
    mark: PriorityMark
    lane: str
    place: int | None
    why: str
    cache: str
    last: Cycle | None

    @property
    def title(self) -> str:
        """Its name."""
        return self.pod.name

    @property
    def group(self) -> str:
        """The PodGroup it is a member of; empty without one."""
        return group_of(self.pod)


def reserved_nodes(lanes: Lanes) -> dict[str, str]:
    """The node each pod that waits at Permit or for its Binding holds, by ``namespace/name``."""
    return {item.pod: item.node for lane in ("permit", "binding") for item in lanes[lane] if item.node}


def inspect(
    cluster: Cluster, scale: PriorityScale, selected: str, lanes: Lanes
) -> InspectedNode | InspectedPod | None:
    """Open up what is selected; None when nothing is, or it is gone.

    Parameters
    ----------
    selected
        The name of a node, or ``namespace/name`` of a pod: a slash is no part of a node's name.
    """
    if "/" in selected:
        return _pod(cluster, scale, selected, lanes)
    return _node(cluster, scale, selected, lanes) if selected else None


def _node(cluster: Cluster, scale: PriorityScale, name: str, lanes: Lanes) -> InspectedNode | None:
    use = next((use for use in node_uses(cluster) if use.name == name), None)
    if use is None:
        return None
    pods = pods_on(cluster, [name], reserved=reserved_nodes(lanes)).get(name, [])
    by = placed_by(cluster, name, [(pod.namespace, pod.name) for pod in pods])
    rows = [
        PodRow(pod, scale.mark(pod.priority, pod.priority_class), by.get((pod.namespace, pod.name)))
        for pod in pods
    ]
    return InspectedNode(use, rows, sorted(use.labels.items()))


def _pod(cluster: Cluster, scale: PriorityScale, key: str, lanes: Lanes) -> InspectedPod | None:
    namespace, _, name = key.partition("/")
    pod = find_pod(cluster, namespace, name)
    if pod is None:
        return None
    last = last_cycle_of(pod)
    item = next((item for lane in lanes.values() for item in lane if item.pod == key), None)
    lane = item.lane if item else pod.lane
    return InspectedPod(
        pod=pod,
        mark=scale.mark(pod.priority, pod.priority_class),
        lane=LANE_TITLES.get(lane, ""),
        place=item.position if item and lane == "active" else None,
        why=item.reason if item else "",
        cache=cache_state(pod, last),
        last=last,
    )
