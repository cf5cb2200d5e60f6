"""A moment (`engine.moments`) as the board shows the present: nodes with bars, lanes, clock; cycles as ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest

from playground.clusters.board.nodes import NodeUse, PodUse, natural
from playground.clusters.history.queue import LANES, item_of
from playground.clusters.row_types import Cycle
from playground.engine.columns import FINISHED
from playground.scenarios import selectors
from playground.scenarios.row_types import RecordedCycle
from playground.scenarios.services import moments
from playground.scenarios.services.recording import LANE_ITEMS, MOST_CARDS, brief_of
from playground.web.board.queue import view_lanes
from playground.web.look import Marks, view_look
from playground.web.looks import PriorityScale, View, made_of
from playground.web.requests import HtmxHttpRequest, positive_int
from scheduler_core.schema.tables import table_beside


def moment_context(
    request: HttpRequest, ticks: Sequence[Cycle | RecordedCycle], cycle: str | None, **of: Any
) -> View:
    """Context of `scenarios/moment.html` and of a frame: a cluster or a scenario after one of its cycles."""
    (whose,) = of.values()
    timeline = view_timeline(ticks, positive_int(cycle), whose.start_ns)
    board, note = None, ""
    if timeline is not None:
        number, tick = timeline["number"], timeline["tick"]
        state, note = selectors.moment(cycle=number, **of)
        if state is not None:
            board = view_past(state, pod=tick.pod, node=tick.node)
        elif not note and "wait" not in request.GET:
            moments.request_moment(cycle=number, **of)
    return {"timeline": timeline, "past": board, "note": note, "start_ns": whose.start_ns}


def nothing_new(request: HtmxHttpRequest, moment: Mapping[str, Any]) -> bool:
    """Whether a page that waits for a worker has to wait on: nothing is swapped under the reader's hands.

    Parameters
    ----------
    moment
        What `scenarios/moment.html` is drawn with.
    """
    waits = bool(request.htmx) and "wait" in request.GET and moment["timeline"] is not None
    return waits and moment["past"] is None and not moment["note"]


def view_past(state: Mapping[str, Any], *, pod: str = "", node: str = "") -> View:
    """Draw a moment, or its brief; the node that its cycle gave a pod to is marked."""
    scale = PriorityScale([tuple(item) for item in state["classes"]])
    brief = brief_of(state) if "pods" in state else state
    by_node = _pods_by_node(state) if len(state["nodes"]) <= MOST_CARDS else {}
    uses = [made_of(NodeUse, item) for item in brief["nodes"]]
    uses.sort(key=lambda use: natural(use.name))
    lanes = _lanes(brief, scale)
    return {
        "look": view_look(uses, by_node, scale, marks=Marks({node} if pod and node else ()))
        if uses
        else None,
        "lanes": lanes,
        "clock_ns": state["clock_ns"],
        "n_nodes": len(uses),
        "n_pods": brief["n_pods"],
        "n_queued": sum(lane["count"] for lane in lanes),
    }


def _pods_by_node(state: Mapping[str, Any]) -> dict[str, list[PodUse]]:
    pods: Sequence[Mapping[str, Any]] = state["pods"]
    binding = {item["pod"] for item in (state.get("queue") or {}).get("binding") or ()}
    found: dict[str, list[PodUse]] = {}
    for item in sorted(
        pods, key=lambda pod: (-pod["priority"], pod["created_ns"], pod["namespace"], pod["name"])
    ):
        if item["phase"] in FINISHED:
            continue
        reserved = "" if item["node_name"] else item.get("reserved", "")
        node = item["node_name"] or reserved or item["nominated_node"]
        if not node:
            continue
        found.setdefault(node, []).append(
            made_of(
                PodUse,
                item,
                node=node,
                nominated=not item["node_name"] and not reserved,
                held_in=("binding" if f"{item['namespace']}/{item['name']}" in binding else "permit")
                if reserved
                else "",
            )
        )
    for members in found.values():
        members.sort(key=lambda pod: (pod.nominated, pod.reserved))
    return found


def _lanes(brief: Mapping[str, Any], scale: PriorityScale) -> list[View]:
    now_ns = brief["clock_ns"]
    nothing: Mapping[str, Any] = {"count": 0, "items": ()}
    heads = {lane: brief["queue"].get(lane, nothing) for lane in LANES}
    lanes = {
        lane: [item_of(lane, position, item, now_ns) for position, item in enumerate(heads[lane]["items"], 1)]
        for lane in LANES
    }
    counts = {lane: head["count"] for lane, head in heads.items()}
    return view_lanes(lanes, counts, scale, now_ns=now_ns, limit=LANE_ITEMS)


MAX_TICKS = 160
_TABLES: Final = table_beside(__package__, "tables.yaml")
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
