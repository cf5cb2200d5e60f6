"""How cheap it can get at best: a lower bound over amounts, filters and what one node takes, not over order.

Every way to place the pods is a point of the problem that is solved, and it leaves rules between pods that move out, so
what it finds is never more than the best plan there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler_core.errors import InvalidObject

MAX_NODES = 500
"""Nodes of the search tree; a count, not a time, so that an answer is the same everywhere."""
FULL_SEARCH = 300
"""Columns up to which so many nodes are searched; of a larger problem fewer, as each takes longer."""


class Milp:
    """A mixed-integer problem in HiGHS, which nothing else needs: it is imported when one is made.

    Raises
    ------
    ImportError
        HiGHS is not installed.
    """

    def __init__(self) -> None:
        import highspy

        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._highs.silent()
        self._whole = highspy.HighsVarType.kInteger
        self._maximum = highspy.ObjSense.kMaximize
        self.n_columns = self.n_rows = 0

    def column(self, least: float, most: float, cost: float = 0.0, *, whole: bool = True) -> int:
        """A variable; its number."""
        self._highs.addVar(least, most)
        if whole:
            self._highs.changeColIntegrality(self.n_columns, self._whole)
        if cost:
            self._highs.changeColCost(self.n_columns, cost)
        self.n_columns += 1
        return self.n_columns - 1

    def row(self, low: float, high: float, weights: Mapping[int, float]) -> None:
        """low <= sum of weight x column <= high."""
        columns = sorted(weights)
        amounts = np.array([weights[column] for column in columns], np.float64)
        self._highs.addRow(low, high, len(columns), np.array(columns, np.int32), amounts)
        self.n_rows += 1

    def maximize(self, weights: Mapping[int, float], limit_s: float) -> tuple[float, float] | None:
        """Maximize a sum of columns; as `solve`."""
        costs = np.zeros(self.n_columns)
        costs[list(weights)] = list(weights.values())
        self._highs.changeColsCost(self.n_columns, np.arange(self.n_columns, dtype=np.int32), costs)
        self._highs.changeObjectiveSense(self._maximum)
        return self.solve(time_limit=float(self._highs.getRunTime() + limit_s))

    def solve(self, **options: float) -> tuple[float, float] | None:
        """The best value that was found and the bound on it; None where nothing was found."""
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        self._highs.run()
        info = self._highs.getInfo()
        if info.primal_solution_status != 2:  # 2 = feasible
            return None
        return float(info.objective_function_value), float(info.mip_dual_bound)

    def values(self) -> list[float]:
        """Of all columns, in the last solution."""
        return list(self._highs.getSolution().col_value)


@dataclass(frozen=True, slots=True)
class Bin:
    """Nodes that are alike.

    Attributes
    ----------
    cost : float
        Of one more of them.
    least, most : int
        How many there may be.
    room : mapping of str to int
        Resource -> what one has left for the pods that are placed.
    takes : mapping of int to int
        Class -> how many of its pods one node takes at most, alone.
    """

    cost: float
    least: int
    most: int
    room: Mapping[str, int]
    takes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Demand:
    """Pods that are alike: how many, and what one of them asks for."""

    number: int
    requests: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bounded:
    """What was found.

    Attributes
    ----------
    cost : float
        No plan costs less.
    counts : tuple of int
        Of each bin, in a plan that the filters might refuse.
    """

    cost: float
    counts: tuple[int, ...]


def least_cost(bins: Sequence[Bin], demands: Sequence[Demand], *, together: bool = False) -> Bounded:
    """The least cost of bins that hold all demands.

    With `together` the bins that take the same demands have one room, the sum of theirs: a smaller problem, whose
    bound may be lower and is still one.

    Raises
    ------
    InvalidObject
        HiGHS is not installed.
    """
    try:
        problem = Milp()
    except ImportError:
        raise InvalidObject("ask", None, "needs HiGHS for its bound: pip install highspy") from None
    for one in bins:
        problem.column(one.least, one.most, one.cost)
    # Rooms: bins that are filled as one, and what each of them takes.
    rooms: list[list[int]] = [[place] for place in range(len(bins))]
    if together:
        alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for place, one in enumerate(bins):
            alike.setdefault(tuple(sorted(one.takes.items())), []).append(place)
        rooms = list(alike.values())
    columns: list[dict[int, int]] = []
    where: list[list[int]] = [[] for _ in demands]
    for members in rooms:
        n_bins = sum(bins[place].most for place in members)
        columns.append({})
        for demand, most in sorted(bins[members[0]].takes.items()):
            column = problem.column(0, min(demands[demand].number, most * n_bins), whole=False)
            columns[-1][demand] = column
            where[demand].append(column)
    for asked, mine in zip(demands, where, strict=True):
        if mine:
            problem.row(asked.number, asked.number, dict.fromkeys(mine, 1.0))
    for members, here in zip(rooms, columns, strict=True):
        for resource in sorted({name for demand in here for name in demands[demand].requests}):
            have = max(*(bins[place].room.get(resource, 0) for place in members), 1)
            weights = {
                column: demands[demand].requests[resource] / have
                for demand, column in here.items()
                if demands[demand].requests.get(resource)
            }
            filled = {place: -bins[place].room.get(resource, 0) / have for place in members}
            problem.row(-np.inf, 0, {**weights, **filled})
        for demand, column in here.items():
            at_most = float(bins[members[0]].takes[demand])
            problem.row(-np.inf, 0, {column: 1.0, **dict.fromkeys(members, -at_most)})
    # A node takes about as long as the square of the columns.
    share = min(1.0, FULL_SEARCH / max(problem.n_columns, 1)) ** 2
    nodes = max(round(MAX_NODES * share), 1)
    found = problem.solve(mip_max_nodes=nodes, mip_rel_gap=1e-6, threads=1, random_seed=0)
    if found is None:
        return Bounded(0.0, tuple(one.least for one in bins))
    _, dual = found
    fixed = sum(one.cost * one.least for one in bins)
    bound = max(dual, fixed) if np.isfinite(dual) else fixed
    counts = tuple(round(value) for value in problem.values()[: len(bins)])
    # Below by what the solver's arithmetic may be off.
    return Bounded(max(bound - 1e-6 * max(1.0, abs(bound)), fixed), counts)
