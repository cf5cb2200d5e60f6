"""Workload controllers keep the pods they are asked for."""

from __future__ import annotations

import re

import pytest

from scheduler_core.randomness import ALPHABET
from scheduler_core.sim.changes import DeleteObject, ObjectWritten
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    make_cluster,
    make_node,
    make_pod,
    make_priority_class,
    make_workload,
    pod_named,
    pods_of,
    reborn,
    set_ready,
    state,
    status_of,
    write,
)
from tests.tables import table


def test_a_replica_set_makes_its_pods_under_generated_names() -> None:
    simulation = make_cluster(3, make_workload("ReplicaSet", "web", replicas=3))
    simulation.run_until_idle()
    pods = pods_of(simulation, "web")
    assert len(pods) == 3
    for pod in pods:
        assert re.fullmatch(f"web-[{ALPHABET}]{{5}}", pod.name)
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", pod.uid)
        assert pod.phase == "Running"
        owner = pod.meta.controller
        assert owner is not None and (owner.kind, owner.name, owner.uid) == (
            "ReplicaSet",
            "web",
            "ReplicaSet-web",
        )
    assert status_of(simulation, "ReplicaSet", "web") == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }


def test_the_same_seed_names_pods_alike_and_another_one_does_not() -> None:
    names = [
        [
            pod.name
            for pod in pods_of(make_cluster(1, make_workload("ReplicaSet", "web", replicas=4), seed=seed))
        ]
        for seed in (5, 5, 6)
    ]
    assert names[0] == names[1] != names[2]


def test_statuses_are_written_once_for_a_moment_and_not_once_for_a_pod() -> None:
    simulation = make_cluster(3, make_workload("ReplicaSet", "web", replicas=20))
    simulation.drain_outcomes()
    simulation.run_until_idle()
    written = [it for it in simulation.drain_outcomes() if isinstance(it, ObjectWritten)]
    assert sum(1 for outcome in written if outcome.manifest["kind"] == "ReplicaSet") == 1


def test_a_preempted_pod_comes_back_under_a_new_name() -> None:
    simulation = make_cluster(1, make_workload("ReplicaSet", "web", replicas=2, cpu="2"))
    simulation.run_until_idle()
    before = {pod.name for pod in pods_of(simulation, "web")}
    write(simulation, make_pod("urgent", cpu="2", priority=1000))
    simulation.run_until_idle()
    urgent = pod_named(simulation, "urgent")
    assert urgent is not None and urgent.node_name == "node-0"
    after = {pod.name for pod in pods_of(simulation, "web")}
    assert len(after) == 2 and len(after & before) == 1
    assert [pod.node_name for pod in pods_of(simulation, "web") if pod.name not in before] == [""]


def test_scaling_down_takes_pods_without_a_node_first_then_the_youngest() -> None:
    simulation = make_cluster(1, make_workload("ReplicaSet", "web", replicas=2, cpu="1500m"))
    simulation.run_until_idle()
    simulation.advance(5 * SECOND_NS)
    write(simulation, make_workload("ReplicaSet", "web", replicas=3, cpu="1500m"))
    simulation.run_until_idle()
    old = [pod.name for pod in pods_of(simulation, "web") if pod.node_name]
    assert len(old) == 2
    write(simulation, make_workload("ReplicaSet", "web", replicas=2, cpu="1500m"))
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation, "web")] == old


def test_a_lower_deletion_cost_goes_first() -> None:
    simulation = make_cluster(1, make_workload("ReplicaSet", "web", replicas=3))
    simulation.run_until_idle()
    keep = pods_of(simulation, "web")[1]
    for pod in pods_of(simulation, "web"):
        cost = "10" if pod is keep else "-10"
        meta = {
            **pod.manifest["metadata"],
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost},
        }
        write(simulation, {**pod.manifest, "metadata": meta})
    write(simulation, make_workload("ReplicaSet", "web", replicas=1))
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation, "web")] == [keep.name]


@pytest.mark.parametrize(
    "kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"]
)
def test_no_controller_makes_pods_with_a_priority_of_their_own(kind: str) -> None:
    simulation = make_cluster(1)
    write(simulation, make_workload(kind, "web", replicas=1, pod={"priority": 2147483647}))
    simulation.run_until_idle()
    assert not pods_of(simulation)
    events = [it.manifest for it in simulation.drain_outcomes() if it.manifest["kind"] == "Event"]  # type: ignore[union-attr]
    [said] = [event["message"] for event in events if event["reason"] == "FailedCreate"]
    named, before = ("web-", "Error creating: ")
    if kind == "StatefulSet":
        named, before = ("web-0", "create Pod web-0 in StatefulSet web failed error: ")
    if kind == "Deployment":
        [owner] = [event["involvedObject"]["name"] for event in events if event["reason"] == "FailedCreate"]
        named = f"{owner}-"
    assert said == before + (
        f'pods "{named}" is forbidden: the integer value of priority (2147483647) must not be provided in pod spec; '
        "priority admission controller computed 0 from the given PriorityClass name"
    )


def test_pods_that_match_and_have_no_controller_are_taken_in() -> None:
    simulation = make_cluster(
        1, make_pod("stray", labels={"app": "web"}), make_pod("other", labels={"app": "x"})
    )
    write(simulation, make_workload("ReplicaSet", "web", replicas=2))
    simulation.run_until_idle()
    assert len(pods_of(simulation, "web")) == 2
    stray = pod_named(simulation, "stray")
    assert stray is not None and stray.meta.controller is not None
    other = pod_named(simulation, "other")
    assert other is not None and other.meta.controller is None


def test_a_workload_whose_pods_are_refused_says_so_and_tries_again_when_it_may_work() -> None:
    simulation = make_cluster(
        1, make_workload("ReplicaSet", "web", replicas=1, pod={"priorityClassName": "gold"})
    )
    simulation.run_until_idle()
    assert not pods_of(simulation)
    events = [it.manifest for it in simulation.drain_outcomes() if it.manifest["kind"] == "Event"]  # type: ignore[union-attr]
    assert [event["reason"] for event in events] == ["FailedCreate"]
    assert "gold" in events[0]["message"]
    write(simulation, make_priority_class("gold", 7))
    simulation.run_until_idle()
    assert [pod.priority for pod in pods_of(simulation, "web")] == [7]


def test_deleting_an_owner_takes_everything_it_made() -> None:
    simulation = make_cluster(2, make_workload("Deployment", "web", replicas=2))
    simulation.run_until_idle()
    simulation.submit(DeleteObject("Deployment", "default", "web"))
    simulation.run_until_idle()
    assert not pods_of(simulation)
    assert not simulation.world.all("ReplicaSet")


def test_pods_of_an_unknown_owner_are_left_alone() -> None:
    pod = make_pod("web-x", labels={"app": "web"})
    reference = table(__file__, "pods_of_an_unknown_owner_are_left_alone")
    pod["metadata"]["ownerReferences"] = [reference]
    simulation = make_cluster(1, pod)
    simulation.run_until_idle()
    assert [it.name for it in pods_of(simulation)] == ["web-x"]


def test_a_deployment_has_one_replica_set_for_its_template() -> None:
    simulation = make_cluster(2, make_workload("Deployment", "web", replicas=2))
    simulation.run_until_idle()
    (stored,) = simulation.world.all("ReplicaSet")
    hash_ = stored.manifest["metadata"]["labels"]["pod-template-hash"]
    assert stored.manifest["metadata"]["name"] == f"web-{hash_}"
    assert all(pod.labels["pod-template-hash"] == hash_ for pod in pods_of(simulation, "web"))
    assert status_of(simulation, "Deployment", "web")["availableReplicas"] == 2


def test_a_new_template_rolls_within_surge_and_unavailability() -> None:
    simulation = make_cluster(3, make_workload("Deployment", "web", replicas=8))
    simulation.run_until_idle()
    write(simulation, make_workload("Deployment", "web", replicas=8, image="next"))
    least = 8
    for _ in range(200):
        pods = pods_of(simulation, "web")
        ready = [pod for pod in pods if pod.phase == "Running" and not pod.is_terminating]
        least = min(least, len(ready))
        assert sum(1 for pod in pods if not pod.is_terminating) <= 10
        if simulation.step().stop == "idle":
            break
    assert least >= 6
    simulation.run_until_idle()
    assert {pod.images for pod in pods_of(simulation, "web")} == {("next",)}
    scales = sorted(item.manifest["spec"]["replicas"] for item in simulation.world.all("ReplicaSet"))
    assert scales == [0, 8]


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    strategy = {"type": "Recreate"}
    simulation = make_cluster(2, make_workload("Deployment", "web", replicas=2, strategy=strategy))
    simulation.run_until_idle()
    write(simulation, make_workload("Deployment", "web", replicas=2, image="next", strategy=strategy))
    assert all(pod.is_terminating for pod in pods_of(simulation, "web"))
    simulation.run_until_idle()
    assert [pod.images for pod in pods_of(simulation, "web")] == [("next",)] * 2


def test_a_stateful_set_makes_one_pod_after_the_other() -> None:
    simulation = make_cluster(1, make_workload("StatefulSet", "db", replicas=3, cpu="2"))
    simulation.run_until_idle()
    # The third waits for the first two, of which both fit.
    assert [(pod.name, pod.node_name) for pod in pods_of(simulation)] == [
        ("db-0", "node-0"),
        ("db-1", "node-0"),
        ("db-2", ""),
    ]
    pod = pods_of(simulation)[1]
    assert pod.labels["apps.kubernetes.io/pod-index"] == "1"
    assert pod.labels["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert "controller-revision-hash" in pod.labels


def test_a_stateful_set_pod_comes_back_under_its_name_when_it_is_gone() -> None:
    simulation = make_cluster(2, make_workload("StatefulSet", "db", replicas=2))
    simulation.run_until_idle()
    before = pod_named(simulation, "db-0")
    assert before is not None
    simulation.submit(DeleteObject("Pod", "default", "db-0"))
    assert len(pods_of(simulation)) == 2
    simulation.run_until_idle()
    after = pod_named(simulation, "db-0")
    assert after is not None and after.uid != before.uid and after.phase == "Running"


def test_a_stateful_set_scales_down_from_the_end_and_updates_from_the_end() -> None:
    simulation = make_cluster(2, make_workload("StatefulSet", "db", replicas=4))
    simulation.run_until_idle()
    write(simulation, make_workload("StatefulSet", "db", replicas=2))
    simulation.run_until_idle()
    assert [pod.name for pod in pods_of(simulation)] == ["db-0", "db-1"]
    write(simulation, make_workload("StatefulSet", "db", replicas=2, image="next"))
    assert [pod.name for pod in pods_of(simulation) if pod.is_terminating] == ["db-1"]
    simulation.run_until_idle()
    assert {pod.images for pod in pods_of(simulation)} == {("next",)}


def test_a_stateful_set_makes_the_claims_of_its_pods_and_keeps_them() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    workload = make_workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[template])
    simulation = make_cluster(1, workload)
    simulation.run_until_idle()
    assert simulation.world.get("PersistentVolumeClaim", "default", "data-db-0") is not None
    volumes = pods_of(simulation)[0].volumes
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}} in volumes
    simulation.submit(DeleteObject("StatefulSet", "default", "db"))
    simulation.run_until_idle()
    assert simulation.world.get("PersistentVolumeClaim", "default", "data-db-0") is not None


def test_a_daemon_set_has_one_pod_on_every_node_it_may_run_on() -> None:
    simulation = make_cluster(2, make_workload("DaemonSet", "agent"))
    write(simulation, make_node("tainted", taints=[{"key": "own", "effect": "NoSchedule"}]))
    write(simulation, make_node("cordoned", unschedulable=True))
    simulation.run_until_idle()
    pods = pods_of(simulation, "agent")
    assert sorted(pod.node_name for pod in pods) == ["cordoned", "node-0", "node-1"]
    tolerations = {(item.key, item.effect) for item in pods[0].tolerations}
    assert ("node.kubernetes.io/unreachable", "NoExecute") in tolerations
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerations
    assert status_of(simulation, "DaemonSet", "agent")["desiredNumberScheduled"] == 3


def test_a_daemon_set_pod_waits_for_its_own_node_and_no_other() -> None:
    simulation = make_cluster(1, make_pod("full", cpu="4"))
    simulation.run_until_idle()
    write(simulation, make_workload("DaemonSet", "agent", cpu="1"), make_node("node-9"))
    simulation.run_until_idle()
    assert sorted(pod.node_name for pod in pods_of(simulation, "agent")) == ["", "node-9"]


def test_a_daemon_set_follows_nodes_as_they_come_change_and_go() -> None:
    workload = make_workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}})
    simulation = make_cluster(1, workload)
    assert not pods_of(simulation)
    write(
        simulation, make_node("node-0", labels={"disk": "ssd"}), make_node("node-5", labels={"disk": "ssd"})
    )
    simulation.run_until_idle()
    assert sorted(pod.node_name for pod in pods_of(simulation)) == ["node-0", "node-5"]
    write(simulation, make_node("node-0"))
    simulation.submit(DeleteObject("Node", "", "node-5"))
    simulation.run_until_idle()
    assert not pods_of(simulation)


def test_a_daemon_set_updates_one_node_after_the_other() -> None:
    simulation = make_cluster(3, make_workload("DaemonSet", "agent"))
    simulation.run_until_idle()
    write(simulation, make_workload("DaemonSet", "agent", image="next"))
    assert sum(1 for pod in pods_of(simulation) if pod.is_terminating) == 1
    simulation.run_until_idle()
    assert {pod.images for pod in pods_of(simulation)} == {("next",)}
    assert len(pods_of(simulation)) == 3


def test_a_job_runs_its_completions_in_parallel_and_is_done() -> None:
    annotations = {"playground.dev/duration": "10s"}
    job = make_workload("Job", "sum", completions=5, parallelism=2, annotations=annotations)
    simulation = make_cluster(1, job)
    report = simulation.run_until_idle()
    status = status_of(simulation, "Job", "sum")
    assert status["succeeded"] == 5 and "active" not in status and "completionTime" in status
    assert report.clock_ns - simulation.clock.now_ns == 0
    assert len(pods_of(simulation)) == 5
    assert simulation.now_ns == make_cluster(0).now_ns + 30 * SECOND_NS


def test_a_failing_job_stops_at_its_backoff_limit() -> None:
    annotations = {"playground.dev/duration": "1s", "playground.dev/ends-as": "Failed"}
    simulation = make_cluster(
        1, make_workload("Job", "sum", completions=1, backoffLimit=2, annotations=annotations)
    )
    simulation.run_until_idle()
    stored = simulation.world.get("Job", "default", "sum")
    assert stored is not None
    assert [(it["type"], it["reason"]) for it in stored.manifest["status"]["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]
    assert len(pods_of(simulation)) == 3


def test_an_indexed_job_replaces_a_lost_index() -> None:
    annotations = {"playground.dev/duration": "never"}
    job = make_workload(
        "Job", "sum", completions=3, parallelism=3, completionMode="Indexed", annotations=annotations
    )
    simulation = make_cluster(1, job)
    simulation.run_until_idle()
    (second,) = [pod for pod in pods_of(simulation) if "-1-" in pod.name]
    simulation.submit(DeleteObject("Pod", "default", second.name, 0))
    simulation.run_until_idle()
    indexes = [pod.labels["batch.kubernetes.io/job-completion-index"] for pod in pods_of(simulation)]
    assert sorted(indexes) == ["0", "1", "2"]


def test_a_job_goes_when_its_time_to_live_is_over() -> None:
    annotations = {"playground.dev/duration": "1s"}
    job = make_workload("Job", "sum", ttlSecondsAfterFinished=60, annotations=annotations)
    simulation = make_cluster(1, job)
    simulation.run_until_idle()
    assert simulation.world.get("Job", "default", "sum") is None and not pods_of(simulation)


def test_a_workload_that_cannot_be_read_is_reported_and_harms_no_other() -> None:
    broken = make_workload("Deployment", "web", replicas=1)
    broken["spec"]["replicas"] = "many"
    simulation = make_cluster(1, broken, make_pod("fine"))
    simulation.run_until_idle()
    fine = pod_named(simulation, "fine")
    assert fine is not None and fine.node_name
    reasons = [it.manifest["reason"] for it in simulation.drain_outcomes() if it.manifest["kind"] == "Event"]  # type: ignore[union-attr]
    assert "InvalidSpec" in reasons


def test_controllers_remember_nothing_that_a_checkpoint_does_not_hold() -> None:
    simulation = make_cluster(
        3,
        make_workload("Deployment", "web", replicas=3),
        make_workload("StatefulSet", "db", replicas=2),
        make_workload("DaemonSet", "agent"),
        make_workload(
            "Job", "sum", completions=3, parallelism=2, annotations={"playground.dev/duration": "20s"}
        ),
    )
    simulation.run_until_idle(max_cycles=4)
    again = reborn(simulation)
    for it in (simulation, again):
        set_ready(it, "node-1", "Unknown")
        write(it, make_workload("Deployment", "web", replicas=2, image="next"))
        it.run_until_idle()
    assert state(simulation) == state(again)
