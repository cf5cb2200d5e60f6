"""What a checkpoint holds besides objects, queue and bindings, and what it changes: nothing."""

from typing import Any

import pytest

from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.sim.changes import BindCallAnswered, DeleteObject
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    reborn,
    state,
    write,
)


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
