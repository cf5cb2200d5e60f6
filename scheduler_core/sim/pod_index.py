"""Pods by who owns them and by the node they are on, counted as they change: no controller ever scans all pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.errors import require
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.world import Noticed

Owner = tuple[str, str, str]
"""(kind, namespace, uid): a uid alone may be derived from the name, and so shared by two kinds."""


class OwnedPods:
    """The pods of one owner.

    Attributes
    ----------
    pods : dict of str to Pod
        By name; the order means nothing.
    n_active : int
        Neither finished nor being deleted.
    n_ready : int
        Active ones whose Ready condition is true.
    """

    __slots__ = ("n_active", "n_ready", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.n_active = 0
        self.n_ready = 0

    def count(self, pod: Pod, by: int) -> None:
        if is_active(pod):
            self.n_active += by
            self.n_ready += by * is_ready(pod)

    def active(self) -> list[Pod]:
        """Active pods by name."""
        return [self.pods[name] for name in sorted(self.pods) if is_active(self.pods[name])]


NO_PODS = OwnedPods()
"""For owners without pods; never written to."""

_NONE_THERE: Mapping[str, Pod] = {}


class PodIndex:
    """Every pod of the cluster, found by owner or node.

    Attributes
    ----------
    orphans : dict of str to dict
        Namespace -> name -> pods without a controller.
    """

    def __init__(self) -> None:
        self._by_owner: dict[Owner, OwnedPods] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self.orphans: dict[str, dict[str, Pod]] = {}

    def of_owner(self, owner: Owner) -> OwnedPods:
        return self._by_owner.get(owner, NO_PODS)

    def on_node(self, node_name: str) -> Mapping[str, Pod]:
        """Pods by `namespace/name`; the order means nothing."""
        return self._by_node.get(node_name, _NONE_THERE)

    def noticed(self, change: Noticed) -> tuple[Owner | None, Owner | None]:
        """A pod changed; returns its owner before and after."""
        old: Pod | None = None if change.old is None else change.old.typed
        new: Pod | None = None if change.new is None else change.new.typed
        old_owner = None if old is None else owner_of(old)
        if old is not None:
            if old_owner is None:
                self.orphans.get(old.namespace, {}).pop(old.name, None)
            elif new is None or old_owner != owner_of(new):
                self._disown(old_owner, old.name)
            if old.node_name and (new is None or new.node_name != old.node_name):
                self._leave(old.node_name, old.key)
        return old_owner, None if new is None else self.put(new)

    def put(self, pod: Pod) -> Owner | None:
        """A pod came, or has another version with the same owner and node; returns its owner."""
        owner = owner_of(pod)
        if owner is None:
            self.put_orphan(pod)
            return None
        self._own(owner, pod.meta.name, pod)
        if pod.node_name:
            self._by_node.setdefault(pod.node_name, {})[pod.key] = pod
        return owner

    def put_orphan(self, pod: Pod) -> None:
        """`put` of a pod without an owner."""
        meta, node_name = pod.meta, pod.node_name
        if is_active(pod):
            if meta.namespace not in self.orphans:
                self.orphans[meta.namespace] = {}
            self.orphans[meta.namespace][meta.name] = pod
        if node_name:
            if node_name not in self._by_node:
                self._by_node[node_name] = {}
            self._by_node[node_name][f"{meta.namespace}/{meta.name}"] = pod

    def validate(self, pods: Iterable[Pod]) -> None:
        """Check that the index holds these pods, the cluster's, and counts them as counting afresh would."""
        afresh = PodIndex()
        for pod in pods:
            afresh.put(pod)
        names = OwnedPods.__slots__
        ours, theirs = (
            {owner: [getattr(group, name) for name in names] for owner, group in index._by_owner.items()}
            for index in (self, afresh)
        )
        require(
            self,
            pods_are_found_and_counted_by_owner=ours == theirs,
            pods_are_found_by_node=self._by_node == afresh._by_node,
            orphans_are_known={name: kept for name, kept in self.orphans.items() if kept} == afresh.orphans,
        )

    def _own(self, owner: Owner, name: str, pod: Pod) -> None:
        group = self._by_owner.get(owner)
        if group is None:
            group = self._by_owner[owner] = OwnedPods()
        before = group.pods.get(name)
        if before is not None:
            group.count(before, -1)
        group.pods[name] = pod
        group.count(pod, 1)

    def _disown(self, owner: Owner, name: str) -> None:
        group = self._by_owner.get(owner)
        before = None if group is None else group.pods.pop(name, None)
        if group is None or before is None:
            return
        group.count(before, -1)
        if not group.pods:
            del self._by_owner[owner]

    def _leave(self, node_name: str, key: str) -> None:
        pods = self._by_node.get(node_name)
        if pods is not None and pods.pop(key, None) is not None and not pods:
            del self._by_node[node_name]


def owner_of(pod: Pod) -> Owner | None:
    """Who controls the pod."""
    if not pod.meta.owners:
        return None
    reference = pod.meta.controller
    return None if reference is None else (reference.kind, pod.namespace, reference.uid)


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted. Source: pkg/controller/controller_utils.go IsPodActive, v1.34."""
    return not pod.is_terminal and pod.meta.deletion_ns is None


def condition_of(manifest: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    """The condition of that type in an object's status."""
    conditions: Iterable[Any] = (manifest.get("status") or {}).get("conditions") or ()
    for condition in conditions:
        if condition.get("type") == type_:
            found: Mapping[str, Any] = condition
            return found
    return None


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is true."""
    condition = condition_of(pod.manifest, "Ready")
    return condition is not None and condition.get("status") == "True"
