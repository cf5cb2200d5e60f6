"""What a checkpoint holds besides objects, queue and bindings, and what it changes: nothing."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.sim.changes import BindCallAnswered, DeleteObject
from scheduler_core.sim.options import FaultOptions
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    reborn,
    state,
    write,
)


def port_pod(name: str, **spec: object) -> dict[str, object]:
    pod = make_pod(name, **spec)
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return pod


def cluster_that_forgot_a_port() -> Simulation:
    """Two pods of one node hold its port 80; the node forgets it with the first of them that leaves, as upstream."""
    simulation = make_cluster(1, port_pod("a", nodeName="node-0"), port_pod("b", nodeName="node-0"))
    simulation.run_until_idle(until_ns=START_NS)
    simulation.submit(DeleteObject("Pod", "default", "a", 0))
    return simulation


def test_a_port_a_node_has_forgotten_is_free_after_a_checkpoint_too() -> None:
    simulation = cluster_that_forgot_a_port()
    again = reborn(simulation)
    assert state(again) == state(simulation)
    for it in (simulation, again):
        write(it, port_pod("c"))
        it.run_until_idle()
        c = pod_named(it, "c")
        assert c is not None and c.node_name == "node-0"
    assert state(again) == state(simulation)


def test_a_port_in_use_stays_in_use_after_a_checkpoint() -> None:
    simulation = make_cluster(1, port_pod("a", nodeName="node-0"))
    simulation.run_until_idle(until_ns=START_NS)
    again = reborn(simulation)
    write(again, port_pod("b"))
    again.run_until_idle()
    b = pod_named(again, "b")
    assert b is not None and not b.node_name


def test_in_which_row_a_node_lies_shows_nowhere() -> None:
    # node-0 leaves the first row of the table and comes back behind node-1 in the list of nodes; an engine made of
    # the checkpoint has both in the list's order.
    simulation = make_cluster(3)
    simulation.run_until_idle(until_ns=START_NS)
    simulation.submit(DeleteObject("Node", "", "node-0", 0))
    simulation.advance(0)
    write(simulation, make_node("node-0"))
    write(simulation, make_node("tainted", taints=[{"key": "a", "effect": "NoSchedule"}]))
    simulation.advance(0)
    again = reborn(simulation)
    traces = []
    for it in (simulation, again):
        write(it, make_pod("small"))
        write(it, make_pod("large", cpu="64"))
        it.run_until_idle()
        traces.append([trace.to_bytes() for trace in it.drain_cycles()])
    assert len(traces[0]) >= 2
    assert traces[0] == traces[1]


def test_an_event_seen_before_and_one_seen_after_a_checkpoint_tell_of_the_same_node() -> None:
    # While a pod waits at Permit the queue keeps every event for it: here the node's coming, and then its going.
    approval = {"playground.dev/approval": "required", "playground.dev/approval-timeout": "20s"}
    simulation = Simulation(PERMIT_CONFIG, seed=0, start_ns=START_NS)
    write(simulation, make_node("node-1"))
    write(simulation, make_pod("waits", annotations=approval))
    simulation.advance(0)
    write(simulation, make_node("node-0"))
    again = reborn(simulation)
    for it in (simulation, again):
        it.submit(DeleteObject("Node", "", "node-0"))
    assert state(again) == state(simulation)


@pytest.mark.parametrize("step", ["Permit", "Bind", "assumed"])
def test_a_pod_changed_on_its_way_to_a_node_goes_on_as_it_was(step: str) -> None:
    # It is counted on the node, by its labels too, in the version that was chosen a node for.
    annotations = {"playground.dev/approval": "required"} if step == "Permit" else {}
    config: dict[str, Any] = {**PERMIT_CONFIG, "extenders": [{"urlPrefix": "http://e", "bindVerb": "bind"}]}
    simulation = make_cluster(1, config=config, extenders_post_bindings=True)
    write(simulation, make_pod("a", annotations=annotations, labels={"color": "red"}))
    simulation.run_until_idle(until_ns=START_NS)
    if step == "assumed":
        simulation.submit(BindCallAnswered(simulation.bind_calls()[0].pod.uid, ExtenderAnswer(200, "{}")))
    write(simulation, make_pod("a", annotations=annotations, labels={"color": "blue"}))
    again = reborn(simulation)
    assert state(again) == state(simulation)
    for it in (simulation, again):
        assert [it.scheduler.cache.pod(uid).labels for uid in it.scheduler.cache.assumed] == [
            {"color": "red"}
        ]  # type: ignore[union-attr]
        it.submit(DeleteObject("Pod", "default", "a"))
    assert state(again) == state(simulation)


def test_a_pod_whose_news_were_lost_is_held_as_the_scheduler_knows_it() -> None:
    # Its Binding was posted and the watch lost that; then the call failed, and the pod is tried once more.
    config: dict[str, Any] = {**PERMIT_CONFIG, "extenders": [{"urlPrefix": "http://e", "bindVerb": "bind"}]}
    faults = FaultOptions(lost_events_percent=100, relist_ms=7_000)
    simulation = make_cluster(1, config=config, extenders_post_bindings=True, faults=faults)
    pod = make_pod("a")
    write(simulation, pod)
    simulation.run_until_idle(until_ns=START_NS)
    write(simulation, {**pod, "spec": {**pod["spec"], "nodeName": "node-0"}})
    simulation.submit(BindCallAnswered(simulation.bind_calls()[0].pod.uid, ExtenderAnswer(error="EOF")))
    again = reborn(simulation)
    for it in (simulation, again):
        it.run_until_idle(until_ns=START_NS + 3 * SECOND_NS)
        assert it.bind_calls()
    assert state(again) == state(simulation)
