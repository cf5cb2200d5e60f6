"""How many candidate nodes are enough.

Source: pkg/scheduler/framework/preemption/preemption.go DryRunPreemption,
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go GetOffsetAndNumCandidates, v1.34
Differs: upstream's workers try a few nodes more than needed, as chance has it; here the cut is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler_core.cluster.node_table import Rows
from scheduler_core.framework.interface import FilteredCycle
from scheduler_core.framework.preemption.budgets import Budgets
from scheduler_core.framework.preemption.potential import Int64, PodsOfPlaces, starts_of
from scheduler_core.framework.preemption.reprieve import CANDIDATE, DryRun, try_nodes


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


def dry_run(
    cycle: FilteredCycle, rows: Rows, sampling: Sampling, budgets: Budgets, n_promised: int = 0
) -> tuple[DryRun, Int64]:
    """Try nodes until enough candidates are found.

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
        Rows where preemption might help, in evaluation order.
    n_promised : int
        How many pods are nominated anywhere: a node promised to another is rarely a candidate, so more are tried at
        once. What is found does not depend on it.

    Returns
    -------
    run : DryRun
        The nodes tried.
    candidates : ndarray, int64
        Places of the candidates in it, those that violate no budget first.
    """
    rows = np.roll(rows, -sampling.offset)
    runs: list[DryRun] = []
    n_tried = 0
    n_free = max(len(rows) - n_promised, 1)
    n_expected = sampling.n_wanted * len(rows) // n_free + sampling.n_wanted // 10
    while n_tried < len(rows):
        # As many at a time as it will take, then twice as many: few are tried in vain.
        block = rows[n_tried : n_tried + max(n_expected, n_tried)]
        runs.append(try_nodes(cycle, block, budgets))
        n_tried += len(block)
        run = _joined(runs)
        runs = [run]
        enough = _enough(run, sampling.n_wanted)
        if enough is not None:
            _forget_after(run, enough)
            break
    run = runs[0]
    places = np.flatnonzero(run.is_candidate)
    harmless = run.n_violations()[places] == 0
    n_wanted = sampling.n_wanted
    return run, np.concatenate([places[harmless][:n_wanted], places[~harmless][:n_wanted]])


def _enough(run: DryRun, n_wanted: int) -> int | None:
    """The place at which there are enough candidates, None when there are not."""
    harmless = run.n_violations() == 0
    n_harmless = np.minimum(np.cumsum(run.is_candidate & harmless), n_wanted)
    n_harmful = np.minimum(np.cumsum(run.is_candidate & ~harmless), n_wanted)
    enough = (n_harmless > 0) & (n_harmless + n_harmful >= n_wanted)
    return int(enough.argmax()) if enough.any() else None


def _forget_after(run: DryRun, last: int) -> None:
    """Leave the nodes after the `last`-th out, as if they had not been tried."""
    if last + 1 == len(run.rows):
        return
    end = int(run.potential.starts[last + 1])
    run.rows = run.rows[: last + 1]
    run.verdict = run.verdict[: last + 1]
    run.potential = PodsOfPlaces(run.potential.starts[: last + 2], run.potential.pod_ids[:end])
    run.violates, run.steps, run.kept = run.violates[:end], run.steps[:end], run.kept[:end]


def _joined(runs: Sequence[DryRun]) -> DryRun:
    """One run of the nodes of several, in their order."""
    if len(runs) == 1:
        return runs[0]
    statuses = [status for run in runs for status in run.statuses]
    first_status = np.cumsum([0, *(len(run.statuses) for run in runs)])
    first_pod = np.cumsum([0, *(len(run.potential.pod_ids) for run in runs)])
    return DryRun(
        rows=np.concatenate([run.rows for run in runs]),
        verdict=np.concatenate(
            [
                np.where(run.is_candidate, CANDIDATE, run.verdict + int(first))
                for run, first in zip(runs, first_status, strict=False)
            ]
        ),
        statuses=statuses,
        potential=PodsOfPlaces(
            starts_of(np.concatenate([run.potential.counts for run in runs])),
            np.concatenate([run.potential.pod_ids for run in runs]),
        ),
        violates=np.concatenate([run.violates for run in runs]),
        steps=np.concatenate([run.steps + int(first) for run, first in zip(runs, first_pod, strict=False)]),
        kept=np.concatenate([run.kept for run in runs]),
    )
