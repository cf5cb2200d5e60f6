"""Workload controllers keep the pods they are asked for."""

import json

import pytest

from scheduler_core.objects.meta import uid_of
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    make_cluster,
    make_node,
    make_pod,
    make_workload,
    pod_named,
    pods_of,
    write,
)


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


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    strategy = {"type": "Recreate"}
    simulation = make_cluster(2, make_workload("Deployment", "web", replicas=2, strategy=strategy))
    simulation.run_until_idle()
    write(simulation, make_workload("Deployment", "web", replicas=2, image="next", strategy=strategy))
    assert all(pod.is_terminating for pod in pods_of(simulation, "web"))
    simulation.run_until_idle()
    assert [pod.images for pod in pods_of(simulation, "web")] == [("next",)] * 2


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


def test_a_workload_that_cannot_be_read_is_reported_and_harms_no_other() -> None:
    broken = make_workload("Deployment", "web", replicas=1)
    broken["spec"]["replicas"] = "many"
    simulation = make_cluster(1, broken, make_pod("fine"))
    simulation.run_until_idle()
    fine = pod_named(simulation, "fine")
    assert fine is not None and fine.node_name
    reasons = [it.manifest["reason"] for it in simulation.drain_outcomes() if it.manifest["kind"] == "Event"]  # type: ignore[union-attr]
    assert "InvalidSpec" in reasons


def test_objects_of_another_run_with_the_same_seed_keep_their_uids_to_themselves() -> None:
    """A cluster that begins with what another one ended with draws the same numbers again."""
    first = make_cluster(2, make_workload("Deployment", "web", replicas=2))
    first.run_until_idle()
    objects = [stored.manifest for stored in first.world.everything() if stored.manifest["kind"] != "Node"]
    second = make_cluster(2)
    for manifest in reversed(objects):
        second.submit(WriteObject(manifest))
    second.run_until_idle()
    changed = json.loads(json.dumps(second.world.get("Deployment", "default", "web").manifest))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    write(second, changed)
    second.advance(0)
    replica_sets = {uid_of(stored.manifest) for stored in second.world.all("ReplicaSet")}
    assert len(replica_sets) == 2 and len(replica_sets & {uid_of(manifest) for manifest in objects}) == 1
    again = Simulation.restore(json.loads(json.dumps(second.checkpoint())))
    for one in (second, again):
        scale = json.loads(json.dumps(one.world.get("Deployment", "default", "web").manifest))
        write(one, {**scale, "spec": {**scale["spec"], "replicas": 4}})
        one.run_until_idle()
        uids = [uid_of(stored.manifest) for stored in one.world.everything() if uid_of(stored.manifest)]
        assert len(set(uids)) == len(uids)
        assert len(one.world.all("ReplicaSet")) == 2 and len(one.world.all("Pod")) == 4
    assert again.checkpoint() == second.checkpoint()
