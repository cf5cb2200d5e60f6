"""The score table: raw -> normalised x weight -> points, per plugin and node, with the margin and the tie."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playground.engine.plugins import default_order, drawn
from playground.web.explanation.filter_matrix import rank_totals

SCORE_LIMIT = 20
MAX_NODE_SCORE = 100

EXTENDERS = "extenders"


@dataclass(frozen=True)
class ScoreColumn:
    """A column of the table."""

    name: str
    weight: int
    letter: str
    css: str
    skipped: bool


@dataclass(frozen=True)
class Cell:
    """What one plugin gave one node; ``raw`` and ``normalised`` are None for the extenders' sum."""

    plugin: ScoreColumn
    raw: int | None
    normalised: int | None
    points: int


@dataclass(frozen=True)
class Segment:
    """One piece of the stacked bar, in percent of the highest possible total."""

    cell: Cell
    x: float
    width: float

    @property
    def middle(self) -> float:
        """Where the letter stands."""
        return round(self.x + self.width / 2, 2)

    @property
    def has_room(self) -> bool:
        """Whether a letter can be read inside."""
        return self.width >= 4


@dataclass(frozen=True)
class ScoreRow:
    """One feasible node."""

    node: str
    rank: int
    tied: bool
    chosen: bool
    total: int
    behind: int
    cells: tuple[Cell, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class PluginLead:
    """How much one plugin moved the winner ahead of the runner-up (negative: it spoke for the runner-up)."""

    plugin: str
    points: int


@dataclass(frozen=True)
class ScoreView:
    """Everything the Score panel shows."""

    plugins: tuple[ScoreColumn, ...]
    rows: tuple[ScoreRow, ...]
    n_nodes: int
    max_total: int
    winner: str | None
    runner_up: str | None
    margin: int | None
    differences: tuple[PluginLead, ...]
    tie: tuple[str, ...]
    tie_stream: str | None

    @property
    def is_cut(self) -> bool:
        """Whether only the best nodes are listed."""
        return len(self.rows) < self.n_nodes


def view_scores(explanation: Mapping[str, Any], *, limit: int = SCORE_LIMIT) -> ScoreView | None:
    """Build the score table, or None when nothing was scored (no node or one node was feasible).

    Parameters
    ----------
    explanation : mapping
        Reads total, scores, rawScores, weights, skippedScore, scorePlugins, node, tie, best.
    limit : int
        At most this many rows when there are more than ``limit`` * 10 nodes; the chosen node is always among
        them.
    """
    totals: Mapping[str, int] | None = explanation.get("total")
    if not totals:
        return None
    scores: Mapping[str, Mapping[str, int]] = explanation.get("scores") or {}
    raw: Mapping[str, Mapping[str, int]] = explanation.get("rawScores") or {}
    plugins = _plugins(explanation, scores)
    tie = explanation.get("tie") or {}
    winner = explanation.get("node") or tie.get("chosen") or (explanation.get("best") or [None])[0]
    order = {name: i for i, name in enumerate(explanation.get("nodes") or sorted(totals))}
    ranked = sorted(totals, key=lambda node: (-totals[node], node != winner, order.get(node, 0), node))
    ranks, ties = rank_totals(totals)
    best = totals[ranked[0]]

    extra_of = {node: totals[node] - _sum(node, plugins, scores) for node in ranked}
    if any(extra_of.values()):
        plugins = (*plugins, ScoreColumn(EXTENDERS, 1, "X", "s8", False))
    max_total = sum(p.weight * MAX_NODE_SCORE for p in plugins if not p.skipped and p.name != EXTENDERS)
    max_total = max(max_total + max(extra_of.values(), default=0), best, 1)

    shown = ranked if len(ranked) <= limit * 10 else ranked[:limit]
    if winner in totals and winner not in shown:
        shown = [*shown, str(winner)]
    rows = []
    for node in shown:
        cells = _cells(node, plugins, scores, raw, extra_of[node])
        rows.append(
            ScoreRow(
                node=node,
                rank=ranks[node],
                tied=node in ties,
                chosen=node == winner,
                total=totals[node],
                behind=best - totals[node],
                cells=cells,
                segments=_segments(cells, max_total),
            )
        )
    runner_up = next((node for node in ranked if node != winner), None)
    differences: tuple[PluginLead, ...] = ()
    margin = None
    if winner in totals and runner_up is not None:
        margin = totals[winner] - totals[runner_up]
        differences = _differences(str(winner), runner_up, plugins, scores, extra_of)
    tied = tuple(tie.get("nodes") or ())
    if not tied and len(explanation.get("best") or ()) > 1:
        tied = tuple(explanation["best"])
    return ScoreView(
        plugins=plugins,
        rows=tuple(rows),
        n_nodes=len(totals),
        max_total=max_total,
        winner=winner,
        runner_up=runner_up,
        margin=margin,
        differences=differences,
        tie=tied,
        tie_stream=_stream(tie.get("stream")),
    )


def _stream(stream: Any) -> str | None:
    return None if stream is None else str(stream)


def _plugins(explanation: Mapping[str, Any], scores: Mapping[str, Any]) -> tuple[ScoreColumn, ...]:
    weights: Mapping[str, int] = explanation.get("weights") or {}
    skipped = set(explanation.get("skippedScore") or ())
    names = list(explanation.get("scorePlugins") or ())
    if not names:
        seen = {*weights, *scores, *skipped}
        usual = default_order("score")
        names = [name for name in usual if name in seen]
        names += sorted(name for name in seen if name not in usual)
    declared = drawn()
    taken = {"X", *(letter for name, (letter, _) in declared.items() if name in names)}
    plugins = []
    for name in names:
        letter, css = declared.get(name, ("", "s8"))
        if not letter:
            letter = next((c for c in name.upper() if c.isalpha() and c not in taken), "?")
            taken.add(letter)
        plugins.append(
            ScoreColumn(name, weights.get(name, 1), letter, css, name in skipped or name not in scores)
        )
    return tuple(plugins)


def _sum(node: str, plugins: tuple[ScoreColumn, ...], scores: Mapping[str, Mapping[str, int]]) -> int:
    return sum(scores[p.name].get(node, 0) * p.weight for p in plugins if not p.skipped)


def _cells(
    node: str,
    plugins: tuple[ScoreColumn, ...],
    scores: Mapping[str, Mapping[str, int]],
    raw: Mapping[str, Mapping[str, int]],
    extra: int,
) -> tuple[Cell, ...]:
    cells = []
    for plugin in plugins:
        if plugin.name == EXTENDERS:
            cells.append(Cell(plugin, None, None, extra))
            continue
        if plugin.skipped:
            cells.append(Cell(plugin, None, None, 0))
            continue
        normalised = scores[plugin.name].get(node, 0)
        cells.append(Cell(plugin, raw.get(plugin.name, {}).get(node), normalised, normalised * plugin.weight))
    return tuple(cells)


def _segments(cells: tuple[Cell, ...], max_total: int) -> tuple[Segment, ...]:
    segments = []
    x = 0.0
    for cell in cells:
        if cell.points <= 0:
            continue
        width = round(100 * cell.points / max_total, 2)
        segments.append(Segment(cell, round(x, 2), width))
        x += width
    return tuple(segments)


def _differences(
    winner: str,
    runner_up: str,
    plugins: tuple[ScoreColumn, ...],
    scores: Mapping[str, Mapping[str, int]],
    extra_of: Mapping[str, int],
) -> tuple[PluginLead, ...]:
    differences = []
    for plugin in plugins:
        if plugin.name == EXTENDERS:
            points = extra_of[winner] - extra_of[runner_up]
        elif plugin.skipped:
            continue
        else:
            given = scores[plugin.name]
            points = (given.get(winner, 0) - given.get(runner_up, 0)) * plugin.weight
        if points:
            differences.append(PluginLead(plugin.name, points))
    return tuple(sorted(differences, key=lambda d: -d.points))
