"""Preemption from the nodes where it might help to the victims of one of them.

Source: pkg/scheduler/framework/preemption/preemption.go Preempt, v1.34
"""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.interface import FilteredCycle, Handle, PostFilterResult
from scheduler_core.framework.preemption import reprieve
from scheduler_core.framework.preemption.candidates import Candidates
from scheduler_core.framework.preemption.trace import PreemptionTrace
from scheduler_core.framework.status import Code, Status

OFFSET_STREAM = "preemptionOffset"
TIE_STREAM = "preemptionTie"

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE_LEFT = "no candidate node for preemption"


def preempt(
    cycle: FilteredCycle, handle: Handle, kept: reprieve.KeptTries, *, percentage: int, absolute: int
) -> PostFilterResult:
    """Find the node on which the fewest and least important pods have to go.

    Parameters
    ----------
    cycle : FilteredCycle
        Its pod may preempt others.
    kept : KeptTries
        What is known from earlier cycles.
    percentage, absolute : int
        How many candidates are enough: a share of the nodes where preemption might help, and at least so many.

    Returns
    -------
    PostFilterResult
        Success with a node, its victims and the nominations to take back; Unschedulable that clears the pod's own
        nomination when no node is a candidate; Unschedulable or Error that leaves it alone otherwise.
    """
    snapshot = cycle.snapshot
    kept.refresh(cycle)
    rows = cycle.rejected_rows(Code.Unschedulable)
    trace = PreemptionTrace(cycle.pod, snapshot, potential=rows)
    if not len(rows):
        return _without_candidates(trace)
    sampling = reprieve.Sampling(0, len(rows))
    if not handle.choices.all_preemption_candidates:
        offset = handle.randomness.stream(OFFSET_STREAM).below(len(rows))
        sampling = reprieve.Sampling(offset, reprieve.candidates_wanted(len(rows), percentage, absolute))
    trace.sampling = sampling
    trace.run, places = reprieve.dry_run(kept, rows, sampling, len(handle.nominator))
    if not len(places):
        return _without_candidates(trace)
    trace.places = places
    candidates = trace.found = trace.candidates = trace.run.candidates(places, snapshot.nodes)
    calls: tuple[object, ...] = ()
    if handle.extenders is not None:
        answered = handle.extenders(cycle.pod, candidates.as_victims(), snapshot)
        calls = tuple(answered.calls)
        if answered.error is not None:
            status = Status(Code.Error, (answered.error,))
            return PostFilterResult(status, trace=trace, extender_calls=calls)
        candidates = trace.candidates = Candidates.of_victims(answered.candidates, snapshot.nodes)
        if not len(candidates):
            status = Status(Code.Unschedulable, (NO_CANDIDATE_LEFT,))
            return PostFilterResult(status, trace=trace, extender_calls=calls)
    return _chosen(trace, candidates, handle, calls)


def _chosen(
    trace: PreemptionTrace, candidates: Candidates, handle: Handle, calls: tuple[object, ...]
) -> PostFilterResult:
    choice = trace.choice = candidates.compare()
    left: list[int] = choice.left.tolist()
    chosen = left[0]
    if len(left) > 1:
        if handle.choices.first_of_ties:
            chosen = min(left, key=candidates.names.__getitem__)
        else:
            trace.tie_stream = TIE_STREAM
            chosen = left[handle.randomness.stream(TIE_STREAM).below(len(left))]
    trace.chosen = chosen
    name = candidates.name_of(chosen)
    victims = candidates.victims_of(chosen)
    # A pod nominated to the node may not fit beside a more important pod any more. Where all victims are leaving
    # already, nothing is left to be done beside the cycle: prepareCandidateAsync returns before it clears.
    if not handle.preemptions.is_asynchronous or any(not victim.is_terminating for victim in victims):
        trace.cleared = tuple(
            [pod for pod in handle.nominator.pods_for(name) if pod.priority < trace.pod.priority]
        )
    told = f"found a potential placement for pod on node {name}, preempting {len(victims)} victims"
    status = Status(reasons=(told,) if handle.release.has("PreemptionTold") else ())
    return PostFilterResult(status, name, victims, trace.cleared, trace, extender_calls=calls)


def _without_candidates(trace: PreemptionTrace) -> PostFilterResult:
    run = trace.run
    if run is not None:
        errors = [_error(status) for status in _statuses(run) if status.code is Code.Error]
        if errors:
            return PostFilterResult(Status(Code.Error, (_aggregate(errors),)), trace=trace)
    status = Status(Code.Unschedulable, (_message(trace),))
    return PostFilterResult(status, nominated_node_name="", trace=trace)


def _message(trace: PreemptionTrace) -> str:
    """Why preemption helps nowhere, counted over all nodes. Source: framework/types.go FitError, v1.34."""
    n_nodes = len(trace.snapshot.order)
    counts: dict[str, int] = {}
    n_tried = 0
    if trace.run is not None:
        n_tried = len(trace.run.rows)
        amounts = np.bincount(trace.run.verdict, minlength=len(trace.run.statuses)).tolist()
        for status, amount in zip(trace.run.statuses, amounts, strict=True):
            for reason in status.reasons if amount else ():
                counts[reason] = counts.get(reason, 0) + amount
    if n_tried < n_nodes:
        counts[NOT_HELPFUL] = counts.get(NOT_HELPFUL, 0) + n_nodes - n_tried
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
    words = f" {', '.join(reasons)}." if reasons else ""
    return f"0/{n_nodes} nodes are available:{words}"


def _error(status: Status) -> str:
    """Source: framework/runtime/framework.go RunFilterPlugins, v1.34."""
    return f'running "{status.plugin}" filter plugin: {status.message}' if status.plugin else status.message


def _statuses(run: reprieve.DryRun) -> list[Status]:
    """The distinct verdicts that occur."""
    used = set(run.verdict.tolist())
    return [status for index, status in enumerate(run.statuses) if index in used]


def _aggregate(messages: list[str]) -> str:
    """Several errors as one. Source: k8s.io/apimachinery/pkg/util/errors Aggregate, v1.34."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
