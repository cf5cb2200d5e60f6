"""Answers about a whole cluster, made ready to be looked at: pure functions from an answer to what templates walk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

SIZE: Final = 22
PITCH: Final = 25
A_ROW: Final = 28
MANY: Final = 1_200
"""Nodes from which on a map has one path for all nodes of a state, and no glyphs."""
MOVES_SHOWN: Final = 100
LINES_SHOWN: Final = 60

TITLES: Final = {
    "any-node": "Lose any one node",
    "any-domain": "Lose any one zone",
    "backlog": "Place everything that is pending",
    "consolidate": "Do with fewer nodes",
    "headroom": "How many more fit",
    "drain": "Drain nodes",
    "lose": "Lose nodes",
}
"""Question -> its title, in the order of the overview."""
_STATES: Final = {
    "good": ("r0", "", "all its pods land"),
    "held": ("r1", "!", "loses pods that have no owner, or is held up"),
    "strands": ("r2", "", "pods left without a node, their number"),
    "evicts": ("r3", "⇄", "lands by evicting others"),
    "gone": ("gone", "×", "gone"),
    "takes": ("to", "", "takes pods, their number"),
    "same": ("same", "", "nothing changes; the fill is requested cpu"),
    "new": ("fresh", "+", "new"),
}
_OUTCOMES: Final = {
    "pending": ("finds no node", "bad", "no"),
    "blocked": ("held up", "warn", "wait"),
    "lost": ("lost: nothing recreates it", "warn", "no"),
    "with-node": ("goes with its node", "", "dash"),
    "ending": ("was ending", "", "dash"),
    "lands": ("", "ok", "arrow"),
}
_LATER: Final = ("", "warn", "wait")
_RANK: Final = {"lands": 1, "with-node": 2, "ending": 2}
"""Outcome -> place in the table: those that are hurt come first."""
LOOKS: Final = {
    "good": ("v-ok", "ok", "ok"),
    "warning": ("v-warn", "warn", "err"),
    "bad": ("v-bad", "bad", "no"),
}
"""Tone -> class of the verdict, of the icon, and the icon."""


@dataclass(frozen=True)
class Square:
    """One node of a map."""

    x: int
    y: int
    css: str
    fill_y: float
    fill: float
    glyph: str
    title: str

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + SIZE // 2, self.y + SIZE // 2


@dataclass(frozen=True)
class MapGroup:
    """The nodes of one group."""

    name: str
    shape: str
    n_nodes: int
    width: int
    height: int
    squares: tuple[Square, ...]
    paths: tuple[tuple[str, str], ...]
    words: str


@dataclass(frozen=True)
class Line:
    """One sentence with its cause."""

    facts: Mapping[str, Any]
    css: str
    icon: str


@dataclass(frozen=True)
class Move:
    """One pod that has to leave."""

    facts: Mapping[str, Any]
    words: str
    css: str
    icon: str

    @property
    def namespace(self) -> str:
        return str(self.facts["pod"]).partition("/")[0]

    @property
    def name(self) -> str:
        return str(self.facts["pod"]).partition("/")[2]


@dataclass(frozen=True)
class PlanView:
    """An answer."""

    answer: Mapping[str, Any]
    title: str
    css: str
    icon_css: str
    icon: str
    groups: tuple[MapGroup, ...]
    legend: tuple[tuple[str, str, str], ...]
    lines: tuple[Line, ...]
    moves: tuple[Move, ...]

    @property
    def n_lines_hidden(self) -> int:
        return int(self.answer["nLines"]) - len(self.lines)

    @property
    def n_moves_hidden(self) -> int:
        return int(self.answer["nMoves"]) - len(self.moves)

    @property
    def luck(self) -> str:
        """In how many seeds it holds, in words."""
        found = self.answer["luck"]
        if found is None:
            return ""
        if found["holds"] == found["seeds"]:
            return f"holds with all {found['seeds']} seeds"
        return f"holds with {found['holds']} of {found['seeds']} seeds"

    @property
    def test(self) -> str:
        """The expectation as YAML (JSON is YAML)."""
        found = self.answer["test"]
        return "" if found is None else f"expect:\n- {json.dumps(found, ensure_ascii=False)}\n"


def view_plan(answer: Mapping[str, Any]) -> PlanView:
    """An answer for a page."""
    css, icon_css, icon = LOOKS[answer["tone"]]
    n_nodes = sum(len(group["nodes"]) for group in answer["map"])
    groups = tuple(_group(group, n_nodes > MANY) for group in answer["map"])
    there = {node[1] for group in answer["map"] for node in group["nodes"]}
    legend = tuple((_STATES[key][0], _STATES[key][1], _STATES[key][2]) for key in _STATES if key in there)
    lines = tuple(Line(item, *LOOKS[item["tone"]][1:]) for item in answer["lines"][:LINES_SHOWN])
    shown = sorted(answer["moves"], key=lambda move: _RANK.get(move["outcome"], 0))
    moves = tuple(
        Move(item, *(_LATER if item["onceDeleted"] else _OUTCOMES[item["outcome"]]))
        for item in shown[:MOVES_SHOWN]
    )
    return PlanView(answer, title_of(answer["question"]), css, icon_css, icon, groups, legend, lines, moves)


def title_of(question: Mapping[str, Any]) -> str:
    """A question in a few words."""
    title = TITLES[question["ask"]]
    named = question.get("nodes") or ()
    about = question.get("workload") or question.get("label") or ""
    if named:
        about = named[0] if len(named) == 1 else f"{named[0]} and {len(named) - 1} more"
    return f"{title}: {about}" if about and question["ask"] != "any-domain" else title


def _group(group: Mapping[str, Any], many: bool) -> MapGroup:
    nodes: Sequence[Sequence[Any]] = group["nodes"]
    pitch, a_row = (9, 78) if many else (PITCH, A_ROW)
    places = [(index % a_row * pitch, index // a_row * pitch) for index in range(len(nodes))]
    width = min(len(nodes), a_row) * pitch
    height = ((len(nodes) - 1) // a_row + 1) * pitch
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node[1]] = counts.get(node[1], 0) + 1
    words = ", ".join(f"{number:,} {_SHORT[state]}" for state, number in counts.items() if state in _SHORT)
    if many:
        paths: dict[str, list[str]] = {}
        for node, (x, y) in zip(nodes, places, strict=True):
            paths.setdefault(_STATES[node[1]][0], []).append(f"M{x} {y}h7v7h-7z")
        drawn = tuple((css, "".join(parts)) for css, parts in paths.items())
        return MapGroup(group["name"], group["shape"], len(nodes), width, height, (), drawn, words)
    squares = tuple(_square(node, *place) for node, place in zip(nodes, places, strict=True))
    return MapGroup(group["name"], group["shape"], len(nodes), width, height, squares, (), words)


_SHORT: Final = {
    "good": "can go",
    "held": "with a loss",
    "strands": "leave pods without a node",
    "evicts": "by evicting",
    "gone": "gone",
    "takes": "take pods",
    "new": "new",
}


def _square(node: Sequence[Any], x: int, y: int) -> Square:
    name, state, share, number = node[:4]
    css, glyph, words = _STATES[state]
    if number and state in ("strands", "takes"):
        glyph = str(number) if number < 100 else "99"
    fill = round(SIZE * min(max(share, 0), 100) / 100, 1)
    told = f", {number}" if number else ""
    return Square(
        x,
        y,
        css,
        round(y + SIZE - fill, 1),
        fill,
        glyph,
        f"{name}: {words.split(',')[0]}{told}; {share}% cpu",
    )
