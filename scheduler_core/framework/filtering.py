"""What the parts of an attempt see of it: kept answers, worlds of rows, and reasons of all filters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.cluster.what_if import WhatIf
from scheduler_core.framework.answers import PASSES, first_rejections
from scheduler_core.framework.distinct import distinct
from scheduler_core.framework.failure import PluginFailure, filter_failure
from scheduler_core.framework.interface import FilterPlugin, Reads
from scheduler_core.framework.nominated_pods import NominatedPods
from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.pod import BySpec, Pod


class ProfileFilters(Protocol):
    """Filter plugins of a profile, in order."""

    @property
    def filter(self) -> Sequence[FilterPlugin[Any]]: ...
    @property
    def filters(self) -> FilterGroup: ...


class Filtering(Protocol):
    """One pod's way through the filters of a profile (`Attempt`)."""

    @property
    def framework(self) -> ProfileFilters: ...
    @property
    def pod(self) -> Pod: ...
    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def filter_states(self) -> Mapping[str, Any]: ...
    @property
    def skipped_filters(self) -> dict[str, None]: ...
    @property
    def rows(self) -> Rows: ...
    @property
    def stop(self) -> NDArray[np.int8]: ...
    @property
    def code(self) -> NDArray[np.int8]: ...
    @property
    def explicit(self) -> dict[int, tuple[str, Code, tuple[str, ...]]]: ...
    @property
    def also_rejecting(self) -> dict[str, None]: ...

    def own_verdicts(self) -> None: ...

    def passes_spec(self, rows: Rows) -> NDArray[np.bool_]: ...

    def nominated_pods(self) -> NominatedPods | None: ...


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


# --- `alwaysCheckAllPredicates`: what every filter says of a node, not only the first that rejects it.


def hear_all_filters(attempt: Filtering) -> None:
    """Give every rejected row the reasons of all filters that reject it, in `Attempt.explicit`.

    A row that cannot be helped by preemption in the eyes of one of them cannot be at all. Rows whose words come
    from beside nominated pods keep them.

    Raises
    ------
    PluginFailure
    """
    places = np.flatnonzero(attempt.stop < len(attempt.framework.filter))
    places = places[[int(row) not in attempt.explicit for row in attempt.rows[places].tolist()]]
    if not len(places):
        return
    pod, nodes, rows = attempt.pod, attempt.snapshot.nodes, attempt.rows[places]
    said: list[list[tuple[str, Code, tuple[str, ...]]]] = [[] for _ in places]
    for _, plugin in attempt.framework.filters.active(attempt.skipped_filters):
        state = attempt.filter_states.get(plugin.name)
        try:
            verdicts = plugin.filter(state, pod, nodes, rows)
            for index in np.flatnonzero(verdicts.codes).tolist():
                code = Code(int(verdicts.codes[index]))
                detail = 0 if verdicts.details is None else int(verdicts.details[index])
                reasons = tuple(plugin.reasons(state, pod, nodes, int(rows[index]), code, detail))
                said[index].append((plugin.name, code, reasons))
        except Exception as error:
            raise filter_failure(error) from error
    attempt.own_verdicts()
    for place, row, words in zip(places.tolist(), rows.tolist(), said, strict=True):
        codes = [code for _, code, _ in words]
        hopeless = Code.UnschedulableAndUnresolvable
        code = hopeless if hopeless in codes else codes[0]
        attempt.code[place] = code
        attempt.explicit[row] = (
            words[0][0],
            code,
            tuple(reason for _, _, given in words for reason in given),
        )
        attempt.also_rejecting.update(dict.fromkeys(name for name, _, _ in words))


# --- Rows of an attempt in worlds of their own: what preemption and nominated pods ask about.


class AttemptWorlds:
    """Some rows of an attempt, each a separate world, with every filter plugin's state for them.

    Parameters
    ----------
    attempt : Filtering
    rows : ndarray of shape (n,), int64
        Rows of the cluster; row k of the world is `rows[k]`.
    """

    def __init__(self, attempt: Filtering, rows: Rows) -> None:
        self.attempt = attempt
        self.nodes = WhatIf(attempt.snapshot.nodes, rows)
        active = attempt.framework.filters.in_worlds(attempt.skipped_filters)
        self._filters, self._movable_filters, self._moving = active.filters, active.movable, active.moving
        self.states: dict[str, Any] = dict(attempt.filter_states)
        for plugin in active.forked:
            self.states[plugin.name] = plugin.fork(self.states.get(plugin.name), self.nodes)
        self._fits_spec = attempt.passes_spec(rows)
        """Rows known to pass the plugins that look at the node object alone: nothing here can change that."""
        self._nominated_rows = self._nominated_ids = self._nominated_turns = rows[:0]
        """Nominated pods that count: their rows here, their ids, their turns among those of a row."""
        nominated = attempt.nominated_pods()
        if nominated is not None:
            counted = nominated.counted_on(attempt.pod, rows)
            self._nominated_rows, self._nominated_ids, self._nominated_turns = counted
        self._has_nominated = np.zeros(len(rows), np.bool_)
        self._has_nominated[self._nominated_rows] = True

    def add_pods(self, rows: Rows, pod_ids: NDArray[np.int64]) -> None:
        """Pod `pod_ids[i]` comes to row `rows[i]`; no row twice in one call."""
        self.nodes.add_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.add_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def remove_pods(self, rows: Rows, pod_ids: NDArray[np.int64]) -> None:
        """Pod `pod_ids[i]` leaves row `rows[i]`; no row twice in one call."""
        self.nodes.remove_pods(rows, pod_ids)
        for plugin in self._moving:
            plugin.remove_pods(self.states[plugin.name], self.attempt.pod, self.nodes, rows, pod_ids)

    def remove_all(self, starts: NDArray[np.int64], pod_ids: NDArray[np.int64]) -> None:
        """Pods `pod_ids[starts[k] : starts[k + 1]]` leave row k, every row at least one."""
        if not self._moving and not self.nodes.pods.has_ports[pod_ids].any():
            self.nodes.remove_all(starts, pod_ids)
            return
        counts = starts[1:] - starts[:-1]
        for turn in range(int(counts.max())):
            rows = (counts > turn).nonzero()[0]
            self.remove_pods(rows, pod_ids[starts[:-1][rows] + turn])

    def feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of the world's `rows` the pod fits, nominated pods counted in and out."""
        stop, _, _ = self.run_filters(rows)
        fits: NDArray[np.bool_] = stop == PASSES
        # A row that does not fit without the nominated pods need not be asked with them.
        places = (fits & self._has_nominated[rows]).nonzero()[0]
        if len(places):
            stop, _, _ = self.run_filters_beside_nominated(rows[places])
            fits[places] = stop == PASSES
        return fits

    def rejections(self, rows: Rows) -> tuple[NDArray[np.int64], list[Status]]:
        """Like `feasible`, with the reasons: for each row -1 or an index into the list of distinct rejections."""
        return self.told(rows, self.run_filters_with_nominated(rows))

    def told(
        self, rows: Rows, verdicts: tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]
    ) -> tuple[NDArray[np.int64], list[Status]]:
        """Verdicts (stop, code, detail) of `rows` in the form of `rejections`."""
        stop, code, detail = verdicts
        result = np.full(len(rows), -1, np.int64)
        statuses: list[Status] = []
        rejected = (stop != PASSES).nonzero()[0]
        if len(rejected):
            first, group = distinct(stop[rejected], code[rejected], detail[rejected])
            result[rejected] = group
            for place in rejected[first].tolist():
                plugin = self.attempt.framework.filter[int(stop[place])]
                verdict = Code(int(code[place]))
                reasons = plugin.reasons(
                    self.states.get(plugin.name),
                    self.attempt.pod,
                    self.nodes,
                    int(rows[place]),
                    verdict,
                    int(detail[place]),
                )
                statuses.append(Status(verdict, reasons, plugin.name))
        return result, statuses

    def run_filters(self, rows: Rows) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail) of the current world, as in `Attempt`."""
        known = bool(self._fits_spec[rows].all())
        filters = self._movable_filters if known else self._filters
        try:
            found = first_rejections(filters, self.states, self.attempt.pod, self.nodes, rows)
        except PluginFailure:
            raise
        except Exception as error:
            raise filter_failure(error) from error
        if not known:
            self._fits_spec[rows] |= found[0] == PASSES
        return found

    def run_filters_with_nominated(
        self, rows: Rows
    ) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail), first with nominated pods of equal or higher priority, then without them."""
        stop, code, detail = self.run_filters(rows)
        places = self._has_nominated[rows].nonzero()[0]
        if len(places):
            with_stop, with_code, with_detail = self.run_filters_beside_nominated(rows[places])
            fails = with_stop != PASSES
            stop[places[fails]] = with_stop[fails]
            code[places[fails]] = with_code[fails]
            detail[places[fails]] = with_detail[fails]
        return stop, code, detail

    def run_filters_beside_nominated(
        self, rows: Rows
    ) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int64]]:
        """(stop, code, detail) as if the pods nominated to each of `rows` ran there."""
        nominated, pod_ids, turns = self._nominated_rows, self._nominated_ids, self._nominated_turns
        if len(rows) < len(self.nodes.base_rows):
            is_asked = np.zeros(len(self.nodes.base_rows), np.bool_)
            is_asked[rows] = True
            asked = is_asked[nominated]
            nominated, pod_ids, turns = nominated[asked], pod_ids[asked], turns[asked]
        n_turns = max(turns.tolist()) + 1
        moves = [(nominated, pod_ids)]
        if n_turns > 1:
            moves = [(nominated[turns == turn], pod_ids[turns == turn]) for turn in range(n_turns)]
        ports = self.nodes.ports_in_use()
        for move in moves:
            self.add_pods(*move)
        found = self.run_filters(rows)
        for move in reversed(moves):
            self.remove_pods(*move)
        self.nodes.restore_ports(ports)
        return found
