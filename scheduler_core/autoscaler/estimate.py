"""Which pods are alike, and how many nodes of a group a set of them needs.

Source: cluster-autoscaler/core/scaleup/equivalence/groups.go, estimator/binpacking_estimator.go, k8s 1.36
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.snapshot import GroupTemplate, NodesAndPods, Rejected
from scheduler_core.autoscaler.templates import amounts_of, fresh_node, is_daemon
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import label_selector_from
from scheduler_core.objects.node import LABEL_HOSTNAME
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY, resource_list, whole_units

MOST_GROUPS_OF_A_CONTROLLER: Final = 10
DRAINED: Final = ":drained"
"""Ends the uid of a pod that is looked at twice: on the node that is drained, and as one without a node."""
MOVED: Final = ":moved"
"""Ends it where a node is only judged, and the pod tried on others; once for each."""
_SPREAD_MISSED: Final = "node(s) didn't match pod topology spread constraints"


@dataclass
class EqualPods:
    """Pods of one controller with equal labels and specs, and what the groups say of them."""

    pods: list[Pod]
    rejected: dict[str, Rejected] = field(default_factory=dict)
    taken_by: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The first pod, which speaks for all."""
        return self.pods[0].key


def equal_pods(pods: Iterable[Pod]) -> list[EqualPods]:
    """Pods grouped, in the order of the first of each group."""
    groups: list[EqualPods] = []
    by_controller: dict[str, list[tuple[str, EqualPods]]] = {}
    for pod in pods:
        controller = pod.meta.controller
        if controller is None or is_daemon(pod):
            groups.append(EqualPods([pod]))
            continue
        known, shape = by_controller.setdefault(controller.uid, []), shape_of(pod)
        found = next((group for other, group in known if other == shape), None)
        if found is not None:
            found.pods.append(pod)
            continue
        groups.append(EqualPods([pod]))
        if len(known) < MOST_GROUPS_OF_A_CONTROLLER:
            known.append((shape, groups[-1]))
    return groups


def shape_of(pod: Pod) -> str:
    """What equal pods have in common: labels, and the spec without what never matters to a node."""
    spec = {key: value for key, value in pod.manifest["spec"].items() if key != "hostname"}
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [{name: value for name, value in item.items() if name != "env"} for item in spec[key]]
    spec["volumes"] = [volume for volume in spec.get("volumes") or () if "projected" not in volume]
    return json.dumps([pod.labels, spec], sort_keys=True)


def hint_of(pod: Pod) -> str:
    """By what a place of a pod is remembered: a drained node's pod is itself while it waits for another."""
    return pod.uid.partition(MOVED)[0].removesuffix(DRAINED)


@dataclass
class Packing:
    """How pods were packed on new nodes of a group."""

    placed: dict[str, str] = field(default_factory=dict)
    """Pod -> node, in order: `e-0`, `e-1`, ..., or a node that was there."""
    pods: list[Pod] = field(default_factory=list)

    @property
    def n_nodes(self) -> int:
        return len(set(self.placed.values()))

    def take(self, pod: Pod, node: str) -> None:
        self.placed[pod.key] = node
        self.pods.append(pod)


class BinPacking:
    """Packs pods on nodes of one group, on a snapshot that is the same afterwards.

    Parameters
    ----------
    limit : int
        Nodes that may be made, negative for none at all, 0 for as many as it takes.
    """

    def __init__(self, snapshot: NodesAndPods, template: GroupTemplate, limit: int) -> None:
        self._snapshot = snapshot
        self._template = template
        self._limit = limit
        self._made: list[str] = []
        self._words: dict[str, str] = {}
        self._n_asked = 0
        self.packing = Packing()

    def pack(self, groups: Sequence[EqualPods], *, fast: bool) -> Packing:
        """Pack the groups, the largest pods first."""
        capacity = amounts_of(self._template.node)
        ordered = sorted(groups, key=lambda group: -_score(group.pods[0], self._template))
        best = _fast_group(ordered, capacity) if fast else -1
        if best >= 0:
            ordered.append(ordered.pop(best))
        with self._snapshot.fork():
            may_grow = True
            for index, group in enumerate(ordered):
                rest = self._on_made_nodes(group.pods)
                if may_grow:
                    is_fast = best >= 0 and index == len(ordered) - 1
                    may_grow = self._fast(rest) if is_fast else self._on_new_nodes(rest)
        return self.packing

    def _take(self, pod: Pod, node: str) -> None:
        self.packing.take(pod, self._words.get(node, node))

    def _on_made_nodes(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        first = len(self._snapshot.order) - len(self._made)
        for index, pod in enumerate(pods):
            node = self._snapshot.try_any(pod, bool, first)
            if not node:
                return pods[index:]
            self._take(pod, node)
        return ()

    def _may_add(self) -> bool:
        if self._limit < 0 or (self._limit and self._n_asked >= self._limit):
            return False
        self._n_asked += 1
        return True

    def _add_node(self) -> str:
        fresh = fresh_node(self._template, f"e-{len(self._made)}")
        self._snapshot.add(fresh.node, fresh.pods, like=self._template.node.name)
        self._words[fresh.node.name] = f"e-{len(self._made)}"
        self._made.append(fresh.node.name)
        return fresh.node.name

    def _on_new_nodes(self, pods: Sequence[Pod]) -> bool:
        """Whether more nodes may be made."""
        for pod in pods:
            last = self._made[-1] if self._made else ""
            if last:
                rejected = self._snapshot.try_on(pod, last)
                if rejected is None:
                    self._take(pod, last)
                    continue
                if _spreads_over_hosts(pod) and _SPREAD_MISSED in rejected.reasons:
                    node = self._snapshot.try_any(pod, last.__ne__)
                    if node:
                        self._take(pod, node)
                        continue
                if self._words[last] not in self.packing.placed.values():
                    return True
            if not self._may_add():
                return False
            node = self._add_node()
            if self._snapshot.try_on(pod, node) is not None:
                break
            self._take(pod, node)
        return True

    def _fast(self, pods: Sequence[Pod]) -> bool:
        """One node is packed, and the others are taken to be like it."""
        if not pods:
            return True
        if not self._may_add():
            return False
        node, count = self._add_node(), 0
        while count < len(pods) and self._snapshot.try_on(pods[count], node) is None:
            self._take(pods[count], node)
            count += 1
        if not count:
            return True
        done = count
        for number in range(1, math.ceil(len(pods) / count)):
            if not self._may_add():
                return False
            for pod in pods[done : done + count]:
                self.packing.take(pod, f"{self._words[node]}-fake-{number}")
            done += count
        return True


def _score(pod: Pod, template: GroupTemplate) -> float:
    allocatable = template.node.allocatable
    return sum(
        pod.requests.get(name, 0) / allocatable[name]
        for name in (CPU, MEMORY)
        if allocatable.get(name, 0) > 0
    )


def _spreads_over_hosts(pod: Pod) -> bool:
    return any(constraint.topology_key == LABEL_HOSTNAME for constraint in pod.topology_spread)


def _anti_affinity(pod: Pod) -> list[Mapping[str, Any]]:
    rules = (pod.manifest["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())


def _fast_group(groups: Sequence[EqualPods], capacity: Mapping[str, int]) -> int:
    """Which group's simulation costs most and may be extrapolated; -1 for none."""
    best, most_saved = -1, 0
    for index, group in enumerate(groups):
        pod, n_pods = group.pods[0], len(group.pods)
        terms = _anti_affinity(pod)
        wanted = [0]
        for term in terms:
            try:
                matches = label_selector_from(term.get("labelSelector")).matches(pod.labels)
            except SelectorError:
                matches = False
            if term.get("topologyKey") == LABEL_HOSTNAME and matches:
                wanted.append(n_pods)
        containers = pod.manifest["spec"].get("containers") or [{}]
        resources = containers[0].get("resources") or {}
        requests = whole_units(resource_list(resources, "requests", "")) if resources.get("requests") else {}
        wanted += [
            math.ceil(n_pods * requests[name] / capacity[name])
            for name in (CPU, MEMORY)
            if name in requests and capacity.get(name)
        ]
        n_nodes = max(wanted)
        saved = n_pods - n_pods // n_nodes if n_nodes > 0 else 0
        others = any(term.get("topologyKey") != LABEL_HOSTNAME for term in terms)
        spreads = pod.manifest["spec"].get("topologySpreadConstraints") is not None
        if saved >= most_saved and not spreads and not others:
            best, most_saved = index, saved
    return best
