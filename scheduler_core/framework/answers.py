"""Answers kept from one cycle to the next.

Many pods ask the same question: a replica differs from the one before by its name alone, and between the two
cycles one node changed. A plugin says what its answer depends on (`Reads`) and what it reads of a pod (`sign`), so
an answer can be kept as columns and only the rows the journals name need asking again. The kept answer is exactly
what asking every row afresh would give; `tests/scheduler_core/framework/test_answers.py` holds the two together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.journal import Journal, JournalReader, grown
from scheduler_core.cluster.node_table import NodeColumns, NodeTable, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.framework.distinct import tally
from scheduler_core.framework.interface import FilterPlugin, Reads, ScorePlugin, Scores
from scheduler_core.framework.status import Code
from scheduler_core.objects.pod import BySpec, Pod
from scheduler_core.thresholds import thresholds

PASSES = 127
"""In `stop` columns: no filter plugin of this layer rejects the row."""

_KEPT = 512
"""How many layers are kept for each extension point; the least recently used goes."""


Rejections = tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]
"""(stop, code, detail) of some rows, as in `Layer`."""
K = TypeVar("K", bound=Hashable)
L = TypeVar("L")

_KEPT_NOMINATED = 16
_KEPT_JOINED = 64


class Layer:
    """The first rejection of every row by some filter plugins.

    Attributes
    ----------
    stop : ndarray of shape (capacity,), int8
        Position (in the profile's filter order) of the first plugin that rejects the row, or `PASSES`.
    code, detail : ndarray of shape (capacity,), int8 and int64
        Its verdict.
    news : Journal
        Rows whose verdict became another.
    """

    __slots__ = ("code", "detail", "journal", "news", "position", "stop")

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.position = -1
        self.stop: NDArray[np.int8] = np.zeros(0, np.int8)
        self.code: NDArray[np.int8] = np.zeros(0, np.int8)
        self.detail: NDArray[np.int64] = np.zeros(0, np.int64)
        self.news = Journal()

    def refresh(
        self,
        plugins: Sequence[tuple[int, FilterPlugin[Any]]],
        states: dict[str, Any],
        pod: Pod,
        snapshot: Snapshot,
    ) -> None:
        """Ask again about the rows that changed since last time."""
        rows = stale_rows(self.journal, self.position, snapshot, len(self.stop))
        if rows is not None and len(rows):
            self._ask(plugins, states, pod, snapshot.nodes, rows)
        # Not before: what a plugin that raised was asked about is asked again.
        self.position = self.journal.position

    def _ask(
        self,
        plugins: Sequence[tuple[int, FilterPlugin[Any]]],
        states: dict[str, Any],
        pod: Pod,
        nodes: NodeTable,
        rows: Rows,
    ) -> None:
        if len(self.stop) != nodes.capacity:
            self.stop = grown(self.stop, nodes.capacity, PASSES)  # type: ignore[assignment]
            self.code = grown(self.code, nodes.capacity)  # type: ignore[assignment]
            self.detail = grown(self.detail, nodes.capacity)  # type: ignore[assignment]
        # A pod more or less on a node seldom changes what is said of it.
        if len(rows) == 1 <= thresholds().single_rows:
            row, new = int(rows[0]), first_rejection(plugins, states, pod, nodes, rows)
            if new != (self.stop.item(row), self.code.item(row), self.detail.item(row)):
                self.stop[row], self.code[row], self.detail[row] = new
                self.news.record(row)
            return
        stop, code, detail = first_rejections(plugins, states, pod, nodes, rows)
        other = (self.stop[rows] != stop) | (self.code[rows] != code) | (self.detail[rows] != detail)
        if np.count_nonzero(other):
            self.stop[rows], self.code[rows], self.detail[rows] = stop, code, detail
            self.news.record_all(rows[other].tolist())


class JoinedLayers:
    """What the filters of two layers say about all rows, and what is read of it; the same for as long as they say so.

    Attributes
    ----------
    rows : ndarray of intp
        `Snapshot.rows`.
    stop, code, detail : ndarray aligned with `rows`
        As in `Layer`; not to be written to.
    feasible : ndarray of intp
        The rows no plugin rejects; `rows` itself when these are all.
    has_errors : bool
        Some plugin answered with an error.
    rejected : dict of Code to ndarray of int64
        What `Attempt.rejected_rows` has found in it.
    """

    __slots__ = (
        "_order", "_positions", "_tally", "code", "detail", "feasible", "has_errors", "rejected", "rows", "stop"
    )  # fmt: skip

    def __init__(self, spec: Layer, usage: Layer, snapshot: Snapshot) -> None:
        self._positions = spec.news.position, usage.news.position
        self._tally: list[tuple[int, int]] | None = None
        self.rejected: dict[Code, Rows] = {}
        self.rows, self._order = snapshot.rows, snapshot.order
        self.stop, self.code, self.detail = first_of_two(spec, usage, snapshot.take)
        for column in (self.stop, self.code, self.detail):
            column.setflags(write=False)
        self.feasible = passing(self.rows, self.stop)
        self.has_errors = bool(np.count_nonzero(self.code == Code.Error))

    def stands(self, spec: Layer, usage: Layer, snapshot: Snapshot) -> bool:
        """Whether making it anew would give the same."""
        if self.rows is not snapshot.rows or self._order is not snapshot.order:
            return False
        positions = spec.news.position, usage.news.position
        if positions == self._positions:
            return True
        news = [
            layer.news.since(position, thresholds().news)
            for layer, position in zip((spec, usage), self._positions, strict=True)
        ]
        if news[0] is None or news[1] is None:
            return False
        alive, has_holes = snapshot.nodes.alive, not isinstance(snapshot.take, slice)
        for row in (*news[0], *news[1]):
            if not alive[row]:
                continue
            # News of a row that the other layer rejects before are none.
            first = spec if spec.stop.item(row) <= usage.stop.item(row) else usage
            place = int(self.rows.searchsorted(row)) if has_holes else row
            if (
                first.stop.item(row) != self.stop.item(place)
                or first.code.item(row) != self.code.item(place)
                or first.detail.item(row) != self.detail.item(place)
            ):
                return False
        self._positions = positions
        return True

    def tally(self) -> list[tuple[int, int]]:
        """`tally` of the verdicts of rejected rows."""
        if self._tally is None:
            self._tally = tally(self.stop != PASSES, self.stop, self.code, self.detail)
        return self._tally


def passing(rows: Rows, stop: NDArray[np.int8]) -> Rows:
    """The rows no plugin rejects."""
    passes = stop == PASSES
    # All of them is the usual case, and the same array as in the cycle before.
    return rows if np.count_nonzero(passes) == len(passes) else rows.take(passes.nonzero()[0])


def stale_rows(journal: Journal, position: int, snapshot: Snapshot, capacity: int) -> Rows | None:
    """Rows to ask again: None for none, all when it is not known which."""
    nodes = snapshot.nodes
    if position < 0 or capacity != nodes.capacity:
        return snapshot.rows
    if position == journal.position:
        return None
    changed = journal.since(position, thresholds().most_changes(len(snapshot.rows)))
    if changed is None:
        return snapshot.rows
    rows = np.array(changed, np.intp)
    return rows if len(changed) == 1 and nodes.alive.item(changed[0]) else rows[nodes.alive[rows]]


def first_rejections(
    plugins: Sequence[tuple[int, FilterPlugin[Any]]],
    states: dict[str, Any],
    pod: Pod,
    nodes: NodeColumns,
    rows: Rows,
) -> Rejections:
    """Run filter plugins in order, each on the rows no earlier one rejected.

    Returns
    -------
    stop, code, detail : ndarray of shape (len(rows),)
        As in `Layer`.
    """
    n_rows = len(rows)
    stop = np.full(n_rows, PASSES, np.int8)
    code = np.zeros(n_rows, np.int8)
    detail = np.zeros(n_rows, np.int64)
    left: NDArray[np.intp] | None = None
    for position, plugin in plugins:
        asked = rows if left is None else rows[left]
        if not len(asked):
            break
        verdicts = plugin.filter(states.get(plugin.name), pod, nodes, asked)
        rejected = verdicts.codes.nonzero()[0]
        if not len(rejected):
            continue
        places = rejected if left is None else left[rejected]
        stop[places] = position
        code[places] = verdicts.codes[rejected]
        if verdicts.details is not None:
            detail[places] = verdicts.details[rejected]
        left = (verdicts.codes == 0).nonzero()[0] if left is None else left[verdicts.codes == 0]
    return stop, code, detail


def first_rejection(
    plugins: Sequence[tuple[int, FilterPlugin[Any]]],
    states: dict[str, Any],
    pod: Pod,
    nodes: NodeColumns,
    rows: Rows,
) -> tuple[int, int, int]:
    """`first_rejections` of one row: between two cycles one changes, and arrays would cost more than answers."""
    for position, plugin in plugins:
        verdicts = plugin.filter(states.get(plugin.name), pod, nodes, rows)
        code = verdicts.codes.item(0)
        if code:
            return position, code, 0 if verdicts.details is None else verdicts.details.item(0)
    return PASSES, 0, 0


def first_of_two(spec: Layer, usage: Layer, take: Rows | slice) -> Rejections:
    """(stop, code, detail) of rows by the filters of two layers together."""
    spec_stop, usage_stop = spec.stop[take], usage.stop[take]
    stop: NDArray[np.int8] = np.minimum(spec_stop, usage_stop)
    if not np.count_nonzero(stop != PASSES):
        return stop, np.zeros(len(stop), np.int8), np.zeros(len(stop), np.int64)
    by_spec = spec_stop <= usage_stop
    code = np.where(by_spec, spec.code[take], usage.code[take])
    return stop, code, np.where(by_spec, spec.detail[take], usage.detail[take])


class NominatedLayer:
    """Verdicts of all filters about all rows, once as they stand and once as if the pods nominated to them ran there.

    Attributes
    ----------
    stop, code, detail : ndarray of shape (capacity,)
        As in `Layer`; a row that is rejected beside the pods nominated to it has that verdict.
    """

    __slots__ = ("code", "detail", "reader", "stop")

    def __init__(self) -> None:
        self.reader = JournalReader()
        self.forget(0)

    def forget(self, capacity: int) -> None:
        """Begin anew, with room for so many rows."""
        self.stop: NDArray[np.int8] = np.zeros(capacity, np.int8)
        self.code: NDArray[np.int8] = np.zeros(capacity, np.int8)
        self.detail: NDArray[np.int64] = np.zeros(capacity, np.int64)


class ScoreLayer:
    """Raw scores of every row by plugins that need no normalizing, and their weighted sum.

    Attributes
    ----------
    raw : ndarray of shape (n_plugins, capacity), int64
    total : ndarray of shape (capacity,), int64
        Sum of raw times weight.
    points : tuple or None
        What an attempt made of this layer last (`Attempt._points`): the rows it was about, their raw scores, their
        normalized ones, and these times the weight. Forgotten when any row changes.
    """

    __slots__ = ("journal", "points", "position", "raw", "total")

    def __init__(self, journal: Journal, n_plugins: int) -> None:
        self.journal = journal
        self.position = -1
        self.raw: NDArray[np.int64] = np.zeros((n_plugins, 0), np.int64)
        self.total: NDArray[np.int64] = np.zeros(0, np.int64)
        self.points: tuple[Rows, Scores, Scores, Scores | None] | None = None

    def refresh(
        self,
        plugins: Sequence[tuple[ScorePlugin[Any], int]],
        states: dict[str, Any],
        pod: Pod,
        snapshot: Snapshot,
    ) -> None:
        """Ask again about the rows that changed since last time."""
        rows = stale_rows(self.journal, self.position, snapshot, len(self.total))
        if rows is not None and len(rows):
            self._ask(plugins, states, pod, snapshot.nodes, rows)
        self.position = self.journal.position

    def _ask(
        self,
        plugins: Sequence[tuple[ScorePlugin[Any], int]],
        states: dict[str, Any],
        pod: Pod,
        nodes: NodeTable,
        rows: Rows,
    ) -> None:
        self.points = None
        if len(self.total) != nodes.capacity:
            self.raw = grown(self.raw, nodes.capacity)  # type: ignore[assignment]
            self.total = grown(self.total, nodes.capacity)  # type: ignore[assignment]
        if len(rows) == 1 <= thresholds().single_rows:
            row, sum_of_row = int(rows[0]), 0
            for index, (plugin, weight) in enumerate(plugins):
                score = plugin.score(states.get(plugin.name), pod, nodes, rows).item(0)
                self.raw[index, row] = score
                sum_of_row += weight * score
            self.total[row] = sum_of_row
            return
        total = np.zeros(len(rows), np.int64)
        for index, (plugin, weight) in enumerate(plugins):
            scores = plugin.score(states.get(plugin.name), pod, nodes, rows)
            self.raw[index, rows] = scores
            total += weight * scores
        self.total[rows] = total


def kept(layers: OrderedDict[K, L], key: K, made: L, most: int) -> L:
    """Keep something new under a key; of more than `most` the least recently used goes."""
    layers[key] = made
    if len(layers) > most:
        layers.popitem(last=False)
    return made


class Answers:
    """The layers of one profile over one cluster."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._filters: OrderedDict[Hashable, Layer] = OrderedDict()
        self._scores: OrderedDict[Hashable, ScoreLayer] = OrderedDict()
        self._nominated: OrderedDict[Hashable, NominatedLayer] = OrderedDict()
        self._joined: OrderedDict[tuple[Layer, Layer], JoinedLayers] = OrderedDict()

    def filter_layer(self, key: Hashable, journal: Journal) -> Layer:
        """The layer kept under `key`, a fresh one when there is none."""
        layer = self._filters.get(key)
        if layer is None:
            return kept(self._filters, key, Layer(journal), _KEPT)
        self._filters.move_to_end(key)
        return layer

    def joined(self, spec: Layer, usage: Layer, snapshot: Snapshot) -> JoinedLayers:
        """What the two layers say together about all rows."""
        joined = self._joined.get((spec, usage))
        if joined is None or not joined.stands(spec, usage, snapshot):
            joined = kept(self._joined, (spec, usage), JoinedLayers(spec, usage, snapshot), _KEPT_JOINED)
        self._joined.move_to_end((spec, usage))
        return joined

    def nominated_layer(self, key: Hashable) -> NominatedLayer:
        """The layer of rows with nominated pods kept under `key`, a fresh one when there is none."""
        layer = self._nominated.get(key)
        if layer is None:
            return kept(self._nominated, key, NominatedLayer(), _KEPT_NOMINATED)
        self._nominated.move_to_end(key)
        return layer

    def score_layer(self, key: Hashable, plugins: Sequence[tuple[ScorePlugin[Any], int]]) -> ScoreLayer:
        """The score layer of these plugins kept under `key`, a fresh one when there is none."""
        layer = self._scores.get(key)
        if layer is None:
            spec = all(plugin.score_reads is Reads.SPEC for plugin, _ in plugins)
            journal = self._nodes.spec_journal if spec else self._nodes.usage_journal
            return kept(self._scores, key, ScoreLayer(journal, len(plugins)), _KEPT)
        self._scores.move_to_end(key)
        return layer


# --- Some of a profile's filter plugins, and one number for all they read of a pod: what kept answers are found by.


Filters = Sequence[tuple[int, FilterPlugin[Any]]]

_MOST = 16_384
_NONE = -1
"""The number of a pod of which a plugin cannot say what it reads: it gets a new one each time."""


def _is_kept(plugin: FilterPlugin[Any]) -> bool:
    return plugin.filter_reads is not Reads.CLUSTER


class WorldFilters(NamedTuple):
    """Filters that are asked about worlds in which pods come and go.

    Attributes
    ----------
    filters : sequence of (int, FilterPlugin)
        All of them.
    movable : sequence of (int, FilterPlugin)
        Those whose answer pods can change.
    moving, forked : sequence of FilterPlugin
        Those that count for themselves who comes and goes; those that keep a state of their own for it.
    """

    filters: Filters
    movable: Filters
    moving: Sequence[FilterPlugin[Any]]
    forked: Sequence[FilterPlugin[Any]]

    @classmethod
    def of(cls, filters: Filters) -> Self:
        plugins = [plugin for _, plugin in filters]
        return cls(
            filters,
            [item for item in filters if item[1].filter_reads is not Reads.SPEC],
            [
                plugin
                for plugin in plugins
                if type(plugin).add_pods is not FilterPlugin.add_pods
                or type(plugin).remove_pods is not FilterPlugin.remove_pods
            ],
            [plugin for plugin in plugins if type(plugin).fork is not FilterPlugin.fork],
        )


class FilterGroup:
    """Filter plugins that are asked together; pods they give one number get equal answers from equal clusters.

    Parameters
    ----------
    filters : sequence of (int, FilterPlugin)
        Each with its place in the profile's filter order.
    """

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self._asked: dict[tuple[str, ...], tuple[WorldFilters, BySpec[int]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._next = count()
        self._read = [(plugin, kind) for _, plugin in filters for kind in plugin.sign_reads]
        self._version = 0
        """Of all that is read together: versions only grow."""

    def number(self, pod: Pod, skipped: Iterable[str]) -> tuple[Filters, int]:
        """`active`, and the pod's number in their eyes."""
        active, numbers = self._asked_without(tuple(skipped))
        # A node is no part of what versions of one spec have in common.
        number = self._number(active.filters, pod) if pod.node_name else numbers.of(pod)
        return active.filters, next(self._next) if number == _NONE else number

    def active(self, skipped: Iterable[str]) -> Filters:
        """The filters but those called `skipped`."""
        return self._asked_without(tuple(skipped))[0].filters

    def in_worlds(self, skipped: Iterable[str]) -> WorldFilters:
        """The same, sorted by what they have to do with pods that come and go."""
        return self._asked_without(tuple(skipped))[0]

    def _asked_without(self, names: tuple[str, ...]) -> tuple[WorldFilters, BySpec[int]]:
        version = 0
        for plugin, kind in self._read:
            version += plugin.handle.listers.version(kind)
        if version != self._version:
            self._asked, self._version = {}, version
        asked = self._asked.get(names)
        if asked is None:
            active = [item for item in self._filters if item[1].name not in names]
            asked = self._asked[names] = WorldFilters.of(active), BySpec(partial(self._number, active))
        return asked

    def _number(self, active: Filters, pod: Pod) -> int:
        key = tuple((position, plugin.sign(pod)) for position, plugin in active)
        if any(sign is None for (_, sign), (_, plugin) in zip(key, active, strict=True) if _is_kept(plugin)):
            return _NONE
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= _MOST:
                # No number is given twice: the holder of an old one finds its answers no more, and asks again.
                self._numbers.clear()
            number = self._numbers[key] = next(self._next)
        return number
