"""What the formal model derives from objects: the cluster before a cycle, and filters and scores one node at a time.

Source: the Filter and Score functions under pkg/scheduler/framework/plugins, v1.34 to v1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.node_selector import NodeSelector, node_selector_from, preferred_terms_from
from scheduler_core.objects.pod import AffinityTerm, HostPort, Pod, TopologySpreadConstraint
from scheduler_core.objects.policy import PodDisruptionBudget
from scheduler_core.objects.resources import is_extended_resource, is_scalar_resource
from scheduler_core.releases import Release
from scheduler_core.sim.simulation import Simulation

ORDER, PLACEMENT, CASUALTY = "order", "placement", "casualty"
PROPERTIES: Final = (ORDER, PLACEMENT, CASUALTY)

HOLDS, LEAVES, FAILS, NOT_COMPUTED = "holds", "leaves", "fails", "notComputed"
STATUSES: Final = (HOLDS, LEAVES, FAILS, NOT_COMPUTED)


@dataclass(frozen=True, slots=True)
class PropertyVerdict:
    """One property of one cycle.

    Attributes
    ----------
    status : str
        `HOLDS`; `LEAVES`: Kubernetes leaves the model on purpose; `FAILS`: a fault; `NOT_COMPUTED`.
    departure : str
        Key of `DEPARTURES`; also with `HOLDS`, where it explains and nothing better was missed.
    counterexample : mapping
        JSON-able: what would have been right.
    """

    property: str
    status: str
    sentence: str
    departure: str = ""
    counterexample: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """JSON-able; what is empty is left out."""
        return {name: value for name, value in asdict(self).items() if value}


# ---- the cluster before a cycle

ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, OTHER = "active", "backoff", "unschedulable", "gated", "other"


@dataclass(frozen=True, slots=True)
class Place:
    """A node and the pods the scheduler counts there, assumed ones included.

    Attributes
    ----------
    nominated : sequence of Pod
        Nominated to this node.
    forgotten : frozenset of HostPort
        Ports of pods here that count as free: a node keeps a set of ports, and one of two holders has left.
    """

    node: Node
    pods: Sequence[Pod]
    nominated: Sequence[Pod]
    forgotten: frozenset[HostPort]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node.

    Attributes
    ----------
    lane : str
        `ACTIVE` pods are ready, all others are held back.
    timestamp_ns : int
        When it entered the queue.
    """

    pod: Pod
    lane: str
    timestamp_ns: int


@dataclass(frozen=True, slots=True)
class Moment:
    """All of it.

    Attributes
    ----------
    places : sequence of Place or None
        In evaluation order; None where the cluster is too large to be taken down.
    namespaces : dict of str to dict
        Name -> labels.
    release : Release
        Whose rules hold.
    """

    cycle: int
    waiting: Sequence[Waiting]
    places: Sequence[Place] | None
    namespaces: dict[str, dict[str, str]]
    budgets: Sequence[PodDisruptionBudget]
    n_objects: int
    release: Release

    @classmethod
    def of(cls, simulation: Simulation, max_objects: int) -> Moment:
        """Take down what the scheduler knows now."""
        scheduler = simulation.scheduler
        cache, queue, listers = scheduler.cache, scheduler.queue, scheduler.cache.listers
        waiting = [Waiting(info.pod, ACTIVE, info.timestamp_ns) for info in queue.active_pods()]
        waiting += [
            Waiting(info.pod, BACKOFF, info.timestamp_ns)
            for info in (*queue.backoff_pods(), *queue.error_backoff_pods())
        ]
        waiting += [
            Waiting(info.pod, GATED if info.gated else UNSCHEDULABLE, info.timestamp_ns)
            for info in queue.unschedulable_pods()
        ]
        snapshot = cache.snapshot()
        nodes = snapshot.nodes
        rows = snapshot.order.tolist()
        n_objects = len(rows) + sum(len(nodes.pods_on(row)) for row in rows)
        places: list[Place] | None = None
        if n_objects <= max_objects:
            places = [
                Place(
                    nodes.node(row),
                    snapshot.pods.all_of(nodes.pods_on(row)),
                    scheduler.nominator.pods_for(nodes.name(row)),
                    frozenset(cache.nodes.forgotten_ports(row)),
                )
                for row in rows
            ]
        return cls(
            cycle=scheduler.cycle,
            waiting=waiting,
            places=places,
            namespaces={item.meta.name: dict(item.meta.labels) for item in listers.all("Namespace")},
            budgets=listers.all("PodDisruptionBudget"),
            n_objects=n_objects,
            release=simulation.release,
        )

    def pod(self, uid: str) -> Waiting | None:
        """The waiting pod of a uid."""
        return next((item for item in self.waiting if item.pod.uid == uid), None)


def ports_of(pod: Pod) -> frozenset[HostPort]:
    """Host ports a pod wants, an empty address written out."""
    return frozenset(normal_port(port) for port in pod.host_ports)


# ---- filters

_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

EVALUATED = frozenset(
    (
        "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
        "PodTopologySpread", "InterPodAffinity",
    )
)  # fmt: skip
"""Filter plugins the model evaluates by itself; verdicts of others are taken as recorded."""


class Refusal(NamedTuple):
    """Why a node is not feasible."""

    plugin: str
    resolvable: bool
    """Whether removing pods might help (Unschedulable, not UnschedulableAndUnresolvable)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a profile says about filters.

    Attributes
    ----------
    plugins : tuple of str
        Filter plugins in order, those the model evaluates.
    """

    plugins: tuple[str, ...]
    added_affinity: NodeSelector | None
    ignored_resources: frozenset[str]
    ignored_groups: frozenset[str]
    default_spread: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, plugins: Iterable[str], args: Mapping[str, Any]) -> Rules:
        """Read a profile's plugins and their arguments (`config.construction.ProfilePlan`)."""
        affinity, fit, spread = (
            args.get(name) for name in ("NodeAffinity", "NodeResourcesFit", "PodTopologySpread")
        )
        added = (getattr(affinity, "added_affinity", None) or {}).get(_REQUIRED)
        by_list = getattr(spread, "defaulting_type", "System") != "System"
        return cls(
            plugins=tuple(name for name in plugins if name in EVALUATED),
            added_affinity=node_selector_from(added) if added else None,
            ignored_resources=frozenset(getattr(fit, "ignored_resources", None) or ()),
            ignored_groups=frozenset(getattr(fit, "ignored_resource_groups", None) or ()),
            default_spread=tuple(getattr(spread, "default_constraints", None) or ()) if by_list else (),
        )


@dataclass(frozen=True, slots=True)
class _Spread:
    max_skew: int
    key: str
    selector: LabelSelector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


class Feasibility:
    """One pod against all nodes of a moment.

    Parameters
    ----------
    deduced : LabelSelector
        What default spread constraints of a profile select for this pod.
    """

    def __init__(self, pod: Pod, moment: Moment, rules: Rules, deduced: LabelSelector) -> None:
        self.pod = pod
        self.rules = rules
        self.places: Sequence[Place] = moment.places or ()
        self._namespaces = moment.namespaces
        self._wanted_ports = ports_of(pod)
        self._spread = list(self._constraints(deduced)) if "PodTopologySpread" in rules.plugins else []
        self._spread_counts: list[dict[str, int]] = [{} for _ in self._spread]
        self._counts_terms = "InterPodAffinity" in rules.plugins
        self._near: Counter[tuple[str, str]] = Counter()
        self._away: Counter[tuple[str, str]] = Counter()
        self._kept_away: Counter[tuple[str, str]] = Counter()
        for place in self.places:
            for constraint, counts in zip(self._spread, self._spread_counts, strict=True):
                if self._counts_node(constraint, place.node):
                    counts.setdefault(place.node.labels[constraint.key], 0)
            for other in place.pods:
                self._count(other, place.node, 1, first=True)
        if not (pod.required_affinity or pod.required_anti_affinity or any(self._kept_away.values())):
            # PreFilter says Skip: it is not asked beside nominated pods either, whatever these keep away.
            self._counts_terms = False
            self._kept_away.clear()

    # ---- the question

    def refusal(
        self,
        place: Place,
        *,
        without: Sequence[Pod] = (),
        beside_nominated: bool = False,
        ports: set[Any] | None = None,
    ) -> Refusal | None:
        """The first filter that rejects a node, None where it is feasible.

        Parameters
        ----------
        without : sequence of Pod
            Pods of this node that are gone.
        beside_nominated : bool
            Count the pods of equal or higher priority that are nominated to it as if they ran there.
        ports : set, optional
            Host ports that are taken; by default those that `ports_without` leaves.
        """
        gone = {pod.uid for pod in without}
        more = self._nominated(place) if beside_nominated else []
        pods = [pod for pod in place.pods if pod.uid not in gone] + more
        ports = self.ports_without(place, without) if ports is None else set(ports)
        for pod in more:
            ports |= ports_of(pod)
        for pod in without:
            self._count(pod, place.node, -1)
        for pod in more:
            self._count(pod, place.node, 1)
        try:
            for plugin in self.rules.plugins:
                resolvable = self._ask(plugin, place.node, pods, ports)
                if resolvable is not None:
                    return Refusal(plugin, resolvable)
            return None
        finally:
            for pod in without:
                self._count(pod, place.node, 1)
            for pod in more:
                self._count(pod, place.node, -1)

    @staticmethod
    def ports_without(place: Place, gone: Sequence[Pod]) -> set[Any]:
        """Host ports taken on a node when some pods have left: a port goes with the first of two that hold it."""
        ports = {port for pod in place.pods for port in ports_of(pod)} - place.forgotten
        for pod in gone:
            ports -= ports_of(pod)
        return ports

    def verdict(
        self, place: Place, *, without: Sequence[Pod] = (), ports: set[Any] | None = None
    ) -> Refusal | None:
        """As Kubernetes asks: with the nominated pods, then without them; both must pass."""
        if self._nominated(place):
            refusal = self.refusal(place, without=without, beside_nominated=True, ports=ports)
            if refusal is not None:
                return refusal
        return self.refusal(place, without=without, ports=ports)

    def _nominated(self, place: Place) -> list[Pod]:
        return [
            pod for pod in place.nominated if pod.priority >= self.pod.priority and pod.uid != self.pod.uid
        ]

    def _ask(self, plugin: str, node: Node, pods: Sequence[Pod], ports: set[Any]) -> bool | None:
        """None: it passes. Otherwise whether removing pods might help."""
        pod = self.pod
        match plugin:
            case "NodeUnschedulable":
                return False if node.unschedulable and not pod.tolerates(_CORDON) else None
            case "NodeName":
                return False if pod.node_name and pod.node_name != node.name else None
            case "TaintToleration":
                return None if tolerates_all(pod, node) else False
            case "NodeAffinity":
                added = self.rules.added_affinity
                if added is not None and not _matches(added, node):
                    return False
                return None if _matches(pod.required_node_affinity, node) else False
            case "NodePorts":
                taken = any(
                    (used.protocol, used.port) == (port.protocol, port.port)
                    and (used.ip == port.ip or "0.0.0.0" in (used.ip, port.ip))
                    for port in self._wanted_ports
                    for used in ports
                )
                return True if taken else None
            case "NodeResourcesFit":
                return self._fit(node, pods)
            case "PodTopologySpread":
                return self._spread_refuses(node)
            case _:
                return self._terms_refuse(node)

    # ---- resources

    def _fit(self, node: Node, pods: Sequence[Pod]) -> bool | None:
        short = len(pods) + 1 > node.allocatable.get("pods", 0)
        resolvable = True
        for name, amount in self.pod.requests.items():
            if not amount or name == "pods" or self._ignores(name):
                continue
            have = node.allocatable.get(name, 0)
            if amount > have - sum(other.requests.get(name, 0) for other in pods):
                short = True
                resolvable = resolvable and amount <= have
        return resolvable if short else None

    def _ignores(self, name: str) -> bool:
        if not is_extended_resource(name):
            return False
        return name in self.rules.ignored_resources or name.partition("/")[0] in self.rules.ignored_groups

    # ---- other pods

    def _constraints(self, deduced: LabelSelector) -> Iterable[_Spread]:
        own: Sequence[TopologySpreadConstraint] = self.pod.topology_spread
        for item in own:
            if item.when_unsatisfiable == "DoNotSchedule":
                least = 1 if item.min_domains is None else item.min_domains
                yield _Spread(
                    item.max_skew, item.topology_key, item.selector, least,
                    item.node_affinity_policy == "Honor", item.node_taints_policy == "Honor",
                )  # fmt: skip
        if own or deduced.is_everything:
            return
        for document in self.rules.default_spread:
            if document.get("whenUnsatisfiable") == "DoNotSchedule":
                yield _Spread(
                    int(document.get("maxSkew") or 0), str(document.get("topologyKey") or ""), deduced,
                    int(document.get("minDomains") or 1),
                    (document.get("nodeAffinityPolicy") or "Honor") == "Honor",
                    document.get("nodeTaintsPolicy") == "Honor",
                )  # fmt: skip

    def _counts_node(self, constraint: _Spread, node: Node) -> bool:
        if any(item.key not in node.labels for item in self._spread):
            return False
        if constraint.honors_affinity and not _matches(self.pod.required_node_affinity, node):
            return False
        return not constraint.honors_taints or tolerates_all(self.pod, node)

    def _count(self, other: Pod, node: Node, sign: int, *, first: bool = False) -> None:
        """Another pod came to a node (1) or left it (-1).

        Terminating pods, and a selector of everything, count nothing at `first`; upstream's AddPod and RemovePod ask
        neither.
        """
        if other.namespace == self.pod.namespace and not (first and other.is_terminating):
            for constraint, counts in zip(self._spread, self._spread_counts, strict=True):
                if first and constraint.selector.is_everything:
                    continue
                if constraint.selector.matches(other.labels) and self._counts_node(constraint, node):
                    counts[node.labels[constraint.key]] += sign
        if not self._counts_terms:
            return
        terms = self.pod.required_affinity
        if terms and all(is_about(term, other, self._namespaces) for term in terms):
            for term in terms:
                _add(self._near, term.topology_key, node, sign)
        for term in self.pod.required_anti_affinity:
            if is_about(term, other, self._namespaces):
                _add(self._away, term.topology_key, node, sign)
        for term in other.required_anti_affinity:
            labels = self._namespaces.get(self.pod.namespace, {})
            in_namespace = self.pod.namespace in term.namespaces or term.namespace_selector.matches(labels)
            if in_namespace and term.selector.matches(self.pod.labels):
                _add(self._kept_away, term.topology_key, node, sign)

    def _spread_refuses(self, node: Node) -> bool | None:
        for constraint, counts in zip(self._spread, self._spread_counts, strict=True):
            value = node.labels.get(constraint.key)
            if value is None:
                return False
            least = min(counts.values(), default=2**31 - 1)
            if len(counts) < constraint.min_domains:
                least = 0
            itself = int(constraint.selector.matches(self.pod.labels))
            if counts.get(value, 0) + itself - least > constraint.max_skew:
                return True
        return None

    def _terms_refuse(self, node: Node) -> bool | None:
        terms = self.pod.required_affinity
        if any(term.topology_key not in node.labels for term in terms):
            return False
        near = all(self._near[term.topology_key, node.labels[term.topology_key]] > 0 for term in terms)
        first_of_series = not any(self._near.values()) and all(
            is_about(term, self.pod, self._namespaces) for term in terms
        )
        if terms and not near and not first_of_series:
            return False
        for term in self.pod.required_anti_affinity:
            value = node.labels.get(term.topology_key)
            if value is not None and self._away[term.topology_key, value] > 0:
                return True
        return True if any(self._kept_away[pair] > 0 for pair in node.labels.items()) else None


def is_about(term: AffinityTerm, other: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a term of an incoming pod is about another pod.

    The names of matching namespaces are merged into the term, and its selector is then asked once more with no
    labels, as upstream does.
    """
    selector = term.namespace_selector
    there = other.namespace in term.namespaces
    if not there and not selector.is_everything and other.namespace in namespaces:
        there = selector.matches(namespaces[other.namespace])
    return (there or selector.matches({})) and term.selector.matches(other.labels)


def tolerates_all(pod: Pod, node: Node) -> bool:
    """Whether no taint of the node keeps the pod off."""
    return all(
        taint.effect not in ("NoSchedule", "NoExecute") or pod.tolerates(taint) for taint in node.taints
    )


def _add(counts: Counter[tuple[str, str]], key: str, node: Node, sign: int) -> None:
    if key in node.labels:
        counts[key, node.labels[key]] += sign


def _matches(affinity: Any, node: Node) -> bool:
    """A term that cannot be read matches nothing."""
    try:
        return bool(affinity.match(node.labels, node.name))
    except SelectorError:
        return False


# ---- scores

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def points(
    plugin: str, pod: Pod, places: Sequence[Place], args: Any, release: Release
) -> dict[str, int] | None:
    """Normalized points of a plugin by node, 0 to 100; None where the model does not evaluate it.

    Parameters
    ----------
    places : sequence of Place
        The feasible ones: normalizing looks at all of them.
    args
        The plugin's arguments.
    release : Release
        Whose rules hold.
    """
    match plugin:
        case "TaintToleration":
            found = {place.node.name: _intolerable(pod, place) for place in places}
            return _normalized(found, reverse=True)
        case "NodeAffinity":
            added = (getattr(args, "added_affinity", None) or {}).get(_PREFERRED) or []
            terms = (*pod.preferred_node_affinity.terms, *preferred_terms_from(added).terms)
            return _normalized(
                {
                    place.node.name: sum(
                        weight for weight, term in terms if term.matches(place.node.labels, place.node.name)
                    )
                    for place in places
                }
            )
        case "NodeResourcesFit":
            strategy = args.scoring_strategy
            if strategy.type not in ("LeastAllocated", "MostAllocated"):
                return None
            return {place.node.name: _allocated(pod, place, strategy) for place in places}
        case "NodeResourcesBalancedAllocation":
            names = [item.name for item in args.resources or ()]
            if sorted(names) != ["cpu", "memory"]:
                return None
            after = {place.node.name: _balanced(pod, place, names) for place in places}
            if not release.has("BalancedAllocationByChange"):
                return after
            before = {place.node.name: _balanced(None, place, names) for place in places}
            return {name: 50 + (50 + after[name] - before[name]) // 2 for name in after}
    return None


def _intolerable(pod: Pod, place: Place) -> int:
    concerned = [item for item in pod.tolerations if item.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(item.tolerates(taint) for item in concerned)
        for taint in place.node.taints
    )


def _normalized(found: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    top = max(found.values(), default=0)
    if not top:
        return dict.fromkeys(found, 100 if reverse else 0) if reverse else dict(found)
    scaled = {name: 100 * value // top for name, value in found.items()}
    return {name: 100 - value for name, value in scaled.items()} if reverse else scaled


def _allocated(pod: Pod, place: Place, strategy: Any) -> int:
    total = weights = 0
    for item in strategy.resources or ():
        match item.name:
            case "cpu":
                asked, used = pod.scoring[0], sum(other.non_zero[0] for other in place.pods)
            case "memory":
                asked, used = pod.scoring[1], sum(other.non_zero[1] for other in place.pods)
            case _:
                asked = pod.requests.get(item.name, 0)
                used = sum(other.requests.get(item.name, 0) for other in place.pods)
        have = place.node.allocatable.get(item.name, 0)
        if not have or (not asked and is_scalar_resource(item.name)):
            continue
        requested = asked + used
        if strategy.type == "LeastAllocated":
            share = max(have - requested, 0) * 100 // have
        else:
            share = min(requested, have) * 100 // have
        total += item.weight * share
        weights += item.weight
    return total // weights if weights else 0


def _balanced(pod: Pod | None, place: Place, names: Sequence[str]) -> int:
    shares = []
    for name in names:
        have = place.node.allocatable.get(name, 0)
        if have:
            asked = 0 if pod is None else pod.requests.get(name, 0)
            requested = asked + sum(other.requests.get(name, 0) for other in place.pods)
            shares.append(min(float(requested) / float(have), 1.0))
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100.0)
