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
