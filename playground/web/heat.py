"""Maps of nodes: a square for each, by its share of a resource."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from playground.clusters.board.nodes import NodeUse
from playground.web.looks import View

# Cells a row: the fewer nodes, the larger the squares.
COLUMNS = ((40, 20), (160, 40))
MOST_COLUMNS = 80
CELL = 10
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LEVELS = 6


def _front_coded(names: Iterable[str]) -> Iterator[str]:
    before = ""
    for name in names:
        pairs = zip(before, name, strict=False)
        shared = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(name)))
        shared = min(shared, len(_DIGITS) - 1)
        yield _DIGITS[shared] + name[shared:]
        before = name


class MapNode(NamedTuple):
    """A node on a map; `percent` of a resource is requested, None where it has none of it."""

    name: str
    percent: int | None
    ready: bool = True
    unschedulable: bool = False


def squares_of(nodes: Iterable[NodeUse], by: str = "cpu") -> list[MapNode]:
    """The nodes by their share of a resource."""
    return [MapNode(node.name, node.percent(by), node.ready, node.unschedulable) for node in nodes]


def landing_map(nodes: Sequence[MapNode], lands: Collection[str]) -> View:
    """The nodes, fullest first, with those on which pods land, new ones last: `n_taken` and `n_new` of them."""
    new = {*lands} - {node.name for node in nodes}
    in_order = sorted(nodes, key=lambda node: -1 if node.percent is None else node.percent, reverse=True)
    drawn = heat_map([*in_order, *(MapNode(name, 0) for name in sorted(new))], lands={*lands}, new=new)
    return drawn | {"n_nodes": len(nodes), "n_taken": len({*lands} - new), "n_new": len(new)}


def heat_map(
    nodes: Sequence[MapNode], *, most: int = 0, lands: Collection[str] = (), new: Collection[str] = ()
) -> View:
    """Draw the nodes in the order given, by their share of a resource; those that have none of it get a dash.

    Parameters
    ----------
    most
        Nodes of the largest map beside this one: the squares of all have one size.
    lands, new
        Names of those on which pods land, and of those that are not there yet.

    Returns
    -------
    dict
        `paths` (class, path) on a grid of square cells, ``h0`` to ``h5``: the higher the share, the higher and the
        darker the fill. `names` of nodes in the order of the cells, separated by blanks, without the `end` that all
        have, each after a digit to base 36: how many of its letters are those of the name before.
    """
    n_nodes = max(most, len(nodes))
    columns = next((columns for limit, columns in COLUMNS if n_nodes <= limit), MOST_COLUMNS)
    levels: list[list[str]] = [[] for _ in range(LEVELS)]
    marks: dict[str, list[str]] = {"cell": [], "mkc": [], "mk": [], "takes": [], "new": []}
    for i, node in enumerate(nodes):
        x, y = (i % columns) * CELL, (i // columns) * CELL
        if not x:
            marks["cell"].append(f"M0 {y + 4}h{CELL * min(columns, len(nodes) - i) - 2}")
        share = min(100, node.percent or 0)
        fill = max(1, round(8 * share / 100)) if share else 0
        if node.name in new:
            marks["new"].append(f"M{x + 0.5:g} {y + 0.5:g}h7v7h-7zm3.5 2v3m-1.5-1.5h3")
        elif node.name in lands:
            marks["takes"].append(f"M{x} {y + 4}h8")
        elif node.percent is None:
            marks["mkc"].append(f"M{x + 2.5:g} {y + 4}h3")
        elif fill:
            levels[min(LEVELS - 1, share * LEVELS // 100)].append(f"M{x + 4} {y + 8}v-{fill}")
        if not node.ready:
            marks["mk"].append(f"M{x + 1} {y + 1}l6 6m0-6l-6 6")
        elif node.unschedulable:
            marks["mkc"].append(f"M{x + 0.5:g} {y + 4}h7")
    domains = {"".join(node.name.partition(".")[1:]) for node in nodes}
    end = next(iter(domains)) if len(domains) == 1 else ""
    return {
        "columns": columns,
        "names": " ".join(_front_coded(node.name.removesuffix(end) for node in nodes)),
        "end": end,
        "width": columns * CELL,
        "height": max(-(-len(nodes) // columns), 1) * CELL,
        "paths": [
            ("cell", "".join(marks["cell"])),
            *((f"h{level}", "".join(paths)) for level, paths in enumerate(levels) if paths),
            *((css, "".join(marks[css])) for css in ("takes", "new", "mkc", "mk") if marks[css]),
        ],
    }


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
