"""Decisions of runs beside each other, and why they differ.

Two decisions stand beside each other if they are about the same pod's same attempt, counted from where the runs have
parted: never by the number of their cycle, which an edit on one side moves for all pods after it. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from playground.engine.words import of_one


class DecidedCycle(Protocol):
    """What is asked of a decision."""

    @property
    def number(self) -> int: ...
    @property
    def pod(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def node(self) -> str: ...


D = TypeVar("D", bound=DecidedCycle)


@dataclass(frozen=True, slots=True)
class Beside(Generic[D]):
    """The decisions about a pod's nth attempt, one a side; None where a side made none."""

    pod: str
    nth: int
    decisions: tuple[D | None, ...]

    @property
    def is_same(self) -> bool:
        """Whether all sides decided, and alike."""
        return len({None if one is None else (one.outcome, one.node) for one in self.decisions}) == 1


def beside(sides: Sequence[Sequence[D]]) -> list[Beside[D]]:
    """Align the decisions of all sides, in the order in which any of them made them first.

    Parameters
    ----------
    sides
        The decisions of each, in order, from where the runs have parted.
    """
    found: dict[tuple[str, int], tuple[int, int, list[D | None]]] = {}
    for side, decisions in enumerate(sides):
        attempts: Counter[str] = Counter()
        for place, one in enumerate(decisions):
            attempts[one.pod] += 1
            key = (one.pod, attempts[one.pod])
            earlier = found.get(key)
            row: list[D | None] = [None] * len(sides) if earlier is None else earlier[2]
            row[side] = one
            first = (place, side) if earlier is None else min((place, side), earlier[:2])
            found[key] = (*first, row)
    ordered = sorted(found.items(), key=lambda item: (item[1][:2], item[0]))
    return [Beside(pod, nth, tuple(row)) for (pod, nth), (_, _, row) in ordered]


Told = Mapping[str, Any] | None
"""The explanation of a cycle (`filter`, `scores`, `weights`, `total`, `tie`); None where none is kept."""


def why(
    pair: Beside[Any], told: tuple[Told, Told], names: tuple[str, str], was: tuple[str, str] = ("", "")
) -> str:
    """One sentence: which plugin, score or filter made the difference between two sides; empty where it is not known.

    Parameters
    ----------
    names
        What the sides are called within a sentence.
    was
        The node the pod is on, a side; for a side that did not decide.
    """
    a, b = pair.decisions
    if a is None or b is None:
        return _why_alone(pair, told, names, was)
    for here, other, name, others in ((0, 1, names[1], names[0]), (1, 0, names[0], names[1])):
        node = (a, b)[here].node
        rejected = _rejected(told[other], node)
        if node and rejected:
            return f"{rejected[0]} rejects {node} in {name} ({rejected[1]}), but not in {others}."
    if not a.node and not b.node:
        return f"No node fits on either side; {names[0]} ends with {a.outcome}, {names[1]} with {b.outcome}."
    if not a.node or not b.node:
        side, node = (1, b.node) if b.node else (0, a.node)
        if told[1 - side] is not None:
            return f"{node} is no candidate in {names[1 - side]}."
        return ""
    if told[0] is None or told[1] is None or a.node == b.node:
        return ""
    return _why_points(a.node, b.node, told[0], told[1], names)


def _why_alone(
    pair: Beside[Any], told: tuple[Told, Told], names: tuple[str, str], was: tuple[str, str]
) -> str:
    side = 0 if pair.decisions[0] is not None else 1
    name, other, stays = names[side], names[1 - side], was[1 - side]
    if not stays:
        return f"Only {name} decided this pod; in {other} it was not tried or does not exist."
    rejected = _rejected(told[side], stays)
    if rejected:
        return f"In {other} it stays on {stays}. In {name} {rejected[0]} rejects that node ({rejected[1]})."
    document = told[side]
    if document is not None and stays not in (document.get("total") or {}):
        return f"In {other} it stays on {stays}, which is no candidate in {name}."
    return f"In {other} it stays on {stays}; in {name} it is placed anew."


def _rejected(told: Told, node: str) -> tuple[str, str] | None:
    """The plugin that rejects a node, and its reasons."""
    verdict = ((told or {}).get("filter") or {}).get(node)
    if verdict is None:
        return None
    return str(verdict.get("plugin")), "; ".join(map(of_one, verdict.get("reasons") or ()))


def _why_points(
    x: str, y: str, in_a: Mapping[str, Any], in_b: Mapping[str, Any], names: tuple[str, str]
) -> str:
    """Why x has the most points on one side and y on the other: the plugin whose points moved most."""
    points = [points_of(document) for document in (in_a, in_b)]
    lead = [
        {plugin: by_node.get(x, 0) - by_node.get(y, 0) for plugin, by_node in side.items()} for side in points
    ]
    moved = {
        plugin: lead[0].get(plugin, 0) - lead[1].get(plugin, 0)
        for plugin in dict.fromkeys([*lead[0], *lead[1]])
    }
    totals = [document.get("total") or {} for document in (in_a, in_b)]
    most = max(sorted(moved), key=lambda plugin: moved[plugin], default="")
    if not most or moved[most] <= 0:
        if all(total.get(x) == total.get(y) for total in totals):
            return f"{x} and {y} have the same points on both sides: a tie, which a random draw settles."
        return f"{x} has the most points in {names[0]}, {y} in {names[1]}."
    told = "; ".join(
        f"in {name} {side.get(most, {}).get(x, 0)} to {x} and {side.get(most, {}).get(y, 0)} to {y}"
        for side, name in zip(points, names, strict=True)
    )
    return f"The points of {most} make the difference: {told}."


def points_of(document: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Plugin -> node -> weighted points."""
    weights = document.get("weights") or {}
    return {
        plugin: {node: score * weights.get(plugin, 1) for node, score in by_node.items()}
        for plugin, by_node in (document.get("scores") or {}).items()
    }


__all__ = ["Beside", "DecidedCycle", "beside", "points_of", "why"]
