"""Answers to questions, made ready to be looked at: pure functions from the answer's data to what templates walk."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playground.engine.plugins import drawn
from playground.web.amounts import without_domain
from playground.web.looks import View, piece
from scheduler_core.schema.tables import table_beside

AXIS_LEAST = 10
"""The weight axis is at least so long; longer where the weight, or a switch point, lies further out."""
AXIS_MOST = 100
_FILLS = ("wt", "wc", "wb")
_PERCENT_A_LETTER = 2
"""Of a weight axis, as wide as it is on a phone."""


def view_why(answer: Mapping[str, Any]) -> View:
    """Why not one node: the table of its filters, and score plugins, the ones that cost most first.

    A plugin that compared several things has several `lines`; the `first` names it, a `hit` is one that fails.
    """
    lines: list[View] = []
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
                {
                    "plugin": item["plugin"],
                    "first": index == 0,
                    "hit": hit,
                    "asks": value["asks"],
                    "has": value["has"],
                    "nominated": value["withNominated"],
                    "state": "fails" if hit else "pass" if value["ok"] or not fails else "part",
                    "words": words,
                    "stopped": bool(item["stopped"]) and index == deciding,
                }
            )
    return {
        "answer": answer,
        "lines": lines,
        "skipped": [item["plugin"] for item in answer["filters"] if item["state"] == "skipped"],
        "lost": sorted(answer["scores"], key=lambda item: -item["lost"]),
    }


def view_weights(
    answer: Mapping[str, Any], proofs: Sequence[Mapping[str, Any]] = (), winner: str | None = None
) -> View:
    """Axes and sentences for each score plugin: its weight, its axis, and where winners switch.

    Segments of an axis are in percent of its length; `short` is a label without the nodes' domains. `proven`: every
    whole weight that was run again agrees.

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
                segments.append(
                    piece(start, round(stop - start, 2), room=_PERCENT_A_LETTER * len(short))
                    | {"css": fill, "label": label, "short": short}
                )
        proved = [proof for proof in proofs if proof["plugin"] == name]
        rows.append(
            {
                "plugin": name,
                "letter": letter,
                "css": css,
                "recorded": int(item["weight"]),
                "value": value,
                "edited": value != int(item["weight"]),
                "axis_end": end,
                "segments": segments,
                "ticks": [{"x": round(_along(at, end), 2), "at": str(at)} for at in points if 1 < at < end],
                "sentences": [_switch_words(switch) for switch in item["switches"]],
                "proofs": proved,
                "proven": bool(proved) and all(proof["agrees"] for proof in proved),
            }
        )
    edited = any(row["edited"] for row in rows)
    return {"answer": answer, "rows": rows, "edited": edited, "winners": some(answer["winners"])}


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


MARKS_SHOWN = 200
_TABLES: Final = table_beside(__package__, "words.yaml")
_MARKS: Final[Mapping[str, Sequence[str]]] = _TABLES["marks"]


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


def view_luck(answer: Mapping[str, Any]) -> View:
    """How often each end occurs: bars for the seeds, level by level, and for each draw.

    `marks` are decisions of the run itself that hung on chance: a cycle, its pod, and on what.
    """
    by_cycle: dict[int, View] = {}
    for mark in answer.get("marks", ()):
        found = by_cycle.setdefault(mark["cycle"], {"cycle": mark["cycle"], "pod": mark["pod"], "words": []})
        found["words"].append(_mark_words(mark))
    marks = list(by_cycle.values())[:MARKS_SHOWN]
    counts: dict[str, int] = answer.get("nMarks", {})
    # Differing pods that are shown per end state: fewer where there are many states.
    n_shown = 12 if answer["nStates"] <= 4 else 5
    return {
        "answer": answer,
        "levels": [(level, _parts(level["parts"])) for level in answer["path"]],
        "ties": [(tie, _parts(tie["counts"])) for tie in answer["ties"]],
        "n_shown": n_shown,
        "shown": f":{n_shown}",
        "marks": marks,
        "n_marks_hidden": sum(counts.values()) - sum(len(mark["words"]) for mark in marks),
        "mark_counts": ", ".join(f"{n:,} {_MARKS[kind][n != 1]}" for kind, n in counts.items()),
        "headline": _headline(answer),
    }


def _headline(answer: Mapping[str, Any]) -> str:
    seeds = f"{answer['nSeeds']} seeds"
    if answer["nStates"] == 1:
        return f"{seeds}, one end state: no luck involved."
    found = f"{seeds}, {answer['nStates']} end states."
    if answer["sometimesPending"]:
        item = answer["sometimesPending"][0]
        name = item["pod"].partition("/")[2]
        return f"{found} Luck decides whether {name} runs: it does in {item['runs']} of {answer['nSeeds']}."
    if answer.get("sometimesGone"):
        item = answer["sometimesGone"][0]
        name = item["pod"].partition("/")[2]
        return f"{found} Luck decides who is evicted: {name} stays in {item['stays']} of {answer['nSeeds']}."
    number = answer["nVarying"]
    noun = "pod runs" if number == 1 else "pods run"
    return f"{found} The same pods run in each: luck decides only where {number} {noun}."


def _parts(items: Sequence[Mapping[str, Any]]) -> list[View]:
    """Seeds that drew the same so far. The label of a wide bar is `label`; of a narrow one it is `short`: the end of
    the name, the number alone, or nothing.
    """
    total = sum(item["n"] for item in items) or 1
    colours: dict[str, str] = {}
    x, parts = 0.0, []
    for item in items:
        node, n = item["node"], item["n"]
        css = colours.setdefault(node, f"s{1 + (4 * len(colours)) % 7}")
        width = 100 * n / total
        shown = round(width, 2)
        short = f"{node.rpartition('-')[2][-4:]} {n}" if shown >= 20 else str(n) if shown >= 6 else ""
        label = f"{node} {n}" if shown > 12 else short
        parts.append(
            piece(x, shown, room=0) | {"node": node, "n": n, "css": css, "label": label, "short": short}
        )
        x += width
    return parts


def view_draw(answer: Mapping[str, Any]) -> View:
    """How a tie was settled, and one sentence about luck."""
    words = ", ".join(f"{n} {node}" for node, n in answer["counts"].items())
    sentence = f"Over {answer['nCounted']} seeds from this very state: {words}."
    return {"answer": answer, "sentence": sentence}
