"""Waiting at Permit: one timer for each plugin, allowing needs all of them, any rejection or timeout decides."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.plugins import default_configuration
from scheduler_core.sim.changes import DeleteObject, PermitDecision
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    pods_of,
    reborn,
    write,
)

APPROVAL = {"playground.dev/approval": "required"}


def gang(name: str, least: int, *, cpu: str = "100m", **annotations: str) -> dict[str, Any]:
    labels = {"scheduling.x-k8s.io/pod-group": "gang", "scheduling.x-k8s.io/min-available": str(least)}
    return make_pod(name, cpu=cpu, labels=labels, annotations=annotations)


def decide(simulation: Simulation, name: str, allow: bool, plugin: str | None = None) -> None:
    simulation.submit(PermitDecision("default", name, allow, plugin, "" if allow else "not today"))


def waiting(simulation: Simulation) -> list[str]:
    return [entry["pod"].partition("/")[2] for entry in simulation.queue_view()["permit"]]


def last_cycle(simulation: Simulation) -> dict[str, Any]:
    return simulation.drain_cycles()[-1].explain()


def test_an_annotated_pod_waits_and_the_cluster_is_idle_meanwhile() -> None:
    simulation = make_cluster(
        1, make_pod("careful", annotations=APPROVAL), make_pod("plain"), config=PERMIT_CONFIG
    )
    report = simulation.run_until_idle()
    assert report.stop == "idle" and report.clock_ns == START_NS
    assert report.next_deadline is not None and report.next_deadline.at_ns == START_NS + 600 * SECOND_NS
    assert "Permit" in report.message and "default/careful" in report.message
    (entry,) = simulation.queue_view()["permit"]
    assert entry["node"] == "node-0" and list(entry["deadlines"]) == ["ManualApproval"]
    plain = pod_named(simulation, "plain")
    assert plain is not None and plain.node_name


def test_a_waiting_pod_holds_its_node() -> None:
    simulation = make_cluster(1, make_pod("careful", cpu="3", annotations=APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    write(simulation, make_pod("late", cpu="2"))
    simulation.run_until_idle()
    late = pod_named(simulation, "late")
    assert late is not None and not late.node_name


def test_an_allowed_pod_is_bound_and_its_cycle_says_who_allowed_it() -> None:
    simulation = make_cluster(1, make_pod("careful", annotations=APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    simulation.advance(5 * SECOND_NS)
    decide(simulation, "careful", True)
    careful = pod_named(simulation, "careful")
    assert careful is not None and careful.node_name == "node-0"
    explained = last_cycle(simulation)
    assert explained["outcome"] == "bound"
    assert explained["permit"][-1] == {"plugin": "ManualApproval", "decision": "allow", "afterS": 5.0}


def test_a_rejected_pod_gives_its_node_back_and_is_tried_again_by_the_flush() -> None:
    simulation = make_cluster(
        1,
        make_pod("careful", cpu="3", annotations=APPROVAL),
        make_pod("other", cpu="3"),
        config=PERMIT_CONFIG,
    )
    simulation.run_until_idle()
    decide(simulation, "careful", False)
    simulation.run_until_idle()
    other = pod_named(simulation, "other")
    assert other is not None and other.node_name == "node-0"
    (entry,) = simulation.queue_view()["unschedulable"]
    assert (entry["pod"], entry["plugin"]) == ("default/careful", "ManualApproval")
    assert "not today" in entry["reason"]


def test_a_timeout_rejects() -> None:
    annotations = {**APPROVAL, "playground.dev/approval-timeout": "20s"}
    simulation = make_cluster(1, make_pod("careful", annotations=annotations), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    simulation.advance(19 * SECOND_NS)
    assert waiting(simulation) == ["careful"]
    simulation.advance(SECOND_NS)
    assert not waiting(simulation)
    (entry,) = simulation.queue_view()["unschedulable"]
    assert "rejected due to timeout after waiting 20s at plugin ManualApproval" in entry["reason"]


def test_no_pod_waits_longer_than_15_minutes() -> None:
    annotations = {**APPROVAL, "playground.dev/approval-timeout": "48h"}
    simulation = make_cluster(1, make_pod("careful", annotations=annotations), config=PERMIT_CONFIG)
    report = simulation.run_until_idle()
    assert report.next_deadline is not None and report.next_deadline.at_ns == START_NS + 900 * SECOND_NS


def test_allowing_needs_every_plugin_and_each_keeps_its_own_time() -> None:
    pod = gang("both", 2, **APPROVAL)
    simulation = make_cluster(1, pod, config=PERMIT_CONFIG)
    simulation.run_until_idle()
    (entry,) = simulation.queue_view()["permit"]
    assert {name: (at - START_NS) // SECOND_NS for name, at in entry["deadlines"].items()} == {
        "ManualApproval": 600,
        "GangPermit": 60,
    }
    decide(simulation, "both", True, "ManualApproval")
    assert waiting(simulation) == ["both"]
    assert simulation.queue_view()["permit"][0]["allowed"] == ["ManualApproval"]
    decide(simulation, "both", True, "GangPermit")
    both = pod_named(simulation, "both")
    assert both is not None and both.node_name


def test_any_rejection_decides() -> None:
    simulation = make_cluster(1, gang("both", 2, **APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    decide(simulation, "both", False, "GangPermit")
    decide(simulation, "both", True)
    assert not waiting(simulation) and not pods_of(simulation)[0].node_name


def test_a_gang_is_bound_together_once_enough_members_hold_a_node() -> None:
    simulation = make_cluster(2, gang("a", 3), gang("b", 3), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    assert waiting(simulation) == ["a", "b"] and not any(pod.node_name for pod in pods_of(simulation))
    write(simulation, gang("c", 3))
    simulation.run_until_idle()
    assert not waiting(simulation) and all(pod.node_name for pod in pods_of(simulation))
    # A late member finds enough of them there.
    write(simulation, gang("d", 3))
    simulation.run_until_idle()
    assert all(pod.node_name for pod in pods_of(simulation))


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


def test_a_rejected_gang_is_tried_again_when_one_more_member_comes() -> None:
    simulation = make_cluster(2, gang("a", 3), gang("b", 3), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    simulation.advance(61 * SECOND_NS)
    write(simulation, gang("c", 3))
    simulation.run_until_idle()
    assert all(pod.node_name for pod in pods_of(simulation))


def test_a_member_that_waits_brings_its_unschedulable_siblings_back() -> None:
    simulation = make_cluster(1, gang("big", 2, cpu="5"), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    write(simulation, make_node("roomy", cpu="8"))
    simulation.run_until_idle()
    assert waiting(simulation) == ["big"]
    write(simulation, gang("small", 2))
    simulation.run_until_idle()
    assert all(pod.node_name for pod in pods_of(simulation))


def test_gangs_of_other_namespaces_do_not_count() -> None:
    other = gang("b", 2)
    other["metadata"]["namespace"] = "elsewhere"
    simulation = make_cluster(2, gang("a", 2), other, config=PERMIT_CONFIG)
    simulation.run_until_idle()
    assert sorted(waiting(simulation)) == ["a", "b"]


def test_a_deleted_waiting_pod_gives_its_node_back() -> None:
    simulation = make_cluster(1, make_pod("careful", cpu="4", annotations=APPROVAL), config=PERMIT_CONFIG)
    simulation.run_until_idle()
    write(simulation, make_pod("next", cpu="4"))
    simulation.run_until_idle()
    simulation.submit(DeleteObject("Pod", "default", "careful"))
    simulation.run_until_idle()
    assert [(pod.name, pod.node_name) for pod in pods_of(simulation)] == [("next", "node-0")]
    assert not simulation.scheduler.bindings


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


def test_the_plugins_stand_outside_the_default_profile() -> None:
    simulation = make_cluster(1, make_pod("careful", annotations=APPROVAL))
    simulation.run_until_idle()
    careful = pod_named(simulation, "careful")
    assert careful is not None and careful.node_name
    assert not {"ManualApproval", "GangPermit"} & set(default_configuration().plans[0].plugin_names)


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (make_pod("p", schedulerName="another"), 'spec.schedulerName "another" is no profile'),
        (make_pod("p", labels={"scheduling.x-k8s.io/pod-group": "g"}), "pod groups"),
        (make_pod("p", annotations={"scheduling.k8s.io/group-name": "g"}), "pod groups"),
        (make_pod("p", workloadRef={"name": "w"}), "spec.workloadRef"),
    ],
)
def test_what_is_not_simulated_waits_and_says_why(pod: dict[str, Any], words: str) -> None:
    simulation = make_cluster(1, pod)
    assert simulation.run_until_idle().stop == "idle"
    (entry,) = simulation.queue_view()["foreign"]
    assert entry["pod"] == "default/p" and words in entry["reason"]
    assert not pods_of(simulation)[0].node_name
    assert reborn(simulation).queue_view() == simulation.queue_view()


def test_a_pod_that_no_longer_asks_for_what_is_not_simulated_is_scheduled() -> None:
    pod = make_pod("p", labels={"scheduling.x-k8s.io/pod-group": "g"})
    simulation = make_cluster(1, pod)
    simulation.run_until_idle()
    write(simulation, make_pod("p"))
    simulation.run_until_idle()
    assert pods_of(simulation)[0].node_name and not simulation.queue_view()["foreign"]
