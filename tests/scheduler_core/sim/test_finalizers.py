"""Pods that finalizers hold: they end, make room, and stay."""

from typing import Any

import pytest

from scheduler_core.releases import OLDEST
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    make_cluster,
    make_pod,
    make_workload,
    pod_named,
    pods_of,
)

NOW = OLDEST
CLEAN = ["example.com/clean"]


def held(name: str, **spec: Any) -> dict[str, Any]:
    pod = make_pod(name, uid=f"{name}-uid", **spec)
    pod["metadata"]["finalizers"] = CLEAN
    return pod


def end(simulation: Simulation, name: str, grace_s: int | None = None) -> None:
    simulation.submit(DeleteObject("Pod", "default", name, grace_s))
    simulation.advance(60 * SECOND_NS)


def let_go(simulation: Simulation, name: str) -> None:
    """As an API server does when the last finalizer is taken off."""
    pod = pod_named(simulation, name)
    assert pod is not None
    meta = {key: value for key, value in pod.manifest["metadata"].items() if key != "finalizers"}
    simulation.submit(WriteObject({**pod.manifest, "metadata": meta}))
    simulation.submit(DeleteObject("Pod", "default", name, 0))


@pytest.mark.parametrize("grace_s", [None, 5, 0])
def test_a_held_pod_ends_and_stays_until_it_is_let_go(grace_s: int | None) -> None:
    cluster = make_cluster(1, held("a", cpu="3"), release=NOW)
    cluster.run_until_idle()
    end(cluster, "a", grace_s)
    pod = pod_named(cluster, "a")
    assert pod is not None and pod.phase == "Succeeded" and pod.is_terminating
    assert pod.manifest["metadata"]["deletionGracePeriodSeconds"] == 0
    stamp = pod.manifest["metadata"]["deletionTimestamp"]
    cluster.submit(WriteObject(make_pod("b", uid="b", cpu="3")))
    cluster.run_until_idle()
    bound = pod_named(cluster, "b")
    assert bound is not None and bound.node_name == "node-0"
    end(cluster, "a", 0)
    again = pod_named(cluster, "a")
    assert again is not None and again.manifest["metadata"]["deletionTimestamp"] == stamp
    let_go(cluster, "a")
    assert pod_named(cluster, "a") is None


def test_kubernetes_own_finalizers_hold_no_pod() -> None:
    pod = held("a")
    pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    cluster = make_cluster(1, pod, release=NOW)
    cluster.run_until_idle()
    end(cluster, "a")
    assert pod_named(cluster, "a") is None


def test_a_held_pod_of_a_lost_node_stays_and_time_goes_on() -> None:
    cluster = make_cluster(2, held("a"), release=NOW)
    cluster.run_until_idle()
    lost = pod_named(cluster, "a")
    assert lost is not None
    cluster.submit(DeleteObject("Node", "", lost.node_name))
    cluster.advance(600 * SECOND_NS)
    pod = pod_named(cluster, "a")
    assert pod is not None and pod.phase == "Failed" and pod.is_terminating
    report = cluster.run_until_idle(until_ns=cluster.now_ns + 3600 * SECOND_NS)
    assert report.stop == "idle"


def test_a_stateful_set_waits_for_its_held_pod() -> None:
    workload = make_workload("StatefulSet", "db", replicas=1)
    workload["spec"]["template"]["metadata"]["finalizers"] = CLEAN
    cluster = make_cluster(1, workload, release=NOW)
    cluster.run_until_idle()
    [first] = pods_of(cluster, "db")
    end(cluster, "db-0")
    [still] = pods_of(cluster, "db")
    assert still.uid == first.uid and still.is_terminating
    let_go(cluster, "db-0")
    cluster.run_until_idle()
    [second] = pods_of(cluster, "db")
    assert second.uid != first.uid and second.phase == "Running"
