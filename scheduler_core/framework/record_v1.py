"""Reads records of format 1: a header of undeclared keys, in which an error's text alone said where it happened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduler_core.framework.points import PIPELINE
from scheduler_core.framework.record import Arrays, Body, CycleTrace, Tie

_RUNNING = re.compile(r'^running (?:(\w+) plugin|"[^"]*" filter plugin)')
_EXTENDER_POINTS = {"filter": "Filter", "preempt": "PostFilter", "prioritize": "Score", "bind": "Bind"}


def record_of(header: Mapping[str, Any], arrays: Arrays) -> CycleTrace:
    """The record a header of format 1 and its arrays stand for."""
    tie = header.get("tie")
    return CycleTrace(
        number=int(header["cycle"]),
        at_ns=int(header["atNs"]),
        pod=header["pod"],
        uid=header["uid"],
        profile=header["profile"],
        attempt=int(header["attempt"]),
        priority=int(header.get("priority", 0)),
        outcome=header["outcome"],
        node=header["node"],
        message=header["message"],
        n_nodes=int(header["nNodes"]),
        n_evaluated=int(header["nodesEvaluated"]),
        n_feasible=int(header["nFeasible"]),
        best_total=header.get("bestTotal"),
        tie=None
        if not tie
        else Tie(tie["count"], tie.get("chosen") or header["node"], tie.get("stream", "")),
        error=header.get("error"),
        fit_error=header.get("fitError"),
        failed_point=_failed_point(header),
        failed_plugin=header.get("failedPlugin"),
        victims=list(header.get("victims") or ()),
        nominated_node=header.get("nominatedNode"),
        preemption=header.get("preemption"),
        extenders=list(header.get("extenders") or ()),
        permit=list(header.get("permit") or ()),
        engine=header.get("engine", ""),
        dry_run=bool(header.get("dryRun")),
        body=_body(header, arrays) if "verdict" in arrays else None,
    )


def _body(header: Mapping[str, Any], arrays: Arrays) -> Body:
    body = Body(
        nodes=header["nodes"],
        pre_filter=header["preFilter"],
        filter_plugins=header["filterPlugins"],
        score_plugins=header["scorePlugins"],
        skipped_filter=header["skippedFilter"],
        skipped_score=header["skippedScore"],
        weights=header["weights"],
        verdicts=header["verdicts"],
        scored_plugins=header.get("scoredPlugins", []),
        matrix_plugins=header.get("matrixPlugins", []),
        matrix_notes=header.get("matrixNotes", {}),
        amounts=header.get("amounts", []),
        arrays=dict(arrays),
    )
    body.choose(header["best"])
    return body


def _failed_point(header: Mapping[str, Any]) -> str | None:
    """The point that ended the cycle; None when the pod got through, or still waits."""
    outcome = header["outcome"]
    if outcome in ("bound", "waiting"):
        return None
    if header.get("rejectedAt"):
        return str(header["rejectedAt"])
    if outcome != "error":
        return (
            "Filter" if (header.get("preFilter") or {}).get("code", "Success") == "Success" else "PreFilter"
        )
    if not header["nNodes"]:
        return "PreFilter"
    running = _RUNNING.match(str(header.get("error") or ""))
    if running is not None:
        name = running[1] or "Filter"
        # Scores are normalised within the same call; everything unknown happened before a node was chosen.
        return name if name in PIPELINE else "Score"
    if header.get("failedPlugin"):
        return "NormalizeScore"
    for call in header.get("extenders") or ():
        if call.get("error") and not call.get("ignored"):
            return _EXTENDER_POINTS.get(str(call.get("verb")), "Filter")
    return "Filter"
