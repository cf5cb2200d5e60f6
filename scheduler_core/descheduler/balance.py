"""The descheduler's plugins that look at all nodes together: duplicates, utilisation, topology spread.

Source: pkg/framework/plugins/{removeduplicates,nodeutilization,removepodsviolatingtopologyspreadconstraint},
7d2b28bf2b6a (v0.36). For orders see `plugins`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.descheduler.evictor import Limit
from scheduler_core.descheduler.go_sort import sort_slice
from scheduler_core.descheduler.plugins import PluginRun, in_namespaces
from scheduler_core.descheduler.view import REFUSES_PODS, matches_node, priority, sort_by_priority, tolerates
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import BySpec, Pod, TopologySpreadConstraint
from scheduler_core.objects.resources import CPU, MEMORY, PODS, resource_list, whole_units

_BASIC: Final = (CPU, MEMORY, PODS)
Amounts = dict[str, int]
Percentages = Mapping[str, float]

# --- RemoveDuplicates.

_Owner = tuple[str, str, str, str]
"""Namespace, kind, name, and the images of the containers."""


def remove_duplicates(run: PluginRun) -> None:
    """Pods of one owner and of equal images that share a node, where there are more nodes for them."""
    count: Counter[_Owner] = Counter()
    duplicates: dict[_Owner, dict[str, list[Pod]]] = {}
    images = BySpec(
        lambda pod: "#".join(sorted(one.get("image", "") for one in pod.manifest["spec"]["containers"]))
    )
    excluded = set(run.arguments.get("excludeOwnerKinds") or ())
    for node in run.nodes:
        seen: set[tuple[_Owner, ...]] = set()
        for pod in run.view.pods_on(node.name):
            if not (run.selects(pod) and run.is_evictable(pod)):
                continue
            owners = pod.meta.owners
            if not owners or any(owner.kind in excluded for owner in owners):
                continue
            keys = [(pod.namespace, owner.kind, owner.name, images.of(pod)) for owner in owners]
            signature = tuple(sorted(keys))
            for key in keys:
                count[key] += 1
            if signature not in seen:
                seen.add(signature)
                continue
            for key in keys:
                duplicates.setdefault(key, {}).setdefault(node.name, []).append(pod)
    for key, on_node in duplicates.items():
        owner = "/".join(key)
        targets = _targets(run.nodes, [pod for pods in on_node.values() for pod in pods])
        run.say("Adjusting feasible nodes", owner=owner, **{"from": len(run.nodes), "to": targets})
        if targets < 2:
            run.say("Less than two feasible nodes for duplicates to land, skipping eviction", owner=owner)
            continue
        average = math.ceil(count[key] / targets)
        if not run.evict_all(pods[average - 1 :] for pods in on_node.values() if len(pods) + 1 > average):
            return


def _targets(nodes: Sequence[Node], pods: Iterable[Pod]) -> int:
    """On how many nodes any of the pods may be; a pod that may be on one alone has none."""
    found: set[str] = set()
    kinds = {(pod.tolerations, pod.required_node_affinity): pod for pod in pods}
    for pod in kinds.values():
        matching = {
            node.name
            for node in nodes
            if tolerates(pod, node.taints, REFUSES_PODS) and matches_node(pod, node)
        }
        if len(matching) > 1:
            found |= matching
    return len(found)


# --- LowNodeUtilization, HighNodeUtilization.


@dataclass
class _NodeUsage:
    """A node as the utilisation plugins see it, in whole units (CPU in millicores)."""

    node: Node
    capacity: Amounts
    usage: Amounts
    percentages: Percentages
    most: Amounts = field(default_factory=dict)
    """Up to what it may be used."""


def _usages(run: PluginRun, resources: Sequence[str]) -> list[_NodeUsage]:
    found = []
    for node in run.nodes:
        status = node.manifest.get("status") or {}
        kind = "allocatable" if status.get("allocatable") else "capacity"
        capacity = {**whole_units(resource_list(status, kind, "status")), "MetricResource": 100}
        used = run.view.used_on(node.name)
        usage = {name: used.get(name, 0) for name in resources}
        found.append(_NodeUsage(node, capacity, usage, _percentages(usage, capacity)))
    return found


def _percentages(usage: Amounts, capacity: Amounts) -> Percentages:
    return {
        name: used / capacity[name] * 100 if capacity[name] > 0 else 0.0
        for name, used in usage.items()
        if name in capacity
    }


def low_node_utilization(run: PluginRun) -> None:
    """Pods of nodes that are used too much, while others are used little."""
    arguments = run.arguments
    if arguments.get("metricsUtilization") is not None:
        run.error = f"error initializing usage client: {_metrics_error(arguments['metricsUtilization'])}"
        return
    low, high = arguments["thresholds"], arguments["targetThresholds"]
    usages = _usages(run, _counted(low))
    if arguments.get("useDeviationThresholds"):
        for one in usages:
            one.percentages = {name: value for name, value in one.percentages.items() if name in low}
        low, high = _around_average(usages, low, -1), _around_average(usages, high, 1)
    under, over = [], []
    for one in usages:
        if one.node.unschedulable:
            run.say("Node is unschedulable, thus not considered as underutilized", node=one.node.name)
        if not one.node.unschedulable and _is_below(one.percentages, low):
            under.append(one)
            run.classes[one.node.name] = "underutilized"
        elif _is_above(one.percentages, high):
            over.append(one)
            run.classes[one.node.name] = "overutilized"
        else:
            run.classes[one.node.name] = "appropriate"
        run.percentages[one.node.name] = _rounded(one.percentages)
    if _ends_early(run, under):
        return
    if not over:
        run.say("All nodes are under target utilization, nothing to do here")
        return
    _cap([*under, *over], high)
    most = (arguments.get("evictionLimits") or {}).get("node")

    def goes_on(source: _NodeUsage, room: Amounts) -> bool:
        too_much = any(used > source.most[name] for name, used in source.usage.items())
        return too_much and all(amount > 0 for amount in room.values())

    _sort_by_usage(over, descending=True)
    _move(run, over, under, run.filter, goes_on, most)


def _metrics_error(metrics: Mapping[str, Any]) -> str:
    """Metrics of use are not read here, as in a run without a metrics client."""
    source = metrics.get("source")
    if metrics.get("metricsServer") or source == "KubernetesMetrics":
        return "metrics client not initialized"
    if source == "Prometheus":
        return "prometheus client not initialized"
    return "unrecognized metrics source" if source else "metrics source is empty"


def high_node_utilization(run: PluginRun) -> None:
    """Pods of nodes that are used little, to empty them."""
    thresholds = run.arguments["thresholds"]
    usages = _usages(run, _counted(thresholds))
    under, others = [], []
    for one in usages:
        if _is_below(one.percentages, thresholds):
            under.append(one)
            run.classes[one.node.name] = "underutilized"
        elif one.node.unschedulable:
            run.say("Node is unschedulable", node=one.node.name)
            continue
        else:
            others.append(one)
            run.classes[one.node.name] = "overutilized"
        run.percentages[one.node.name] = _rounded(one.percentages)
    if _ends_early(run, under):
        return
    if not others:
        run.say("No node is available to schedule the pods, nothing to do here")
        return
    _cap([*under, *others], dict.fromkeys(thresholds, 100.0))
    only = "OnlyThresholdingResources" in (run.arguments.get("evictionModes") or ())

    def removable(pod: Pod) -> bool:
        return run.filter(pod) and (not only or _requests_any(pod, thresholds))

    _sort_by_usage(under, descending=False)
    _move(run, under, others, removable, lambda _, room: all(amount > 0 for amount in room.values()), None)


def _counted(thresholds: Percentages) -> list[str]:
    return list(dict.fromkeys((*_BASIC, *thresholds)))


def _around_average(usages: Sequence[_NodeUsage], spans: Percentages, sign: int) -> Percentages:
    """The mean use of the nodes that have a resource, and a span below or above it; from 0 to 100."""
    result = {}
    for name, span in spans.items():
        values = [one.percentages[name] for one in usages if name in one.percentages]
        if values:
            result[name] = min(max(math.fsum(values) / len(values) + sign * span, 0.0), 100.0)
    return result


def _is_below(percentages: Percentages, thresholds: Percentages) -> bool:
    return all(percentages.get(name, 0.0) <= value for name, value in thresholds.items())


def _is_above(percentages: Percentages, thresholds: Percentages) -> bool:
    return any(percentages.get(name, 0.0) > value for name, value in thresholds.items())


def _rounded(percentages: Percentages) -> dict[str, int]:
    return {name: math.floor(value + 0.5) for name, value in percentages.items()}


def _ends_early(run: PluginRun, under: Sequence[_NodeUsage]) -> bool:
    least = run.arguments.get("numberOfNodes") or 0
    if not under:
        run.say("No node is underutilized, nothing to do here, you might tune your thresholds further")
    elif len(under) <= least:
        run.say(
            "Number of nodes underutilized is less or equal than NumberOfNodes, nothing to do here",
            underutilizedNodes=len(under),
            numberOfNodes=least,
        )
    elif len(under) == len(run.nodes):
        run.say("All nodes are underutilized, nothing to do here")
    else:
        return False
    return True


def _cap(usages: Iterable[_NodeUsage], thresholds: Percentages) -> None:
    for one in usages:
        for name in one.usage:
            capacity = one.capacity.get(name, 0)
            share = thresholds.get(name)
            one.most[name] = capacity if share is None else int(float(share) * 0.01 * float(capacity))


def _sort_by_usage(usages: list[_NodeUsage], *, descending: bool) -> None:
    sign = -1 if descending else 1
    sort_slice(usages, lambda one, other: sign * sum(one.usage.values()) < sign * sum(other.usage.values()))


def _requests_any(pod: Pod, names: Iterable[str]) -> bool:
    spec = pod.manifest["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return any(
        name in ((container.get("resources") or {}).get("requests") or {})
        for container in containers
        for name in names
    )


def _move(
    run: PluginRun,
    sources: Sequence[_NodeUsage],
    targets: Sequence[_NodeUsage],
    removable: Callable[[Pod], bool],
    goes_on: Callable[[_NodeUsage, Amounts], bool],
    most_on_node: int | None,
) -> None:
    """Evict pods of the sources while they should and the targets have room, all of it taken together."""
    room = {name: sum(one.most[name] - one.usage[name] for one in targets) for name in sources[0].usage}
    others = {name: amount for name, amount in room.items() if name not in _BASIC}
    run.say("Total capacity to be moved", CPU=room[CPU], Mem=room[MEMORY], Pods=room[PODS], **others)
    for source in sources:
        pods = [pod for pod in run.view.pods_on(source.node.name) if removable(pod)]
        if not pods:
            run.say("No removable pods on node, try next node", node=source.node.name)
            continue
        sort_by_priority(pods)
        nodes = [one.node for one in targets]
        if _move_from(run, source, pods, nodes, room, goes_on, most_on_node) == "total":
            return


def _move_from(
    run: PluginRun,
    source: _NodeUsage,
    pods: Iterable[Pod],
    targets: Sequence[Node],
    room: Amounts,
    goes_on: Callable[[_NodeUsage, Amounts], bool],
    most: int | None,
) -> Limit:
    """A node's or the cycle's limit, if it ends the turn of the node."""
    n_evicted = 0
    for pod in pods:
        if not goes_on(source, room) or (most is not None and n_evicted >= most):
            break
        # Upstream counts tolerations: one that tolerates everything does not do for two taints.
        if not any(
            len(pod.tolerations) >= len(node.taints) and tolerates(pod, node.taints) for node in targets
        ):
            continue
        excluded = {"exclude": (run.arguments.get("evictableNamespaces") or {}).get("exclude")}
        if not (in_namespaces(pod, excluded) and run.pre_eviction_filter(pod)):
            continue
        limit = run.evict(pod)
        if limit in ("node", "total"):
            return limit
        if limit:
            continue
        n_evicted += 1
        for name in room:
            amount = 1 if name == PODS else pod.requests.get(name, 0)
            source.usage[name] -= amount
            room[name] -= amount
    return ""


# --- RemovePodsViolatingTopologySpreadConstraint.


def violating_spread(run: PluginRun) -> None:
    """Pods of domains that hold too many, for domains that hold fewer than the average."""
    actions = run.arguments.get("constraints") or ["DoNotSchedule"]
    pods: dict[str, list[Pod]] = {}
    for node in run.nodes:
        for pod in run.view.pods_on(node.name):
            if run.selects(pod) and run.filter(pod):
                pods.setdefault(pod.namespace, []).append(pod)
    marked: dict[str, Pod] = {}
    for in_namespace in pods.values():
        for constraint, pod in _constraints(in_namespace, actions).values():
            _balance(run, constraint, pod, in_namespace, marked)
    full: set[str] = set()
    for pod in marked.values():
        if pod.node_name in full or not run.is_evictable(pod):
            continue
        limit = run.evict(pod)
        if limit == "total":
            return
        if limit == "node":
            full.add(pod.node_name)


def _constraints(
    pods: Iterable[Pod], actions: Sequence[str]
) -> dict[tuple[object, ...], tuple[TopologySpreadConstraint, Pod]]:
    """The constraints of a namespace, each once, with the first pod that has it."""
    found: dict[tuple[object, ...], tuple[TopologySpreadConstraint, Pod]] = {}
    for pod in pods:
        written = pod.manifest["spec"].get("topologySpreadConstraints") or ()
        for one, document in zip(pod.topology_spread, written, strict=True):
            if one.when_unsatisfiable not in actions:
                continue
            own = {key: pod.labels[key] for key in document.get("matchLabelKeys") or () if key in pod.labels}
            one = replace(one, selector=one.selector.add(selector_from_labels(own).requirements))
            key = (
                one.max_skew,
                one.topology_key,
                one.selector,
                one.node_affinity_policy,
                one.node_taints_policy,
                pod.required_node_affinity if one.node_affinity_policy == "Honor" else None,
                pod.tolerations if one.node_taints_policy == "Honor" else None,
            )
            found.setdefault(key, (one, pod))
    return found


def _balance(
    run: PluginRun,
    constraint: TopologySpreadConstraint,
    owner: Pod,
    pods: Iterable[Pod],
    marked: dict[str, Pod],
) -> None:
    key, max_skew = constraint.topology_key, constraint.max_skew
    nodes = {node.name: node for node in run.nodes}
    eligible = [node for node in run.nodes if _counts(constraint, owner, node)]
    by_domain: dict[str, list[Pod]] = {node.labels[key]: [] for node in eligible if key in node.labels}
    for pod in pods:
        domain = nodes[pod.node_name].labels.get(key)
        if not pod.is_terminating and domain is not None and constraint.selector.matches(pod.labels):
            by_domain.setdefault(domain, []).append(pod)
    sizes = [len(found) for found in by_domain.values()]
    if not sizes or max(sizes) - min(sizes) <= max_skew:
        run.say("Skipping topology constraint because it is already balanced")
        return
    average = sum(sizes) / len(sizes)
    for found in by_domain.values():
        sort_slice(found, lambda pod, other: _stays_before(run, pod, other))
    names = list(by_domain)
    sort_slice(names, lambda name, other: len(by_domain[name]) < len(by_domain[other]))
    below = [
        node
        for name in names
        if len(by_domain[name]) < average
        for node in eligible
        if node.labels.get(key) == name
    ]
    domains = [by_domain[name] for name in names]
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high]) <= average:
            high -= 1
        skew = len(domains[high]) - len(domains[low])
        above, missing = math.ceil(len(domains[high]) - average), math.ceil(average - len(domains[low]))
        n_moved = min(above, missing, math.ceil((skew - max_skew) / 2))
        if skew <= max_skew or n_moved <= 0:
            low += 1
            continue
        domains[high].sort(key=lambda pod: run.view.fits_any(pod, below))
        moved = domains[high][-n_moved:]
        for pod in moved:
            if run.arguments.get("topologyBalanceNodeFit") is not False and not run.view.fits_any(pod, below):
                run.say("ignoring pod for eviction as it does not fit on any other node", pod=pod.key)
            else:
                marked[pod.key] = pod
        del domains[high][-n_moved:]
        domains[low].extend(moved)


def _counts(constraint: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Whether a node is one of the constraint's domains by its two policies."""
    if constraint.node_affinity_policy == "Honor" and not matches_node(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or tolerates(pod, node.taints, REFUSES_PODS)


def _stays_before(run: PluginRun, pod: Pod, other: Pod) -> bool:
    """Upstream's comparison within a domain, from whose end pods are taken."""
    mine, theirs = run.filter(pod), run.filter(other)
    if not (mine and theirs):
        return not (mine and not theirs)
    bound, other_bound = _has_selector(pod), _has_selector(other)
    if bound != other_bound:
        return bound
    first, second = priority(pod), priority(other)
    if first is None:
        return second is not None
    return second is not None and first <= second


def _has_selector(pod: Pod) -> bool:
    spec = pod.manifest["spec"]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    return spec.get("nodeSelector") is not None or affinity is not None
