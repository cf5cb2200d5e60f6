"""Events that come late, twice, out of order or about nothing: defined outcomes, never an exception out of handle."""

import itertools
import time
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from scheduler_core.clock import Clock
from scheduler_core.events import (
    BindAnswered,
    Event,
    ExtenderBindAnswered,
    ObjectChanged,
    PermitDecided,
    PreBindAnswered,
    TimeReached,
)
from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.objects.kinds import parse
from scheduler_core.randomness import Randomness
from scheduler_core.scheduler import Scheduler
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.options import load
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    pods_of,
    state,
    write,
)

YEAR_NS = 365 * 24 * 3600 * SECOND_NS


def versions() -> list[Any]:
    """Versions of two pods and a node, as a confused watch may mix them."""
    made = []
    for name, uid, node in itertools.product(("a", "b"), ("1", "2"), ("", "node-0", "nowhere")):
        made.append(("Pod", parse(make_pod(name, uid=f"{name}{uid}", nodeName=node)).typed))
        gang = {"scheduling.x-k8s.io/pod-group": "g", "scheduling.x-k8s.io/min-available": "2"}
        made.append(("Pod", parse(make_pod(name, uid=f"{name}{uid}", nodeName=node, labels=gang)).typed))
    made.append(
        ("Pod", parse({**make_pod("a", uid="a1", nodeName="node-0"), "status": {"phase": "Failed"}}).typed)
    )
    for cpu in ("1", "8"):
        made.append(("Node", parse(make_node("node-0", cpu=cpu)).typed))
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "default", "uid": "s"}, "spec": {}}
    made.append(("Service", parse(service).typed))
    return made


OBJECTS = versions()
CHANGES = st.builds(
    lambda first, second: ObjectChanged(
        first[0], first[1], second[1] if second and second[0] == first[0] else None
    ),
    st.sampled_from(OBJECTS),
    st.none() | st.sampled_from(OBJECTS),
) | st.builds(lambda item: ObjectChanged(item[0], None, item[1]), st.sampled_from(OBJECTS))
UIDS = st.sampled_from(["a1", "a2", "b1", "absent"])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    CHANGES,
    st.builds(PermitDecided, UIDS, st.booleans(), st.sampled_from([None, "GangPermit", "Absent"])),
    st.builds(PreBindAnswered, UIDS, st.sampled_from([None, "no"])),
    st.builds(BindAnswered, UIDS, st.sampled_from([None, "no"])),
    st.builds(ExtenderBindAnswered, UIDS, st.just(ExtenderAnswer(status=200, text="{}"))),
    st.just(TimeReached()),
)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(EVENTS, st.integers(0, 2), st.integers(-5, 400)), max_size=25))
def test_no_order_of_events_makes_the_scheduler_raise(events: list[tuple[Event, int, int]]) -> None:
    clock = Clock(START_NS)
    scheduler = Scheduler(load(PERMIT_CONFIG), clock, Randomness(1))
    for event, n_cycles, seconds in events:
        scheduler.handle(event)
        scheduler.handle(event)
        for _ in range(n_cycles):
            scheduler.schedule_one()
        clock.move_to(clock.now_ns + seconds * SECOND_NS)
        scheduler.handle(TimeReached())
        scheduler.next_deadline_ns()
    assert clock.now_ns >= START_NS


def test_deleting_what_is_not_there_changes_nothing() -> None:
    simulation = make_cluster(1, make_pod("a"))
    simulation.run_until_idle()
    before = state(simulation)
    for kind in ("Pod", "Node", "Deployment", "Nonsense"):
        simulation.submit(DeleteObject(kind, "default", "ghost"))
    assert state(simulation) == before


def test_the_same_write_twice_is_one_pod() -> None:
    simulation = make_cluster(1, make_pod("a"), make_pod("a"))
    simulation.run_until_idle()
    assert len(pods_of(simulation)) == 1 and int(simulation.scheduler.cache.nodes.n_pods.sum()) == 1


def test_a_pod_that_comes_before_its_node_is_counted_when_the_node_comes() -> None:
    simulation = make_cluster(0, make_pod("early", cpu="3", nodeName="node-0"))
    simulation.run_until_idle(until_ns=START_NS)
    write(simulation, make_node("node-0"), make_pod("late", cpu="2"))
    simulation.run_until_idle()
    early, late = pods_of(simulation)
    assert early.phase == "Running" and not late.node_name


def test_time_never_runs_backwards() -> None:
    simulation = make_cluster(0)
    with pytest.raises(ValueError, match="backwards"):
        simulation.advance(-1)
    simulation.advance(0)
    simulation.clock.move_to(START_NS - SECOND_NS)
    assert simulation.now_ns == START_NS


def test_a_year_with_thousands_of_timers_passes_in_order() -> None:
    simulation = make_cluster(100)
    for index in range(2_000):
        name = f"node-{index % 100}"
        annotations = {"playground.dev/duration": f"{index % 977 + 1}h"}
        write(simulation, make_pod(f"p{index}", cpu="1m", annotations=annotations, nodeName=name))
    simulation.advance(0)
    assert len(simulation.timers) == 2_000
    simulation.drain_outcomes()
    started_s = time.process_time()
    report = simulation.advance(YEAR_NS)
    # It takes a part of a second; what looked through all timers for each would take minutes.
    assert time.process_time() - started_s < 15
    assert report.stop == "time" and simulation.now_ns == START_NS + YEAR_NS and not len(simulation.timers)
    moments = [outcome.at_ns for outcome in simulation.drain_outcomes()]
    assert moments == sorted(moments) and len(moments) == 2_000


def test_a_checkpoint_of_another_version_is_refused() -> None:
    document = make_cluster(0).checkpoint()
    with pytest.raises(ValueError, match="version 99"):
        Simulation.restore({**document, "version": 99})
