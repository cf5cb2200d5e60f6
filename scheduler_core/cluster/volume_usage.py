"""Which pods with volumes stand on which row, brought up to date from the node table's journal."""

from __future__ import annotations

from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.objects.pod import Pod

_MOST_CHANGES = 4096


class VolumeUsage:
    """Pods that mount anything, by row; rows without such pods take no room.

    Attributes
    ----------
    pods_on : dict of int to tuple of Pod
        Row -> its pods with volumes, in order of arrival.
    """

    __slots__ = ("_nodes", "_position", "pods_on")

    def __init__(self) -> None:
        self.pods_on: dict[int, tuple[Pod, ...]] = {}
        self._nodes: NodeTable | None = None
        self._position = 0

    def refresh(self, nodes: NodeTable) -> list[int] | None:
        """Catch up with `nodes`.

        Returns
        -------
        list of int or None
            Rows whose pods with volumes are others than before; None when all may be.
        """
        rows = nodes.usage_journal.since(self._position, _MOST_CHANGES) if nodes is self._nodes else None
        self._nodes = nodes
        self._position = nodes.usage_journal.position
        if rows is None:
            self.pods_on = {row: pods for row in range(nodes.n_rows) if (pods := _with_volumes(nodes, row))}
            return None
        changed = []
        for row in rows:
            pods = _with_volumes(nodes, row)
            if pods == self.pods_on.get(row, ()):
                continue
            changed.append(row)
            if pods:
                self.pods_on[row] = pods
            else:
                del self.pods_on[row]
        return changed


def _with_volumes(nodes: NodeTable, row: int) -> tuple[Pod, ...]:
    table = nodes.pods
    return tuple(pod for pod_id in nodes.pods_on(row) if (pod := table[pod_id]).volumes)
