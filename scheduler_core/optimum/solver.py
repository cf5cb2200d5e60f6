"""Solved by HiGHS, one level of priority after the other, each with what the levels above reached as a constraint.

Pods that are alike are one integer variable a node. For each rule there is a binary variable a domain: whether a pod
with that rule is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from scheduler_core.clock import SECOND_NS, measure_ns
from scheduler_core.objects.pod import HostPort
from scheduler_core.optimum.problem import Away, Crowd, JointPod, JointProblem, Near, Spread

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
        Is told what is being solved, and the share that is done.

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
        best, bound = model.maximize(mine, [1.0] * len(mine), left_s() / (len(levels) + 1 - place))
        placed[level], at_most[level] = round(best), min(n_pods, int(bound + 1e-6))
        proved = proved and placed[level] == at_most[level]
        model.add_row(placed[level] - 0.5, np.inf, dict.fromkeys(mine, 1.0))
    progress("raising the sum of scores", len(levels) / (len(levels) + 1))
    values: list[float] = []
    bound = 0.0
    if cells:
        weights = [float(pods[c].scores[node]) for c, node in cells]
        best, bound = model.maximize(list(range(len(cells))), weights, left_s())
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


@dataclass
class _Model:
    """The columns and rows of a problem in HiGHS.

    Attributes
    ----------
    cells
        (place of a pod class, node) of the first columns: how many of the class are there.
    """

    problem: JointProblem
    cells: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            import highspy  # here and not above: nothing else needs it
        except ImportError:
            raise Unsolvable("the best joint placement is found by HiGHS: pip install highspy") from None
        pods = self.problem.pods
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
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.silent()
        self._integer = highspy.HighsVarType.kInteger
        self._maximum = highspy.ObjSense.kMaximize
        self._n_columns = self._n_rows = 0
        self._at = {cell: self._column(len(pods[cell[0]].names)) for cell in self.cells}
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

    # ---- columns and rows

    def _column(self, most: int) -> int:
        self._highs.addVar(0, most)
        self._highs.changeColIntegrality(self._n_columns, self._integer)
        self._n_columns += 1
        return self._n_columns - 1

    def add_row(self, low: float, high: float, weights: Mapping[int, float]) -> None:
        """low <= sum of weight x column <= high."""
        self._n_rows += 1
        if self._n_rows > MAX_ROWS:
            raise Unsolvable(f"the rules between the pods make more than {MAX_ROWS:,} constraints")
        columns = sorted(weights)
        self._highs.addRow(
            low, high, len(columns), np.array(columns, np.int32),
            np.array([weights[column] for column in columns], np.float64),
        )  # fmt: skip

    def _amounts(self) -> None:
        pods = self.problem.pods
        for c, nodes in self._nodes_of.items():
            self.add_row(0, len(pods[c].names), {self._at[c, node]: 1.0 for node in nodes})
        for node, room in self.problem.room.items():
            here = [(c, self._at[c, node]) for c in range(len(pods)) if (c, node) in self._at]
            for resource in sorted({name for c, _ in here for name in pods[c].requests}):
                # Scaled to the node: solvers work with numbers near one.
                have = max(room.get(resource, 0), 1)
                self.add_row(
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
                        self.add_row(0, 1, dict.fromkeys(columns, 1.0))

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
                columns[domain] = self._column(1)
            self.add_row(-np.inf, 0, {self._at[pod, node]: 1.0, columns[domain]: -float(most)})
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
            self.add_row(-np.inf, self._all + itself - staying, {**columns, present: self._all})

    def _near(self, rule: Near) -> None:
        itself = int(rule.pod in rule.crowd.pods)
        first: int | None = None
        if itself:
            # Where it goes first, it is the only one of the crowd, on all nodes that have one of the labels.
            labelled = {node: "" for domain_of in rule.domains_of for node in domain_of}
            columns, staying = self._counted(rule.crowd, labelled).get("", ({}, 0))
            if not staying:
                first = self._column(1)
                self.add_row(-np.inf, self._all + 1, {**columns, first: self._all})
        for domain_of in rule.domains_of:
            counted = self._counted(rule.crowd, domain_of)
            for domain, present in self._presence(rule.pod, domain_of).items():
                columns, staying = counted[domain]
                weights = {**columns, present: -float(1 + itself)}
                if first is not None:
                    weights[first] = 1.0
                self.add_row(-float(staying), np.inf, weights)

    def _spread(self, rule: Spread) -> None:
        counted = self._counted(rule.crowd, rule.domain_of)
        most = self._all + sum(staying for _, staying in counted.values())
        # A pod that is not selected itself does not add to its domain; the one that is, is counted in it already.
        for domain, present in self._presence(rule.pod, rule.domain_of).items():
            columns, staying = counted[domain]
            if rule.least_is_zero:
                self.add_row(
                    -np.inf, rule.max_skew + most - staying, {**columns, present: most}
                )  # fmt: skip
            for other, (others, theirs) in counted.items():
                if other != domain:
                    weights = {**columns, **dict.fromkeys(others, -1.0), present: most}
                    self.add_row(-np.inf, rule.max_skew + most - staying + theirs, weights)

    # ---- solving

    def maximize(
        self, columns: Sequence[int], weights: Sequence[float], limit_s: float
    ) -> tuple[float, float]:
        """Maximize a sum; the best found and the bound on it."""
        costs = np.zeros(self._n_columns)
        costs[list(columns)] = weights
        model = self._highs
        model.changeColsCost(self._n_columns, np.arange(self._n_columns, dtype=np.int32), costs)
        model.changeObjectiveSense(self._maximum)
        model.setOptionValue("time_limit", float(model.getRunTime() + max(limit_s, 0.5)))
        model.run()
        info = model.getInfo()
        if info.primal_solution_status != 2:  # 2 = feasible
            raise Unsolvable("no placement was found within the time limit")
        return float(info.objective_function_value), float(info.mip_dual_bound)

    def values(self) -> list[float]:
        """Of all columns, in the last solution."""
        found: Any = self._highs.getSolution().col_value
        return list(found)


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
