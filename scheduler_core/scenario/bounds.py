"""How large a run may become: what controllers will make counts as objects, and virtual time has one cap.

Both are known before anything is run, as far as the document says them; a run holds to them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.reading import is_foreign
from scheduler_core.scenario.errors import Problem
from scheduler_core.scenario.types import MAX_OBJECTS, Key, Manifest, Scenario, object_key

DAY_NS = 24 * 3600 * 1_000_000_000
MAX_VIRTUAL_NS = 366 * DAY_NS
"""Virtual time from the beginning of a run to its end."""
_REPLICATED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


@dataclass(frozen=True, slots=True)
class RunBounds:
    """What one run may become.

    Attributes
    ----------
    objects
        Objects there are at once, pods of controllers included.
    virtual_ns
        Virtual time it may take.
    """

    objects: int = MAX_OBJECTS
    virtual_ns: int = MAX_VIRTUAL_NS

    @property
    def time_words(self) -> str:
        days, rest = divmod(self.virtual_ns, DAY_NS)
        return f"{days:,} days" if not rest else f"{self.virtual_ns / 1e9:,g} s"


def pods_asked_for(manifest: Manifest, n_nodes: int) -> tuple[int, str] | None:
    """How many pods a workload's controller makes at most, and the field that says so; None of other objects.

    A Job makes one pod for each completion, a DaemonSet one for each node, an autoscaler asks for its maximum. A
    rollout's surge is not counted.
    """
    kind, spec = manifest.get("kind"), manifest.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    if kind == "HorizontalPodAutoscaler":
        return _whole(spec.get("maxReplicas"), 0), "spec.maxReplicas"
    if kind in _REPLICATED:
        return _whole(spec.get("replicas"), 1), "spec.replicas"
    if kind == "Job":
        completions, parallelism = _whole(spec.get("completions"), 0), _whole(spec.get("parallelism"), 1)
        return max((completions, "spec.completions"), (parallelism, "spec.parallelism"))
    return (n_nodes, "spec") if kind == "DaemonSet" else None


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def is_controlled(manifest: Manifest) -> bool:
    """Whether a controller above it already counts its pods."""
    owners = (manifest.get("metadata") or {}).get("ownerReferences")
    return isinstance(owners, list) and any(
        isinstance(owner, Mapping) and owner.get("controller") for owner in owners
    )


def time_problem(path: str, elapsed_ns: int, bounds: RunBounds) -> Problem:
    """What is wrong with a step that lets more time pass than a run may take."""
    return Problem(
        path,
        f"makes {_hours(elapsed_ns)} of virtual time since the beginning; a run takes at most"
        f" {_hours(bounds.virtual_ns)} ({bounds.time_words})",
    )


def _hours(time_ns: int) -> str:
    return f"{time_ns / 3600e9:,.10g} h"


def bound_problems(scenario: Scenario, bounds: RunBounds) -> Iterator[Problem]:
    """The first place where the scenario becomes too large, and the first where it takes too long."""
    yield from _size_problem(scenario, bounds)
    elapsed_ns = 0
    for index, step in enumerate(scenario.steps):
        if step.advance is None:
            continue
        elapsed_ns += step.advance.by_ns
        if elapsed_ns > bounds.virtual_ns:
            yield time_problem(f"steps[{index}].advance", elapsed_ns, bounds)
            return


@dataclass(slots=True)
class _Tally:
    """What there is after the steps so far; `places` says where each workload was written last."""

    objects: dict[Key, Manifest] = field(default_factory=dict)
    places: dict[Key, str] = field(default_factory=dict)
    workloads: dict[Key, int] = field(default_factory=dict)
    n_nodes: int = 0
    n_pods: int = 0

    def put(self, manifest: Manifest, place: str) -> Key:
        key = object_key(manifest)
        self.drop(key)
        self.objects[key] = manifest
        if key[0] == "Node":
            self.n_nodes += 1
        elif key[0] == "DaemonSet":
            self.workloads[key] = 0
            self.places[key] = place
        elif not is_controlled(manifest) and (asked := pods_asked_for(manifest, 0)) is not None:
            self.workloads[key] = asked[0]
            self.places[key] = place
            self.n_pods += asked[0]
        return key

    def drop(self, key: Key) -> None:
        if self.objects.pop(key, None) is None:
            return
        if key[0] == "Node":
            self.n_nodes -= 1
        self.n_pods -= self.workloads.pop(key, 0)

    def total(self) -> int:
        n_daemon_sets = sum(1 for key in self.workloads if key[0] == "DaemonSet")
        return len(self.objects) + self.n_pods + n_daemon_sets * self.n_nodes

    def largest(self) -> tuple[str, str, int, Key] | None:
        """The workload that asks for most: where it was written, the field, how many, which it is."""
        found = [
            (asked[0], key, self.places[key], asked[1])
            for key in self.workloads
            if (asked := pods_asked_for(self.objects[key], self.n_nodes)) is not None
        ]
        if not found:
            return None
        count, key, place, path = max(found)
        return place, path, count, key


def _size_problem(scenario: Scenario, bounds: RunBounds) -> Iterator[Problem]:
    tally = _Tally()
    for place in _happenings(scenario, tally):
        total = tally.total()
        if total <= bounds.objects:
            continue
        largest = tally.largest()
        limit = f"a run has at most {bounds.objects:,} objects, pods of controllers included"
        if largest is None or largest[2] == 0:
            yield Problem(place, f"makes {total:,} objects; {limit}")
        else:
            where, path, count, key = largest
            yield Problem(
                f"{where}.{path}",
                f"{key[0]} {key[2]} asks for {count:,} pods, which makes {total:,} objects; {limit}",
            )
        return


def _happenings(scenario: Scenario, tally: _Tally) -> Iterable[str]:
    """Build up the tally, stopping after each step (and after the objects at the start)."""
    for index, manifest in enumerate(scenario.objects):
        if not is_foreign(manifest):
            tally.put(manifest, f"objects[{index}]")
    yield "objects"
    for index, step in enumerate(scenario.steps):
        here = f"steps[{index}]"
        if step.apply is not None:
            for place, manifest in enumerate(step.apply):
                if not is_foreign(manifest):
                    tally.put(manifest, f"{here}.apply[{place}]")
        elif step.patch is not None:
            before = tally.objects.get(step.patch.key)
            if before is None:
                continue
            changed = merge_patch(before, step.patch.patch)
            if isinstance(changed, Mapping):
                tally.put(changed, f"{here}.patch.patch")
        elif step.delete is not None:
            tally.drop(step.delete.key)
        else:
            continue
        yield here
