"""How cheap it can get at best: a lower bound by HiGHS, over amounts, filters and what one node takes, not over order.

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
        import highspy  # here and not above: nothing else of a plan needs it
    except ImportError:
        raise InvalidObject("ask", None, "needs HiGHS for its bound: pip install highspy") from None
    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.silent()
    for name, value in (
        ("threads", 1),
        ("random_seed", 0),
        ("mip_max_nodes", MAX_NODES),
        ("mip_rel_gap", 1e-6),
    ):
        model.setOptionValue(name, value)
    for place, one in enumerate(bins):
        model.addVar(one.least, one.most)
        model.changeColIntegrality(place, highspy.HighsVarType.kInteger)
        model.changeColCost(place, one.cost)
    n_columns = len(bins)
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
        columns.append({})
        for demand, most in sorted(bins[members[0]].takes.items()):
            columns[-1][demand] = n_columns
            where[demand].append(n_columns)
            most_here = most * sum(bins[place].most for place in members)
            model.addVar(0, min(demands[demand].number, most_here))
            n_columns += 1

    def row(low: float, high: float, weights: Mapping[int, float]) -> None:
        indices = np.array(sorted(weights), np.int32)
        model.addRow(
            low, high, len(indices), indices, np.array([weights[int(i)] for i in indices], np.float64)
        )

    for asked, mine in zip(demands, where, strict=True):
        if mine:
            row(asked.number, asked.number, dict.fromkeys(mine, 1.0))
    for members, here in zip(rooms, columns, strict=True):
        for resource in sorted({name for demand in here for name in demands[demand].requests}):
            have = max(*(bins[place].room.get(resource, 0) for place in members), 1)
            weights = {
                column: demands[demand].requests[resource] / have
                for demand, column in here.items()
                if demands[demand].requests.get(resource)
            }
            filled = {place: -bins[place].room.get(resource, 0) / have for place in members}
            row(-np.inf, 0, {**weights, **filled})
        for demand, column in here.items():
            at_most = float(bins[members[0]].takes[demand])
            row(-np.inf, 0, {column: 1.0, **dict.fromkeys(members, -at_most)})
    model.run()
    info = model.getInfo()
    if info.primal_solution_status != 2:  # 2 = feasible
        return Bounded(0.0, tuple(one.least for one in bins))
    values = list(model.getSolution().col_value)[: len(bins)]
    fixed = sum(one.cost * one.least for one in bins)
    bound = max(float(info.mip_dual_bound), fixed) if np.isfinite(info.mip_dual_bound) else fixed
    # Below by what the solver's arithmetic may be off.
    return Bounded(max(bound - 1e-6 * max(1.0, abs(bound)), fixed), tuple(round(value) for value in values))
