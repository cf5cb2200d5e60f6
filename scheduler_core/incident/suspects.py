"""The common cause of decisions that differ from ours: a filter or weight of the scheduler, or nodes it does not see.

One such decision is explained by much: a cache that is behind, another weight, a filter left out. What explains most of
an author's is their cause. From then on a decision that the cause explains is named by it, and no states of a cache are
tried for it: without that, every third decision of a scheduler with another weight is one of some moment before.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from scheduler_core.clock import SECOND_NS
from scheduler_core.whatif.judge import (
    CACHE,
    FILTER,
    INFEASIBLE,
    NODES,
    SCORE,
    WEIGHT,
    CauseOfDifference,
    Judgement,
)

KEPT: Final = 200
"""Decisions of an author that are remembered."""
LEAST: Final = 6
"""So many decisions must say the same, and this share of those that are remembered."""
LEAST_SHARE: Final = 0.03
MOST_CAUSES: Final = 3
NEARLY: Final = 0.9
WEIGHTS: Final = np.arange(-20, 101)
"""A weight below 0 is a score that prefers the opposite, as MostAllocated does."""

Unlike = tuple[Judgement, Judgement | None]
"""A verdict, and that on the nodes of long before, if those explain the decision."""


@dataclass(frozen=True, slots=True)
class CommonCause:
    """What explains decisions of an author.

    Attributes
    ----------
    low, high
        The weights that do, if it is a weight.
    also
        Weights of other plugins that explain nearly as much.
    """

    kind: str
    plugin: str = ""
    low: int = 0
    high: int = 0
    also: tuple[tuple[str, int, int], ...] = ()

    def explains(self, found: Unlike) -> bool:
        """Whether it explains a decision that ours would not take."""
        verdict, before = found
        if self.kind == NODES:
            return before is not None
        if self.kind == WEIGHT:
            return any(
                name == self.plugin and low <= self.high and high >= self.low
                for name, low, high in verdict.weights
            )
        is_filter = verdict.verdict == INFEASIBLE
        return verdict.plugin == self.plugin and is_filter == (self.kind == FILTER)

    def named(self, found: Unlike) -> Judgement:
        """The verdict with this as what parts them."""
        verdict, before = found
        if before is not None and self.kind == NODES:
            return before
        if self.kind != WEIGHT:
            return replace(verdict, cause=CauseOfDifference(self.kind, self.plugin))
        cause = CauseOfDifference(WEIGHT, self.plugin, ((self.plugin, self.low, self.high), *self.also))
        return replace(verdict, plugin=self.plugin, score=None, our_score=None, cause=cause)


@dataclass(slots=True)
class _Author:
    """The last decisions of one scheduler: None for one that agrees."""

    last: deque[Unlike | None] = field(default_factory=lambda: deque(maxlen=KEPT))
    causes: tuple[CommonCause, ...] = ()
    n_explained: int = 0


class Suspects:
    """Authors of decisions, and the causes that are known of each."""

    def __init__(self) -> None:
        self._authors: dict[str, _Author] = {}

    def agreed(self, author: str) -> None:
        """A decision is as ours, or would be on a state a moment before."""
        of = self._of(author)
        of.last.append(None)
        if of.causes:
            of.causes = tuple(cause for cause in of.causes if _is_established(cause, of.last))

    def overlooks(self, author: str) -> bool:
        """Whether an author does not see what becomes of nodes."""
        return any(cause.kind == NODES for cause in self._of(author).causes)

    def explained(self, author: str, found: Unlike) -> Judgement | None:
        """A verdict by a cause that is known of its author; None where none explains it."""
        of = self._of(author)
        cause = next((cause for cause in of.causes if cause.explains(found)), None)
        if cause is None:
            return None
        of.last.append(found)
        of.n_explained += 1
        if not of.n_explained % LEAST:
            of.causes = tuple(_causes(of.last))
        return cause.named(found)

    def differs(self, author: str, found: Unlike) -> Judgement:
        """The verdict on a decision that no moment before explains."""
        of = self._of(author)
        of.last.append(found)
        of.causes = tuple(_causes(of.last))
        return next((cause.named(found) for cause in of.causes if cause.explains(found)), _unnamed(found))

    def _of(self, author: str) -> _Author:
        return self._authors.setdefault(author, _Author())


def _unnamed(found: Unlike) -> Judgement:
    """A verdict without a cause, with what would explain it alone."""
    verdict, before = found
    weights = []
    for plugin, low, high in verdict.weights:
        first, last = math.ceil(max(low, WEIGHTS[0])), math.floor(min(high, WEIGHTS[-1]))
        weights += [(plugin, first, last)] if first <= last else []
    unseen = CauseOfDifference() if before is None or before.cause is None else before.cause
    return replace(verdict, cause=replace(unseen, kind="", plugin=verdict.plugin, weights=tuple(weights)))


# ---- in words


def words_of(cause: CauseOfDifference, verdict: str) -> str:
    """A cause as a sentence; of one that is not known, what would explain the decision."""
    if cause.kind == CACHE:
        by = f" by {cause.plugin}" if cause.plugin else ""
        return f"On the newest state ours is {cause.node or 'no node'}{by}: its cache was {_unseen(cause)}."
    weights = " or ".join(_weight(*one) for one in cause.weights)
    known = {
        NODES: f"it does not see changes of nodes, what it has of them was {_unseen(cause)}",
        FILTER: f"it leaves {cause.plugin} out",
        SCORE: f"it scores {cause.plugin} otherwise",
        WEIGHT: f"its configuration has another weight, as if {weights}",
    }
    if cause.kind in known:
        return f"Cause: {known[cause.kind]}."
    could = [f"a configuration in which {weights}"] if weights else []
    if verdict == INFEASIBLE and cause.plugin:
        could.append(f"a configuration without {cause.plugin}")
    if cause.n_changes:
        could.append(f"a cache of nodes that is {_unseen(cause)}")
    if not could:
        return "Cause not known: neither another weight nor the state of a moment before explains it."
    return f"Cause not known. It could be {', or '.join(could)}."


def _weight(plugin: str, low: int, high: int) -> str:
    if high < 0:
        return f"{plugin} preferred the opposite"
    if low == 0:
        return f"{plugin} were left out"
    return f"{plugin} had a weight of {low}" + (f" to {high}" if high > low else "")


def _unseen(cause: CauseOfDifference) -> str:
    about = ", ".join(f"{kind} {'/'.join(filter(None, place))}" for kind, *place in cause.unseen)
    changes = f"{cause.n_changes} change{'s' if cause.n_changes != 1 else ''}"
    return f"{cause.age_ns / SECOND_NS:.1f} s old, without the last {changes} (of {about})"


def _least(last: Sequence[Unlike | None]) -> float:
    return max(LEAST, LEAST_SHARE * len(last))


def _is_established(cause: CommonCause, last: Sequence[Unlike | None]) -> bool:
    return sum(found is not None and cause.explains(found) for found in last) >= _least(last)


def _causes(last: Sequence[Unlike | None]) -> Iterator[CommonCause]:
    """The causes of what was decided last: that which explains most, and of what is left, likewise."""
    left = [found for found in last if found is not None]
    for _ in range(MOST_CAUSES):
        if len(left) < _least(last):
            return
        possible = list(_possible(left))
        # Of a plugin left out and a weight that explain as many, it is the weight until more is known.
        cause, n = max(possible, key=lambda item: (item[1], item[0].low > 0))
        if n < _least(last):
            return
        if cause.kind == WEIGHT:
            others = [one for one, n_one in possible if one.kind == WEIGHT and n_one >= NEARLY * n]
            also = tuple((one.plugin, one.low, one.high) for one in others if one is not cause)
            cause = replace(cause, also=also)
        yield cause
        left = [found for found in left if not cause.explains(found)]


def _possible(unlike: Sequence[Unlike]) -> Iterator[tuple[CommonCause, float]]:
    """Causes with how many decisions each explains; of those that explain as many, the plainest first."""
    yield CommonCause(NODES), sum(before is not None for _, before in unlike)
    plugins = Counter((verdict.verdict == INFEASIBLE, verdict.plugin) for verdict, _ in unlike)
    for (is_filter, plugin), n in plugins.items():
        if is_filter:
            yield CommonCause(FILTER, plugin), n
    ranges: dict[str, list[tuple[float, float]]] = {}
    for verdict, _ in unlike:
        for plugin, low, high in verdict.weights:
            ranges.setdefault(plugin, []).append((low, high))
    for plugin, bounds in ranges.items():
        lows, highs = np.array(bounds).T
        n_explained = np.sum((lows[:, None] <= WEIGHTS) & (highs[:, None] >= WEIGHTS), axis=0)
        best = WEIGHTS[n_explained == n_explained.max()].tolist()
        run = next((place for place in range(1, len(best)) if best[place] != best[0] + place), len(best))
        yield CommonCause(WEIGHT, plugin, best[0], best[run - 1]), int(n_explained.max())
    # That a score is another explains whatever it parts; a weight that explains nearly as much says more.
    for (is_filter, plugin), n in plugins.items():
        if not is_filter and plugin:
            yield CommonCause(SCORE, plugin), 0.8 * n
