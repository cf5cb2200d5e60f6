"""How many candidate nodes are enough.

Source: pkg/scheduler/framework/preemption/preemption.go DryRunPreemption,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go GetOffsetAndNumCandidates, v1.34
Differs: upstream's workers try a few nodes more than needed, as chance has it; here the cut is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler_core.cluster.node_table import Rows
from scheduler_core.framework.preemption.kept_tries import DryRun, KeptTries
from scheduler_core.framework.preemption.potential import Int64
from scheduler_core.framework.preemption.reprieve import CANDIDATE


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which of the nodes where preemption might help are tried.

    Attributes
    ----------
    offset : int
        Place in the evaluation order (among those nodes) to begin at.
    n_wanted : int
        So many candidates are enough, once one of them violates no budget.
    """

    offset: int
    n_wanted: int


def candidates_wanted(n_nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates to look for among `n_nodes` where preemption might help."""
    return min(max(n_nodes * percentage // 100, absolute), n_nodes)


def dry_run(kept: KeptTries, rows: Rows, sampling: Sampling, n_nominated: int = 0) -> tuple[DryRun, Int64]:
    """Try nodes until enough candidates are found.

    Parameters
    ----------
    kept : KeptTries
        Tries them.
    rows : ndarray of shape (n,), int64
        Rows where preemption might help, in evaluation order.
    n_nominated : int
        How many pods are nominated anywhere: a node with a nominated pod is rarely a candidate, so more are tried at
        once. What is found does not depend on it.

    Returns
    -------
    run : DryRun
        The nodes tried.
    candidates : ndarray, int64
        Places of the candidates in it, those that violate no budget first.
    """
    rows = np.concatenate((rows[sampling.offset :], rows[: sampling.offset]))
    n_wanted = sampling.n_wanted
    n_tried = 0
    n_free = max(len(rows) - n_nominated, 1)
    n_expected = len(rows) if kept.is_in_vain else n_wanted * len(rows) // n_free + n_wanted // 10
    harmless = harmful = rows[:0]
    while n_tried < len(rows):
        # As many at a time as it will take, then twice as many: few are tried in vain.
        n_tried = min(n_tried + max(n_expected, n_tried, 1), len(rows))
        verdict, n_violations = kept.verdicts(rows[:n_tried])
        is_candidate = verdict == CANDIDATE
        harmless = (is_candidate & (n_violations == 0)).nonzero()[0]
        harmful = (is_candidate & (n_violations > 0)).nonzero()[0]
        last = _enough(harmless, harmful, n_wanted)
        if last is not None:
            # The nodes after that are left out, as if they had not been tried.
            n_tried = last + 1
            harmless, harmful = harmless[harmless <= last], harmful[harmful <= last]
            break
    run = kept.dry_run(rows[:n_tried])
    return run, np.concatenate([harmless[:n_wanted], harmful[:n_wanted]])


def _enough(harmless: Int64, harmful: Int64, n_wanted: int) -> int | None:
    """The place at which there are enough candidates, one of them harmless; None when there are not.

    Parameters
    ----------
    harmless, harmful : ndarray, int64
        Places of the candidates that violate no budget, and of those that do, ascending.
    """
    # No kind counts for more than are wanted.
    counted = np.sort(np.concatenate([harmless[:n_wanted], harmful[:n_wanted]]))
    if not n_wanted or not len(harmless) or len(counted) < n_wanted:
        return None
    return max(int(counted[n_wanted - 1]), int(harmless[0]))
