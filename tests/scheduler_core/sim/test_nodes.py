"""Nodes fail, come back, are cordoned and go; pods follow."""

from __future__ import annotations

from scheduler_core.objects.fields import format_time_ns
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.kubelet import DURATION
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    make_workload,
    pod_named,
    pods_of,
    set_ready,
    write,
)

TOLERATES_300 = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]


def taints_of(simulation, name):  # type: ignore[no-untyped-def]
    return sorted(str(taint) for taint in simulation.world.node(name).taints)


def test_conditions_become_taints_and_go_with_them() -> None:
    simulation = make_cluster(1)
    set_ready(simulation, "node-0", "False")
    assert taints_of(simulation, "node-0") == [
        "node.kubernetes.io/not-ready:NoExecute",
        "node.kubernetes.io/not-ready:NoSchedule",
    ]
    set_ready(simulation, "node-0", "Unknown")
    assert taints_of(simulation, "node-0") == [
        "node.kubernetes.io/unreachable:NoExecute",
        "node.kubernetes.io/unreachable:NoSchedule",
    ]
    set_ready(simulation, "node-0", "True")
    assert taints_of(simulation, "node-0") == []


def test_pressure_and_cordon_keep_pods_off_without_evicting_any() -> None:
    node = make_node("node-0", unschedulable=True)
    node["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": "True"},
        {"type": "DiskPressure", "status": "False"},
    ]
    simulation = make_cluster(0, node)
    assert taints_of(simulation, "node-0") == [
        "node.kubernetes.io/memory-pressure:NoSchedule",
        "node.kubernetes.io/unschedulable:NoSchedule",
    ]
    write(simulation, make_node("node-0"))
    assert taints_of(simulation, "node-0") == []


def test_taints_of_others_stay_and_so_does_a_hand_written_one_its_node_says_nothing_about() -> None:
    taints = [
        {"key": "own", "value": "x", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
    ]
    simulation = make_cluster(0, make_node("node-0", taints=taints, ready="True"))
    assert taints_of(simulation, "node-0") == [
        "node.kubernetes.io/disk-pressure:NoSchedule",
        "own=x:NoSchedule",
    ]


def test_pods_leave_an_unreachable_node_after_their_toleration_and_end_when_it_is_back() -> None:
    pods = {"tolerations": TOLERATES_300}
    simulation = make_cluster(1, make_workload("ReplicaSet", "web", replicas=1, pod=pods))
    simulation.run_until_idle()
    (before,) = pods_of(simulation, "web")
    write(simulation, make_node("node-1"))
    set_ready(simulation, "node-0", "Unknown")
    report = simulation.run_until_idle()
    assert report.clock_ns == START_NS + 300 * SECOND_NS
    old, new = sorted(pods_of(simulation, "web"), key=lambda pod: pod.name != before.name)
    assert old.is_terminating and new.node_name == "node-1" and new.phase == "Running"
    # The kubelet is not heard of: the pod stays Terminating.
    simulation.advance(600 * SECOND_NS)
    assert len(pods_of(simulation, "web")) == 2
    set_ready(simulation, "node-0", "True")
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation, "web")] == [new.name]


def test_a_node_that_is_back_in_time_keeps_its_pods() -> None:
    simulation = make_cluster(1, make_pod("steady", tolerations=TOLERATES_300))
    simulation.run_until_idle()
    set_ready(simulation, "node-0", "Unknown")
    simulation.advance(200 * SECOND_NS)
    set_ready(simulation, "node-0", "True")
    simulation.advance(200 * SECOND_NS)
    steady = pod_named(simulation, "steady")
    assert steady is not None and not steady.is_terminating


def test_a_pod_without_toleration_is_evicted_at_once_and_one_that_tolerates_for_ever_stays() -> None:
    for_ever = [{"operator": "Exists"}]
    simulation = make_cluster(1, make_pod("plain"), make_pod("rock", tolerations=for_ever))
    simulation.run_until_idle()
    set_ready(simulation, "node-0", "False")
    plain, rock = pod_named(simulation, "plain"), pod_named(simulation, "rock")
    assert plain is not None and plain.is_terminating
    assert plain.disruption_target_reason == "DeletionByTaintManager"
    assert rock is not None and not rock.is_terminating
    simulation.run_until_idle()
    assert pod_named(simulation, "plain") is None


def test_pods_on_a_node_that_is_not_ready_are_not_ready_either() -> None:
    simulation = make_cluster(
        1, make_workload("ReplicaSet", "web", replicas=1, pod={"tolerations": TOLERATES_300})
    )
    simulation.run_until_idle()
    set_ready(simulation, "node-0", "Unknown")
    stored = simulation.world.get("ReplicaSet", "default", "web")
    assert stored is not None and "readyReplicas" not in stored.manifest["status"]
    set_ready(simulation, "node-0", "True")
    stored = simulation.world.get("ReplicaSet", "default", "web")
    assert stored is not None and stored.manifest["status"]["readyReplicas"] == 1


def test_forcing_removes_a_pod_from_an_unreachable_node() -> None:
    simulation = make_cluster(1, make_pod("stuck"))
    simulation.run_until_idle()
    set_ready(simulation, "node-0", "Unknown")
    simulation.run_until_idle()
    assert pod_named(simulation, "stuck") is not None
    simulation.submit(DeleteObject("Pod", "default", "stuck", 0))
    assert pod_named(simulation, "stuck") is None


def test_pods_of_a_deleted_node_go_after_the_quarantine() -> None:
    simulation = make_cluster(2, make_workload("ReplicaSet", "web", replicas=4))
    simulation.run_until_idle()
    simulation.submit(DeleteObject("Node", "", "node-0"))
    simulation.advance(39 * SECOND_NS)
    assert any(pod.node_name == "node-0" for pod in pods_of(simulation))
    simulation.run_until_idle()
    assert simulation.now_ns == START_NS + 40 * SECOND_NS
    assert [pod.node_name for pod in pods_of(simulation)] == ["node-1"] * 4


def test_a_node_that_comes_back_within_the_quarantine_keeps_its_pods() -> None:
    simulation = make_cluster(1, make_pod("steady"))
    simulation.run_until_idle()
    simulation.submit(DeleteObject("Node", "", "node-0"))
    simulation.advance(20 * SECOND_NS)
    write(simulation, make_node("node-0"))
    simulation.run_until_idle()
    assert pod_named(simulation, "steady") is not None and simulation.now_ns == START_NS + 20 * SECOND_NS


def test_a_pod_starts_after_its_delay_and_ends_after_its_duration() -> None:
    annotations = {"playground.dev/start-delay": "5s", "playground.dev/duration": "1m"}
    simulation = make_cluster(1, make_pod("once", annotations=annotations))
    simulation.advance(4 * SECOND_NS)
    once = pod_named(simulation, "once")
    assert once is not None and once.node_name and once.phase != "Running"
    simulation.advance(2 * SECOND_NS)
    once = pod_named(simulation, "once")
    assert once is not None and once.phase == "Running"
    simulation.run_until_idle()
    once = pod_named(simulation, "once")
    assert once is not None and once.phase == "Succeeded" and simulation.now_ns == START_NS + 65 * SECOND_NS


def test_deleting_waits_for_the_grace_period_of_the_pod() -> None:
    simulation = make_cluster(1, make_pod("slow", terminationGracePeriodSeconds=90), make_pod("usual"))
    simulation.run_until_idle()
    for name in ("slow", "usual"):
        simulation.submit(DeleteObject("Pod", "default", name))
    simulation.advance(31 * SECOND_NS)
    assert pod_named(simulation, "usual") is None and pod_named(simulation, "slow") is not None
    simulation.run_until_idle()
    assert pod_named(simulation, "slow") is None and simulation.now_ns == START_NS + 90 * SECOND_NS


def test_objects_tell_whole_seconds_and_what_happens_keeps_its_fraction() -> None:
    # As an API server writes them: pods that start in one second are of one age to preemption.
    simulation = make_cluster(1)
    simulation.advance(300_000_000)
    write(simulation, make_pod("job", annotations={DURATION: "12s"}))
    simulation.advance(0)
    pod = pod_named(simulation, "job")
    assert pod is not None
    assert pod.manifest["status"]["startTime"] == format_time_ns(START_NS)
    simulation.advance(12 * SECOND_NS - 1)
    assert pod_named(simulation, "job").phase == "Running"  # type: ignore[union-attr]
    simulation.advance(1)
    assert pod_named(simulation, "job").phase == "Succeeded"  # type: ignore[union-attr]
    write(simulation, make_pod("long"))
    simulation.advance(0)
    simulation.submit(DeleteObject("Pod", "default", "long", 5))
    simulation.advance(5 * SECOND_NS - 1)
    assert pod_named(simulation, "long") is not None
    simulation.advance(1)
    assert pod_named(simulation, "long") is None
