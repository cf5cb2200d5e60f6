"""The strip of extension points at the top of a cycle page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# state of the explanation -> (class of the cell, icon)
_DRAWN = {
    "done": ("st-ok", "ok"),
    "skipped": ("st-skip", "dash"),
    "failed": ("st-bad", "no"),
    "acted": ("st-pre", "pre"),
    "waiting": ("st-wait", "wait"),
    "error": ("st-err", "err"),
    "not reached": ("st-none", "dot"),
}


@dataclass(frozen=True)
class Point:
    """One extension point of the strip."""

    name: str
    state: str
    css: str
    icon: str
    detail: str


def view_pipeline(
    points: Sequence[Mapping[str, Any]] | None, *, outcome: str | None = None
) -> tuple[Point, ...]:
    """Turn the explanation's ``points`` into cells, in the order given.

    A point that failed in a cycle whose outcome is ``error`` blames no plugin, so it is drawn amber
    instead of red.
    """
    cells = []
    for point in points or ():
        state = str(point.get("state") or "not reached")
        drawn = "error" if state == "failed" and outcome == "error" else state
        css, icon = _DRAWN.get(drawn, ("st-none", "dot"))
        cells.append(Point(str(point.get("point", "")), state, css, icon, _as_text(point.get("detail"))))
    return tuple(cells)


def derived_points(explanation: Mapping[str, Any]) -> list[dict[str, str]]:
    """Tell the points from the rest of an explanation that lists none.

    Only what follows with certainty: a bound pod went through every point; what an error cut off is not known,
    so an explanation of an error stays without a strip.
    """
    outcome = explanation.get("outcome")
    if outcome not in ("bound", "unschedulable", "preempting", "waiting"):
        return []
    verdicts = explanation.get("filter") or {}
    n_feasible = sum(verdict is None for verdict in verdicts.values())
    early = (explanation.get("preFilter") or {}).get("code") not in (None, "Success", "Skip")
    placed = outcome in ("bound", "waiting")
    scored = bool(explanation.get("total"))
    one_node = ("skipped", "one feasible node") if placed else ("not reached", "")
    score = ("done", f"{len(explanation.get('total') or ())} nodes") if scored else one_node
    bound = ("done", "") if outcome == "bound" else ("not reached", "")
    nominated = (explanation.get("preemption") or {}).get("nominatedNode")
    states = {
        "PreEnqueue": ("done", ""),
        "QueueSort": ("done", ""),
        "PreFilter": ("failed", "rejected the pod") if early else ("done", _skips(explanation)),
        "Filter": ("not reached", "")
        if early
        else ("done" if placed else "failed", f"{len(verdicts):,} → {n_feasible:,} nodes"),
        "PostFilter": ("skipped", "not needed")
        if placed
        else ("acted", f"→ {nominated}")
        if nominated
        else ("failed", "no help"),
        "PreScore": score if placed else ("not reached", ""),
        "Score": score,
        "NormalizeScore": score,
        "Reserve": ("done", "assumed") if placed else ("not reached", ""),
        "Permit": ("done", "no wait")
        if outcome == "bound"
        else ("waiting", "")
        if outcome == "waiting"
        else ("not reached", ""),
        "PreBind": bound,
        "Bind": bound,
        "PostBind": bound,
    }
    return [{"point": name, "state": state, "detail": detail} for name, (state, detail) in states.items()]


def _skips(explanation: Mapping[str, Any]) -> str:
    n = len(explanation.get("skippedFilter") or ())
    return f"{n} skip" if n else ""


def _as_text(detail: Any) -> str:
    if detail is None:
        return ""
    if isinstance(detail, str):
        return detail
    if isinstance(detail, Mapping):
        return ", ".join(f"{key} {value}" for key, value in detail.items())
    if isinstance(detail, Sequence):
        return ", ".join(str(part) for part in detail)
    return str(detail)
