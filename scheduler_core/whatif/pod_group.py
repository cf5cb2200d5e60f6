"""The story of a pod group: who of it fits where, how far it is from being scheduled, and what would place it.

Everything is found by running the group's own scheduling cycle on a copy of the cluster, nothing by estimate: a remedy
is told only when the whole group was placed with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.cluster.pod_groups import Key
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.preemption.group import GroupPreemptor, find_group_victims
from scheduler_core.group_cycle import Member
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import KIND, SCHEDULED, PodGroup, existing_condition
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.scheduler import Scheduler
from scheduler_core.whatif.fork import Sandbox

MAX_SHAPES = 8
"""Kinds of nodes of which more are tried."""
MAX_ADDED = 64
"""Nodes that are added at most."""
HOSTNAME = "kubernetes.io/hostname"


class UnknownGroup(LookupError):
    """No PodGroup of that name, or groups are not scheduled here."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change with which the whole group was placed.

    Attributes
    ----------
    kind : str
        `minCount`, `addNodes` or `evict`.
    sentence : str
    details : dict
        `to`; or `like` and `count`; or `pods`, and `gate` where the cluster does not do so by itself. `change`: what to
        `write` (manifests) and `delete` (pods) for it.
    """

    kind: str
    sentence: str
    details: dict[str, Any]


@dataclass(slots=True)
class GroupStory:
    """What there is to tell of a group; `document` says it as JSON."""

    group: PodGroup
    members: list[dict[str, Any]]
    n_scheduled: int
    n_fit: int
    remedies: list[Remedy] = field(default_factory=list)

    @property
    def n_needed(self) -> int:
        """Members that must hold a node together; of a basic group, one."""
        return self.group.min_count or 1

    @property
    def n_missing(self) -> int:
        """Members short of what is needed, were all placed that fit at once."""
        return max(self.n_needed - self.n_scheduled - self.n_fit, 0)

    @property
    def sentence(self) -> str:
        name, waiting = self.group.key, len(self.members) - self.n_scheduled
        if not waiting and self.n_scheduled >= self.n_needed:
            return f"All {self.n_scheduled} members of {name} hold a node."
        if len(self.members) < self.n_needed:
            return f"{name} waits: {len(self.members)} of the {self.n_needed} members it needs are there."
        together = self.n_scheduled + self.n_fit
        if self.n_missing:
            return (
                f"{name} waits: {together} of the {self.n_needed} members it needs fit at once, "
                f"{self.n_missing} too few."
            )
        return f"{name} can be scheduled: {together} of its {len(self.members)} members fit at once."

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        nodes: dict[str, list[str]] = {}
        for member in self.members:
            if member["fits"]:
                nodes.setdefault(member["fits"], []).append(member["pod"])
        first = next((item for item in self.members if item["state"] == "waiting" and not item["fits"]), None)
        condition = existing_condition(self.group, SCHEDULED)
        return {
            "group": self.group.key,
            "policy": "basic" if self.group.min_count is None else "gang",
            "minCount": self.group.min_count,
            "priority": self.group.priority,
            "sentence": self.sentence,
            "condition": None if condition is None else dict(condition),
            "scheduled": self.n_scheduled,
            "fit": self.n_fit,
            "needed": self.n_needed,
            "missing": self.n_missing,
            "members": self.members,
            "nodes": [{"node": name, "members": pods} for name, pods in nodes.items()],
            "firstWithoutNode": None if first is None else first["pod"],
            "remedies": [
                {"kind": remedy.kind, "sentence": remedy.sentence, **remedy.details}
                for remedy in self.remedies
            ],
        }


def group_story(
    original: Scheduler, namespace: str, name: str, *, transport: Transport = no_transport
) -> GroupStory:
    """Tell a group's story; the cluster stays as it is.

    Raises
    ------
    UnknownGroup
    """
    key: Key = (namespace, name)
    group: PodGroup | None = original.cache.listers.get(KIND, *key)
    if group is None:
        raise UnknownGroup(f'podgroups.scheduling.k8s.io "{name}" not found in namespace "{namespace}"')
    if not original.pod_groups.are_scheduled:
        raise UnknownGroup(
            f"pod groups are not scheduled in {original.loaded.release.title}: "
            "the feature gate GenericWorkload of 1.36 is off"
        )
    trial = _Trial(original, key, group, transport)
    placed = trial.run()
    story = GroupStory(
        group,
        [_member(original, pod, placed.get(pod.uid)) for pod in original.pod_groups.members(key)],
        original.pod_groups.n_scheduled(key),
        sum(member.is_placed for member in placed.values()),
    )
    if story.n_missing and len(story.members) >= story.n_needed:
        story.remedies.extend(_remedies(trial, story))
    return story


class _Trial:
    """The waiting members of a group, in the order of their cycle, on a copy of the cluster."""

    def __init__(self, original: Scheduler, key: Key, group: PodGroup, transport: Transport) -> None:
        self.sandbox = Sandbox(original, transport=transport)
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

    def run(self) -> dict[str, Member]:
        """Who finds a node beside those before it, by uid."""
        if not self.infos:
            return {}
        self.sandbox.rewind()
        framework = self.sandbox.framework(self.infos[0].pod)
        for info in self.infos:
            self.sandbox.scheduler.nominator.remove(info.pod.uid)
        result = self.sandbox.scheduler.try_group(framework, self.infos, dry_run=True)
        return {member.info.pod.uid: member for member in result.members}

    def n_fit(self) -> int:
        return sum(member.is_placed for member in self.run().values())


def _member(original: Scheduler, pod: Pod, tried: Member | None) -> dict[str, Any]:
    node = pod.node_name or original.cache.node_name_of(pod.uid) or ""
    info = original.queue.get(pod.key)
    document: dict[str, Any] = {
        "pod": pod.key,
        "uid": pod.uid,
        "priority": pod.priority,
        "state": "bound" if pod.node_name else ("assumed" if node else "waiting"),
        "node": node or None,
        "fits": None,
        "message": None,
        "nFeasible": None,
        "attempts": 0 if info is None else info.attempts,
        "lane": None if info is None else info.lane.value,
        "heldBy": None if info is None else info.gating_reason or None,
    }
    if tried is not None:
        document["fits"] = tried.node_name if tried.is_placed else None
        document["message"] = None if tried.is_placed else tried.status.message
        document["nFeasible"] = 0 if tried.decision is None else tried.decision.n_feasible
    return document


def _remedies(trial: _Trial, story: GroupStory) -> Iterator[Remedy]:
    together = story.n_scheduled + story.n_fit
    if story.group.min_count is not None and together:
        yield Remedy(
            "minCount",
            f"Lower minCount to {together}: it starts with {together}, the others join as room comes.",
            {"to": together, "change": {"write": [_with_min_count(story.group, together)]}},
        )
    yield from _more_nodes(trial, story)
    if story.group.priority:
        yield from _evictions(trial, story)


def _with_min_count(group: PodGroup, count: int) -> dict[str, Any]:
    spec = {**group.manifest["spec"], "schedulingPolicy": {"gang": {"minCount": count}}}
    return {**group.manifest, "spec": spec}


def _more_nodes(trial: _Trial, story: GroupStory) -> Iterator[Remedy]:
    """For each kind of node there is, the fewest more of it that do."""
    for like in _shapes(trial.sandbox):
        with ExitStack() as added:
            for count in range(1, min(story.n_missing, MAX_ADDED) + 1):
                added.enter_context(trial.sandbox.with_node(_another(like, count)))
                n_fit = trial.n_fit()
                if count == 1 and n_fit <= story.n_fit:
                    # No member can use one of it.
                    break
                if story.n_scheduled + n_fit >= story.n_needed:
                    noun = "node" if count == 1 else "nodes"
                    change = {"write": [dict(_another(like, one).manifest) for one in range(1, count + 1)]}
                    details = {"like": like.name, "count": count, "fit": story.n_scheduled + n_fit}
                    yield Remedy(
                        "addNodes",
                        f"Add {count} {noun} like {like.name}: {story.n_scheduled + n_fit} members fit.",
                        {**details, "change": change},
                    )
                    break


def _shapes(sandbox: Sandbox) -> list[Node]:
    """One node of each kind: equal but for name, hostname and what runs there."""
    found: dict[str, Node] = {}
    for name in sandbox.nodes_in_order():
        node = sandbox.scheduler.cache.node(name)
        if node is None:
            continue
        labels = sorted((key, value) for key, value in node.labels.items() if key != HOSTNAME)
        spec = node.manifest.get("spec") or {}
        allocatable = (node.manifest.get("status") or {}).get("allocatable") or {}
        found.setdefault(repr((labels, spec.get("taints"), sorted(allocatable.items()))), node)
    return list(found.values())[:MAX_SHAPES]


def _another(like: Node, number: int) -> Node:
    name = f"{like.name}-more-{number}"
    meta: Mapping[str, Any] = like.manifest["metadata"]
    labels = {**(meta.get("labels") or {}), HOSTNAME: name}
    return node_from({**like.manifest, "metadata": {**meta, "name": name, "uid": name, "labels": labels}})


def _evictions(trial: _Trial, story: GroupStory) -> Iterator[Remedy]:
    scheduler = trial.sandbox.scheduler
    never = any(info.pod.preemption_policy == "Never" for info in trial.infos)

    def fits() -> Any:
        trial.sandbox.rewind()
        framework = trial.sandbox.framework(trial.infos[0].pod)
        return scheduler.try_group(framework, trial.infos, dry_run=True).status

    victims, status = find_group_victims(
        GroupPreemptor(story.group, never), scheduler.cache, fits, scheduler.clock.now_ns
    )
    if status.is_success and victims:
        names = [pod.key for pod in victims]
        noun = "pod" if len(names) == 1 else "pods"
        by_itself = scheduler.loaded.release.gate("WorkloadAwarePreemption")
        gate = {} if by_itself else {"gate": "WorkloadAwarePreemption"}
        how = "" if by_itself else "; with the feature gate WorkloadAwarePreemption it does so by itself"
        sentence = f"Evict {len(names)} {noun} of lower priority: {', '.join(names[:5])}{how}."
        yield Remedy("evict", sentence, {"pods": names, **gate, "change": {"delete": names}})
