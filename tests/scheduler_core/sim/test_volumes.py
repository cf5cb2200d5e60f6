"""Claims find volumes or have them made, and pods wait for that."""

from typing import Any

from scheduler_core.sim.changes import DeleteObject
from tests.scheduler_core.sim.builders import (
    START_NS,
    claim,
    make_cluster,
    make_node,
    make_pod,
    make_workload,
    pod_named,
    pods_of,
    reborn,
    state,
    storage_class,
    write,
)
from tests.scheduler_core.stored import prepare


def volume(name: str, size: str, class_name: str, zone: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": class_name,
        "local": {"path": "/data"},
    }
    if zone:
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return prepare({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def mounting(name: str, claim_name: str) -> dict[str, Any]:
    return make_pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def zoned() -> list[dict[str, Any]]:
    return [make_node(f"node-{zone}", labels={"topology.kubernetes.io/zone": zone}) for zone in ("a", "b")]


def test_a_volume_is_made_in_the_zone_of_the_node() -> None:
    simulation = make_cluster(
        0, *zoned(), storage_class("fast"), claim("data", "fast"), mounting("db", "data")
    )
    simulation.run_until_idle()
    db = pod_named(simulation, "db")
    assert db is not None and db.phase == "Running"
    (made,) = simulation.world.all("PersistentVolume")
    terms = made.manifest["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == [db.node_name.removeprefix("node-")]
    simulation.submit(DeleteObject("PersistentVolumeClaim", "default", "data"))
    assert not simulation.world.all("PersistentVolume")


def test_an_immediate_claim_takes_the_smallest_volume_that_will_do() -> None:
    local = storage_class("now", waits=False, provisioner="kubernetes.io/no-provisioner")
    volumes = (volume("large", "20Gi", "now"), volume("small", "1Gi", "now"), volume("right", "6Gi", "now"))
    simulation = make_cluster(0, local, *volumes, claim("data", "now"))
    stored = simulation.world.get("PersistentVolumeClaim", "default", "data")
    assert stored is not None and stored.manifest["spec"]["volumeName"] == "right"


def test_a_claim_without_a_class_gets_the_default_one_and_a_volume() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    simulation = make_cluster(2, claim("data"), mounting("db", "data"))
    simulation.run_until_idle()
    db = pod_named(simulation, "db")
    assert db is not None and not db.node_name
    write(simulation, storage_class("usual", waits=False, annotations=annotations))
    simulation.run_until_idle()
    db = pod_named(simulation, "db")
    assert db is not None and db.phase == "Running"


def test_the_pods_of_a_stateful_set_get_a_volume_each() -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }
    workload = make_workload("StatefulSet", "db", replicas=3, volumeClaimTemplates=[template])
    simulation = make_cluster(0, *zoned(), storage_class("fast"), workload)
    simulation.run_until_idle()
    assert [pod.phase for pod in pods_of(simulation)] == ["Running"] * 3
    assert len(simulation.world.all("PersistentVolume")) == 3


def test_without_anybody_who_binds_claims_the_wait_in_prebind_ends() -> None:
    objects = (storage_class("fast"), claim("data", "fast"), mounting("db", "data"))
    simulation = make_cluster(1, *objects, controllers=False)
    simulation.step()
    assert simulation.scheduler.bindings["default/db"].step == "PreBind"
    again = reborn(simulation)
    for it in (simulation, again):
        report = it.run_until_idle(max_cycles=3)
        assert report.clock_ns >= START_NS + 600_000_000_000
    assert state(simulation) == state(again)
