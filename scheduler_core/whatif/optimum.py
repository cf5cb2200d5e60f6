"""The best joint placement: all pods at once, as kube-scheduler never looks at them.

As many pods as possible, higher priorities first, then the highest sum of the scores each would get alone. A placement
counts when every placed pod would pass every filter on its node, with all the others on theirs. In which
order they could come is not asked: two pods that each want the other beside them may be placed. Solved by HiGHS
(`highspy`), one level of priority after the other, each with what the levels above reached as a constraint, with a
proved bound beside what was found.

Each distinct pod is asked about alone, by one real scheduling cycle in a cluster with the same nodes and only the pods
that stay where they are; of its rules about other pods only those are left in that cannot get easier when more pods
come (anti-affinity and host ports of the pods that stay). Rules between movable pods (inter-pod affinity and
anti-affinity, topology spread, host ports) become constraints, with a binary variable for each rule and domain: whether
a pod with that rule is there. What volumes and devices do between movable pods does not: such pods are named in
`coupled`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler_core.clock import SECOND_NS, measure_ns
from scheduler_core.cluster.node_table import normal_port
from scheduler_core.fork import Fork
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import HostPort, Pod, pod_from
from scheduler_core.objects.resources import PODS
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.bound import Milp
from scheduler_core.whatif.model_filters import is_about, tolerates_all
from scheduler_core.whatif.workloads import without_rules

_KEPT_KINDS = frozenset(
    (
        "Namespace", "PriorityClass", "StorageClass", "CSIDriver", "CSINode", "PersistentVolume",
        "PersistentVolumeClaim", "CSIStorageCapacity", "Node", "Service", "ReplicaSet", "ReplicationController",
        "StatefulSet", "DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate",
    )
)  # fmt: skip
_FIRST = {"Namespace": 0, "PriorityClass": 0, "Node": 2, "Pod": 3}


@dataclass(frozen=True, slots=True)
class JointPod:
    """Pods that are alike: same needs, same rules, same nodes, same scores, same priority.

    Attributes
    ----------
    names
        ``namespace/name`` of each.
    requests
        Resource -> whole units; ``pods`` is 1.
    scores
        Node -> total score it would get there alone; only nodes it fits.
    """

    names: tuple[str, ...]
    priority: int
    requests: Mapping[str, int]
    scores: Mapping[str, int]
    ports: frozenset[HostPort] = frozenset()


@dataclass(frozen=True, slots=True)
class Crowd:
    """The pods a rule counts.

    Attributes
    ----------
    pods
        Places in `JointProblem.pods` of the movable ones.
    staying
        Node -> how many of those that stay.
    """

    pods: tuple[int, ...]
    staying: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Away:
    """Required anti-affinity: where a pod of `pod` is, a domain holds no other of the crowd."""

    pod: int
    domain_of: Mapping[str, str]
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class Near:
    """Required affinity: for each of `domains_of` (node -> domain), where a pod of `pod` is, another of the crowd is.

    A pod that is of the crowd itself may go first, where nothing of the crowd is anywhere else.
    """

    pod: int
    domains_of: tuple[Mapping[str, str], ...]
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class Spread:
    """DoNotSchedule: where a pod of `pod` is, its domain holds at most `max_skew` more than any other.

    Attributes
    ----------
    domain_of
        Node -> domain, of the nodes that are counted.
    least_is_zero
        There are fewer domains than minDomains: an empty one counts beside them.
    """

    pod: int
    domain_of: Mapping[str, str]
    crowd: Crowd
    max_skew: int
    least_is_zero: bool


Rule = Away | Near | Spread


@dataclass(frozen=True, slots=True)
class JointProblem:
    """The whole of it.

    Attributes
    ----------
    room
        Node -> resource -> what is left beside the pods that stay.
    coupled
        Pods with claims, of which the constraints know nothing.
    """

    pods: tuple[JointPod, ...]
    room: Mapping[str, Mapping[str, int]]
    coupled: tuple[str, ...]
    rules: tuple[Rule, ...] = ()


def joint_problem(
    manifests: Iterable[Mapping[str, Any]],
    config: Mapping[str, Any] | None,
    movable: frozenset[str],
    release: Release = OLDEST,
) -> JointProblem:
    """Read a cluster's objects.

    Parameters
    ----------
    manifests
        Everything in the cluster.
    config
        Its scheduler configuration; extenders are left out.
    movable
        ``namespace/name`` of the pods that may be placed anew.
    release
        The release of Kubernetes whose filters and scores count.
    """
    everything = list(manifests)
    pods = [item for item in everything if item["kind"] == "Pod" and _is_alive(item)]
    staying = [pod for pod in pods if _key(pod) not in movable and (pod.get("spec") or {}).get("nodeName")]
    surroundings = [item for item in everything if item["kind"] in _KEPT_KINDS]
    bare = None if config is None else {key: value for key, value in config.items() if key != "extenders"}
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for pod in pods:
        if _key(pod) in movable:
            alike.setdefault(_likeness(pod), []).append(pod)
    simulation = Simulation(bare, seed=0, start_ns=0, release=release)
    for item in sorted([*surroundings, *staying], key=lambda item: _FIRST.get(item["kind"], 1)):
        simulation.submit(WriteObject(item))
    simulation.advance(0, max_cycles=0)
    fork = Fork(simulation.scheduler)
    nodes = [node_from(item) for item in everything if item["kind"] == "Node"]
    groups, typed, coupled = [], [], []
    for members in alike.values():
        manifest = _unplaced(members[0])
        pod_ = pod_from(manifest)
        typed.append(pod_)
        groups.append(
            JointPod(
                names=tuple(_key(member) for member in members),
                priority=pod_.priority,
                requests={**{name: amount for name, amount in pod_.requests.items() if amount}, PODS: 1},
                scores=_scores(fork, manifest),
                ports=frozenset(normal_port(port) for port in pod_.host_ports),
            )
        )
        if pod_.resource_claims or any(volume.get("persistentVolumeClaim") for volume in pod_.volumes):
            coupled += [_key(member) for member in members]
    resting = [pod_from(item) for item in staying]
    reading = _Rules(nodes, typed, resting, everything)
    rules = tuple(rule for place in range(len(typed)) for rule in reading.of(place))
    return JointProblem(tuple(groups), _room(nodes, resting), tuple(coupled), rules)


def _scores(fork: Fork, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Node -> score of the pod alone, of the nodes that are feasible for it."""
    pod = fork.anew(pod_from(without_rules(manifest)))
    if fork.scheduler.why_not_scheduled(pod) is not None:
        return {}
    decision = fork.decide(pod)
    attempt = decision.attempt
    rows = attempt.feasible.tolist()
    totals = attempt.total.tolist() if len(attempt.total) == len(rows) else [0] * len(rows)
    return {attempt.name_of(row): int(total) for row, total in zip(rows, totals, strict=True)}


class _Rules:
    """Reads the rules of movable pods about each other and about those that stay."""

    def __init__(
        self,
        nodes: Sequence[Node],
        pods: Sequence[Pod],
        staying: Sequence[Pod],
        everything: Sequence[Mapping[str, Any]],
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._staying = staying
        self._namespaces = {
            item["metadata"]["name"]: dict(item["metadata"].get("labels") or {})
            for item in everything
            if item["kind"] == "Namespace"
        }

    def of(self, place: int) -> Iterable[Rule]:
        pod = self._pods[place]
        for term in pod.required_anti_affinity:
            yield Away(
                place,
                self._domains(term.topology_key),
                self._crowd(lambda other, term=term: is_about(term, other, self._namespaces)),
            )
        terms = pod.required_affinity
        if terms:
            yield Near(
                place,
                tuple(self._domains(term.topology_key) for term in terms),
                self._crowd(lambda other: all(is_about(term, other, self._namespaces) for term in terms)),
            )
        hard = [item for item in pod.topology_spread if item.when_unsatisfiable == "DoNotSchedule"]
        for item in hard:
            if item.selector.is_everything:
                # Upstream counts nothing for a selector of everything.
                continue
            counted = [
                node
                for node in self._nodes
                if all(other.topology_key in node.labels for other in hard)
                and (item.node_affinity_policy != "Honor" or pod.required_node_affinity.match(node.labels, node.name))
                and (item.node_taints_policy != "Honor" or tolerates_all(pod, node))
            ]  # fmt: skip
            domain_of = {node.name: node.labels[item.topology_key] for node in counted}
            yield Spread(
                place,
                domain_of,
                self._crowd(lambda other, selector=item.selector: _selects(selector, pod, other)),
                item.max_skew,
                len(set(domain_of.values())) < (item.min_domains or 1),
            )

    def _domains(self, key: str) -> dict[str, str]:
        return {node.name: node.labels[key] for node in self._nodes if key in node.labels}

    def _crowd(self, counts: Any) -> Crowd:
        staying = Counter(pod.node_name for pod in self._staying if counts(pod))
        return Crowd(tuple(place for place, pod in enumerate(self._pods) if counts(pod)), staying)


def _selects(selector: LabelSelector, pod: Pod, other: Pod) -> bool:
    return other.namespace == pod.namespace and not other.is_terminating and selector.matches(other.labels)


def _room(nodes: Sequence[Node], staying: Sequence[Pod]) -> dict[str, dict[str, int]]:
    room = {node.name: dict(node.allocatable) for node in nodes}
    for pod in staying:
        left = room.get(pod.node_name)
        if left is None:
            continue
        for name, amount in {**pod.requests, PODS: 1}.items():
            left[name] = left.get(name, 0) - amount
    return room


def _unplaced(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    meta = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _likeness(pod: Mapping[str, Any]) -> str:
    """What decides where it may go, as text."""
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    labels = pod["metadata"].get("labels") or {}
    return json.dumps([pod["metadata"].get("namespace"), labels, spec], sort_keys=True, default=str)


def _is_alive(pod: Mapping[str, Any]) -> bool:
    done = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not done and not pod["metadata"].get("deletionTimestamp")


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"


# ---- the solver

MAX_VARIABLES: Final = 20_000
MAX_ROWS: Final = 100_000
ALL_ADDRESSES: Final = "0.0.0.0"
Progress = Callable[[str, float], None]


class Unsolvable(RuntimeError):
    """The problem is too large, or there is no solver here."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found.

    Attributes
    ----------
    placed
        Priority -> pods with a node in the best placement.
    at_most
        Priority -> no placement has more; equal to `placed` where that is proved.
    score
        Sum of the scores each placed pod would get alone.
    score_at_most
        No placement of as many pods has a higher sum.
    node_of
        ``namespace/name`` -> node.
    proved
        Whether it is the best, and not only the best found in time.
    """

    placed: Mapping[int, int]
    at_most: Mapping[int, int]
    score: int
    score_at_most: int
    node_of: Mapping[str, str]
    proved: bool


def solve(problem: JointProblem, *, time_limit_s: float, progress: Progress) -> Solution:
    """Solve it.

    Parameters
    ----------
    progress
        Called with what is being solved, and the share that is done.

    Raises
    ------
    Unsolvable
    """
    began_ns = measure_ns()
    model = _Model(problem)
    cells, pods = model.cells, problem.pods
    placed: dict[int, int] = {}
    at_most: dict[int, int] = {}
    proved = True

    def left_s() -> float:
        return time_limit_s - (measure_ns() - began_ns) / SECOND_NS

    levels = sorted({pod.priority for pod in pods}, reverse=True)
    for place, level in enumerate(levels):
        progress(f"placing the pods of priority {level}", place / (len(levels) + 1))
        mine = [column for column, (c, _) in enumerate(cells) if pods[c].priority == level]
        n_pods = sum(len(pod.names) for pod in pods if pod.priority == level)
        if not mine:
            placed[level] = at_most[level] = 0
            continue
        best, bound = model.best(dict.fromkeys(mine, 1.0), left_s() / (len(levels) + 1 - place))
        placed[level], at_most[level] = round(best), min(n_pods, int(bound + 1e-6))
        proved = proved and placed[level] == at_most[level]
        model.row(placed[level] - 0.5, np.inf, dict.fromkeys(mine, 1.0))
    progress("raising the sum of scores", len(levels) / (len(levels) + 1))
    values: list[float] = []
    bound = 0.0
    if cells:
        scores = {place: float(pods[c].scores[node]) for place, (c, node) in enumerate(cells)}
        best, bound = model.best(scores, left_s())
        proved = proved and bound - best <= max(0.99, 1e-4 * abs(best))
        values = model.values()[: len(cells)]
    node_of: dict[str, str] = {}
    score = 0
    taken = [0] * len(pods)
    for (c, node), value in zip(cells, values, strict=True):
        for _ in range(round(value)):
            node_of[pods[c].names[taken[c]]] = node
            taken[c] += 1
            score += pods[c].scores[node]
    return Solution(placed, at_most, score, max(score, int(bound + 1e-6)), node_of, proved)


class _Model(Milp):
    """The columns and rows of a problem.

    Attributes
    ----------
    cells
        (place of a pod class, node) of the first columns: how many of the class are there.
    """

    def __init__(self, problem: JointProblem) -> None:
        try:
            super().__init__()
        except ImportError:
            raise Unsolvable("the best joint placement is found by HiGHS: pip install highspy") from None
        self.problem = problem
        pods = problem.pods
        barred = self._without_key()
        self.cells = [
            (c, node)
            for c, pod in enumerate(pods)
            for node in pod.scores
            if node not in barred.get(c, ()) and _fits(pod, self.problem, node)
        ]
        if len(self.cells) > MAX_VARIABLES:
            raise Unsolvable(
                f"{len(self.cells):,} pairs of pod and node are too many for a joint placement; at most"
                f" {MAX_VARIABLES:,}"
            )
        self._at = {cell: self.column(0, len(pods[cell[0]].names)) for cell in self.cells}
        self._nodes_of: dict[int, list[str]] = {}
        for c, node in self.cells:
            self._nodes_of.setdefault(c, []).append(node)
        # More than are ever counted: what a row is loosened by where its rule is not at work.
        self._all = float(sum(len(pod.names) for pod in pods))
        self._amounts()
        self._ports()
        for rule in self.problem.rules:
            match rule:
                case Away():
                    self._away(rule)
                case Near():
                    self._near(rule)
                case Spread():
                    self._spread(rule)

    def _without_key(self) -> dict[int, set[str]]:
        """Pod class -> nodes that lack a label a rule of it needs."""
        barred: dict[int, set[str]] = {}
        for rule in self.problem.rules:
            needed = rule.domains_of if isinstance(rule, Near) else ()
            if isinstance(rule, Spread):
                needed = (rule.domain_of,)
            for domain_of in needed:
                missing = {node for node in self.problem.pods[rule.pod].scores if node not in domain_of}
                barred.setdefault(rule.pod, set()).update(missing)
        return barred

    def row(self, low: float, high: float, weights: Mapping[int, float]) -> None:
        if self.n_rows == MAX_ROWS:
            raise Unsolvable(f"the rules between the pods make more than {MAX_ROWS:,} constraints")
        super().row(low, high, weights)

    def _amounts(self) -> None:
        pods = self.problem.pods
        for c, nodes in self._nodes_of.items():
            self.row(0, len(pods[c].names), {self._at[c, node]: 1.0 for node in nodes})
        for node, room in self.problem.room.items():
            here = [(c, self._at[c, node]) for c in range(len(pods)) if (c, node) in self._at]
            for resource in sorted({name for c, _ in here for name in pods[c].requests}):
                # Scaled to the node: solvers work with numbers near one.
                have = max(room.get(resource, 0), 1)
                self.row(
                    -np.inf,
                    room.get(resource, 0) / have,
                    {
                        column: pods[c].requests[resource] / have
                        for c, column in here
                        if pods[c].requests.get(resource)
                    },
                )

    def _ports(self) -> None:
        """On a node, one pod of all whose ports conflict."""
        pods = self.problem.pods
        with_ports = [c for c in sorted(self._nodes_of) if pods[c].ports]
        for index, c in enumerate(with_ports):
            for other in with_ports[index:]:
                if not _conflict(pods[c].ports, pods[other].ports):
                    continue
                for node in self._nodes_of[c]:
                    if (other, node) in self._at:
                        columns = {self._at[c, node], self._at[other, node]}
                        self.row(0, 1, dict.fromkeys(columns, 1.0))

    # ---- rules

    def _presence(self, pod: int, domain_of: Mapping[str, str]) -> dict[str, int]:
        """Domain -> a column that is 1 where any pod of the class is in the domain."""
        columns: dict[str, int] = {}
        most = len(self.problem.pods[pod].names)
        for node in self._nodes_of.get(pod, ()):
            domain = domain_of.get(node)
            if domain is None:
                continue
            if domain not in columns:
                columns[domain] = self.column(0, 1)
            self.row(-np.inf, 0, {self._at[pod, node]: 1.0, columns[domain]: -float(most)})
        return columns

    def _counted(self, crowd: Crowd, domain_of: Mapping[str, str]) -> dict[str, tuple[dict[int, float], int]]:
        """Domain -> (columns of the movable pods of a crowd there, how many of it stay there)."""
        found: dict[str, tuple[dict[int, float], int]] = {
            domain: ({}, 0) for domain in dict.fromkeys(domain_of.values())
        }
        for c in crowd.pods:
            for node in self._nodes_of.get(c, ()):
                if node in domain_of:
                    found[domain_of[node]][0][self._at[c, node]] = 1.0
        for node, amount in crowd.staying.items():
            if node in domain_of:
                columns, staying = found[domain_of[node]]
                found[domain_of[node]] = columns, staying + amount
        return found

    def _away(self, rule: Away) -> None:
        itself = int(rule.pod in rule.crowd.pods)
        counted = self._counted(rule.crowd, rule.domain_of)
        for domain, present in self._presence(rule.pod, rule.domain_of).items():
            columns, staying = counted[domain]
            self.row(-np.inf, self._all + itself - staying, {**columns, present: self._all})

    def _near(self, rule: Near) -> None:
        itself = int(rule.pod in rule.crowd.pods)
        first: int | None = None
        if itself:
            # Where it goes first, it is the only one of the crowd, on all nodes that have one of the labels.
            labelled = {node: "" for domain_of in rule.domains_of for node in domain_of}
            columns, staying = self._counted(rule.crowd, labelled).get("", ({}, 0))
            if not staying:
                first = self.column(0, 1)
                self.row(-np.inf, self._all + 1, {**columns, first: self._all})
        for domain_of in rule.domains_of:
            counted = self._counted(rule.crowd, domain_of)
            for domain, present in self._presence(rule.pod, domain_of).items():
                columns, staying = counted[domain]
                weights = {**columns, present: -float(1 + itself)}
                if first is not None:
                    weights[first] = 1.0
                self.row(-float(staying), np.inf, weights)

    def _spread(self, rule: Spread) -> None:
        counted = self._counted(rule.crowd, rule.domain_of)
        most = self._all + sum(staying for _, staying in counted.values())
        # A pod that is not selected itself does not add to its domain; the one that is, is counted in it already.
        for domain, present in self._presence(rule.pod, rule.domain_of).items():
            columns, staying = counted[domain]
            if rule.least_is_zero:
                self.row(
                    -np.inf, rule.max_skew + most - staying, {**columns, present: most}
                )  # fmt: skip
            for other, (others, theirs) in counted.items():
                if other != domain:
                    weights = {**columns, **dict.fromkeys(others, -1.0), present: most}
                    self.row(-np.inf, rule.max_skew + most - staying + theirs, weights)

    def best(self, weights: Mapping[int, float], limit_s: float) -> tuple[float, float]:
        """Maximize a sum; the best found and the bound on it."""
        found = self.maximize(weights, max(limit_s, 0.5))
        if found is None:
            raise Unsolvable("no placement was found within the time limit")
        return found


def _fits(pod: JointPod, problem: JointProblem, node: str) -> bool:
    room = problem.room.get(node, {})
    return all(amount <= room.get(resource, 0) for resource, amount in pod.requests.items())


def _conflict(one: frozenset[HostPort], other: frozenset[HostPort]) -> bool:
    return any(
        (mine.protocol, mine.port) == (theirs.protocol, theirs.port)
        and (mine.ip == theirs.ip or ALL_ADDRESSES in (mine.ip, theirs.ip))
        for mine in one
        for theirs in other
    )


# ---- what a solution means


def optimum_document(
    problem: JointProblem, manifests: Iterable[Mapping[str, Any]], solution: Solution
) -> dict[str, Any]:
    """What was found beside what is, JSON-able.

    Returns
    -------
    dict
        ``levels`` [{priority, pods, now, best, atMost}], highest first; ``placed``, ``score`` [one by one, together];
        ``scoreAtMost``; ``gap`` (of the sum of scores, as a share of its bound; 0 where proved); ``proved``;
        ``pods`` [{pod, priority, now, best}], those that change first; ``nMoved``; ``nRules``; ``coupled``; ``room``.
    """
    now = {
        _key(item): (item.get("spec") or {}).get("nodeName") or ""
        for item in manifests
        if item["kind"] == "Pod"
    }
    greedy: Counter[int] = Counter()
    n_of: Counter[int] = Counter()
    score = 0
    pods: list[Mapping[str, Any]] = []
    for pod in problem.pods:
        for name in pod.names:
            n_of[pod.priority] += 1
            node = now.get(name, "")
            if node:
                greedy[pod.priority] += 1
                score += pod.scores.get(node, 0)
            best = solution.node_of.get(name, "")
            pods.append({"pod": name, "priority": pod.priority, "now": node, "best": best})
    pods = _without_swaps(problem, pods)
    pods.sort(key=lambda item: (bool(item["now"]) == bool(item["best"]), item["now"] == item["best"],
                                -item["priority"], item["pod"]))  # fmt: skip
    return {
        "levels": [
            {
                "priority": level,
                "pods": n_of[level],
                "now": greedy[level],
                "best": solution.placed.get(level, 0),
                "atMost": solution.at_most.get(level, 0),
            }
            for level in sorted(n_of, reverse=True)
        ],
        "placed": [greedy.total(), sum(solution.placed.values())],
        "score": [score, solution.score],
        "scoreAtMost": solution.score_at_most,
        "gap": _gap(solution),
        "proved": solution.proved,
        "pods": list(pods),
        "nMoved": sum(item["now"] != item["best"] for item in pods),
        "nRules": len(problem.rules),
        "coupled": list(problem.coupled),
        "room": {node: dict(room) for node, room in problem.room.items()},
    }


def _gap(solution: Solution) -> float:
    if solution.proved or not solution.score_at_most:
        return 0.0
    return round((solution.score_at_most - solution.score) / solution.score_at_most, 4)


def _without_swaps(problem: JointProblem, pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Pods that are alike keep their node where the best placement uses it for one of them anyway."""
    by_name = {item["pod"]: dict(item) for item in pods}
    for group in problem.pods:
        wanted = [by_name[name]["best"] for name in group.names]
        rest = []
        for name in group.names:
            now = by_name[name]["now"]
            if now and now in wanted:
                wanted.remove(now)
                by_name[name]["best"] = now
            else:
                rest.append(name)
        # Those without a node now take one last, so that fewest pods change between having one and not.
        rest.sort(key=lambda name: not by_name[name]["now"])
        wanted.sort(key=lambda node: not node)
        for name, node in zip(rest, wanted, strict=True):
            by_name[name]["best"] = node
    return list(by_name.values())
