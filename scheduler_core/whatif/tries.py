"""'Try': the cycle a pod would have if it came first now, and what a rule would say of every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler_core.events import ObjectChanged
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.fork import Fork
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import MAX_NODE_SCORE
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.registry import member_of
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.rule import Rule, RuleArgs
from scheduler_core.scheduler import Scheduler

NOT_OURS = "not-ours"
GATED = "gated"


@dataclass(frozen=True, slots=True)
class TriedPod:
    """What would happen.

    Attributes
    ----------
    outcome : str
        That of a cycle; or `gated` (PreEnqueue holds the pod back) or `not-ours` (another scheduler's, or placed
        by its own nodeName), for which there is no cycle.
    sentence : str
        Of the cycle, as something that would happen, or why there is none.
    """

    outcome: str
    sentence: str
    trace: CycleTrace | None

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        cycle = None if self.trace is None else self.trace.explain()
        return {"outcome": self.outcome, "sentence": self.sentence, "cycle": cycle}


def try_pod(original: Scheduler, pod: Pod, *, transport: Transport = no_transport) -> TriedPod:
    """Run the pod's cycle on a copy whose queue holds nothing else; the original stays as it is."""
    if pod.node_name:
        return TriedPod(
            NOT_OURS, f"{pod.key} names {pod.node_name} as its node: no scheduler is asked.", None
        )
    if pod.scheduler_name not in original.profiles:
        return TriedPod(
            NOT_OURS, f"{pod.key} waits for the scheduler {pod.scheduler_name}, which is not here.", None
        )
    scheduler = Fork(original, transport=transport).scheduler
    scheduler.handle(ObjectChanged("Pod", None, pod))
    if not scheduler.can_schedule():
        gates = ", ".join(pod.scheduling_gates)
        return TriedPod(GATED, f"{pod.key} is held back by its scheduling gates: {gates}.", None)
    scheduler.schedule_one()
    trace = scheduler.traces[0]
    trace.dry_run = True
    return TriedPod(trace.outcome, trace.sentence, trace)


# ---- rules

SHOWN = 50


def try_rule(scheduler: Scheduler, args: RuleArgs, pod: Pod, name: str = "Rule/tried") -> dict[str, Any]:
    """What a rule says of each node; the cluster is read as it is, nothing is changed.

    Returns
    -------
    dict
        `nNodes`; `holds`, `rejects` and `fails`: for how many nodes the filter is true, is not, and cannot be said;
        `error`: the first failure, None without one; `nodes`: the first `SHOWN` in evaluation order, each with `node`,
        `verdict` (passes, rejected, error), `why`, `raw` and `score` (None for a node that does not pass).
    """
    rule = member_of(Rule, name)(args, next(iter(scheduler.profiles.values())).handle)
    assert isinstance(rule, Rule)
    snapshot = scheduler.cache.snapshot()
    nodes, order = snapshot.nodes, snapshot.order
    verdicts = rule.filter(None, pod, nodes, order)
    passing = order[verdicts.codes == 0]
    raw: dict[int, int] = {}
    scores: dict[int, int] = {}
    error: str | None = None
    try:
        if args.score.strip() and len(passing):
            given = rule.score(None, pod, nodes, passing)
            normalized = rule.normalize(None, pod, nodes, passing, given)
            raw = dict(zip(passing.tolist(), given.tolist(), strict=True))
            scores = dict(zip(passing.tolist(), normalized.tolist(), strict=True))
    except PluginFailure as failure:
        error = str(failure)
    lines: list[dict[str, Any]] = []
    fails = verdicts.codes == Code.Error
    for place, row in enumerate(order.tolist()):
        code = Code(int(verdicts.codes[place]))
        if len(lines) < SHOWN or (code is Code.Error and error is None):
            detail = 0 if verdicts.details is None else int(verdicts.details[place])
            why = rule.reasons(None, pod, nodes, row, code, detail)[0] if code else ""
            if code is Code.Error and error is None:
                error = f'running "{rule.name}" filter plugin: {why}'
            if len(lines) < SHOWN:
                verdict = "error" if code is Code.Error else "rejected" if code else "passes"
                lines.append({
                    "node": nodes.name(row), "verdict": verdict, "why": why,
                    "raw": raw.get(row), "score": scores.get(row),
                })  # fmt: skip
    return {
        "nNodes": len(order),
        "holds": len(passing),
        "rejects": int(np.count_nonzero(verdicts.codes)) - int(np.count_nonzero(fails)),
        "fails": int(np.count_nonzero(fails)),
        "error": error,
        "best": max(scores.values(), default=None) if args.score.strip() else None,
        "maxScore": MAX_NODE_SCORE,
        "nodes": lines,
    }
