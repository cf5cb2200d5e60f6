"""The best joint placement: as many pods as possible, higher priorities first, then the highest sum of scores.

Solved by HiGHS, one level of priority after the other, each with what the levels above reached
as a constraint. Pods that are alike are one integer variable a node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from playground.engine.joint import JointPod, JointProblem

MAX_VARIABLES: Final = 20_000
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
    node_of
        ``namespace/name`` -> node.
    proved
        Whether it is the best, and not only the best found in time.
    """

    placed: Mapping[int, int]
    at_most: Mapping[int, int]
    score: int
    node_of: Mapping[str, str]
    proved: bool


def solve(problem: JointProblem, *, time_limit_s: float, progress: Progress) -> Solution:
    """Solve it.

    Raises
    ------
    Unsolvable
    """
    import highspy  # here and not above: most workers never need it
    import numpy as np

    cells = [
        (c, node) for c, pod in enumerate(problem.pods) for node in pod.scores if _fits(pod, problem, node)
    ]
    if len(cells) > MAX_VARIABLES:
        raise Unsolvable(
            f"{len(cells):,} pairs of pod and node are too many for a joint placement; at most {MAX_VARIABLES:,}"
        )
    began = time.monotonic()
    model = highspy.Highs()
    model.silent()
    for c, _ in cells:
        model.addVar(0, len(problem.pods[c].names))
    integer = highspy.HighsVarType.kInteger
    for column in range(len(cells)):
        model.changeColIntegrality(column, integer)
    at = {cell: column for column, cell in enumerate(cells)}

    def add_row(low: float, high: float, columns: Sequence[int], weights: Sequence[float]) -> None:
        model.addRow(
            low, high, len(columns), np.array(columns, dtype=np.int32), np.array(weights, dtype=np.float64)
        )

    for c, pod in enumerate(problem.pods):
        mine = [at[c, node] for node in pod.scores if (c, node) in at]
        if mine:
            add_row(0, len(pod.names), mine, [1.0] * len(mine))
    for node, room in problem.room.items():
        here = [(c, at[c, node]) for c in range(len(problem.pods)) if (c, node) in at]
        for resource in sorted({name for c, _ in here for name in problem.pods[c].requests}):
            using = [(column, problem.pods[c].requests[resource]) for c, column in here
                     if problem.pods[c].requests.get(resource)]  # fmt: skip
            # Scaled to the node: solvers work with numbers near one.
            have = max(room.get(resource, 0), 1)
            add_row(-model.inf, room.get(resource, 0) / have, [column for column, _ in using],
                    [amount / have for _, amount in using])  # fmt: skip
    placed: dict[int, int] = {}
    at_most: dict[int, int] = {}
    proved = True
    levels = sorted({pod.priority for pod in problem.pods}, reverse=True)
    for place, level in enumerate(levels):
        progress(f"placing the pods of priority {level}", place / (len(levels) + 1))
        mine = [column for column, (c, _) in enumerate(cells) if problem.pods[c].priority == level]
        n_pods = sum(len(pod.names) for pod in problem.pods if pod.priority == level)
        if not mine:
            placed[level] = at_most[level] = 0
            continue
        left_s = time_limit_s - (time.monotonic() - began)
        best, bound = _maximize(
            model, mine, [1.0] * len(mine), len(cells), left_s / (len(levels) + 1 - place)
        )
        placed[level], at_most[level] = round(best), min(n_pods, int(bound + 1e-6))
        proved = proved and placed[level] == at_most[level]
        add_row(placed[level] - 0.5, model.inf, mine, [1.0] * len(mine))
    progress("raising the sum of scores", len(levels) / (len(levels) + 1))
    values: list[float] = []
    if cells:
        columns = list(range(len(cells)))
        weights = [float(problem.pods[c].scores[node]) for c, node in cells]
        left_s = time_limit_s - (time.monotonic() - began)
        best, bound = _maximize(model, columns, weights, len(cells), left_s)
        proved = proved and bound - best <= max(1.0, 1e-4 * abs(best))
        values = list(model.getSolution().col_value)
    node_of: dict[str, str] = {}
    score = 0
    taken = [0] * len(problem.pods)
    for (c, node), value in zip(cells, values, strict=True):
        for _ in range(round(value)):
            node_of[problem.pods[c].names[taken[c]]] = node
            taken[c] += 1
            score += problem.pods[c].scores[node]
    return Solution(placed, at_most, score, node_of, proved)


def _fits(pod: JointPod, problem: JointProblem, node: str) -> bool:
    room = problem.room.get(node, {})
    return all(amount <= room.get(resource, 0) for resource, amount in pod.requests.items())


def _maximize(
    model: Any, columns: Sequence[int], weights: Sequence[float], n_columns: int, limit_s: float
) -> tuple[float, float]:
    """Maximize a sum; the best found and the bound on it."""
    import highspy
    import numpy as np

    costs = np.zeros(n_columns)
    costs[list(columns)] = weights
    model.changeColsCost(n_columns, np.arange(n_columns, dtype=np.int32), costs)
    model.changeObjectiveSense(highspy.ObjSense.kMaximize)
    model.setOptionValue("time_limit", float(model.getRunTime() + max(limit_s, 0.5)))
    model.run()
    info = model.getInfo()
    if info.primal_solution_status != 2:  # 2 = feasible
        raise Unsolvable("no placement was found within the time limit")
    return info.objective_function_value, info.mip_dual_bound
