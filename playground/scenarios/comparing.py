"""Runs side by side: where they part, what each plugin said there, who landed elsewhere, how nodes are packed.

Pure: two `Side`s or more in, JSON-able data out. A side is named by its letter: a, b, c, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from scheduler_core.scenario import difference

MOVED_LIMIT: Final = 2000
PACKING_LIMIT: Final = 400
SCORE_ROWS: Final = 12
LETTERS: Final = "abcdef"
"""Names of the sides, and how many there may be."""

Explain = Callable[[int], Mapping[str, Any] | None]


class SaidCycle(difference.DecidedCycle, Protocol):
    """What is read of a cycle; a row has it."""

    @property
    def sentence(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Side:
    """One of them.

    Attributes
    ----------
    decisions
        Cycles from the first, in order.
    state
        What it looked like then (`engine.moments`), figures included.
    explain
        The explanation of a cycle, None where none is kept.
    since
        Another side is a branch of this one, made after so many of its cycles: those are no difference.
    """

    words: str
    detail: str
    decisions: Sequence[SaidCycle]
    state: Mapping[str, Any]
    explain: Explain
    start_ns: int
    violations: int
    since: int = 0


def compare_sides(sides: Sequence[Side]) -> dict[str, Any]:
    """Compare two sides or more.

    Returns
    -------
    dict
        ``sides``, ``figures`` (name -> a number a side), ``nSame`` (decisions that are the same on all sides before
        the first that is not), ``divergence`` (the first of `difference.partings`, or None), ``moved``,
        ``nMoved``, ``packing`` (nodes in order, each with its pods on every side), ``nNodes``. What one side did
        stands at its place in a list; in lists called ``sides`` with its name.
    """
    places = [_places(side) for side in sides]
    ends = [{pod: place["node"] for pod, place in found.items()} for found in places]
    shared = [one for side in sides for one in side.decisions if one.number <= side.since]
    pairs = difference.beside(
        [[one for one in side.decisions if one.number > side.since] for side in sides], ends, shared
    )
    parted = next(iter(difference.partings(pairs, ends)), None)
    moved = _moved(sides, places)
    packing = _packing([side.state for side in sides])
    return {
        "sides": [{"name": name, **_about(side)} for name, side in zip(LETTERS, sides, strict=False)],
        "figures": _figures(sides),
        "nSame": difference.n_same(pairs),
        "divergence": None if parted is None else _divergence(sides, parted, ends),
        "moved": moved[:MOVED_LIMIT],
        "nMoved": len(moved),
        "packing": packing[:PACKING_LIMIT],
        "nNodes": len(packing),
        "classes": max((side.state["classes"] for side in sides), key=len),
    }


def _about(side: Side) -> dict[str, Any]:
    return {
        "words": side.words,
        "detail": side.detail,
        "cycles": len(side.decisions),
        "elapsedNs": side.state["clock_ns"] - side.start_ns,
    }


def _figures(sides: Sequence[Side]) -> dict[str, list[float]]:
    numbers = [_numbers(side) for side in sides]
    names = dict.fromkeys(name for found in numbers for name in found)
    return {name: [found.get(name, 0) for found in numbers] for name in names}


def _numbers(side: Side) -> dict[str, float]:
    figures = dict(side.state.get("figures") or {})
    alive = [pod for pod in side.state["pods"] if pod["phase"] not in ("Succeeded", "Failed")]
    return {
        "pods": len(alive),
        "cycles": len(side.decisions),
        "preemptions": sum(one.outcome == "preempting" for one in side.decisions),
        "budgetViolations": side.violations,
        **figures,
    }


def _divergence(
    sides: Sequence[Side], pair: difference.Beside[SaidCycle], ends: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    cycles = pair.decisions
    at = [end.get(pair.pod) for end in ends]
    told = [side.explain(cycle.number) if cycle else None for side, cycle in zip(sides, cycles, strict=True)]
    present = next(cycle for cycle in cycles if cycle is not None)
    return {
        "cycle": present.number,
        "pod": present.pod,
        "samePod": all(cycle is not None for cycle in cycles),
        "attempt": pair.nth,
        "why": difference.why(pair, (told[0], told[1]), ("A", "B"), (at[0], at[1]))
        if len(sides) == 2
        else "",
        "sides": [
            {"name": name, "decision": _said(cycle)} for name, cycle in zip(LETTERS, cycles, strict=False)
        ],
        "notes": [
            "" if cycle else difference.no_decision(end) for cycle, end in zip(cycles, at, strict=True)
        ],
        "plugins": _plugins(told),
        "rows": _score_rows(told, cycles),
        "reasons": [
            {"node": node, "reasons": list(reasons)}
            for node, reasons in (difference.reasons_apart(told) if all(told) else {}).items()
        ][:SCORE_ROWS],
        "ties": [len(((document or {}).get("tie") or {}).get("nodes") or ()) for document in told],
    }


def _said(cycle: SaidCycle | None) -> dict[str, Any] | None:
    if cycle is None:
        return None
    return {
        "number": cycle.number,
        "pod": cycle.pod,
        "outcome": cycle.outcome,
        "node": cycle.node,
        "sentence": cycle.sentence,
        "message": cycle.message,
    }


def _plugins(told: Sequence[Mapping[str, Any] | None]) -> list[list[dict[str, Any]]]:
    """Score plugins of either side with their weights, those that scored."""
    return [
        [
            {"name": name, "weight": (document.get("weights") or {}).get(name, 1)}
            for name in (document.get("scores") or {})
        ]
        if document
        else []
        for document in told
    ]


def _score_rows(
    told: Sequence[Mapping[str, Any] | None], cycles: Sequence[SaidCycle | None]
) -> list[dict[str, Any]]:
    """The winners first, then the nodes whose totals differ most."""
    totals = [dict((document or {}).get("total") or {}) for document in told]
    winners = [cycle.node for cycle in cycles if cycle is not None and cycle.node]

    def spread(node: str) -> int:
        found: list[int] = [total.get(node, 0) for total in totals]
        return max(found) - min(found)

    others = sorted(
        {node for total in totals for node in total} - set(winners), key=lambda node: (-spread(node), node)
    )
    rows = []
    by_plugin = [difference.points_of(document or {}) for document in told]
    for node in list(dict.fromkeys((*winners, *others)))[:SCORE_ROWS]:
        points = [
            {plugin: given[node] for plugin, given in found.items() if node in given}
            if node in total
            else None
            for found, total in zip(by_plugin, totals, strict=True)
        ]
        rows.append(
            {
                "node": node,
                "points": points,
                "totals": [found.get(node) for found in totals],
                "chosen": [cycle is not None and cycle.node == node for cycle in cycles],
            }
        )
    return rows


def _moved(sides: Sequence[Side], places: Sequence[Mapping[str, dict[str, str]]]) -> list[dict[str, Any]]:
    """Pods that are not in the same place on all sides; those that have a node on some sides only come first."""
    pods = {
        f"{pod['namespace']}/{pod['name']}": pod for side in reversed(sides) for pod in side.state["pods"]
    }
    last_cycle = {one.pod: one.number for side in reversed(sides) for one in side.decisions}
    moved = []
    for pod in sorted({pod for found in places for pod in found}):
        at = [found.get(pod) or _absent(side, pod) for side, found in zip(sides, places, strict=True)]
        if all(place == at[0] for place in at):
            continue
        facts = pods.get(pod, {})
        moved.append(
            {
                "pod": pod,
                "cycle": last_cycle.get(pod),
                "cpuMilli": facts.get("cpu_milli", 0),
                "priority": facts.get("priority", 0),
                "priorityClass": facts.get("priority_class", ""),
                "sides": [{"name": name, **place} for name, place in zip(LETTERS, at, strict=False)],
            }
        )
    moved.sort(
        key=lambda item: (
            len({bool(place["node"]) for place in item["sides"]}) == 1, item["cycle"] or 0, item["pod"],
        )
    )  # fmt: skip
    return moved


def _absent(side: Side, pod: str) -> dict[str, str]:
    """A pod that had its turn and is gone was evicted or deleted."""
    was_there = any(one.pod == pod for one in side.decisions)
    return {"node": "", "state": "gone" if was_there else "not there"}


def _places(side: Side) -> dict[str, dict[str, str]]:
    lanes = {item["pod"]: lane for lane, items in (side.state.get("queue") or {}).items() for item in items}
    words = {
        "unschedulable": "unschedulable",
        "permit": "waiting at Permit",
        "binding": "waiting for its Binding",
        "gated": "gated",
        "backoff": "backing off",
    }
    found = {}
    for pod in side.state["pods"]:
        key = f"{pod['namespace']}/{pod['name']}"
        node = pod["node_name"]
        state = "" if node else words.get(lanes.get(key, ""), "pending")
        found[key] = {"node": node, "state": state}
    return found


def _packing(states: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every node with its pods on every side; those that differ first in a large cluster."""
    pods = [_by_node(state) for state in states]
    nodes = [{node["name"]: node for node in state["nodes"]} for state in states]
    rows = []
    for name in dict.fromkeys(name for found in nodes for name in found):
        rows.append(
            {
                "node": name,
                "cpuMilli": [found.get(name, {}).get("cpu_milli", 0) for found in nodes],
                "memoryBytes": [found.get(name, {}).get("memory_bytes", 0) for found in nodes],
                "there": [name in found for found in nodes],
                "pods": [found.get(name, []) for found in pods],
            }
        )
    if len(rows) > PACKING_LIMIT:
        rows.sort(key=_is_packed_alike)
    return rows


def _is_packed_alike(row: Mapping[str, Any]) -> bool:
    return len({tuple(pod["name"] for pod in pods) for pods in row["pods"]}) == 1


def _by_node(state: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for pod in sorted(state["pods"], key=lambda pod: (-pod["priority"], pod["namespace"], pod["name"])):
        if pod["node_name"] and pod["phase"] not in ("Succeeded", "Failed"):
            found.setdefault(pod["node_name"], []).append(
                {
                    key: pod[key]
                    for key in (
                        "namespace", "name", "priority", "priority_class", "cpu_milli", "memory_bytes", "terminating",
                    )
                }
            )  # fmt: skip
    return found
