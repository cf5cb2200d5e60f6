"""A plugin that is asked about one node at a time: the easy way to write a first draft, and the slow one.

A column plugin answers for 5,000 nodes in some 20 microseconds; a method under `per_node` is called 5,000 times, some
milliseconds. `plugin check` measures it, and the pages say which plugins are asked this way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.status import Code, Status, Verdicts
from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.pod import Pod


class NodeView:
    """One node with the pods on it, as a `per_node` method sees it; in preemption, as if some were gone."""

    __slots__ = ("_nodes", "row")

    def __init__(self, nodes: NodeColumns, row: int) -> None:
        self._nodes = nodes
        self.row = row

    @property
    def object(self) -> Node:
        return self._nodes.node(self.row)

    @property
    def name(self) -> str:
        return self._nodes.name(self.row)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.object.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.object.taints

    @property
    def pods(self) -> tuple[Pod, ...]:
        """In order of arrival."""
        return tuple(self._nodes.pods.all_of(self._nodes.pods_on(self.row)))

    def allocatable(self, resource: str) -> int:
        """In whole units: millicores of cpu, bytes, else counts."""
        return self._of(self._nodes.allocatable, resource)

    def requested(self, resource: str) -> int:
        """What the pods on it ask for together, in whole units."""
        return self._of(self._nodes.requested, resource)

    def free(self, resource: str) -> int:
        return self.allocatable(resource) - self.requested(resource)

    def _of(self, column: NDArray[np.int64], resource: str) -> int:
        resource_id = self._nodes.vocabulary.resources.id(resource)
        return int(column[resource_id, self.row]) if resource_id < len(column) else 0


def per_node(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a column method of a scalar one, which is called for each node.

    Parameters
    ----------
    method : function
        `filter(self, state, pod, node)` returns a Status, or None for Success; `score(self, state, pod, node)` an int.
        `node` is a `NodeView`.

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> from scheduler_core.framework.interface import FilterPlugin
    >>> class Quiet(FilterPlugin[None]):
    ...     name = "Quiet"
    ...     @per_node
    ...     def filter(self, state, pod, node):
    ...         if node.pods:
    ...             return Status(Code.Unschedulable, (f"{len(node.pods)} pods run there",))
    >>> busy = {"pods": [{"containers": [{"name": "c"}]}]}
    >>> verdicts(Quiet, {"containers": [{"name": "c"}]}, n1={}, n2=busy)
    {'n1': 'passes', 'n2': '1 pods run there'}
    """
    wraps: dict[str, Callable[[Any], Any]] = {"filter": _filter, "score": _score}
    wrap = wraps.get(method.__name__)
    if wrap is None:
        raise TypeError(f"per_node is for `filter` and `score`, not for `{method.__name__}`")
    column: Any = wrap(method)
    column.__doc__ = method.__doc__
    column.__name__ = method.__name__
    column.per_node = True
    result: Callable[..., Any] = column
    return result


def _filter(method: Callable[..., Status | None]) -> Callable[..., Verdicts]:
    def column(self: Any, state: Any, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes, details = np.zeros(len(rows), np.int8), np.zeros(len(rows), np.int64)
        said: list[tuple[str, ...]] = self.__dict__.setdefault("per_node_reasons", [])
        places: dict[tuple[str, ...], int] = self.__dict__.setdefault("_per_node_places", {})
        for place, row in enumerate(rows.tolist()):
            status = method(self, state, pod, NodeView(nodes, row))
            if status is None or status.is_success:
                continue
            if not isinstance(status, Status):
                raise TypeError(
                    f"filter returned {type(status).__name__} for {nodes.name(row)}, not a Status"
                )
            codes[place] = status.code
            if status.reasons not in places:
                places[status.reasons] = len(said)
                said.append(status.reasons)
            details[place] = places[status.reasons]
        return Verdicts(codes, details)

    return column


def _score(method: Callable[..., int]) -> Callable[..., NDArray[np.int64]]:
    def column(self: Any, state: Any, pod: Pod, nodes: NodeColumns, rows: Rows) -> NDArray[np.int64]:
        scores = np.zeros(len(rows), np.int64)
        for place, row in enumerate(rows.tolist()):
            score = method(self, state, pod, NodeView(nodes, row))
            if isinstance(score, bool) or not isinstance(score, int | np.integer):
                raise TypeError(f"score returned {score!r} for {nodes.name(row)}, not an int")
            scores[place] = score
        return scores

    return column


def asked_per_node(plugin: type[Any]) -> tuple[str, ...]:
    """The extension points at which a plugin is asked about one node at a time."""
    return tuple(point for point in ("filter", "score") if hasattr(getattr(plugin, point, None), "per_node"))


__all__ = ["Code", "NodeView", "Status", "asked_per_node", "per_node"]
