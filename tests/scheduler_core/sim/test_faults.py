"""Slow and failed bindings, lost events, assumed pods that expire."""

from scheduler_core.sim.changes import SetConfiguration
from scheduler_core.sim.options import FaultOptions
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    START_NS,
    make_cluster,
    make_pod,
    pod_named,
    pods_of,
    write,
)


def test_a_lost_event_is_made_up_for_when_the_watch_lists_again() -> None:
    faults = FaultOptions(lost_events_percent=100, relist_ms=60_000)
    simulation = make_cluster(1, make_pod("a"), faults=faults)
    simulation.step()
    assert pods_of(simulation)[0].key == "default/a" and simulation.scheduler.cache.assumed
    simulation.run_until_idle()
    assert not simulation.scheduler.cache.assumed and simulation.now_ns == START_NS + 60 * SECOND_NS


def test_an_assumed_pod_whose_binding_is_not_confirmed_expires_where_that_is_wished() -> None:
    faults = FaultOptions(lost_events_percent=100, relist_ms=600_000)
    simulation = make_cluster(1, make_pod("a", cpu="3"), faults=faults, assumed_pod_ttl_ns=30 * SECOND_NS)
    simulation.step()
    write(simulation, make_pod("b", cpu="3"))
    simulation.advance(29 * SECOND_NS)
    assert simulation.scheduler.cache.assumed
    simulation.advance(2 * SECOND_NS)
    assert not simulation.scheduler.cache.assumed
    # An expiry sends no event: the room is found at the next flush.
    simulation.advance(300 * SECOND_NS)
    b = pod_named(simulation, "b")
    assert b is not None and b.node_name == "node-0"


def test_a_slow_binding_ends_with_the_scheduler_that_asked_for_it() -> None:
    faults = FaultOptions(slow_binds_percent=100)
    simulation = make_cluster(1, make_pod("a", cpu="3"), faults=faults)
    simulation.step()
    simulation.submit(SetConfiguration(None))
    # The new scheduler knows of nothing that is assumed, and gives the node's room to a pod that comes first.
    write(simulation, make_pod("b", cpu="3", priority=1000))
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation) if pod.node_name] == ["b"]
