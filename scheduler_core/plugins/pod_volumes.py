"""The claims behind a pod's volumes, as all volume plugins find them."""

from __future__ import annotations

from typing import Any, Protocol

from scheduler_core.cluster.node_table import NodeTable
from scheduler_core.objects.fields import Document, mapping, string
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.storage import PersistentVolumeClaim

CLAIM = "PersistentVolumeClaim"
VOLUMES_REASON = "node(s) exceed max volume count"
_SOURCE = "persistentVolumeClaim"


class Lookup(Protocol):
    """The cluster's objects by kind, namespace and name."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None: ...


class VolumeError(ValueError):
    """Volumes that cannot be counted; `not_found` when a claim is missing."""

    def __init__(self, message: str, *, not_found: bool = False) -> None:
        self.not_found = not_found
        super().__init__(message)


def claim_name(pod: Pod, volume: Document) -> tuple[str, bool] | None:
    """The claim behind a pod's volume, and whether it is an ephemeral one; None for other volumes."""
    if volume.get(_SOURCE) is not None:
        return string(mapping(volume, _SOURCE, ""), "claimName", ""), False
    if volume.get("ephemeral") is not None:
        return f"{pod.name}-{string(volume, 'name', '')}", True
    return None


def claim_names(pod: Pod, *, ephemeral: bool = False) -> list[str]:
    """PersistentVolumeClaims a pod names itself; with `ephemeral` those of generic ephemeral volumes, too."""
    named = [found for volume in pod.volumes if (found := claim_name(pod, volume)) is not None]
    return [name for name, is_ephemeral in named if ephemeral or not is_ephemeral]


def not_owned(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why a pod cannot use the claim of an ephemeral volume: it is another pod's; None where it can.

    Source: component-helpers/storage/ephemeral/ephemeral.go VolumeIsForPod, v1.34
    """
    controller = claim.meta.controller
    if claim.namespace == pod.namespace and controller is not None and controller.uid == pod.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def counted_claim(
    pod: Pod, name: str, is_ephemeral: bool, lookup: Lookup, *, is_new: bool
) -> PersistentVolumeClaim | None:
    """The claim behind a volume that counts against a limit; None where a pod that is on its node has lost it.

    Parameters
    ----------
    is_new : bool
        The pod is not on the node yet: it cannot do without its claims.

    Raises
    ------
    VolumeError
        The claim is missing (only for a new pod), or belongs to another pod.
    """
    if not name:
        raise VolumeError("PersistentVolumeClaim had no name")
    claim: PersistentVolumeClaim | None = lookup.get(CLAIM, pod.namespace, name)
    if claim is None:
        if not is_new:
            return None
        message = f'looking up PVC {pod.namespace}/{name}: persistentvolumeclaim "{name}" not found'
        raise VolumeError(message, not_found=True)
    if is_ephemeral and (problem := not_owned(pod, claim)):
        raise VolumeError(problem)
    return claim


# --- Which pods with volumes stand on which row, brought up to date from the node table's journal.


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
