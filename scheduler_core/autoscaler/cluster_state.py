"""What the autoscaler remembers of its groups: requests that are under way, backoff, sizes that are wrong.

Source: cluster-autoscaler/clusterstate/clusterstate.go, utils/backoff/exponential_backoff.go, k8s 1.36
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Final

from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.node import Node
from scheduler_core.schema.tables import table_beside

DEFAULTS: Final[Mapping[str, Any]] = table_beside(__package__ or __name__, "options.yaml")


@dataclass
class MachineGroup:
    """A group of equal machines, as its provider has it."""

    name: str
    min_size: int
    max_size: int
    target_size: int
    template: Mapping[str, Any]
    template_pods: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Flags:
    """Values of the program's flags, some of which a group has for itself."""

    def __init__(self, given: Mapping[str, Any], groups: Mapping[str, MachineGroup]) -> None:
        self._given = {**DEFAULTS, **given}
        self._groups = groups
        self._durations: dict[tuple[str, str], int] = {}

    def __call__(self, flag: str, group: str = "") -> Any:
        found = self._groups.get(group)
        return self._given[flag] if found is None else found.options.get(flag, self._given[flag])

    def ns(self, flag: str, group: str = "") -> int:
        """A duration, in nanoseconds."""
        found = self._durations.get((flag, group))
        if found is None:
            found = self._durations[flag, group] = parse_duration_ns(str(self(flag, group)))
        return found


@dataclass
class _Request:
    increase: int
    at_ns: int
    until_ns: int


@dataclass
class _Backoff:
    duration_ns: int
    until_ns: int
    failed_ns: int


@dataclass
class Readiness:
    """Names of a group's nodes by how they are."""

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)

    @property
    def n_registered(self) -> int:
        return len(self.ready) + len(self.unready) + len(self.not_started)


class ClusterState:
    """Groups and their nodes from loop to loop."""

    def __init__(self, groups: Mapping[str, MachineGroup], flags: Flags) -> None:
        self._groups = groups
        self._flags = flags
        self._requests: dict[str, _Request] = {}
        self._backoffs: dict[str, _Backoff] = {}
        self._wrong: dict[str, tuple[int, int, int]] = {}
        """Group -> registered nodes, target, since when both are so."""
        self.readiness: dict[str, Readiness] = {}
        self._n_unready = 0
        self._n_nodes = 0
        self._targets: dict[str, int] = {}
        """Targets as they were looked at last: a target that is lowered meanwhile counts from the next loop on."""
        self._least: dict[str, int] = {}
        self.lowered: list[tuple[str, int]] = []
        """Targets that were lowered in this loop, and by how much."""

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        """What outlasts a loop, JSON-able."""
        return {
            "requests": {name: astuple(one) for name, one in self._requests.items()},
            "backoffs": {name: astuple(one) for name, one in self._backoffs.items()},
            "wrong": self._wrong,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._requests = {name: _Request(*one) for name, one in state["requests"].items()}
        self._backoffs = {name: _Backoff(*one) for name, one in state["backoffs"].items()}
        self._wrong = {name: (one[0], one[1], one[2]) for name, one in state["wrong"].items()}

    # ---- each loop

    def update(
        self,
        nodes: Sequence[Node],
        group_of: Mapping[str, str],
        is_ready: Callable[[Node], bool],
        now_ns: int,
    ) -> None:
        """Look at the nodes anew, and end requests that were met or came to nothing."""
        self.lowered = []
        found: defaultdict[str, Readiness] = defaultdict(Readiness)
        self._n_nodes = len(nodes)
        for node in nodes:
            name = node.name
            group = group_of.get(name, "")
            if not group:
                continue  # its provider has no machine for it: upstream counts it as deleted
            if is_ready(node):
                found[group].ready.append(name)
            elif (node.meta.creation_ns or 0) + self._flags.ns("max-node-startup-time", group) > now_ns:
                found[group].not_started.append(name)
            else:
                found[group].unready.append(name)
        self._n_unready = sum(len(one.unready) for one in found.values())
        self.readiness = dict(found)
        self.recalculate()
        self._end_requests(now_ns)
        self._find_least()
        self._find_wrong_sizes(now_ns)

    def recalculate(self) -> None:
        """Look at the targets, and how many nodes each group has at least by its target and what is on its way."""
        self._targets = {name: group.target_size for name, group in self._groups.items()}
        self._find_least()

    def _find_least(self) -> None:
        self._least = {
            name: target - (self._requests[name].increase if name in self._requests else 0)
            for name, target in self._targets.items()
        }

    def _end_requests(self, now_ns: int) -> None:
        reset_ns = self._flags.ns("node-group-backoff-reset-timeout")
        self._backoffs = {
            name: one for name, one in self._backoffs.items() if one.failed_ns + reset_ns >= now_ns
        }
        for name, request in list(self._requests.items()):
            if self._missing(name) <= 0:
                del self._requests[name]
            elif request.until_ns < now_ns:
                self.failed(name, now_ns)
                self._lower(name, request.increase)
                del self._requests[name]

    def _lower(self, name: str, amount: int) -> None:
        self._groups[name].target_size -= amount
        self.lowered.append((name, amount))

    def _missing(self, name: str) -> int:
        found = self.readiness.get(name, Readiness())
        return self._targets[name] - len(found.ready) - len(found.unready)

    def _find_wrong_sizes(self, now_ns: int) -> None:
        wrong: dict[str, tuple[int, int, int]] = {}
        for name, target in self._targets.items():
            found = self.readiness.get(name)
            if found is None:
                continue
            sizes = (found.n_registered, target)
            if sizes[0] != target:
                before = self._wrong.get(name, (*sizes, now_ns))
                wrong[name] = before if before[:2] == sizes else (*sizes, now_ns)
        self._wrong = wrong

    def fix_sizes(self, now_ns: int) -> bool:
        """Lower targets that were too high for too long; whether there were any."""
        fixed = False
        for name, (registered, target, since_ns) in self._wrong.items():
            provision_ns = self._flags.ns("max-node-provision-time", name)
            if since_ns + provision_ns < now_ns and registered < target:
                self._lower(name, target - registered)
                fixed = True
        return fixed

    # ---- asked

    @property
    def is_healthy(self) -> bool:
        """Whether few enough of all nodes are unready."""
        return not self._too_many(self._n_unready, self._n_nodes)

    def _too_many(self, unready: int, of: int) -> bool:
        percentage = self._flags("max-total-unready-percentage")
        return bool(unready > self._flags("ok-total-unready-count") and unready > percentage / 100 * of)

    def is_group_healthy(self, name: str) -> bool:
        """Whether few enough of a group's nodes are missing that it did not ask for just now."""
        target, least = self._targets[name], self._least[name]
        found = self.readiness.get(name)
        if found is None:
            return target == 0 or (least == 0 and target > 0)
        missing = max(0, least - len(found.ready))
        return not self._too_many(missing, found.n_registered)

    def is_backed_off(self, name: str, now_ns: int) -> bool:
        found = self._backoffs.get(name)
        return found is not None and found.until_ns >= now_ns

    def upcoming(self, now_ns: int) -> dict[str, int]:
        """Group -> nodes that were asked for and are not there."""
        return {
            name: missing
            for name in sorted(self._requests)
            if (missing := self._missing(name)) > 0 and not self.is_backed_off(name, now_ns)
        }

    # ---- told

    def asked(self, name: str, increase: int, now_ns: int) -> None:
        """Remember that a group grows."""
        until_ns = now_ns + self._flags.ns("max-node-provision-time", name)
        before = self._requests[name].increase if name in self._requests else 0
        self._requests[name] = _Request(before + increase, now_ns, until_ns)

    def failed(self, name: str, now_ns: int) -> None:
        """Leave a group that did not grow alone for a while, longer each time."""
        duration_ns = self._flags.ns("initial-node-group-backoff-duration")
        found = self._backoffs.get(name)
        if found is not None:
            duration_ns = found.duration_ns
            if found.until_ns < now_ns:
                most_ns = self._flags.ns("max-node-group-backoff-duration")
                duration_ns = min(2 * found.duration_ns, most_ns)
        self._backoffs[name] = _Backoff(duration_ns, now_ns + duration_ns, now_ns)
