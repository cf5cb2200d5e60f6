"""Slow and failed bindings, lost events, assumed pods that expire."""

from __future__ import annotations

from scheduler_core.sim.changes import DeleteObject, SetConfiguration
from scheduler_core.sim.options import FaultOptions
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    pods_of,
    reborn,
    state,
    write,
)


def test_a_refused_binding_gives_the_node_back_and_is_tried_again() -> None:
    faults = FaultOptions(failed_binds_percent=50)
    simulation = make_cluster(1, *(make_pod(f"p{index}") for index in range(20)), faults=faults)
    simulation.run_until_idle()
    assert all(pod.node_name for pod in pods_of(simulation))
    outcomes = [trace.outcome for trace in simulation.drain_cycles()]
    assert "error" in outcomes
    assert not simulation.scheduler.cache.assumed and not simulation.scheduler.bindings


def test_the_next_pods_are_tried_while_a_binding_is_slow() -> None:
    faults = FaultOptions(slow_binds_percent=100, slow_bind_ms=5000)
    simulation = make_cluster(2, make_pod("a", cpu="3"), make_pod("b", cpu="3"), faults=faults)
    simulation.step()
    simulation.step()
    assert simulation.now_ns == START_NS and len(simulation.scheduler.bindings) == 2
    assert len(simulation.scheduler.cache.assumed) == 2
    simulation.run_until_idle()
    assert sorted(pod.node_name for pod in pods_of(simulation)) == ["node-0", "node-1"]


def test_a_pod_deleted_while_its_binding_is_slow_leaves_nothing_behind() -> None:
    faults = FaultOptions(slow_binds_percent=100)
    simulation = make_cluster(1, make_pod("a"), faults=faults)
    simulation.step()
    simulation.submit(DeleteObject("Pod", "default", "a"))
    again = reborn(simulation)
    for it in (simulation, again):
        it.run_until_idle()
        assert not it.scheduler.cache.assumed and not it.scheduler.bindings
        assert int(it.scheduler.cache.nodes.n_pods.sum()) == 0
    assert state(simulation) == state(again)


def test_a_checkpoint_keeps_slow_bindings_and_lost_events() -> None:
    faults = FaultOptions(slow_binds_percent=60, failed_binds_percent=20, lost_events_percent=50)
    pods = [make_pod(f"p{index}") for index in range(15)]
    simulation = make_cluster(2, *pods, faults=faults)
    simulation.run_until_idle(max_cycles=9)
    again = reborn(simulation)
    for it in (simulation, again):
        it.run_until_idle()
    assert state(simulation) == state(again)


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


def test_assumed_pods_do_not_expire_by_default() -> None:
    faults = FaultOptions(lost_events_percent=100, relist_ms=3_600_000)
    simulation = make_cluster(1, make_pod("a"), faults=faults)
    simulation.step()
    simulation.advance(1800 * SECOND_NS)
    assert simulation.scheduler.cache.assumed


def test_the_same_seed_brings_the_same_faults() -> None:
    faults = FaultOptions(slow_binds_percent=30, failed_binds_percent=30, lost_events_percent=30)
    pods = [make_pod(f"p{index}") for index in range(10)]
    first, second, other = (make_cluster(2, *pods, faults=faults, seed=seed) for seed in (1, 1, 2))
    for simulation in (first, second, other):
        simulation.run_until_idle()
    assert state(first) == state(second)
    assert first.timers.state()["asked"] != other.timers.state()["asked"]


def test_a_new_configuration_in_the_middle_of_a_slow_binding_binds_no_pod_twice() -> None:
    faults = FaultOptions(slow_binds_percent=100)
    simulation = make_cluster(2, make_pod("a"), make_node("node-9"), faults=faults)
    simulation.step()
    simulation.submit(SetConfiguration(None))
    simulation.run_until_idle()
    assert pods_of(simulation)[0].node_name
    assert int(simulation.scheduler.cache.nodes.n_pods.sum()) == 1 and not simulation.scheduler.bindings


def test_a_slow_binding_ends_with_the_scheduler_that_asked_for_it() -> None:
    faults = FaultOptions(slow_binds_percent=100)
    simulation = make_cluster(1, make_pod("a", cpu="3"), faults=faults)
    simulation.step()
    simulation.submit(SetConfiguration(None))
    # The new scheduler knows of nothing that is assumed, and gives the node's room to a pod that comes first.
    write(simulation, make_pod("b", cpu="3", priority=1000))
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation) if pod.node_name] == ["b"]
