"""Who belongs to which PodGroup, and how many of them hold a node.

Source: pkg/scheduler/backend/cache/podgroupstate.go, v1.36
Differs: which members are assumed is asked of the cache; nothing is counted twice.
"""

from __future__ import annotations

from scheduler_core.cluster.cache import Cache
from scheduler_core.objects.pod import Pod
from scheduler_core.releases import Release

Key = tuple[str, str]
"""(namespace, name)"""


class PodGroups:
    """Members of pod groups by group, in order of arrival.

    Parameters
    ----------
    cache : Cache
    release : Release
        Pods are members of groups only where it schedules groups.
    """

    def __init__(self, cache: Cache, release: Release) -> None:
        self.are_scheduled = release.gate("GenericWorkload") and release.has("PodsNameTheirGroup")
        """Whether there are groups at all: otherwise the API server drops the field."""
        self.are_gangs = self.are_scheduled and release.gate("GangScheduling")
        self._cache = cache
        self._members: dict[Key, dict[str, Pod]] = {}

    def group_of(self, pod: Pod) -> Key | None:
        """The group a pod names, where groups are scheduled."""
        if not pod.scheduling_group or not self.are_scheduled:
            return None
        return pod.namespace, pod.scheduling_group

    def set(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        key = self.group_of(pod) if pod.scheduling_group else None
        if key is not None:
            self._members.setdefault(key, {})[pod.uid] = pod

    def remove(self, pod: Pod) -> None:
        key = self.group_of(pod)
        members = None if key is None else self._members.get(key)
        if key is None or members is None:
            return
        members.pop(pod.uid, None)
        if not members:
            del self._members[key]

    def members(self, key: Key) -> list[Pod]:
        """All pods of a group that the scheduler knows, in order of arrival."""
        return list(self._members.get(key, {}).values())

    def n_members(self, key: Key) -> int:
        return len(self._members.get(key, ()))

    def assumed(self, key: Key) -> list[Pod]:
        """Members that are assumed on a node, not yet bound to it."""
        return [pod for pod in self.members(key) if not pod.node_name and self._cache.is_assumed(pod.uid)]

    def unscheduled(self, key: Key) -> list[Pod]:
        """Members that are neither assumed nor bound."""
        return [pod for pod in self.members(key) if not pod.node_name and not self._cache.is_assumed(pod.uid)]

    def n_scheduled(self, key: Key) -> int:
        """Members that are assumed or bound."""
        return self.n_members(key) - len(self.unscheduled(key))

    def groups(self) -> list[Key]:
        """Groups that have members, in order of their first one's arrival."""
        return list(self._members)
