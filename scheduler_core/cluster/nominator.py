"""Pods nominated to a node: preemption made room there, but they are not bound yet.

Source: pkg/scheduler/backend/queue/nominator.go, v1.34
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.objects.pod import Pod

_KEPT_CHANGES = 4096


class Nominator:
    """Nominated pods by node name, in order of nomination.

    Attributes
    ----------
    version : int
        Changes with every nomination made or taken back.
    """

    def __init__(self) -> None:
        self.version = 0
        self._changes: list[str] = []
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, node_name: str = "") -> None:
        """Nominate `pod` to `node_name`, or to its own `status.nominatedNodeName`; replaces an older nomination."""
        self.remove(pod.uid)
        name = node_name or pod.nominated_node_name
        if not name:
            return
        self._changed(pod.uid)
        self._node_of[pod.uid] = name
        self._by_node.setdefault(name, {})[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Forget a nomination; nothing happens without one."""
        name = self._node_of.pop(uid, None)
        if name is not None:
            self._changed(uid)
            pods = self._by_node[name]
            del pods[uid]
            if not pods:
                del self._by_node[name]

    def update(self, old: Pod | None, new: Pod) -> None:
        """The pod changed; a nomination made in memory survives an update that says nothing about one."""
        keep = ""
        if old is not None and not old.nominated_node_name and not new.nominated_node_name:
            keep = self._node_of.get(old.uid, "")
        self.remove(new.uid)
        self.add(new, keep)

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def pods_for(self, node_name: str) -> Sequence[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    def pod(self, uid: str) -> Pod | None:
        """A nominated pod, None for any other."""
        name = self._node_of.get(uid)
        return None if name is None else self._by_node[name][uid]

    def uids(self) -> Sequence[str]:
        return list(self._node_of)

    def changed_since(self, version: int) -> Sequence[str] | None:
        """Uids of pods nominated or no longer nominated since then; None when that is not known any more."""
        n_changes = self.version - version
        if not n_changes:
            return ()
        return self._changes[-n_changes:] if n_changes <= len(self._changes) else None

    def _changed(self, uid: str) -> None:
        self.version += 1
        self._changes.append(uid)
        if len(self._changes) > 2 * _KEPT_CHANGES:
            del self._changes[:_KEPT_CHANGES]

    def nodes(self) -> Sequence[str]:
        """Names of nodes with a nominated pod."""
        return list(self._by_node)

    def state(self) -> list[tuple[str, str]]:
        """(uid, node name) in order, for a checkpoint."""
        return [(uid, name) for name, pods in self._by_node.items() for uid in pods]

    def __len__(self) -> int:
        return len(self._node_of)
