"""`nodename-wffc.yaml`: `spec.nodeName` passes the scheduler by, not the kubelet."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.engine.columns import why_it_waits
from scheduler_core.cli.main import main
from scheduler_core.releases import NEWEST, RELEASES
from scheduler_core.sim.changes import DeleteObject, EventRecorded
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    claim,
    make_cluster,
    make_pod,
    pod_named,
    reborn,
    state,
    storage_class,
    write,
)
from tests.scheduler_core.stored import prepare
from tests.tables import table

CASE = Path(__file__).parent / "data" / "nodename-wffc.yaml"
NOT_BOUND = (
    "Unable to attach or mount volumes: unmounted volumes=[d], unattached volumes=[], "
    "failed to process volumes=[d]: error processing PVC default/data: PVC is not bound"
)
PREPARE = "Failed to prepare dynamic resources: prepare dynamic resources: "


def test_nodename_wffc(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(CASE), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["waiting"] == [{"pod": "default/pinned", "message": NOT_BOUND}]


def test_nodename_wffc_the_pod_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    objects = [prepare(one) for one in yaml.safe_load_all(CASE.read_text())]
    cluster = make_cluster(0, *objects, release=NEWEST)
    cluster.run_until_idle()
    pinned = pod_named(cluster, "pinned")
    assert pinned is not None and pinned.phase == "Pending"
    assert why_it_waits(pinned.manifest, ["default-scheduler"]) == NOT_BOUND
    assert told(cluster) == [("FailedMount", NOT_BOUND)]
    # One Event for a cause, and a checkpoint goes on alike.
    again = reborn(cluster)
    for one in (cluster, again):
        one.submit(DeleteObject("PersistentVolumeClaim", "default", "data"))
        one.run_until_idle()
        [(_, missing)] = told(one)
        assert missing.endswith(
            'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'
        )
    assert state(cluster) == state(again)


def told(cluster: Simulation) -> list[tuple[str, str]]:
    events = [item.manifest for item in cluster.drain_outcomes() if isinstance(item, EventRecorded)]
    return [(event["reason"], event["message"]) for event in events if event["reason"].startswith("Failed")]


def pinned(name: str, claim_name: str, **spec: Any) -> dict[str, Any]:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    return make_pod(name, nodeName="node-0", **({"volumes": [volume]} | spec))


def test_a_pod_that_came_with_its_node_starts_when_its_claim_is_bound() -> None:
    cluster = make_cluster(1, pinned("p", "c"), release=NEWEST)
    cluster.run_until_idle()
    pod = pod_named(cluster, "p")
    assert pod is not None and pod.phase == "Pending"
    assert 'persistentvolumeclaims "c" not found' in told(cluster)[0][1]
    # An Immediate claim is bound without a scheduler.
    write(cluster, storage_class("now", waits=False), claim("c", "now"))
    cluster.run_until_idle()
    pod = pod_named(cluster, "p")
    assert pod is not None and pod.phase == "Running"
    assert why_it_waits(pod.manifest, []) == ""


@pytest.mark.parametrize("release", RELEASES)
def test_a_pod_that_came_with_its_node_waits_for_its_devices(release: str) -> None:
    def own(name: str, **reference: str) -> dict[str, Any]:
        return pinned(name, "", volumes=[], resourceClaims=[{"name": "x", **reference}])

    devices = table(__file__, "a_pod_that_came_with_its_node_waits_for_its_devices")
    cluster = make_cluster(
        1,
        *map(prepare, devices),
        own("missing", resourceClaimName="none"),
        own("made", resourceClaimTemplateName="none"),
        own("unallocated", resourceClaimName="c"),
        release=RELEASES[release],
    )
    cluster.run_until_idle()
    stored = cluster.world.get("ResourceClaim", "default", "c")
    assert stored is not None
    uids = pod_named(cluster, "unallocated"), stored.manifest["metadata"]["uid"]
    assert uids[0] is not None
    said = {message for reason, message in told(cluster) if reason == "FailedPrepareDynamicResources"}
    assert said == {
        f'{PREPARE}fetch ResourceClaim none: resourceclaims.resource.k8s.io "none" not found',
        f'{PREPARE}pod "default/made": ResourceClaim not created yet',
        f"{PREPARE}pod unallocated ({uids[0].uid}) is not allowed to use ResourceClaim c ({uids[1]})",
    }
    # Another pod has the claim allocated; the controller reserves it for the pod that waits on its node.
    write(cluster, make_pod("first", resourceClaims=[{"name": "x", "resourceClaimName": "c"}]))
    cluster.run_until_idle()
    phases = {stored.typed.name: stored.typed.phase for stored in cluster.world.all("Pod")}
    assert phases == {"missing": "Pending", "made": "Pending", "unallocated": "Running", "first": "Running"}
