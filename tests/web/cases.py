"""Recorded decisions of the real scheduler (copies of conformance cases), as explanation dictionaries."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from playground.engine.configuration import loaded

DATA = Path(__file__).parent / "data"

POINTS = (
    "PreEnqueue", "QueueSort", "PreFilter", "Filter", "PostFilter", "PreScore", "Score", "NormalizeScore",
    "Reserve", "Permit", "PreBind", "Bind", "PostBind",
)  # fmt: skip


@cache
def _cases() -> dict[str, Any]:
    return json.loads((DATA / "cases.json").read_text())


def _in_order(point: str, expect: dict[str, Any], seen: Iterable[str]) -> list[str]:
    """The plugins of a point that a case names, in the order of the default profile."""
    named = {*seen, *(expect.get(f"skipped{point.capitalize()}") or ())}
    usual = loaded(None).plans[0].plugins[point]
    return [*(name for name in usual if name in named), *sorted(named.difference(usual))]


def _candidate(recorded: dict[str, Any]) -> dict[str, Any]:
    return {
        "steps": [],
        "room": {},
        "criterionValues": {},
        "eliminatedAt": None,
        "cutByExtender": False,
    } | recorded


def explanation(label: str, **overrides: Any) -> dict[str, Any]:
    """A case as the engine explains it: ``expect`` plus who, when and how it went through the points."""
    case = _cases()[label]
    expect = dict(case["expect"])
    feasible = expect.get("feasible") or []
    verdicts = (expect.get("filter") or {}).values()
    nominated = (expect.get("preemption") or {}).get("nominatedNode")
    node = (expect.get("best") or [None])[0]
    outcome = (
        "error"
        if expect.get("error")
        else "bound"
        if feasible
        else "preempting"
        if nominated
        else "unschedulable"
    )
    words = {
        "bound": f"{case['pod']} bound to {node}: one of {len(feasible)} feasible nodes.",
        "preempting": f"{case['pod']} fits on no node; evicting pods frees {nominated}.",
        "unschedulable": f"{case['pod']} fits on none of {len(expect.get('filter') or {})} nodes.",
        "error": f"{case['pod']}: {expect.get('error')}",
    }
    reached = POINTS if outcome == "bound" else POINTS[:5]
    states = [{"point": p, "state": "done" if p in reached else "not reached", "detail": ""} for p in POINTS]
    if outcome != "bound":
        states[3]["state"] = "failed"
        states[4]["state"] = "acted" if outcome == "preempting" else "failed"
    else:
        states[4]["state"] = "skipped"
    preemption = expect.get("preemption")
    return {
        "skippedFilter": [],
        "skippedScore": [],
        "weights": {},
        **expect,
        "filterPlugins": _in_order(
            "filter", expect, (v["plugin"] for v in verdicts if v and v.get("plugin"))
        ),
        "scorePlugins": _in_order("score", expect, expect.get("scores") or ()),
        "preemption": preemption
        and {**preemption, "candidates": list(map(_candidate, preemption["candidates"]))},
        "cycle": 1,
        "pod": case["pod"],
        "uid": case["pod"],
        "profile": "default-scheduler",
        "attempt": 1,
        "at": "2026-01-02T00:00:00Z",
        "outcome": outcome,
        "sentence": words[outcome],
        "headline": words[outcome].removesuffix("."),
        "node": node if outcome == "bound" else None,
        "nodes": sorted(expect.get("filter") or {}),
        "nFeasible": len(feasible),
        "nodesEvaluated": len(expect.get("filter") or {}),
        "message": expect.get("fitError"),
        "points": states,
        "extenders": [],
        "permit": [],
        "tie": {"nodes": expect["best"], "chosen": node, "stream": "select-host"}
        if expect.get("best") and len(expect["best"]) > 1
        else None,
        "emulates": "v1.34.1",
        "engine": "1.0.0",
        "digest": "0" * 16,
        **overrides,
    }


def by_attribute(does: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose dictionaries are read by attribute, as templates read them."""

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return SimpleNamespace(**{name: told(item) for name, item in value.items()})
        return type(value)(map(told, value)) if type(value) in (list, tuple) else value

    return lambda *args, **named: told(does(*args, **named))
