"""The picture of a cycle for previews of a link: a self-contained SVG, 1200 by 630, light colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from playground.web.scenarios.past_board import PastNode, view_past
from playground.web.scenarios.timeline import Timeline

WIDTH, HEIGHT = 1200, 630
_FILLS = {"sys": "#5b6470", "crit": "#6d3fd1", "std": "#2563b8", "batch": "#9a5b00"}
_OUTCOMES = {
    "bound": "#12704a",
    "unschedulable": "#b3261e",
    "preempting": "#7b2fa0",
    "waiting": "#0f6674",
    "binding": "#0f6674",
    "expired": "#8a5300",
    "error": "#8a5300",
}
MAX_NODES = 12


def draw_cycle(title: str, timeline: Timeline | None, state: Mapping[str, Any] | None) -> str:
    """Draw the title, the cycle's sentence and up to twelve nodes as they are after it."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="system-ui, sans-serif" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f6f7f9"/>',
        '<rect x="48" y="44" width="36" height="36" rx="10" fill="#2f4bd6"/>',
        '<path d="M56 70h6v-9h8v-8h8" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/>',
        _text(98, 70, "Scheduling Playground", 24, "#3c4450"),
    ]
    y = 138
    for line in _lines(title, 44)[:2]:
        parts.append(_text(48, y, line, 44, "#14181f", weight=600))
        y += 54
    if timeline is not None:
        tick = timeline.tick
        parts.append(
            f'<rect x="48" y="{y - 22}" width="14" height="28" rx="4" fill="{_OUTCOMES.get(tick.outcome, "#5b6470")}"/>'
        )
        parts.append(_text(76, y, f"Cycle {timeline.number} of {timeline.last}", 24, "#14181f", weight=600))
        for i, line in enumerate(_lines(tick.sentence or f"{tick.pod} {tick.outcome}", 88)[:2]):
            parts.append(_text(76, y + 34 + 30 * i, line, 22, "#3c4450"))
        y += 110
    if state is not None and timeline is not None:
        board = view_past(state, pod=timeline.tick.pod, node=timeline.tick.node)
        cards = [card for zone in board.zones for card in zone.cards]
        if not cards:
            parts.append(_text(48, y + 20, f"{board.n_nodes:,} nodes, {board.n_pods:,} pods", 26, "#3c4450"))
        cards.sort(key=lambda card: not card.chosen)
        for i, card in enumerate(cards[:MAX_NODES]):
            parts += _node(card, 48 + (i % 4) * 280, y + (i // 4) * 92)
        if len(cards) > MAX_NODES:
            more = f"and {len(cards) - MAX_NODES} more nodes"
            parts.append(_text(WIDTH - 48, HEIGHT - 24, more, 20, "#5b6470", anchor="end"))
    parts.append("</svg>")
    return "".join(parts)


def _node(card: PastNode, x: int, y: int) -> list[str]:
    edge = "#2f4bd6" if card.chosen else "#d5dae1"
    parts = [
        f'<rect x="{x}" y="{y}" width="264" height="80" rx="10" fill="#fff" stroke="{edge}"'
        f' stroke-width="{3 if card.chosen else 1.5}"/>',
        _text(x + 14, y + 30, card.use.name[:24], 19, "#14181f", weight=600),
        f'<rect x="{x + 14}" y="{y + 46}" width="236" height="20" rx="5" fill="#e8ebf0"/>',
    ]
    for segment in card.bars[0].segments:
        left, width = x + 14 + 2.36 * segment.x, max(1.5, 2.36 * segment.width - 1)
        look = (
            'fill="none" stroke="#14181f" stroke-dasharray="5 4"'
            if segment.nominated
            else f'fill="{_FILLS.get(segment.mark.css, "#2563b8")}"'
        )
        parts.append(f'<rect x="{left:.1f}" y="{y + 46}" width="{width:.1f}" height="20" rx="3" {look}/>')
    return parts


def _text(
    x: int, y: int, words: str, size: int, fill: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}"'
        f' text-anchor="{anchor}">{escape(_clean(words))}</text>'
    )


def _clean(words: str) -> str:
    """XML has no place for control characters."""
    return "".join(letter for letter in words if letter >= " ")


def _lines(words: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word[:width])
    return lines
