"""Answers to questions, made ready to be looked at: pure functions from the answer's data to what templates walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from playground.engine.plugins import drawn
from playground.web.amounts import without_domain

AXIS_LEAST = 10
"""The weight axis is at least so long; longer where the weight, or a switch point, lies further out."""
AXIS_MOST = 100
_FILLS = ("wt", "wc", "wb")
_PERCENT_A_LETTER = 2
"""Of a weight axis, as wide as it is on a phone."""


@dataclass(frozen=True)
class WhyLine:
    """One row of the filter table; a plugin that compared several things has several."""

    plugin: str
    first: bool
    hit: bool
    asks: str
    has: str
    nominated: str
    state: str
    words: str
    stopped: bool


@dataclass(frozen=True)
class WhyView:
    """Why not one node."""

    answer: Mapping[str, Any]
    lines: tuple[WhyLine, ...]
    skipped: tuple[str, ...]

    @property
    def lost(self) -> list[Mapping[str, Any]]:
        """Score plugins, the ones that cost most first."""
        return sorted(self.answer["scores"], key=lambda item: -item["lost"])


def view_why(answer: Mapping[str, Any]) -> WhyView:
    """The table of one node's filters."""
    lines: list[WhyLine] = []
    for item in answer["filters"]:
        if item["state"] == "skipped":
            continue
        fails = item["state"] == "fails"
        values = item["values"] or [
            {"asks": "", "has": ", ".join(item["reasons"]), "ok": not fails, "short": "", "withNominated": ""}
        ]
        # A plugin's verdict stands on the line that decided it, or on its first one.
        deciding = next((at for at, value in enumerate(values) if value["ok"] is False), 0)
        for index, value in enumerate(values):
            hit = fails and (value["ok"] is False or index == deciding)
            words = "pass"
            if hit:
                words = f"short by {value['short']}" if value["short"] else "fails"
            elif fails:
                words = "fits" if value["ok"] else "one of several"
            elif value["ok"] is None:
                words = "considered"
            lines.append(
                WhyLine(
                    item["plugin"],
                    index == 0,
                    hit,
                    value["asks"],
                    value["has"],
                    value["withNominated"],
                    "fails" if hit else "pass" if value["ok"] or not fails else "part",
                    words,
                    bool(item["stopped"]) and index == deciding,
                )
            )
    skipped = tuple(item["plugin"] for item in answer["filters"] if item["state"] == "skipped")
    return WhyView(answer, tuple(lines), skipped)


@dataclass(frozen=True)
class Segment:
    """A stretch of a weight axis, in percent of its length; `short` is its label without the nodes' domains."""

    css: str
    label: str
    short: str
    x: float
    width: float

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)

    @property
    def has_room(self) -> bool:
        """Whether its label can be read inside, on a phone too."""
        return self.width >= _PERCENT_A_LETTER * len(self.short)


@dataclass(frozen=True)
class AxisTick:
    """A switch point on an axis."""

    x: float
    at: str


@dataclass(frozen=True)
class WeightRow:
    """One score plugin: its weight, its axis, and where winners switch."""

    plugin: str
    letter: str
    css: str
    recorded: int
    value: int
    axis_end: int
    segments: tuple[Segment, ...]
    ticks: tuple[AxisTick, ...]
    sentences: tuple[str, ...]
    proofs: tuple[Mapping[str, Any], ...]

    @property
    def edited(self) -> bool:
        return self.value != self.recorded

    @property
    def proven(self) -> bool:
        """Whether every whole weight that was run again agrees."""
        return bool(self.proofs) and all(item["agrees"] for item in self.proofs)


@dataclass(frozen=True)
class WeightsView:
    """The weights of a cycle."""

    answer: Mapping[str, Any]
    rows: tuple[WeightRow, ...]

    @property
    def edited(self) -> bool:
        return any(row.edited for row in self.rows)

    @property
    def winners(self) -> str:
        return some(self.answer["winners"])


def view_weights(
    answer: Mapping[str, Any], proofs: Sequence[Mapping[str, Any]] = (), winner: str | None = None
) -> WeightsView:
    """Axes and sentences for each score plugin.

    Parameters
    ----------
    proofs
        Whole weights that were run again, with the weights as recorded.
    winner
        The node of the cycle, drawn in one colour everywhere.
    """
    colours: dict[tuple[str, ...], str] = {}
    letters = drawn()
    rows = []
    for item in answer["plugins"]:
        name = item["plugin"]
        letter, css = letters.get(name, (name[:1].upper(), "s8"))
        value = int(answer["set"][name])
        points = [switch["at"]["value"] for switch in item["switches"]]
        furthest = max([value, *(point for point in points if point <= AXIS_MOST)], default=value)
        end = AXIS_LEAST if furthest < AXIS_LEAST else min(AXIS_MOST, int(furthest * 1.25) + 1)
        segments = []
        for part in item["intervals"]:
            start = _along(part["start"]["value"], end)
            stop = 100.0 if part["end"] is None else _along(part["end"]["value"], end)
            if start < stop:
                fill = _fill(colours, tuple(part["winners"]), winner)
                label = some(part["winners"], part["nWinners"])
                short = some([without_domain(name) for name in part["winners"]], part["nWinners"])
                segments.append(Segment(fill, label, short, round(start, 2), round(stop - start, 2)))
        ticks = [AxisTick(round(_along(at, end), 2), str(at)) for at in points if 1 < at < end]
        rows.append(
            WeightRow(
                name,
                letter,
                css,
                int(item["weight"]),
                value,
                end,
                tuple(segments),
                tuple(ticks),
                tuple(_switch_words(switch) for switch in item["switches"]),
                tuple(proof for proof in proofs if proof["plugin"] == name),
            )
        )
    return WeightsView(answer, tuple(rows))


def _along(weight: float, end: int) -> float:
    """Position of a weight on an axis in percent; the axis begins at 1 like the slider above it."""
    return 100 * (min(max(weight, 1), end) - 1) / (end - 1)


def _fill(colours: dict[tuple[str, ...], str], winners: tuple[str, ...], winner: str | None) -> str:
    if winner is not None and winner in winners:
        return _FILLS[0]
    if winners not in colours:
        colours[winners] = _FILLS[1 + len(colours) % 2]
    return colours[winners]


def _switch_words(switch: Mapping[str, Any]) -> str:
    before, after = some(switch["before"]), some(switch["after"])
    verb = "win" if len(switch["after"]) > 1 else "wins"
    at = switch["at"]
    exact = at["text"] if "/" in at["text"] else f"{at['value']:g}"
    near = f" (about {at['value']:g})" if "/" in at["text"] else ""
    return f"{after} {verb} above {exact}{near}, {before} below; there they tie"


def some(names: Sequence[str], number: int | None = None) -> str:
    """`a`, `a or b`, `a and 4 more`."""
    total = len(names) if number is None else number
    if total == 1:
        return names[0]
    if total == 2:
        return f"{names[0]} or {names[1]}"
    return f"{names[0]} or {total - 1} others" if names else "no node"


# ---- luck


@dataclass(frozen=True)
class PathPart:
    """Seeds that drew the same so far."""

    node: str
    n: int
    x: float
    width: float
    css: str

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)

    @property
    def label(self) -> str:
        """For a wide bar."""
        return f"{self.node} {self.n}" if self.width > 12 else self.short

    @property
    def short(self) -> str:
        """For a narrow one: the end of the name, the number alone, or nothing."""
        piece = self.node.rpartition("-")[2][-4:]
        return f"{piece} {self.n}" if self.width >= 20 else str(self.n) if self.width >= 6 else ""


MARKS_SHOWN = 200
_MARKS = {
    "tie": ("draw among equals", "draws among equals"),
    "preemptionTie": ("draw among preemption candidates", "draws among preemption candidates"),
    "sampling": ("node sampling", "node samplings"),
    "queueOrder": ("queue order", "queue orders"),
}


def _mark_words(mark: Mapping[str, Any]) -> str:
    """What one decision hung on."""
    n = f"{mark['n']:,}"
    match mark["kind"]:
        case "tie":
            told = f" ({', '.join(mark['nodes'])})" if len(mark["nodes"]) == mark["n"] else ""
            return f"a draw among {n} nodes with the same score{told}"
        case "preemptionTie":
            return f"a draw among {n} equally good candidates for preemption"
        case "sampling":
            return f"node sampling: {n} nodes were not looked at"
        case _:
            later = mark["n"] - 1
            noun = "a later pod" if later == 1 else f"{later:,} later pods"
            return f"queue order: {noun} of its priority and moment found no node"


@dataclass(frozen=True)
class LuckView:
    """How often each end occurs."""

    answer: Mapping[str, Any]
    levels: tuple[tuple[Mapping[str, Any], tuple[PathPart, ...]], ...]
    ties: tuple[tuple[Mapping[str, Any], tuple[PathPart, ...]], ...]

    @property
    def n_shown(self) -> int:
        """Number of differing pods shown per end state; fewer where there are many states."""
        return 12 if self.answer["nStates"] <= 4 else 5

    @property
    def shown(self) -> str:
        """The same as a slice."""
        return f":{self.n_shown}"

    @property
    def marks(self) -> list[dict[str, Any]]:
        """Decisions of the run itself that hung on chance: a cycle, its pod, and on what."""
        by_cycle: dict[int, dict[str, Any]] = {}
        for mark in self.answer.get("marks", ()):
            found = by_cycle.setdefault(
                mark["cycle"], {"cycle": mark["cycle"], "pod": mark["pod"], "words": []}
            )
            found["words"].append(_mark_words(mark))
        return list(by_cycle.values())[:MARKS_SHOWN]

    @property
    def n_marks_hidden(self) -> int:
        """Marks that are not listed."""
        counts: dict[str, int] = self.answer.get("nMarks", {})
        return sum(counts.values()) - sum(len(mark["words"]) for mark in self.marks)

    @property
    def mark_counts(self) -> str:
        """How many there are of each kind."""
        return ", ".join(f"{n:,} {_MARKS[kind][n != 1]}" for kind, n in self.answer["nMarks"].items())

    @property
    def headline(self) -> str:
        answer = self.answer
        seeds = f"{answer['nSeeds']} seeds"
        if answer["nStates"] == 1:
            return f"{seeds}, one end state: no luck involved."
        found = f"{seeds}, {answer['nStates']} end states."
        if answer["sometimesPending"]:
            item = answer["sometimesPending"][0]
            name = item["pod"].partition("/")[2]
            return (
                f"{found} Luck decides whether {name} runs: it does in {item['runs']} of {answer['nSeeds']}."
            )
        if answer.get("sometimesGone"):
            item = answer["sometimesGone"][0]
            name = item["pod"].partition("/")[2]
            return (
                f"{found} Luck decides who is evicted: {name} stays in {item['stays']} of {answer['nSeeds']}."
            )
        number = answer["nVarying"]
        noun = "pod runs" if number == 1 else "pods run"
        return f"{found} The same pods run in each: luck decides only where {number} {noun}."


def view_luck(answer: Mapping[str, Any]) -> LuckView:
    """Bars for the seeds, level by level, and for each draw."""
    levels = tuple((level, _parts(level["parts"])) for level in answer["path"])
    ties = tuple((tie, _parts(tie["counts"])) for tie in answer["ties"])
    return LuckView(answer, levels, ties)


def _parts(items: Sequence[Mapping[str, Any]]) -> tuple[PathPart, ...]:
    total = sum(item["n"] for item in items) or 1
    colours: dict[str, str] = {}
    x, parts = 0.0, []
    for item in items:
        css = colours.setdefault(item["node"], f"s{1 + (4 * len(colours)) % 7}")
        width = 100 * item["n"] / total
        parts.append(PathPart(item["node"], item["n"], round(x, 2), round(width, 2), css))
        x += width
    return tuple(parts)


@dataclass(frozen=True)
class DrawView:
    """How a tie was settled."""

    answer: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        """One sentence about luck."""
        counts = self.answer["counts"]
        words = ", ".join(f"{n} {node}" for node, n in counts.items())
        return f"Over {self.answer['nCounted']} seeds from this very state: {words}."
