"""`validate` finds what is broken: each of these is what a lost update would leave behind."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.cluster.selection import PodSelector
from scheduler_core.objects.labels import selector_from_labels
from scheduler_core.queue.queued_pod_info import Lane
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import make_node, make_pod


def cluster() -> Simulation:
    simulation = Simulation()
    for manifest in (make_node("n1", cpu="2"), *(make_pod(name, cpu="1") for name in ("a", "b", "waits"))):
        simulation.submit(WriteObject(manifest))
    part = PodSelector(selector_from_labels({}), ("default",))
    simulation.scheduler.cache.matching.selection((part,))
    simulation.run_until_idle(max_cycles=5)
    return simulation


def move(simulation: Simulation) -> None:
    (info,) = simulation.scheduler.queue.unschedulable_pods()
    info.lane = Lane.BACKOFF


def reject(simulation: Simulation) -> None:
    (info,) = simulation.scheduler.queue.unschedulable_pods()
    info.unschedulable_plugins = frozenset(("another",))


def columns(name: str) -> Callable[[Simulation], None]:
    def change(simulation: Simulation) -> None:
        column: Any = getattr(simulation.scheduler.cache.nodes, name)
        column[..., 0] += 1

    return change


def select(simulation: Simulation) -> None:
    (selection,) = simulation.scheduler.cache.matching._selections.values()
    selection.column[0] -= 1


def own(simulation: Simulation) -> None:
    del simulation.control_plane.context.pods._by_node["n1"]


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (move, "pods know their lane"),
        (reject, "found by who rejected them"),
        (columns("n_pods"), "nodes count their pods"),
        (columns("requested"), "nodes sum requests up"),
        (select, "pods are counted by selector"),
        (own, "pods are found by node"),
    ],
)
def test_what_is_broken_is_found(
    breaks: Callable[[Simulation], None], words: str, made_here: deque[Any]
) -> None:
    simulation = cluster()
    simulation.validate()
    breaks(simulation)
    with pytest.raises(AssertionError, match=words):
        simulation.validate()
    made_here.clear()
