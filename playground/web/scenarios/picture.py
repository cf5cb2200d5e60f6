"""The picture of a cycle for previews of a link, 1200 by 630: a self-contained SVG, and the PNG that chats show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final
from xml.sax.saxutils import escape

import resvg_py

from playground.web.scenarios.badge import Standing

WIDTH, HEIGHT = 1200, 630
MARGIN: Final = 56
_INK, _INK_2, _LINE = "#14171c", "#434b58", "#e1e5ea"
_OUTCOMES: Final = {
    "bound": "#14704a",
    "unschedulable": "#b3261e",
    "preempting": "#8a2a8f",
    "waiting": "#0b6472",
    "binding": "#0b6472",
    "expired": "#865300",
    "error": "#865300",
}
_FEASIBLE: Final = "#14704a"
_PARTS: Final = ("#b3261e", "#865300", "#66717f", "#434b58")
"""Of the bar of nodes: rejected for the most frequent reason, the next ones, and all others."""
_SIZES: Final = ((58, 34, 3), (46, 43, 4))
"""Height of the sentence, letters of a line, and lines: a long one is set smaller, a longer one cut."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a picture says.

    Attributes
    ----------
    title
        Of the share.
    sentence
        How the cycle ended; empty before the first run.
    outcome
        Of the cycle.
    cycle, last
        Its number, and how many there are.
    document
        Its explanation, if this engine can read it.
    scheduler, day
        The release that is followed; when it was shared.
    """

    title: str
    sentence: str = ""
    outcome: str = ""
    cycle: int = 0
    last: int = 0
    document: Mapping[str, Any] | None = None
    scheduler: str = ""
    day: str = ""


def draw(shown: Shown, standing: Standing) -> str:
    """The picture as SVG; light colours, everything at least 25 pixels high."""
    label = escape(_clean(shown.sentence or shown.title), {'"': "&quot;"})
    colour = _OUTCOMES.get(shown.outcome, "#66717f")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="system-ui, sans-serif" role="img" aria-label="{label}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<rect width="12" height="{HEIGHT}" fill="{colour}"/>',
        f'<rect x="{MARGIN}" y="45" width="40" height="40" rx="12" fill="#3451d1"/>',
        f'<path d="M{MARGIN + 9} 73h6v-10h8v-8h8" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/>',
        _text(MARGIN + 58, 74, "Scheduling Playground", 27, _INK, weight=700),
        _text(WIDTH - MARGIN, 74, standing.sentence, 25, standing.colour, weight=600, anchor="end"),
    ]
    size, lines = _set(shown.sentence or shown.title)
    bar = _bar(shown.document)
    height = len(lines) * size * 1.14 + (106 + 36 * ((len(bar) + 1) // 2) if bar else 0)
    y = 100 + (HEIGHT - 100 - 110 - height) / 2 + size
    for line in lines:
        parts.append(_text(MARGIN, round(y), line, size, _INK, weight=600))
        y += size * 1.14
    if bar:
        parts += _drawn_bar(bar, round(y - size * 1.14 + 34))
    parts.append(f'<rect x="{MARGIN}" y="532" width="{WIDTH - 2 * MARGIN}" height="2" fill="{_LINE}"/>')
    place = f"cycle {shown.cycle:,} of {shown.last:,}" if shown.cycle else ""
    title = _cut(shown.title, 38) if shown.sentence else ""
    words = "  ·  ".join(filter(None, (title, place, shown.scheduler)))
    parts.append(_text(MARGIN, 580, words, 25, _INK_2))
    parts.append(_text(WIDTH - MARGIN, 580, shown.day, 25, _INK_2, anchor="end"))
    parts.append("</svg>")
    return "".join(parts)


def as_png(svg: str) -> bytes:
    """The picture as PNG, with a font that is the same on every machine; other scripts in the machine's own fonts."""
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            width=WIDTH,
            height=HEIGHT,
            font_files=list(_fonts()),
            font_family="Source Sans Pro",
            sans_serif_family="Source Sans Pro",
        )
    )


@cache
def _fonts() -> tuple[str, ...]:
    folder = files("font_source_sans_pro") / "files"
    return tuple(str(folder / f"SourceSansPro-{cut}.ttf") for cut in ("Regular", "Semibold", "Bold"))


def _bar(document: Mapping[str, Any] | None) -> list[tuple[int, str, str]]:
    """(nodes, words, colour) of each part: feasible ones, then the rejected by reason, the rarest ones together."""
    verdicts = (document or {}).get("filter") or {}
    reasons = Counter(
        "; ".join(verdict.get("reasons") or ()) or str(verdict.get("plugin") or "rejected")
        for verdict in verdicts.values()
        if verdict is not None
    )
    n_feasible = sum(verdict is None for verdict in verdicts.values())
    parts = [(n_feasible, "feasible", _FEASIBLE)] if n_feasible else []
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    room = len(_PARTS) - 1 - bool(n_feasible)
    for (words, count), colour in zip(ordered[:room], _PARTS, strict=False):
        parts.append((count, words, colour))
    left = sum(count for _, count in ordered[room:])
    if left:
        parts.append((left, "other reasons", _PARTS[-1]))
    return parts


def _drawn_bar(bar: Sequence[tuple[int, str, str]], y: int) -> list[str]:
    whole, wide = sum(count for count, _, _ in bar), WIDTH - 2 * MARGIN
    parts, x = [], float(MARGIN)
    for count, _, colour in bar:
        width = max(6.0, wide * count / whole)
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(4.0, width - 2):.1f}" height="56" rx="3" fill="{colour}"/>'
        )
        x += wide * count / whole
    for place, (count, words, colour) in enumerate(bar):
        left, top = MARGIN + place % 2 * (wide // 2), y + 74 + place // 2 * 36
        parts.append(f'<rect x="{left}" y="{top}" width="20" height="20" rx="4" fill="{colour}"/>')
        parts.append(_text(left + 30, top + 19, _cut(f"{count:,} {words}", 40), 25, _INK_2))
    return parts


def _text(
    x: int, y: int, words: str, size: int, fill: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}" xml:space="preserve"'
        f' text-anchor="{anchor}">{escape(_clean(words))}</text>'
    )


def _clean(words: str) -> str:
    """XML has no place for control characters, nor for halves of characters."""
    return "".join(
        letter
        for letter in words
        if letter >= " " and not "\ud800" <= letter <= "\udfff" and letter < "\ufffe"
    )


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _set(words: str) -> tuple[int, list[str]]:
    """The size a sentence is set in, and its lines."""
    for size, letters, most in _SIZES:
        lines = _lines(words, letters)
        if len(lines) <= most:
            return size, lines
    return size, [*lines[: most - 1], _cut(f"{lines[most - 1]}…", letters)]


def _lines(words: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(_cut(word, width))
    return lines
