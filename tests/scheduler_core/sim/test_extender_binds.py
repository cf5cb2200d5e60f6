"""Pods that an extender binds: its answer, the Binding it posts, and what may come between the two."""

from typing import Any

import pytest

from scheduler_core.clock import SECOND_NS
from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.framework.record import CycleTrace, points
from scheduler_core.sim.changes import BindCallAnswered, DeleteObject, SetAssumedPodExpiry, SetConfiguration
from scheduler_core.sim.simulation import Simulation
from tests.manifests import scheduler_config
from tests.scheduler_core.sim.builders import make_cluster, make_pod, pod_named, reborn, state, write

CONFIG = scheduler_config(extenders=[{"urlPrefix": "http://extender.example", "bindVerb": "bind"}])
BOUND = ExtenderAnswer(200, "{}")


def a_bind_call_for_a_pod_and_another_that_waits_for_its_room() -> Simulation:
    simulation = make_cluster(1, config=CONFIG, extenders_post_bindings=True)
    write(simulation, make_pod("first", cpu="3"))
    assert simulation.run_until_idle().stop == "call"
    write(simulation, make_pod("second", cpu="3"))
    return simulation


def delete(simulation: Simulation) -> None:
    simulation.submit(DeleteObject("Pod", "default", "first"))


def answer(simulation: Simulation) -> None:
    (call,) = simulation.bind_calls()
    simulation.submit(BindCallAnswered(call.pod.uid, BOUND))


@pytest.mark.parametrize("order", [(delete, answer), (answer, delete)], ids=["during", "after"])
def test_a_pod_deleted_around_its_bind_call_leaves_its_node(order: tuple[object, ...]) -> None:
    simulation = a_bind_call_for_a_pod_and_another_that_waits_for_its_room()
    for happens in order:
        happens(simulation)  # type: ignore[operator]
    assert state(reborn(simulation)) == state(simulation)
    assert simulation.run_until_idle().stop == "call", "the second pod has room now"
    assert [call.pod.name for call in simulation.bind_calls()] == ["second"]


SOME_TIME_NS = 30 * SECOND_NS


def outcomes(simulation: Simulation) -> list[tuple[str, str]]:
    newest = {trace.number: trace for trace in simulation.drain_cycles()}
    return [(trace.pod.partition("/")[2], trace.outcome) for trace in newest.values()]


def bind(simulation: Simulation, node: str = "node-0") -> None:
    first = pod_named(simulation, "first")
    assert first is not None
    assert simulation.world.bind("default", "first", first.uid, node) is None
    simulation.run_until_idle()


def lanes(simulation: Simulation) -> dict[str, list[str]]:
    return {lane: [item["pod"] for item in items] for lane, items in simulation.queue_view().items() if items}


def accepted(**options: Any) -> Simulation:
    simulation = make_cluster(1, config=CONFIG, extenders_post_bindings=True, **options)
    write(simulation, make_pod("first", cpu="3"))
    simulation.run_until_idle()
    assert outcomes(simulation) == [("first", "binding")]
    simulation.clock.move_to(simulation.now_ns + SECOND_NS)
    answer(simulation)
    simulation.run_until_idle()
    return simulation


def test_a_cycle_is_binding_until_its_binding_is_heard_of_and_its_digest_never_says_otherwise() -> None:
    simulation = accepted()
    assert outcomes(simulation) == []
    (trace,) = simulation.scheduler.awaited.values()
    digest, sentence = trace.digest, trace.sentence
    assert sentence == "default/first waits for its Binding to node-0: the only node."
    assert {point["point"]: point["state"] for point in points(trace)}["Bind"] == "waiting"
    for it in (simulation, reborn(simulation)):
        bind(it)
        (heard,) = it.drain_cycles()
        assert (heard.outcome, heard.digest) == ("bound", digest)
        assert heard.sentence == "default/first bound to node-0: the only node."
        assert not it.scheduler.awaited and not it.scheduler.cache.assumed


def test_a_binding_posted_before_the_answer_leaves_nothing_to_await() -> None:
    simulation = a_bind_call_for_a_pod_and_another_that_waits_for_its_room()
    assert outcomes(simulation) == [("first", "binding")]
    bind(simulation)
    answer(simulation)
    (trace,) = simulation.drain_cycles()
    assert (trace.outcome, trace.awaited) == ("bound", None)


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        (delete, "the pod was deleted before its Binding to node-0 was heard of"),
        (
            lambda simulation: simulation.submit(SetConfiguration(CONFIG)),
            "the scheduler was started anew before the pod's Binding to node-0 was heard of",
        ),
    ],
    ids=["deleted", "restarted"],
)
def test_a_cycle_whose_binding_will_never_be_heard_of_says_why(happens: Any, message: str) -> None:
    simulation = accepted()
    happens(simulation)
    (trace,) = simulation.drain_cycles()
    assert (trace.outcome, trace.error) == ("error", message)
    assert CycleTrace.from_bytes(trace.to_bytes()).explain() == trace.explain()


def test_an_assumed_pod_expires_where_that_is_set_and_is_tried_again_when_it_changes() -> None:
    simulation = accepted(assumed_pod_ttl_ns=SOME_TIME_NS)
    assert simulation.run_until_idle().stop == "idle", "no run goes on for an expiry alone"
    simulation.advance(SOME_TIME_NS - 1)
    assert lanes(simulation) == {"binding": ["default/first"]}
    again = reborn(simulation)
    for it in (simulation, again):
        it.drain_moves()
        it.advance(1)
        (trace,) = it.drain_cycles()
        assert trace.outcome == "expired"
        said = "default/first is no longer assumed on node-0: no Binding to node-0 was heard of within 30 s"
        assert trace.sentence == said
        (move,) = it.drain_moves()
        assert (move.source, move.target, move.event) == ("assumed", "expired", "AssumedPodExpired")
        assert lanes(reborn(it)) == {"foreign": ["default/first"]}
        # As upstream, a pod that expired is in no queue until it changes.
        it.advance(600 * SECOND_NS)
        assert outcomes(it) == []
    write(simulation, make_pod("first", cpu="3", labels={"changed": "yes"}))
    assert simulation.run_until_idle().stop == "call"
    assert outcomes(simulation) == [("first", "binding")]


def test_the_expiry_can_be_set_on_the_way_and_goes_through_a_checkpoint() -> None:
    simulation = accepted()
    simulation.advance(3600 * SECOND_NS)
    simulation.submit(SetAssumedPodExpiry(SOME_TIME_NS))
    simulation = reborn(simulation)
    simulation.advance(SOME_TIME_NS)
    assert outcomes(simulation) == [("first", "expired")]
    other = accepted(assumed_pod_ttl_ns=SOME_TIME_NS)
    other.submit(SetAssumedPodExpiry(0))
    other.advance(3600 * SECOND_NS)
    assert lanes(other) == {"binding": ["default/first"]}
