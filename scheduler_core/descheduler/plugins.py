"""The descheduler's plugins: which pods each picks, and in which order.

Source: pkg/framework/plugins, 7d2b28bf2b6a (v0.36). Where Go goes through a map in random order, the order is that
of first appearance here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from scheduler_core.descheduler.evictor import DefaultEvictor, Evictions, Limit
from scheduler_core.descheduler.go_sort import sort_slice
from scheduler_core.descheduler.policy import Document
from scheduler_core.descheduler.view import (
    AntiAffinityTerm,
    View,
    anti_affinity_terms,
    matches_node,
    matches_term,
    sort_by_priority,
    status,
)
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

_SECOND_NS: Final = 10**9


@dataclass
class PluginRun:
    """One run of a plugin: what it is given, and what it did."""

    profile: str
    plugin: str
    arguments: Document
    nodes: Sequence[Node]
    view: View
    evictor: DefaultEvictor
    evictions: Evictions
    evicted: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    filtered: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    error: str = ""
    classes: dict[str, str] = field(default_factory=dict)
    percentages: dict[str, dict[str, int]] = field(default_factory=dict)

    def filter(self, pod: Pod) -> bool:
        passes = self.evictor.filter(pod)
        if not passes:
            self.filtered.add(pod.key)
        return passes

    def pre_eviction_filter(self, pod: Pod) -> bool:
        passes = not self.evictor.pre_eviction_filter(pod)
        if not passes:
            self.rejected.add(pod.key)
        return passes

    def is_evictable(self, pod: Pod) -> bool:
        """Both filters."""
        return self.filter(pod) and self.pre_eviction_filter(pod)

    def selects(self, pod: Pod) -> bool:
        """Whether the namespaces and labels that its arguments name are the pod's."""
        if self._selects_all:
            return True
        return in_namespaces(pod, self.arguments.get("namespaces")) and self.labels.matches(pod.labels)

    @cached_property
    def _selects_all(self) -> bool:
        return not self.arguments.get("namespaces") and self.labels.is_everything

    @cached_property
    def labels(self) -> LabelSelector:
        return label_selector_from(self.arguments.get("labelSelector") or {})

    def evict(self, pod: Pod) -> Limit:
        """Evict a pod; what keeps it, empty if nothing does."""
        refusal = self.evictions.evict(pod, self.profile, self.plugin)
        if refusal is None:
            self.evicted.append(pod.key)
            return ""
        where = {"profile": self.profile, "plugin": self.plugin, "pod": pod.key, "node": pod.node_name}
        self.failed.append({**where, "error": refusal.text})
        return refusal.limit

    def evict_all(self, groups: Iterable[Iterable[Pod]]) -> bool:
        """Evict pods, those of a group until its node's limit is met; False once the cycle's is."""
        for pods in groups:
            for pod in pods:
                limit = self.evict(pod)
                if limit == "total":
                    return False
                if limit == "node":
                    break
        return True

    def say(self, message: str, **values: object) -> None:
        told = " ".join(f"{key}={value}" for key, value in values.items())
        self.messages.append(f"{message} [{told}]" if told else message)

    def evict_by_node(self, pick: Callable[[Node], Iterable[Pod]]) -> None:
        """Evict what is picked of each node: until its limit is met, and the cycle's."""
        self.evict_all(map(pick, self.nodes))


def in_namespaces(pod: Pod, namespaces: Document | None) -> bool:
    include, exclude = ((namespaces or {}).get(key) for key in ("include", "exclude"))
    return (not include or pod.namespace in include) and pod.namespace not in (exclude or ())


def seconds(now_ns: int, then_ns: int | None) -> int:
    """Whole seconds since then, which were in the future negative; very many since no time at all."""
    return int((now_ns - (then_ns if then_ns is not None else -(2**62))) / _SECOND_NS)


# --- States of containers.


def _statuses(pod: Pod, *keys: str) -> list[Mapping[str, Any]]:
    return [item for key in keys for item in status(pod).get(key) or ()]


def _keys(arguments: Document) -> list[str]:
    """Which statuses count: those of init and ephemeral containers where the arguments say so."""
    keys = ["containerStatuses"]
    if arguments.get("includingInitContainers"):
        keys.append("initContainerStatuses")
    if arguments.get("includingEphemeralContainers"):
        keys.append("ephemeralContainerStatuses")
    return keys


def _reasons(statuses: Iterable[Mapping[str, Any]], *states: str) -> set[str]:
    """Reasons of the states that containers are in."""
    found = {
        ((item.get("state") or {}).get(state) or {}).get("reason") for item in statuses for state in states
    }
    return {reason for reason in found if reason}


def _exit_codes(pod: Pod, arguments: Document) -> set[int]:
    keys = [key for key in _keys(arguments) if key != "ephemeralContainerStatuses"]
    states = [(item.get("state") or {}).get("terminated") for item in _statuses(pod, *keys)]
    return {state.get("exitCode", 0) for state in states if state is not None}


# --- Deschedule.


def pod_life_time(run: PluginRun) -> None:
    """Pods that are too old, or in a state, a condition or with an exit code: the oldest first."""
    picked = [
        pod
        for node in run.nodes
        for pod in run.view.all_pods_on(node.name)
        if run.selects(pod) and run.is_evictable(pod) and _has_lived(run, pod)
    ]
    sort_slice(picked, lambda pod, other: (pod.meta.creation_ns or 0) < (other.meta.creation_ns or 0))
    run.evict_all([pod] for pod in picked)


def _has_lived(run: PluginRun, pod: Pod) -> bool:
    arguments, now_ns = run.arguments, run.view.now_ns
    longest = arguments.get("maxPodLifeTimeSeconds")
    if longest is not None:
        created_ns = pod.meta.creation_ns
        if (created_ns is not None and created_ns > now_ns) or seconds(now_ns, created_ns) <= longest:
            return False
    states = set(arguments.get("states") or ())
    if states:
        said = _reasons(_statuses(pod, *_keys(arguments)), "waiting", "terminated")
        if not states & {pod.phase, status(pod).get("reason", ""), *said}:
            return False
    kinds = {owner.kind for owner in pod.meta.owners}
    owners = arguments.get("ownerKinds") or {}
    if owners.get("include") and not kinds & set(owners["include"]):
        return False
    if not owners.get("include") and kinds & set(owners.get("exclude") or ()):
        return False
    conditions = arguments.get("conditions")
    if conditions and not any(_has_condition(pod, wanted, now_ns) for wanted in conditions):
        return False
    codes = set(arguments.get("exitCodes") or ())
    return not codes or bool(codes & _exit_codes(pod, arguments))


def _has_condition(pod: Pod, wanted: Document, now_ns: int) -> bool:
    least = wanted.get("minTimeSinceLastTransitionSeconds")
    for condition in status(pod).get("conditions") or ():
        if any(
            wanted.get(key) and condition.get(key, "") != wanted[key] for key in ("type", "status", "reason")
        ):
            continue
        if least is None:
            return True
        changed = condition.get("lastTransitionTime")
        if changed and now_ns >= parse_time_ns(changed) and seconds(now_ns, parse_time_ns(changed)) >= least:
            return True
    return False


def remove_failed_pods(run: PluginRun) -> None:
    """Pods of phase Failed, an hour after they were made."""

    def pick(node: Node) -> list[Pod]:
        pods = [pod for pod in run.view.all_pods_on(node.name) if pod.phase == "Failed" and run.selects(pod)]
        return [pod for pod in pods if run.is_evictable(pod) and _has_failed(run, pod)]

    run.evict_by_node(pick)


def _has_failed(run: PluginRun, pod: Pod) -> bool:
    arguments, now_ns = run.arguments, run.view.now_ns
    age = seconds(now_ns, pod.meta.creation_ns)
    # A negative age is converted to an unsigned number there, and so a very large one.
    if 0 <= age < arguments["minPodLifetimeSeconds"]:
        return False
    if {owner.kind for owner in pod.meta.owners} & set(arguments.get("excludeOwnerKinds") or ()):
        return False
    reasons = set(arguments.get("reasons") or ())
    said = _reasons(_statuses(pod, *_keys(arguments)), "waiting", "terminated")
    if reasons and not reasons & {status(pod).get("reason", ""), *said}:
        return False
    codes = set(arguments.get("exitCodes") or ())
    return not codes or bool(codes & _exit_codes(pod, arguments))


def too_many_restarts(run: PluginRun) -> None:
    """Pods whose containers were restarted too often: those with most restarts first."""
    keys = _keys(run.arguments)
    states = set(run.arguments.get("states") or ())

    def restarts(pod: Pod) -> int:
        return sum(item.get("restartCount", 0) for item in _statuses(pod, *keys))

    def pick(node: Node) -> list[Pod]:
        pods = [pod for pod in run.view.all_pods_on(node.name) if run.selects(pod) and run.is_evictable(pod)]
        picked = [
            pod
            for pod in pods
            if restarts(pod) >= run.arguments["podRestartThreshold"]
            and (not states or states & {pod.phase, *_reasons(_statuses(pod, *keys), "waiting")})
        ]
        sort_slice(picked, lambda pod, other: restarts(pod) > restarts(other))
        return picked

    run.evict_by_node(pick)


def violating_node_taints(run: PluginRun) -> None:
    """Pods on a node with a taint NoSchedule that they do not tolerate."""
    effects = ["NoSchedule", *(["PreferNoSchedule"] if run.arguments.get("includePreferNoSchedule") else [])]
    excluded, included = (run.arguments.get(key) for key in ("excludedTaints", "includedTaints"))

    def counts(key: str, value: str) -> bool:
        names = {key, f"{key}={value}"} if value else {key}
        return not names & set(excluded or ()) and (included is None or bool(names & set(included)))

    def pick(node: Node) -> list[Pod]:
        taints = [
            taint for taint in node.taints if taint.effect in effects and counts(taint.key, taint.value)
        ]
        pods = [pod for pod in run.view.pods_on(node.name) if run.selects(pod) and run.is_evictable(pod)]
        return [pod for pod in pods if not all(pod.tolerates(taint) for taint in taints)]

    run.evict_by_node(pick)


def violating_node_affinity(run: PluginRun) -> None:
    """Pods whose node no longer matches what they require, or matches less of what they prefer than another."""
    for kind in run.arguments["nodeAffinityType"]:
        if kind == "requiredDuringSchedulingIgnoredDuringExecution":
            run.evict_by_node(lambda node: _violating(run, node, _requires_another))
        elif kind == "preferredDuringSchedulingIgnoredDuringExecution":
            run.evict_by_node(lambda node: _violating(run, node, _prefers_another))
        else:
            run.say("E Invalid nodeAffinityType: <nil>")


def _violating(run: PluginRun, node: Node, is_elsewhere: Callable[[PluginRun, Pod, Node], bool]) -> list[Pod]:
    pods = [pod for pod in run.view.pods_on(node.name) if run.selects(pod) and run.is_evictable(pod)]
    return [
        pod for pod in pods if is_elsewhere(run, pod, node) and run.view.fits_any(pod, run.nodes, other=False)
    ]


def _requires_another(run: PluginRun, pod: Pod, node: Node) -> bool:
    return pod.required_node_affinity.selector is not None and not matches_node(pod, node)


def _prefers_another(run: PluginRun, pod: Pod, node: Node) -> bool:
    def weight(node: Node) -> int:
        return pod.preferred_node_affinity.score(node.labels, node.name)

    return pod.prefers_nodes and max(0, *map(weight, run.nodes)) > weight(node)


def violating_anti_affinity(run: PluginRun) -> None:
    """Pods beside another one that their own required anti-affinity keeps off: the lowest priority first."""
    nodes = {node.name: node for node in run.nodes}
    on_node = {name: [pod for pod in run.view.pods_on(name) if run.selects(pod)] for name in nodes}
    opponents = {pod: None for pods in on_node.values() for pod in pods}
    names: dict[AntiAffinityTerm, dict[tuple[str, str], Counter[str]]] = {}
    """Of each term that was asked about, place -> names of the opponents there that it keeps off."""

    def places(pod: Pod, topology_key: str) -> list[tuple[str, str]]:
        value = nodes[pod.node_name].labels.get(topology_key)
        return [("node", pod.node_name), *([("value", value)] if value is not None else [])]

    def count(term: AntiAffinityTerm, pod: Pod, change: int) -> None:
        for place in places(pod, term[0]):
            names[term].setdefault(place, Counter())[pod.name] += change

    def is_violated(pod: Pod) -> bool:
        for term in anti_affinity_terms(pod):
            if term not in names:
                names[term] = {}
                for other in opponents:
                    if matches_term(other, *term[1:]):
                        count(term, other, 1)
            for place in places(pod, term[0]):
                if any(name != pod.name and n > 0 for name, n in names[term].get(place, {}).items()):
                    return True
        return False

    for node in run.nodes:
        pods = on_node[node.name]
        sort_by_priority(pods)
        for pod in pods:
            if not (is_violated(pod) and run.is_evictable(pod)):
                continue
            limit = run.evict(pod)
            if not limit:
                del opponents[pod]
                for term in names:
                    if matches_term(pod, *term[1:]):
                        count(term, pod, -1)
            elif limit == "total":
                return
            elif limit == "node":
                break
