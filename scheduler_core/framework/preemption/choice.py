"""Which candidate: criterion after criterion, the best go on.

Source: pkg/scheduler/framework/preemption/preemption.go pickOneNodeForPreemption,
pkg/scheduler/util/utils.go GetEarliestPodStartTime, v1.34
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.pod_table import NO_START_NS, PodTable
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces

CRITERIA = (
    "fewestBudgetViolations",
    "lowestHighestPriority",
    "lowestPrioritySum",
    "fewestVictims",
    "latestEarliestStart",
)
"""What candidates are compared by, in this order; the sixth step takes any of those left."""
LARGEST_WINS = (False, False, False, False, True)

PRIORITY_OFFSET = 2**31
"""Added to every priority of a sum, so that few victims of negative priority beat many of them."""
UNDECIDED = -1


@dataclass(slots=True)
class CandidateChoice:
    """How the candidates were told apart.

    Attributes
    ----------
    values : ndarray of shape (5, n), int64
        Each candidate's value for each of `CRITERIA`; start times in nanoseconds since the epoch.
    eliminated_at : ndarray of shape (n,), int64
        Index of the criterion that eliminated each candidate, `UNDECIDED` for those that are left.
    n_asked : int
        Criteria that were asked: none any more once one candidate is left.
    left : ndarray, int64
        Candidates nothing tells apart, ascending.
    """

    values: Int64
    eliminated_at: Int64
    n_asked: int
    left: Int64


def criteria(n_violations: NDArray[np.integer], victims: PodsOfPlaces, pods: PodTable) -> Int64:
    """What n candidates are compared by.

    Parameters
    ----------
    n_violations : ndarray of shape (n,)
        Victims of each candidate that violate a budget.
    victims : PodsOfPlaces
        Each candidate's victims, one at least, the most important first.

    Returns
    -------
    ndarray of shape (5, n), int64
        In the order of `CRITERIA`; start times in nanoseconds since the epoch, `NO_START_NS` for "has not started".
    """
    return _criteria(
        n_violations, victims.starts, pods.priority[victims.pod_ids], pods.start_ns[victims.pod_ids]
    )


def _criteria(n_violations: NDArray[np.integer], starts: Int64, priorities: Int64, start_ns: Int64) -> Int64:
    """The same of the victims' columns.

    Examples
    --------
    Three nodes: the first loses two pods of priority 5, the others one each that started at 20 and 30.

    >>> numbers = lambda *values: np.array(values, np.int64)
    >>> values = _criteria(numbers(0, 0, 0), numbers(0, 2, 3, 4), numbers(5, 5, 5, 5), numbers(10, 40, 20, 30))
    >>> [CRITERIA[index] if index >= 0 else None for index in choose(values).eliminated_at.tolist()]
    ['lowestPrioritySum', 'latestEarliestStart', None]
    """
    firsts = starts[:-1]
    counts = starts[1:] - starts[:-1]
    highest = np.maximum.reduceat(priorities, firsts)
    among_highest = priorities == np.repeat(highest, counts)
    return np.stack(
        [
            n_violations,
            # Upstream takes the first victim for the most important one, whatever an extender made of the list.
            priorities[firsts],
            np.add.reduceat(priorities, firsts) + counts * PRIORITY_OFFSET,
            counts,
            np.minimum.reduceat(np.where(among_highest, start_ns, NO_START_NS), firsts),
        ]
    )


def choose(values: Int64) -> CandidateChoice:
    """Compare n candidates by their `criteria`, an ndarray of shape (5, n)."""
    eliminated_at = np.full(values.shape[1], UNDECIDED, np.int64)
    n_asked = 0
    left: NDArray[np.int64] = np.arange(values.shape[1])
    for index, largest_wins in enumerate(LARGEST_WINS):
        if len(left) == 1:
            break
        n_asked += 1
        asked = values[index, left]
        passes = asked == (asked.max() if largest_wins else asked.min())
        if np.count_nonzero(passes) == len(left):
            continue
        eliminated_at[left[~passes]] = index
        left = left[passes]
    return CandidateChoice(values, eliminated_at, n_asked, left)
