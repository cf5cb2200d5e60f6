"""How far a cycle came: the state of every extension point, told from its record.

Nothing of it is stored: a record says what happened, and this says it point by point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler_core.framework.record import CycleTrace

PIPELINE = (
    "PreEnqueue",
    "QueueSort",
    "PreFilter",
    "Filter",
    "PostFilter",
    "PreScore",
    "Score",
    "NormalizeScore",
    "Reserve",
    "Permit",
    "PreBind",
    "Bind",
    "PostBind",
)
"""In the order a pod goes through them."""

DONE, SKIPPED, FAILED, ACTED = "done", "skipped", "failed", "acted"
WAITS, NOT_REACHED = "waiting", "not reached"

Point = dict[str, str]
"""``{point, state, detail}``."""

_SCORING = ("PreScore", "Score", "NormalizeScore")
_FILTERING = ("PreFilter", "Filter")


def points(record: CycleTrace) -> list[Point]:
    """Tell what became of each extension point.

    Parameters
    ----------
    record : CycleTrace
        A summary is enough, the body adds details.

    Returns
    -------
    list of dict
        ``{point, state, detail}`` in the order of `PIPELINE`. States: ``done``; ``skipped`` (there was no need);
        ``failed`` (it rejected the pod, or broke); ``acted`` (PostFilter made room); ``waiting``; ``not reached``.

    Examples
    --------
    >>> from scheduler_core.framework.record import CycleTrace
    >>> record = CycleTrace(
    ...     number=1, at_ns=0, pod="a/p", uid="u", profile="s", attempt=1, outcome="unschedulable",
    ...     failed_point="Filter", n_nodes=3, n_evaluated=3, n_feasible=0,
    ... )
    >>> [(p["point"], p["detail"]) for p in points(record) if p["state"] == "failed"]
    [('Filter', '3 → 0 nodes')]
    """
    failed = record.failed_point
    told = {name: (DONE, detail) for name, detail in _details(record).items()}
    if failed is not None:
        told[failed] = (FAILED, _why(record, failed))
        for later in PIPELINE[PIPELINE.index(failed) + 1 :]:
            told[later] = (NOT_REACHED, "")
    if failed in _FILTERING and record.outcome != "error":
        told["PostFilter"] = _post_filter(record)
    if record.outcome == "waiting":
        told["Permit"] = (WAITS, _permit(record))
        for later in ("PreBind", "Bind", "PostBind"):
            told[later] = (NOT_REACHED, "")
    if record.outcome == "binding":
        told["Bind"] = (WAITS, "for the Binding")
    if record.outcome == "expired":
        told["Bind"] = (FAILED, "no Binding came")
    if record.dry_run and record.outcome == "bound":
        told |= dict.fromkeys(("PreBind", "Bind", "PostBind"), (NOT_REACHED, "only tried"))
    if record.n_feasible:
        if told["PostFilter"][0] == DONE:
            told["PostFilter"] = (SKIPPED, "not needed")
        if record.n_feasible == 1:
            for name in _SCORING:
                if told[name][0] == DONE:
                    told[name] = (SKIPPED, "one feasible node")
    return [{"point": name, "state": told[name][0], "detail": told[name][1]} for name in PIPELINE]


def _why(record: CycleTrace, failed: str) -> str:
    """A few words for the point that ended the cycle."""
    if record.outcome != "error" and failed in _FILTERING:
        if failed == "Filter":
            return _filtered(record)
        return record.failed_plugin or str(_pre_filter(record).get("plugin") or "rejected the pod")
    if record.outcome == "error" and not record.n_nodes:
        return "no node in the cluster"
    if record.failed_plugin:
        return record.failed_plugin
    if any(call.get("error") and not call.get("ignored") for call in record.extenders):
        return "extender"
    return "error" if record.outcome == "error" else ""


def _pre_filter(record: CycleTrace) -> Mapping[str, Any]:
    return {} if record.body is None else record.body.pre_filter


def _post_filter(record: CycleTrace) -> tuple[str, str]:
    if record.outcome == "preempting":
        return ACTED, f"→ {record.nominated_node}"
    if record.preemption is None:
        return SKIPPED, "no plugin"
    return FAILED, "no help"


def _details(record: CycleTrace) -> dict[str, str]:
    """A few words for every point of a pod that gets through."""
    details = dict.fromkeys(PIPELINE, "")
    body = record.body
    n_skip = 0 if body is None else len(body.skipped_filter)
    narrowed = _pre_filter(record).get("nodeNames")
    parts = [f"{n_skip} skip"] if n_skip else []
    if narrowed is not None:
        parts.append(f"only {len(narrowed)} {'node' if len(narrowed) == 1 else 'nodes'}")
    details["PreFilter"] = ", ".join(parts)
    details["Filter"] = _filtered(record)
    details |= dict.fromkeys(_SCORING, f"{record.n_feasible} nodes")
    n_out = 0 if body is None else len(body.skipped_score)
    if n_out:
        details["PreScore"] = f"{n_out} skip"
    if record.best_total is not None:
        details["NormalizeScore"] = f"best {record.best_total}"
    details["Reserve"] = f"on {record.node}" if record.node else ""
    details["Permit"] = _permit(record) or "no wait"
    return details


def _filtered(record: CycleTrace) -> str:
    n = record.n_evaluated
    return f"{n} → {record.n_feasible} {'node' if n == 1 else 'nodes'}"


def _permit(record: CycleTrace) -> str:
    """The last word of Permit's history."""
    if not record.permit:
        return ""
    last = record.permit[-1]
    if last.get("decision") == "wait":
        return f"{last['plugin']}, up to {last['timeoutS']:g} s"
    return f"{last['decision']} after {last.get('afterS', 0):g} s"
