"""The full reason matrix: every filter alone on every node, and where the real scheduler stopped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playground.web.explanation.filter_matrix import MATRIX_LIMIT, amounts_of


@dataclass(frozen=True)
class ReasonCell:
    """State: pass, skip, stop (the scheduler stopped here), also (would also fail); amounts are often empty."""

    plugin: str
    state: str
    reason: str
    amounts: str = ""


@dataclass(frozen=True)
class ReasonRow:
    """One rejected node; ``also`` are the plugins that would reject it too."""

    node: str
    cells: tuple[ReasonCell, ...]
    also: tuple[ReasonCell, ...]


@dataclass(frozen=True)
class ReasonMatrix:
    """Rejected nodes against every filter; ``n_hidden`` nodes are left out of a large cluster."""

    plugins: tuple[str, ...]
    rows: tuple[ReasonRow, ...]
    n_hidden: int

    @property
    def n_would_also_fail(self) -> int:
        """How many nodes more than one plugin rejects."""
        return sum(1 for row in self.rows if row.also)


def view_reason_matrix(explanation: Mapping[str, Any], *, limit: int = MATRIX_LIMIT) -> ReasonMatrix | None:
    """Build the matrix, or None when the explanation has no ``filterByPlugin`` or no node was rejected."""
    alone: Mapping[str, Mapping[str, Any]] | None = explanation.get("filterByPlugin")
    verdicts: Mapping[str, Any] = explanation.get("filter") or {}
    if not alone or not verdicts:
        return None
    skipped = set(explanation.get("skippedFilter") or ())
    configured = explanation.get("filterPlugins") or sorted({*alone, *skipped})
    plugins = tuple(name for name in configured if name in alone and name not in skipped)
    names = [name for name in explanation.get("nodes") or sorted(verdicts) if verdicts.get(name) is not None]
    if not plugins or not names:
        return None
    rows = []
    for node in names[:limit]:
        stopped = verdicts[node].get("plugin")
        cells = tuple(
            _cell(name, node, alone[name], stopped, amounts_of(explanation, name, node)) for name in plugins
        )
        rows.append(ReasonRow(node, cells, tuple(cell for cell in cells if cell.state == "also")))
    return ReasonMatrix(plugins, tuple(rows), max(0, len(names) - limit))


def _cell(
    plugin: str, node: str, verdict: Mapping[str, Any], stopped: str | None, amounts: str
) -> ReasonCell:
    failure = (verdict.get("fails") or {}).get(node)
    if failure is None:
        if verdict.get("preFilter"):
            return ReasonCell(plugin, "also", ", ".join(verdict["preFilter"].get("reasons") or ()))
        # Nominated pods count in the real pass only, so a plugin can stop a node it accepts alone.
        return ReasonCell(plugin, "stop" if plugin == stopped else "pass", "")
    reason = ", ".join(failure.get("reasons") or ())
    return ReasonCell(plugin, "stop" if plugin == stopped else "also", reason, amounts)
