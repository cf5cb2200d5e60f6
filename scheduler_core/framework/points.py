"""How far a cycle came: the state of every extension point, told from a trace's header.

Nothing of it is stored: a trace says what happened, and this says it point by point, so traces made before it
was written have it too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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

_RUNNING = re.compile(r'^running (?:(\w+) plugin|"[^"]*" filter plugin)')
_SCORING = ("PreScore", "Score", "NormalizeScore")


def points(header: Mapping[str, Any]) -> list[Point]:
    """Tell what became of each extension point.

    Parameters
    ----------
    header : mapping
        Of a `CycleTrace`; a summary is enough, the body adds details.

    Returns
    -------
    list of dict
        ``{point, state, detail}`` in the order of `PIPELINE`. States: ``done``; ``skipped`` (there was no need);
        ``failed`` (it rejected the pod, or broke); ``acted`` (PostFilter made room); ``waiting``; ``not reached``.

    Examples
    --------
    >>> header = {"outcome": "unschedulable", "nNodes": 3, "nodesEvaluated": 3, "nFeasible": 0, "node": None}
    >>> [(p["point"], p["detail"]) for p in points(header) if p["state"] == "failed"]
    [('Filter', '3 → 0 nodes')]
    """
    failed = _failed_point(header)
    told = {name: (DONE, detail) for name, detail in _details(header).items()}
    if failed is not None:
        name, why = failed
        told[name] = (FAILED, why)
        for later in PIPELINE[PIPELINE.index(name) + 1 :]:
            told[later] = (NOT_REACHED, "")
    if failed is not None and failed[0] in ("PreFilter", "Filter") and header["outcome"] != "error":
        told["PostFilter"] = _post_filter(header)
    if header["outcome"] == "waiting":
        told["Permit"] = (WAITS, _permit(header))
        for later in ("PreBind", "Bind", "PostBind"):
            told[later] = (NOT_REACHED, "")
    if header.get("dryRun") and header["outcome"] == "bound":
        told |= dict.fromkeys(("PreBind", "Bind", "PostBind"), (NOT_REACHED, "only tried"))
    if header["nFeasible"]:
        if told["PostFilter"][0] == DONE:
            told["PostFilter"] = (SKIPPED, "not needed")
        if header["nFeasible"] == 1:
            for name in _SCORING:
                if told[name][0] == DONE:
                    told[name] = (SKIPPED, "one feasible node")
    return [{"point": name, "state": told[name][0], "detail": told[name][1]} for name in PIPELINE]


def _failed_point(header: Mapping[str, Any]) -> tuple[str, str] | None:
    """The point that ended the cycle and a few words; None when the pod got through, or still waits."""
    outcome = header["outcome"]
    if outcome in ("bound", "waiting"):
        return None
    plugin = str(header.get("failedPlugin") or "")
    if header.get("rejectedAt"):
        return str(header["rejectedAt"]), plugin
    if outcome == "error":
        return _broken_point(header, plugin)
    pre_filter = header.get("preFilter") or {}
    if pre_filter.get("code", "Success") != "Success":
        return "PreFilter", str(pre_filter.get("plugin") or "rejected the pod")
    return "Filter", _filtered(header)


def _broken_point(header: Mapping[str, Any], plugin: str) -> tuple[str, str]:
    """Where an error happened: PluginFailure and extenders say so in their words."""
    if not header["nNodes"]:
        return "PreFilter", "no node in the cluster"
    running = _RUNNING.match(str(header.get("error") or ""))
    if running is not None:
        name = running[1] or "Filter"
        # Scores are normalised within the same call; everything unknown happened before a node was chosen.
        return (name if name in PIPELINE else "Score"), plugin
    if plugin:
        return "NormalizeScore", plugin
    for call in header.get("extenders") or ():
        if call.get("error") and not call.get("ignored"):
            return _EXTENDER_POINTS.get(str(call.get("verb")), "Filter"), "extender"
    return "Filter", "error"


_EXTENDER_POINTS = {"filter": "Filter", "preempt": "PostFilter", "prioritize": "Score", "bind": "Bind"}


def _post_filter(header: Mapping[str, Any]) -> tuple[str, str]:
    if header["outcome"] == "preempting":
        return ACTED, f"→ {header.get('nominatedNode')}"
    if header.get("preemption") is None:
        return SKIPPED, "no plugin"
    return FAILED, "no help"


def _details(header: Mapping[str, Any]) -> dict[str, str]:
    """A few words for every point of a pod that gets through."""
    details = dict.fromkeys(PIPELINE, "")
    n_skip = len(header.get("skippedFilter") or ())
    narrowed = (header.get("preFilter") or {}).get("nodeNames")
    parts = [f"{n_skip} skip"] if n_skip else []
    if narrowed is not None:
        parts.append(f"only {len(narrowed)} {'node' if len(narrowed) == 1 else 'nodes'}")
    details["PreFilter"] = ", ".join(parts)
    details["Filter"] = _filtered(header)
    n = header["nFeasible"]
    details |= dict.fromkeys(_SCORING, f"{n} nodes")
    n_out = len(header.get("skippedScore") or ())
    if n_out:
        details["PreScore"] = f"{n_out} skip"
    if header.get("bestTotal") is not None:
        details["NormalizeScore"] = f"best {header['bestTotal']}"
    details["Reserve"] = f"on {header['node']}" if header.get("node") else ""
    details["Permit"] = _permit(header) or "no wait"
    return details


def _filtered(header: Mapping[str, Any]) -> str:
    n = header["nodesEvaluated"]
    return f"{n} → {header['nFeasible']} {'node' if n == 1 else 'nodes'}"


def _permit(header: Mapping[str, Any]) -> str:
    """The last word of Permit's history."""
    history = header.get("permit") or ()
    if not history:
        return ""
    last = history[-1]
    if last.get("decision") == "wait":
        return f"{last['plugin']}, up to {last['timeoutS']:g} s"
    return f"{last['decision']} after {last.get('afterS', 0):g} s"
