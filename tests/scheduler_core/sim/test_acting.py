"""Limits of namespaces on what controllers make, deletion in the foreground, and older logs."""

from typing import Any

from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.acting import cluster, deployment, events, job, manifest, names
from tests.scheduler_core.sim.builders import reborn, state, write


def quota(**hard: str) -> dict[str, Any]:
    return manifest(
        "ResourceQuota",
        "q",
        "v1",
        {"hard": {name.replace("_", "."): amount for name, amount in hard.items()}},
    )


def limit_range() -> dict[str, Any]:
    limits = [
        {"type": "Container", "defaultRequest": {"cpu": "500m"}, "default": {"cpu": "1"}, "max": {"cpu": "2"}}
    ]
    return manifest("LimitRange", "l", "v1", {"limits": limits})


def test_jobs_are_made_again_when_their_pods_are_over() -> None:
    made = cluster()
    write(made, quota(pods="1"), job("one"), job("two"))
    assert len(names(made, "Pod")) == 1
    made.run_until_idle()
    phases = {stored.typed.phase for stored in made.world.all("Pod")}
    assert (len(names(made, "Pod")), phases) == (2, {"Succeeded"})


def test_a_limit_range_completes_and_bounds_them() -> None:
    made = cluster()
    write(made, limit_range(), deployment("web", 2, cpu=None))
    for stored in made.world.all("Pod"):
        assert stored.typed.requests["cpu"] == 500
        assert stored.manifest["spec"]["containers"][0]["resources"] == {
            "requests": {"cpu": "500m"},
            "limits": {"cpu": "1"},
        }
        said = "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
        assert stored.manifest["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": said}
    write(made, deployment("large", 1, cpu="3"))
    last = events(made, "ReplicaSet")[-1]
    assert last[1] == "FailedCreate" and "maximum cpu usage per Container is 2, but" in last[2]


def test_limits_hold_after_a_stop_as_before() -> None:
    made = cluster()
    write(made, limit_range(), quota(requests_cpu="1"), deployment("web", 3, cpu=None))
    other = reborn(made)
    for one in (made, other):
        one.drain_outcomes()
        write(one, quota(requests_cpu="5"), deployment("web", 20, cpu=None))
        one.run_until_idle()
    assert made.drain_outcomes() == other.drain_outcomes() and state(made) == state(other)
    assert len(names(made, "Pod")) == 10


def going(made: Simulation, *finalizers: str) -> None:
    """Delete the Deployment in the foreground, as the API server marks it."""
    stored = made.world.get("Deployment", "default", "web")
    assert stored is not None
    mark = {"deletionTimestamp": "2026-01-01T00:00:30Z", "finalizers": ["foregroundDeletion", *finalizers]}
    write(made, {**stored.manifest, "metadata": {**stored.manifest["metadata"], **mark}})


def test_a_clients_finalizer_keeps_it_after_that() -> None:
    made = cluster()
    write(made, deployment("web", 1))
    made.run_until_idle()
    going(made, "example.com/mine")
    made.run_until_idle()
    stored = made.world.get("Deployment", "default", "web")
    assert stored is not None and stored.manifest["metadata"]["finalizers"] == ["example.com/mine"]
    assert names(made, "ReplicaSet") == []


def test_what_has_another_owner_stays_and_what_has_none_left_goes() -> None:
    made = cluster()
    owners = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"{name}-uid"}
        for name in ("web", "two")
    ]
    write(made, deployment("web"), deployment("two"))
    write(made, manifest("Service", "shared", "v1", {}, ownerReferences=owners))
    made.submit(DeleteObject("Deployment", "default", "web"))
    stored = made.world.get("Service", "default", "shared")
    assert stored is not None and [
        item["name"] for item in stored.manifest["metadata"]["ownerReferences"]
    ] == ["two"]
    made.submit(DeleteObject("Deployment", "default", "two"))
    assert names(made, "Service") == []
