"""A heat map of many nodes: one SVG path a utilisation level, not one element a node."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from playground.clusters.selectors.board_nodes import NodeUse

# Cells a row: the fewer nodes, the larger the squares.
COLUMNS = ((40, 20), (160, 40))
MOST_COLUMNS = 80
CELL = 10
LEVELS = 6


@dataclass(frozen=True)
class HeatMap:
    """Paths of one group of nodes, on a grid of square cells.

    Attributes
    ----------
    levels : tuple of (class, path)
        ``h0`` to ``h5``: the higher the share, the higher and the darker the fill.
    names : str
        Node names in the order of the cells, separated by blanks: a place in the grid becomes a node.
    """

    columns: int
    names: str
    width: int
    height: int
    cells: str
    levels: tuple[tuple[str, str], ...]
    not_ready: str
    cordoned: str
    without: str


def heat_map(nodes: Sequence[NodeUse], by: str = "cpu", *, most: int = 0) -> HeatMap:
    """Draw the nodes in the order given, by their share of a resource; those that have none of it get a dash.

    Parameters
    ----------
    most
        Nodes of the largest map beside this one: the squares of all have one size.
    """
    n_nodes = max(most, len(nodes))
    columns = next((columns for limit, columns in COLUMNS if n_nodes <= limit), MOST_COLUMNS)
    levels: list[list[str]] = [[] for _ in range(LEVELS)]
    not_ready: list[str] = []
    cordoned: list[str] = []
    without: list[str] = []
    for i, node in enumerate(nodes):
        x, y = (i % columns) * CELL, (i // columns) * CELL
        share = node.percent(by)
        if share is None:
            without.append(f"M{x + 2.5:g} {y + 4}h3")
        fill = max(1, round(8 * share / 100)) if share else 0
        if share and fill:
            levels[min(LEVELS - 1, share * LEVELS // 100)].append(f"M{x} {y + 8 - fill}h8v{fill}h-8z")
        if not node.ready:
            not_ready.append(f"M{x + 1} {y + 1}l6 6m0-6l-6 6")
        elif node.unschedulable:
            cordoned.append(f"M{x + 0.5:g} {y + 4}h7")
    rows = -(-len(nodes) // columns)
    return HeatMap(
        columns=columns,
        names=" ".join(node.name for node in nodes),
        width=columns * CELL,
        height=max(rows, 1) * CELL,
        cells=_grid(len(nodes), columns),
        levels=tuple((f"h{level}", "".join(paths)) for level, paths in enumerate(levels) if paths),
        not_ready="".join(not_ready),
        cordoned="".join(cordoned),
        without="".join(without),
    )


@lru_cache(maxsize=64)  # groups are often of one size, and stay so
def _grid(n_cells: int, columns: int) -> str:
    """The squares behind the fills."""
    return "".join(f"M{(i % columns) * CELL} {(i // columns) * CELL}h8v8h-8z" for i in range(n_cells))


def histogram(nodes: Sequence[NodeUse], by: str = "cpu") -> list[tuple[str, str, int, int]]:
    """Count nodes that have the resource per level: (class, words, count, percent of the fullest level)."""
    counts = [0] * LEVELS
    for node in nodes:
        share = node.percent(by)
        if share is not None:
            counts[min(LEVELS - 1, share * LEVELS // 100)] += 1
    most = max(counts) or 1
    edges = ("0–16%", "17–33%", "34–49%", "50–66%", "67–83%", "84–100%")
    return [(f"h{i}", edges[i], n, round(100 * n / most)) for i, n in enumerate(counts)]
