"""'Try a rule': what a rule would say of every node now, for one pod, without being part of any configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.interface import MAX_NODE_SCORE
from scheduler_core.framework.registry import member_of
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import Pod
from scheduler_core.plugins.rule import Rule, RuleArgs
from scheduler_core.scheduler import Scheduler

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
