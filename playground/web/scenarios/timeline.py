"""The cycles of a run as a row of ticks, by outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from playground.web.looks import View
from scheduler_core.schema.tables import table_beside

if TYPE_CHECKING:
    from playground.clusters.row_types import Cycle
    from playground.scenarios.row_types import RecordedCycle

MAX_TICKS = 160
_TABLES: Final = table_beside(__file__, "tables.yaml")
_DRAWN: Final[Mapping[str, tuple[str, str, int, int]]] = _TABLES["ticks"]
_WORDS: Final[Mapping[str, tuple[str, str]]] = _TABLES["legend"]


def view_timeline(ticks: Sequence[Cycle | RecordedCycle], number: int | None, start_ns: int) -> View | None:
    """Draw the cycles; None if there are none. A number beyond the ends is the end.

    `words` has all outcomes in a sentence, for who does not see the ticks.
    """
    if not ticks:
        return None
    first, last = ticks[0].number, ticks[-1].number
    chosen = last if number is None else min(max(number, first), last)
    place = next((i for i, tick in enumerate(ticks) if tick.number >= chosen), len(ticks) - 1)
    tick = ticks[place]
    counts = {key: sum(one.outcome == key for one in ticks) for key in _WORDS}
    cycles = "1 cycle" if last == 1 else f"{last} cycles"
    return {
        "number": tick.number,
        "last": last,
        "tick": tick,
        "before": ticks[place - 1] if place else None,
        "after": ticks[place + 1] if place + 1 < len(ticks) else None,
        "marks": _marks(ticks, place),
        "legend": [(css, counts[key], words) for key, (css, words) in _WORDS.items() if counts[key]],
        "words": f"{cycles}: " + ", ".join(f"{n} {outcome}" for outcome, n in counts.items() if n),
        "around": ticks[max(0, place - 2) : place + 3][::-1],
        "elapsed_ns": tick.at_ns - start_ns,
    }


def _marks(ticks: Sequence[Cycle | RecordedCycle], place: int) -> list[View]:
    n_marks = min(len(ticks), MAX_TICKS)
    step = 100 / n_marks
    order = list(_DRAWN)
    marks = []
    for i in range(n_marks):
        low, high = i * len(ticks) // n_marks, (i + 1) * len(ticks) // n_marks
        members = ticks[low:high]
        shown = min(members, key=lambda tick: order.index(tick.outcome) if tick.outcome in order else 9)
        css, letter, top, height = _DRAWN.get(shown.outcome, _DRAWN["error"])
        title = (
            f"Cycle {shown.number}: {shown.outcome}"
            if len(members) == 1
            else f"Cycles {members[0].number} to {members[-1].number}, {shown.outcome} among them"
        )
        x, width = round(i * step + step * 0.14, 3), round(step * 0.72, 3)
        marks.append(
            {
                "title": title,
                "css": css,
                "letter": letter if step >= 1.2 else "",
                "x": x,
                "width": width,
                "middle": round(x + width / 2, 2),
                "top": top,
                "height": height,
                "future": low > place,
                "current": low <= place < high,
            }
        )
    return marks
