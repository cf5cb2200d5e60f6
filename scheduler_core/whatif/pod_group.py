"""A pod group: who of it fits where, how far it is from being scheduled, and what would place it.

Everything is found by running the group's scheduling cycle on a fork of the cluster, nothing by estimate: a remedy is
listed only when the whole group was placed with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler_core.cluster.cache import GroupKey
from scheduler_core.errors import CannotAnswer
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.fork import Fork
from scheduler_core.framework.preemption.group import GroupPreemptor, find_group_victims
from scheduler_core.group_cycle import GroupResult, Member
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import KIND, SCHEDULED, PodGroup, existing_condition
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.scheduler import Scheduler
from scheduler_core.whatif.cluster_edits import node_like, shape_of

MAX_SHAPES = 8
"""Kinds of nodes of which more are tried."""
MAX_ADDED = 64
"""Nodes that are added at most."""


class UnknownGroup(CannotAnswer):
    """No PodGroup of that name, or groups are not scheduled here."""


def group_story(
    original: Scheduler, namespace: str, name: str, *, transport: Transport = no_transport
) -> dict[str, Any]:
    """How far a group is from being scheduled, and what would place it; the cluster is left unchanged.

    Returns
    -------
    dict
        `group`, `policy`, `minCount`, `priority`, `sentence`, `condition`; `scheduled` members that hold a node, `fit`
        that would find one at once, `needed` together, `missing` of them; `members`, `nodes`, `firstWithoutNode`;
        `remedies`: `kind` (`minCount`, `addNodes`, `evict`), `sentence`, `to`; or `like`, `count` and `fit`; or `pods`,
        and `gate` where the cluster does not do so by itself; and `change`: what to `write` and `delete` for it.

    Raises
    ------
    UnknownGroup
    """
    key: GroupKey = (namespace, name)
    group: PodGroup | None = original.cache.listers.get(KIND, *key)
    if group is None:
        raise UnknownGroup(f'podgroups.scheduling.k8s.io "{name}" not found in namespace "{namespace}"')
    if not original.pod_groups.are_scheduled:
        raise UnknownGroup(
            f"pod groups are not scheduled in {original.loaded.release.title}: "
            "the feature gate GenericWorkload of 1.36 is off"
        )
    return _Group(original, key, group, transport).document()


class _Group:
    """A group on a fork, its waiting members in the order of their cycle."""

    def __init__(self, original: Scheduler, key: GroupKey, group: PodGroup, transport: Transport) -> None:
        self.fork = Fork(original, transport=transport)
        self.group = group
        self.infos: list[QueuedPodInfo] = []
        for pod in original.pod_groups.unscheduled(key):
            known = original.queue.get(pod.key)
            info = QueuedPodInfo(pod, pod.key, pod.meta.creation_ns or 0)
            if known is not None:
                info.initial_attempt_timestamp_ns = known.initial_attempt_timestamp_ns
                info.first_entry = known.first_entry
            if not pod.is_terminating and pod.scheduler_name in original.profiles:
                self.infos.append(info)
        self.infos.sort(
            key=lambda info: (-info.pod.priority, info.initial_attempt_timestamp_ns or 0, info.first_entry)
        )
        for info in self.infos:
            self.fork.scheduler.nominator.remove(info.pod.uid)
        tried = {} if not self.infos else {one.info.pod.uid: one for one in self._run().members}
        pods = original.pod_groups.members(key)
        self.members = [_member(original, pod, tried.get(pod.uid)) for pod in pods]
        self.n_scheduled = original.pod_groups.n_scheduled(key)
        self.n_fit = sum(member.is_placed for member in tried.values())
        self.n_needed = group.min_count or 1
        self.together = self.n_scheduled + self.n_fit
        self.n_missing = max(self.n_needed - self.together, 0)

    def _run(self) -> GroupResult:
        """The group's cycle: who finds a node beside those before it."""
        self.fork.rewind()
        framework = self.fork.framework(self.infos[0].pod)
        return self.fork.scheduler.try_group(framework, self.infos, dry_run=True)

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        nodes: dict[str, list[str]] = {}
        for member in self.members:
            if member["fits"]:
                nodes.setdefault(member["fits"], []).append(member["pod"])
        without = (one["pod"] for one in self.members if one["state"] == "waiting" and not one["fits"])
        condition = existing_condition(self.group, SCHEDULED)
        wants_help = self.n_missing and len(self.members) >= self.n_needed
        return {
            "group": self.group.key,
            "policy": "basic" if self.group.min_count is None else "gang",
            "minCount": self.group.min_count,
            "priority": self.group.priority,
            "sentence": self._sentence(),
            "condition": None if condition is None else dict(condition),
            "scheduled": self.n_scheduled,
            "fit": self.n_fit,
            "needed": self.n_needed,
            "missing": self.n_missing,
            "members": self.members,
            "nodes": [{"node": name, "members": pods} for name, pods in nodes.items()],
            "firstWithoutNode": next(without, None),
            "remedies": list(self._remedies()) if wants_help else [],
        }

    def _sentence(self) -> str:
        name, needed, n_members = self.group.key, self.n_needed, len(self.members)
        if n_members == self.n_scheduled >= needed:
            return f"All {self.n_scheduled} members of {name} hold a node."
        if n_members < needed:
            return f"{name} waits: {n_members} of the {needed} members it needs are there."
        if self.n_missing:
            fit = f"{self.together} of the {needed} members it needs fit at once"
            return f"{name} waits: {fit}, {self.n_missing} too few."
        return f"{name} can be scheduled: {self.together} of its {n_members} members fit at once."

    # ---- remedies

    def _remedies(self) -> Iterator[dict[str, Any]]:
        count = self.together
        if self.group.min_count is not None and count:
            spec = {**self.group.manifest["spec"], "schedulingPolicy": {"gang": {"minCount": count}}}
            yield {
                "kind": "minCount",
                "sentence": f"Lower minCount to {count}: it starts with {count}, the others join as room comes.",
                "to": count,
                "change": {"write": [{**self.group.manifest, "spec": spec}]},
            }
        if self.infos:
            yield from self._more_nodes()
        if self.group.priority and self.infos:
            yield from self._evictions()

    def _more_nodes(self) -> Iterator[dict[str, Any]]:
        """For each kind of node there is, the fewest more of it that do."""
        shapes: dict[object, Node] = {}
        for node in self.fork.nodes():
            shapes.setdefault(shape_of(node), node)
        for like in list(shapes.values())[:MAX_SHAPES]:
            more: list[Node] = []
            with self.fork.changes():
                for count in range(1, min(self.n_missing, MAX_ADDED) + 1):
                    more.append(node_like(like, f"{like.name}-more-{count}"))
                    self.fork.set_nodes(more[-1:])
                    n_fit = sum(member.is_placed for member in self._run().members)
                    if count == 1 and n_fit <= self.n_fit:
                        # No member can use one of it.
                        break
                    fit = self.n_scheduled + n_fit
                    if fit >= self.n_needed:
                        nodes = f"{count} node{'' if count == 1 else 's'} like {like.name}"
                        yield {
                            "kind": "addNodes",
                            "sentence": f"Add {nodes}: {fit} members fit.",
                            "like": like.name,
                            "count": count,
                            "fit": fit,
                            "change": {"write": [dict(node.manifest) for node in more]},
                        }
                        break

    def _evictions(self) -> Iterator[dict[str, Any]]:
        scheduler = self.fork.scheduler
        never = any(info.pod.preemption_policy == "Never" for info in self.infos)
        preemptor = GroupPreemptor(self.group, never)
        victims, status = find_group_victims(
            preemptor, scheduler.cache, lambda: self._run().status, scheduler.clock.now_ns
        )
        if status.is_success and victims:
            names = [pod.key for pod in victims]
            pods = f"{len(names)} pod{'' if len(names) == 1 else 's'} of lower priority"
            gate, how = {}, ""
            if not scheduler.loaded.release.gate("WorkloadAwarePreemption"):
                gate = {"gate": "WorkloadAwarePreemption"}
                how = "; with the feature gate WorkloadAwarePreemption it does so by itself"
            sentence = f"Evict {pods}: {', '.join(names[:5])}{how}."
            yield {
                "kind": "evict", "sentence": sentence, "pods": names, **gate, "change": {"delete": names},
            }  # fmt: skip


def _member(original: Scheduler, pod: Pod, tried: Member | None) -> dict[str, Any]:
    node = pod.node_name or original.cache.node_name_of(pod.uid) or ""
    info = original.queue.get(pod.key)
    fits, message, n_feasible = None, None, None
    if tried is not None:
        fits = tried.node_name if tried.is_placed else None
        message = None if tried.is_placed else tried.status.message
        n_feasible = 0 if tried.decision is None else tried.decision.n_feasible
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "priority": pod.priority,
        "state": "bound" if pod.node_name else ("assumed" if node else "waiting"),
        "node": node or None,
        "fits": fits,
        "message": message,
        "nFeasible": n_feasible,
        "attempts": 0 if info is None else info.attempts,
        "lane": None if info is None else info.lane.value,
        "heldBy": None if info is None else info.gating_reason or None,
    }
