"""Pods that an extender binds: its answer, the Binding it posts, and what may come between the two."""

from __future__ import annotations

import pytest

from scheduler_core.extender.transport import ExtenderAnswer
from scheduler_core.sim.changes import BindCallAnswered, DeleteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import make_cluster, make_pod, pod_named, reborn, state, write

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [{"urlPrefix": "http://extender.example", "bindVerb": "bind"}],
}
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


def test_the_room_of_a_pod_deleted_after_the_answer_wakes_whoever_waits_for_it() -> None:
    simulation = a_bind_call_for_a_pod_and_another_that_waits_for_its_room()
    answer(simulation)
    simulation.run_until_idle()
    second = pod_named(simulation, "second")
    assert second is not None and simulation.scheduler.queue.get(second.key) is not None
    assert not simulation.bind_calls()
    delete(simulation)
    simulation.run_until_idle()
    assert [call.pod.name for call in simulation.bind_calls()] == ["second"]
