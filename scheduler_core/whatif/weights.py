"""From which weight on another node would have won: in one cycle, for one score plugin at a time.

A total is linear in one weight, so each node is a line over that weight and the winner at each weight is the upper
hull of the lines. Where two lines of the hull cross, the winner switches; those points are fractions, computed
exactly. Scores after normalising do not depend on weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.record import CycleTrace


@dataclass(frozen=True, slots=True)
class Interval:
    """Weights over which the same nodes win.

    Attributes
    ----------
    start, end : Fraction
        Open at both ends, except that the first one begins at 0; the last one's end is None. At a switch point the
        winners of both sides tie.
    winners : tuple of str
        In evaluation order; several are equal over the whole interval.
    """

    start: Fraction
    end: Fraction | None
    winners: tuple[str, ...]

    def holds(self, weight: Fraction | int) -> bool:
        """Whether `weight` lies inside, ends left out."""
        return self.start < weight and (self.end is None or weight < self.end)


@dataclass(frozen=True, slots=True)
class Switch:
    """A point where the winner changes, and the whole weights on either side.

    Attributes
    ----------
    at : Fraction
    below, above : int
        The nearest whole weights on the two sides; `at` itself lies between them or is neither.
    """

    at: Fraction
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def below(self) -> int:
        """The largest whole weight below the point."""
        return -(-self.at.numerator // self.at.denominator) - 1

    @property
    def above(self) -> int:
        """The smallest whole weight above the point."""
        return self.at.numerator // self.at.denominator + 1


@dataclass(frozen=True, slots=True)
class PluginWeights:
    """One score plugin's weight, and who wins with which."""

    plugin: str
    weight: int
    intervals: tuple[Interval, ...]

    @property
    def switches(self) -> tuple[Switch, ...]:
        pairs = zip(self.intervals, self.intervals[1:], strict=False)
        return tuple(Switch(after.start, before.winners, after.winners) for before, after in pairs)

    def winners_at(self, weight: Fraction | int) -> tuple[str, ...]:
        """Who has the most points at this weight; both sides of a switch point."""
        inside = [item for item in self.intervals if item.holds(weight)]
        if inside:
            return inside[0].winners
        touching = [item for item in self.intervals if weight in (item.start, item.end)]
        return tuple(dict.fromkeys(name for item in touching for name in item.winners))


@dataclass(slots=True)
class CycleWeights:
    """What the weights decided in one cycle.

    Attributes
    ----------
    names : tuple of str
        Feasible nodes, in evaluation order.
    weights : dict of str to int
    scores : dict of str to ndarray of shape (n_nodes,), int64
        Normalised scores of each plugin that scored.
    rest : ndarray of shape (n_nodes,), int64
        Points that no plugin gave: the extenders'.
    """

    names: tuple[str, ...]
    weights: dict[str, int]
    scores: dict[str, NDArray[np.int64]]
    rest: NDArray[np.int64]
    skipped: tuple[str, ...] = ()

    @classmethod
    def of(cls, trace: CycleTrace) -> CycleWeights | None:
        """Read a full trace; None when the cycle compared no scores (none or one feasible node, an error)."""
        body = trace.body
        if body is None or "total" not in body.arrays:
            return None
        arrays = body.arrays
        order = np.argsort(arrays["feasible"], kind="stable")
        names = tuple(body.nodes[place] for place in arrays["feasible"][order].tolist())
        weights = {name: int(body.weights[name]) for name in body.scored_plugins}
        scores = {name: arrays["scores"][index][order] for index, name in enumerate(body.scored_plugins)}
        rest = arrays["total"][order].astype(np.int64)
        for name, column in scores.items():
            rest = rest - weights[name] * column
        return cls(names, weights, scores, rest, tuple(body.skipped_score))

    def totals(self, changed: Mapping[str, int] | None = None) -> NDArray[np.int64]:
        """Points with other weights for some plugins."""
        total = self.rest.copy()
        for name, column in self.scores.items():
            total += (changed or {}).get(name, self.weights[name]) * column
        return total

    def winners(self, changed: Mapping[str, int] | None = None) -> tuple[str, ...]:
        """Who has the most points with other weights for some plugins."""
        totals = self.totals(changed)
        return tuple(self.names[place] for place in np.flatnonzero(totals == totals.max()).tolist())

    def of_plugin(self, plugin: str, changed: Mapping[str, int] | None = None) -> PluginWeights:
        """Who wins with which weight of one plugin, the others as set."""
        weights = {**self.weights, **(changed or {})}
        slopes = self.scores[plugin]
        base = self.totals(weights) - weights[plugin] * slopes
        return PluginWeights(plugin, self.weights[plugin], upper_hull(self.names, base, slopes))

    def all_plugins(self, changed: Mapping[str, int] | None = None) -> tuple[PluginWeights, ...]:
        return tuple(self.of_plugin(name, changed) for name in self.scores)


def upper_hull(
    names: Sequence[str], base: NDArray[np.int64], slopes: NDArray[np.int64]
) -> tuple[Interval, ...]:
    """Which of the lines `base + weight * slope` is on top, for weights from 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> for part in upper_hull(("a", "b"), np.array([10, 3]), np.array([1, 3])):
    ...     print(part.start, part.end, part.winners)
    0 7/2 ('a',)
    7/2 None ('b',)
    """
    # Of the lines with one slope only the highest can be on top: at most 101 are left.
    top: dict[int, int] = {}
    for slope, height in zip(slopes.tolist(), base.tolist(), strict=True):
        top[slope] = max(height, top.get(slope, height))
    lines = sorted(top.items())
    slope, height = max(lines, key=lambda line: (line[1], line[0]))
    start = Fraction(0)
    intervals = []
    while True:
        steeper = [
            (Fraction(height - other_height, other - slope), -other, other_height)
            for other, other_height in lines
            if other > slope
        ]
        crossing = min(steeper, default=None)
        winners = tuple(
            names[place] for place in np.flatnonzero((slopes == slope) & (base == height)).tolist()
        )
        end = None if crossing is None else crossing[0]
        if end is None or end > start:
            intervals.append(Interval(start, end, winners))
        if crossing is None:
            return tuple(intervals)
        start, slope, height = crossing[0], -crossing[1], crossing[2]


def weights_document(found: CycleWeights, changed: Mapping[str, int] | None = None) -> dict[str, Any]:
    """JSON-able: for each plugin its intervals and switch points, fractions as text and as numbers."""
    plugins = []
    for item in found.all_plugins(changed):
        plugins.append(
            {
                "plugin": item.plugin,
                "weight": item.weight,
                "intervals": [
                    {
                        "start": number(part.start),
                        "end": None if part.end is None else number(part.end),
                        "winners": list(part.winners[:20]),
                        "nWinners": len(part.winners),
                    }
                    for part in item.intervals
                ],
                "switches": [
                    {
                        "at": number(switch.at),
                        "below": switch.below,
                        "above": switch.above,
                        "before": list(switch.before[:20]),
                        "after": list(switch.after[:20]),
                    }
                    for switch in item.switches
                ],
            }
        )
    return {
        "weights": dict(found.weights),
        "winners": list(found.winners(changed)[:20]),
        "skipped": list(found.skipped),
        "plugins": plugins,
    }


def number(value: Fraction) -> dict[str, Any]:
    """`{"text": "10/3", "value": 3.333}`."""
    return {"text": str(value), "value": round(float(value), 4)}
