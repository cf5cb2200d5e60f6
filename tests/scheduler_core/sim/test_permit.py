"""Waiting at Permit: one timer for each plugin, allowing needs all of them, any rejection or timeout decides."""

from typing import Any

import pytest

from scheduler_core.sim.changes import PermitDecision
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    make_cluster,
    make_pod,
    pod_named,
    pods_of,
    reborn,
    write,
)
from tests.tables import table

APPROVAL = {"playground.dev/approval": "required"}


def gang(name: str, least: int, *, cpu: str = "100m", **annotations: str) -> dict[str, Any]:
    labels = {"scheduling.x-k8s.io/pod-group": "gang", "scheduling.x-k8s.io/min-available": str(least)}
    return make_pod(name, cpu=cpu, labels=labels, annotations=annotations)


def decide(simulation: Simulation, name: str, allow: bool, plugin: str | None = None) -> None:
    simulation.submit(PermitDecision("default", name, allow, plugin, "" if allow else "not today"))


def waiting(simulation: Simulation) -> list[str]:
    return [entry["pod"].partition("/")[2] for entry in simulation.queue_view()["permit"]]


def test_no_pod_waits_longer_than_15_minutes() -> None:
    annotations = {**APPROVAL, "playground.dev/approval-timeout": "48h"}
    simulation = make_cluster(1, make_pod("careful", annotations=annotations), config=PERMIT_CONFIG)
    report = simulation.run_until_idle()
    assert report.next_deadline is not None and report.next_deadline.at_ns == START_NS + 900 * SECOND_NS


def test_a_timeout_rejects_the_whole_gang() -> None:
    simulation = make_cluster(2, gang("a", 3), config=PERMIT_CONFIG)
    simulation.advance(30 * SECOND_NS)
    write(simulation, gang("b", 3))
    simulation.advance(31 * SECOND_NS)
    assert not waiting(simulation)
    said = {entry["pod"]: entry["reason"] for entry in simulation.queue_view()["unschedulable"]}
    assert "rejected due to timeout after waiting 1m0s at plugin GangPermit" in said["default/a"]
    assert "pod a of pod group gang did not get through" in said["default/b"]
    used = simulation.scheduler.cache.nodes.n_pods
    assert int(used.sum()) == 0


def test_a_waiting_victim_is_rejected_and_not_deleted() -> None:
    simulation = make_cluster(1, make_pod("careful", cpu="4", annotations=APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    write(simulation, make_pod("urgent", cpu="4", priority=1000))
    simulation.run_until_idle()
    assert [(pod.name, pod.node_name) for pod in pods_of(simulation)] == [
        ("careful", ""),
        ("urgent", "node-0"),
    ]


def test_a_checkpoint_keeps_waiting_pods_with_their_time() -> None:
    simulation = make_cluster(1, gang("both", 2, **APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    simulation.advance(10 * SECOND_NS)
    decide(simulation, "both", True, "ManualApproval")
    again = reborn(simulation)
    assert again.queue_view()["permit"] == simulation.queue_view()["permit"]
    decide(again, "both", True)
    both = pod_named(again, "both")
    assert both is not None and both.node_name


@pytest.mark.parametrize(("pod", "words"), table(__file__, "what_is_not_simulated_waits_and_says_why"))
def test_what_is_not_simulated_waits_and_says_why(pod: dict[str, Any], words: str) -> None:
    simulation = make_cluster(1, pod)
    assert simulation.run_until_idle().stop == "idle"
    (entry,) = simulation.queue_view()["foreign"]
    assert entry["pod"] == "default/p" and words in entry["reason"]
    assert not pods_of(simulation)[0].node_name
    assert reborn(simulation).queue_view() == simulation.queue_view()
