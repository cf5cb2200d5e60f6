"""Resource bars: what fills a node, as percentages an SVG can use without any inline style."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from playground.clusters.selectors.board_nodes import PodUse
from playground.web import amounts
from playground.web.priorities import PriorityMark, PriorityScale

MAX_SEGMENTS = 40
_AWAITS: Final = {"permit": "waiting at Permit", "binding": "waiting for its Binding"}


@dataclass(frozen=True)
class BarSegment:
    """One pod's piece, in percent of what the node can give; `pod` is ``namespace/name``."""

    pod: str
    x: float
    width: float
    mark: PriorityMark
    title: str
    terminating: bool
    reserved: bool
    nominated: bool

    @property
    def middle(self) -> float:
        """Where the letter stands."""
        return round(self.x + self.width / 2, 2)

    @property
    def has_room(self) -> bool:
        """Whether a letter can be read inside."""
        return self.width >= 9


@dataclass(frozen=True)
class Bar:
    """A node's bar for one resource."""

    resource: str
    used: str
    allocatable: str
    unit: str
    segments: tuple[BarSegment, ...]


def bar(resource: str, allocatable: int, used: int, pods: Sequence[PodUse], scale: PriorityScale) -> Bar:
    """Build the bar of ``cpu`` or ``memory``; pieces below a tenth of a percent are left out."""
    is_cpu = resource == "cpu"
    text = amounts.cores if is_cpu else amounts.gib
    segments: list[BarSegment] = []
    x = 0.0
    for pod in pods:
        amount = pod.cpu_milli if is_cpu else pod.memory_bytes
        if not allocatable or not amount or len(segments) >= MAX_SEGMENTS:
            continue
        width = round(100 * amount / allocatable, 2)
        if width < 0.1:
            continue
        start = min(x, max(0.0, 100 - width)) if pod.nominated else min(x, 100.0)
        mark = scale.mark(pod.priority, pod.priority_class)
        segments.append(
            BarSegment(
                pod=f"{pod.namespace}/{pod.name}",
                x=round(start, 2),
                width=min(width, round(100 - start, 2)),
                mark=mark,
                title=_title(pod, mark),
                terminating=pod.terminating,
                reserved=pod.reserved,
                nominated=pod.nominated,
            )
        )
        if not pod.nominated:
            x += width
    return Bar(resource, text(used), text(allocatable), "" if is_cpu else "Gi", tuple(segments))


def _title(pod: PodUse, mark: PriorityMark) -> str:
    words = (
        f"{pod.namespace}/{pod.name}: {amounts.requested(pod.cpu_milli, pod.memory_bytes)}, "
        f"priority {pod.priority} ({mark.title})"
    )
    if pod.nominated:
        return f"{words}, nominated"
    if pod.reserved:
        return f"{words}, reserved, {_AWAITS.get(pod.held_in, _AWAITS['permit'])}"
    return f"{words}, terminating" if pod.terminating else words
