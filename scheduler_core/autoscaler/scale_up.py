"""One scale-up: groups that may grow, what each would take, the one that does, and how it shares with its likes.

Source: cluster-autoscaler/core/scaleup/orchestrator/orchestrator.go, processors/nodegroupset, resourcequotas, k8s 1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.cluster import ProgramEvent
from scheduler_core.autoscaler.cluster_state import ClusterState, Flags, MachineGroup
from scheduler_core.autoscaler.estimate import BinPacking, EqualPods, Packing, equal_pods
from scheduler_core.autoscaler.expand import Choice, Expander, Expansion
from scheduler_core.autoscaler.snapshot import GroupTemplate, Rejected
from scheduler_core.autoscaler.templates import amounts_of, fresh_node
from scheduler_core.autoscaler.view import LoopView
from scheduler_core.objects.node import (
    LABEL_HOSTNAME,
    LABEL_REGION,
    LABEL_REGION_BETA,
    LABEL_ZONE,
    LABEL_ZONE_BETA,
    Node,
)
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY, PODS

_GIB: Final = 2**30
_NOT_READY: Final = "not ready for scale-up"
_BACKED_OFF: Final = "in backoff after failed scale-up"
_AT_MAX: Final = "max node group size reached"
_TOO_MANY: Final = "max node total count already reached"
_FAILED: Final = "scale-up execution failed"
NOT_TRIGGERED: Final = "NotTriggerScaleUp"
"""Reason of the Event of a pod for which nothing grew."""
_IGNORED_LABELS: Final = frozenset({
    LABEL_HOSTNAME, LABEL_ZONE, LABEL_ZONE_BETA, LABEL_REGION, LABEL_REGION_BETA,
    "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
})  # fmt: skip


@dataclass
class Growth:
    """A group that grows."""

    group: str
    start: int
    end: int
    most: int

    def __str__(self) -> str:
        return f"{{{self.group} {self.start}->{self.end} (max: {self.most})}}"


@dataclass
class ScaleUp:
    """What came of it."""

    result: str
    error: str = ""
    resizes: list[Growth] = field(default_factory=list)
    triggered: list[Pod] = field(default_factory=list)
    awaiting: list[Pod] = field(default_factory=list)
    remaining: dict[str, tuple[dict[str, tuple[str, ...]], dict[str, str]]] = field(default_factory=dict)
    """Pod -> reasons of the groups that rejected it, and of those that were left out."""
    failed: list[str] = field(default_factory=list)
    predicates: dict[str, dict[str, Rejected | None]] = field(default_factory=dict)
    packing: dict[str, Packing] = field(default_factory=dict)
    options: list[Expansion] = field(default_factory=list)
    choice: Choice | None = None
    expander: Expander | None = None
    events: list[ProgramEvent] = field(default_factory=list)

    @property
    def was_tried(self) -> bool:
        """Whether groups were asked at all."""
        return bool(self.predicates) or self.result in (
            "ScaleUpNoOptionsAvailable",
            "ScaleUpSuccessful",
            "ScaleUpError",
        )


class Quotas:
    """Cores and memory that may come or go; a group's nodes all count like the first one seen.

    Parameters
    ----------
    bound : int
        Which of the flags' two numbers counts: the first is the least, the last the most.
    group_of : mapping of str to str
        Node -> group.
    """

    def __init__(self, flags: Flags, bound: int, group_of: Mapping[str, str]) -> None:
        cores, memory = (int(str(flags(f"{name}-total")).split(":")[bound]) for name in ("cores", "memory"))
        self._limits = {"cpu": cores, "memory": memory * _GIB}
        self._group_of = group_of
        self._of_group: dict[str, dict[str, int]] = {}
        self._left: dict[str, int] = {}

    @classmethod
    def at_most(cls, flags: Flags, nodes: Iterable[Node], group_of: Mapping[str, str]) -> Quotas:
        """What may still come."""
        made = cls(flags, -1, group_of)
        used = made._used(nodes)
        made._left = {name: max(0, most - used[name]) for name, most in made._limits.items()}
        return made

    @classmethod
    def at_least(cls, flags: Flags, nodes: Iterable[Node], group_of: Mapping[str, str]) -> Quotas:
        """What may go."""
        made = cls(flags, 0, group_of)
        used = made._used(nodes)
        made._left = {name: max(0, used[name] - least) for name, least in made._limits.items()}
        return made

    def _used(self, nodes: Iterable[Node]) -> Counter[str]:
        used, of_group = Counter[str](), Counter[str]()
        for node in nodes:
            if node.labels.get("type") == "virtual-kubelet":
                continue
            group = self._group_of.get(node.name, "")
            amounts = self._amounts(group, node)
            of_group[group] += 1
            if not group:
                used.update(amounts)
        for group, count in of_group.items():
            used.update({name: count * amount for name, amount in self._of_group.get(group, {}).items()})
        return used

    def _amounts(self, group: str, node: Node) -> dict[str, int]:
        if group in self._of_group:
            return self._of_group[group]
        capacity = amounts_of(node)
        amounts = {"cpu": -(-capacity.get(CPU, 0) // 1000), "memory": capacity.get(MEMORY, 0)}
        if group:
            self._of_group[group] = amounts
        return amounts

    def check(self, group: str, node: Node, count: int) -> tuple[int, list[str]]:
        """How many of so many nodes are allowed, and the resources that keep the others off."""
        allowed, exceeded = count, []
        for name, amount in self._amounts(group, node).items():
            if amount > 0 and self._left[name] < amount * count:
                allowed = min(allowed, self._left[name] // amount)
                exceeded.append(name)
        return allowed, sorted(exceeded)

    def consume(self, group: str, node: Node, count: int) -> None:
        for name, amount in self._amounts(group, node).items():
            self._left[name] = max(0, self._left[name] - amount * count)


class Orchestrator:
    """Scales up once.

    Parameters
    ----------
    refused : iterable of str
        Groups whose provider refuses to grow.
    """

    def __init__(
        self,
        view: LoopView,
        groups: Mapping[str, MachineGroup],
        templates: Mapping[str, GroupTemplate],
        state: ClusterState,
        quotas: Quotas,
        refused: Iterable[str] = (),
    ) -> None:
        self._snapshot = view.snapshot
        self._flags = view.flags
        self._now_ns = view.now_ns
        self._groups = groups
        self._templates = templates
        self._state = state
        self._quotas = quotas
        self._refused = set(refused)
        self._n_nodes = len(view.snapshot.order)
        self._alike: list[EqualPods] = []
        self._takes: dict[str, list[EqualPods]] = {}
        """Group -> the pods that a fresh node of it takes."""
        self._skipped: dict[str, str] = {}
        """Group -> why it may not grow."""
        self.log: list[dict[str, Any]] = []

    def scale_up(self, pods: Sequence[Pod], expander: Expander) -> ScaleUp:
        found = ScaleUp("ScaleUpNoOptionsAvailable")
        self._alike = equal_pods(pods)
        reasons = {name: self._why_not(name, group) for name, group in sorted(self._groups.items())}
        self._skipped = {name: why for name, why in reasons.items() if why}
        valid = [name for name, why in reasons.items() if not why]
        self._takes = {name: self._ask(name, self._alike, found) for name in valid}
        found.options = [option for name in valid if (option := self._expansion(name, found)) is not None]
        if found.options:
            found.choice, found.expander = expander.choose(found.options), expander
            found.events += expander.events
            self._grow(found)
        if found.error != _TOO_MANY:
            self._tell_remaining(found)
        if found.choice is not None and found.result == "ScaleUpSuccessful":
            found.awaiting = [
                pod
                for group in self._alike
                if group.taken_by and found.choice.chosen.group in group.rejected
                for pod in group.pods
            ]
        if not found.options:
            found.events += [not_triggered(key, *reasons) for key, reasons in found.remaining.items()]
        return found

    # ---- groups that may grow

    def _why_not(self, name: str, group: MachineGroup) -> str:
        if not self._state.is_group_healthy(name):
            return _NOT_READY
        if self._state.is_backed_off(name, self._now_ns):
            return _BACKED_OFF
        if group.target_size >= group.max_size:
            return _AT_MAX
        count, most = 1, self._flags("max-nodes-total")
        if self._flags("zero-or-max-node-scaling", name):
            count = group.max_size - group.target_size
            if most and self._n_nodes + count > most:
                return "atomic scale-up exceeds cluster node count limit"
        if name not in self._templates:
            return _NOT_READY
        _, exceeded = self._quotas.check(name, self._templates[name].node, count)
        if exceeded:
            return f'exceeded quota: "cluster-wide", resources: {", ".join(exceeded)}'
        return ""

    def _is_safe(self, name: str) -> bool:
        return self._state.is_group_healthy(name) and not self._state.is_backed_off(name, self._now_ns)

    def _ask(self, name: str, alike: Sequence[EqualPods], found: ScaleUp) -> list[EqualPods]:
        """Which equal pods a fresh node of the group takes."""
        taken = []
        with self._snapshot.fork():
            template = self._templates[name]
            fresh = fresh_node(template, "fresh")
            self._snapshot.add(fresh.node, fresh.pods, like=template.node.name)
            for group in alike:
                rejected = self._snapshot.check(group.pods[0], fresh.node.name)
                found.predicates.setdefault(name, {})[group.key] = rejected
                if rejected is None:
                    group.taken_by.append(name)
                    taken.append(group)
                else:
                    group.rejected[name] = rejected
        return taken

    # ---- what each would take

    def _expansion(self, name: str, found: ScaleUp) -> Expansion | None:
        if not self._takes[name]:
            return None
        similar = self._similar(name)
        packer = BinPacking(self._snapshot, self._templates[name], self._limit([name, *similar]))
        packing = packer.pack(self._takes[name], fast=self._flags("fastpath-binpacking-enabled"))
        found.packing[name] = packing
        n_nodes = packing.n_nodes
        if n_nodes and self._flags("zero-or-max-node-scaling", name):
            n_nodes = self._groups[name].max_size
        return Expansion(name, n_nodes, packing, similar) if packing.pods and n_nodes else None

    def _limit(self, names: Sequence[str]) -> int:
        """Nodes that may be made: negative for none, 0 for any number."""
        free = sum(max(0, self._groups[name].max_size - self._groups[name].target_size) for name in names)
        most = self._flags("max-nodes-total")
        limits = [self._flags("max-nodes-per-scaleup"), free or -1]
        if most:
            limits.append(most - self._n_nodes if most > self._n_nodes else -1)
        return -1 if min(limits) < 0 else min((limit for limit in limits if limit), default=0)

    def _similar(self, name: str) -> list[str]:
        """Groups with equal machines that take the same pods and may share the new nodes."""
        taken = {other: {group.key for group in groups} for other, groups in self._takes.items()}
        is_whole = self._flags("zero-or-max-node-scaling", name)
        if not self._flags("balance-similar-node-groups") or is_whole or not taken.get(name):
            return []
        return [
            other
            for other in sorted(self._groups)
            if other != name
            and other in self._templates
            and self._are_similar(self._templates[name], self._templates[other])
            and self._is_safe(other)
            and taken[name] <= taken.get(other, set())
        ]

    def _are_similar(self, one: GroupTemplate, other: GroupTemplate) -> bool:
        wanted = self._flags("balancing-label")
        if wanted:
            return all(
                one.node.labels.get(key) is not None
                and one.node.labels.get(key) == other.node.labels.get(key)
                for key in wanted
            )
        pair = (one, other)
        for amounts, flag in (
            ([amounts_of(template.node) for template in pair], ""),
            ([_allocatable(template) for template in pair], "max-allocatable-difference-ratio"),
            ([_free(template) for template in pair], "max-free-difference-ratio"),
        ):
            if amounts[0].keys() != amounts[1].keys():
                return False
            for name in amounts[0]:
                of_capacity = "memory-difference-ratio" if name == MEMORY else ""
                ratio = self._flags(flag or of_capacity) if flag or of_capacity else 0
                smaller, larger = sorted((amounts[0][name], amounts[1][name]))
                if larger - smaller > larger * ratio:
                    return False
        ignored = _IGNORED_LABELS | set(self._flags("balancing-ignore-label"))
        labels = [
            {key: value for key, value in template.node.labels.items() if key not in ignored}
            for template in pair
        ]
        return labels[0] == labels[1]

    # ---- growing

    def _grow(self, found: ScaleUp) -> None:
        assert found.choice is not None
        best = found.choice.chosen
        count, most = best.n_nodes, self._flags("max-nodes-total")
        if most and count + self._n_nodes > most:
            count = most - self._n_nodes
            if count < 1:
                found.result, found.error = "ScaleUpError", _TOO_MANY
                found.triggered = best.pods
                return
        count, _ = self._quotas.check(best.group, self._templates[best.group].node, count)
        resizes = self._balance(best.group, count)
        found.triggered = best.pods
        refused = self._resize(found, resizes)
        if refused is not None:
            self._mark_failed(resizes, refused)
            return
        if resizes:
            told = f"[{' '.join(map(str, resizes))}]"
            found.events += [
                ProgramEvent("Pod", pod.key, "Normal", "TriggeredScaleUp", f"pod triggered scale-up: {told}")
                for pod in best.pods
            ]

    def _resize(self, found: ScaleUp, resizes: list[Growth]) -> Growth | None:
        """Have groups grow, one after the other; the one that the provider refuses ends it."""
        for one in resizes:
            increase = one.end - one.start
            if one.group in self._refused:
                self.log.append({"scaleUpFailed": one.group, "delta": increase})
                self._state.failed(one.group, self._now_ns)
                found.result, found.failed = "ScaleUpError", [one.group]
                found.error = "failed to increase node group size: cloud provider refused"
                return one
            self._groups[one.group].target_size += increase
            self._state.asked(one.group, increase, self._now_ns)
            self.log.append({"resize": one.group, "delta": increase})
        self._state.recalculate()
        found.result, found.resizes = "ScaleUpSuccessful", resizes
        return None

    def _balance(self, name: str, count: int) -> list[Growth]:
        """Share the new nodes: the smallest group gets the next one."""
        similar = [
            other
            for other in self._similar(name)
            if not self._quotas.check(other, self._templates[other].node, 1)[1]
        ]
        resizes = []
        for other in (name, *similar):
            group = self._groups[other]
            if group.target_size != group.max_size:
                resizes.append(Growth(other, group.target_size, group.target_size, group.max_size))
        count = min(count, sum(max(0, one.most - one.start) for one in resizes))
        resizes.sort(key=lambda one: one.start)
        start = index = 0
        while count > 0:
            one = resizes[index]
            if one.end < one.most:
                one.end += 1
                count -= 1
            else:
                resizes[start], resizes[index] = resizes[index], resizes[start]
                start += 1
            if index < len(resizes) - 1 and one.end > resizes[index + 1].end:
                index += 1
            else:
                index = start
        return self._capped([one for one in resizes if one.end != one.start])

    def _capped(self, resizes: Sequence[Growth]) -> list[Growth]:
        for one in resizes:
            node = self._templates[one.group].node
            allowed, _ = self._quotas.check(one.group, node, one.end - one.start)
            one.end = one.start + allowed
            if allowed > 0:
                self._quotas.consume(one.group, node, allowed)
        return [one for one in resizes if one.end != one.start]

    def _mark_failed(self, resizes: Sequence[Growth], at: Growth) -> None:
        failed = {one.group for one in resizes[resizes.index(at) :]}
        for group in self._alike:
            group.rejected |= {name: Rejected("", (_FAILED,)) for name in group.taken_by if name in failed}
            if failed.issuperset(group.taken_by):
                group.taken_by = []

    # ---- what is told

    def _tell_remaining(self, found: ScaleUp) -> None:
        remaining = [group for group in self._alike if not group.taken_by]
        simulated = self._flags("scaleup-simulation-for-skipped-node-groups-enabled")
        if simulated:
            for name in sorted(self._skipped):
                if name in self._templates:
                    self._ask(name, remaining, found)
        for group in remaining:
            rejected = {name: one.reasons for name, one in sorted(group.rejected.items())}
            left_out = {
                name: why for name, why in self._skipped.items() if not (simulated and name in rejected)
            }
            for pod in group.pods:
                found.remaining[pod.key] = (rejected, left_out)

    def to_min_size(self) -> ScaleUp:
        """Raise every group that is below its least size."""
        resizes = []
        for name, group in sorted(self._groups.items()):
            if group.target_size >= group.min_size or not self._is_safe(name) or name not in self._templates:
                continue
            node = self._templates[name].node
            if self._quotas.check(name, node, 1)[1]:
                continue
            count, _ = self._quotas.check(name, node, group.min_size - group.target_size)
            most = self._flags("max-nodes-total")
            if most and count + group.target_size > most:
                count = most - group.target_size
                if count < 1:
                    continue
            resizes.append(Growth(name, group.target_size, group.target_size + count, group.max_size))
        found = ScaleUp("ScaleUpNotNeeded")
        if resizes:
            self._resize(found, resizes)
        return found


def not_triggered(
    key: str, rejected: Mapping[str, Sequence[str]], skipped: Mapping[str, str], instead: str = ""
) -> ProgramEvent:
    """The Event of a pod for which nothing grew."""
    counts = Counter(
        reason for reasons in (*rejected.values(), *([why] for why in skipped.values())) for reason in reasons
    )
    words = instead or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    message = f"pod didn't trigger scale-up: {words}"
    return ProgramEvent("Pod", key, "Normal", NOT_TRIGGERED, message)


def _allocatable(template: GroupTemplate) -> dict[str, int]:
    return amounts_of(template.node, "allocatable")


def _free(template: GroupTemplate) -> dict[str, int]:
    allocatable = _allocatable(template)
    asked: Counter[str] = Counter({CPU: 0, MEMORY: 0, "ephemeral-storage": 0, PODS: 0})
    for pod in template.pods:
        asked.update(pod.requests)
    return {name: allocatable.get(name, 0) - amount for name, amount in asked.items()}
