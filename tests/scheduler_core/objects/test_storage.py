"""Storage objects are read as the scheduler reads them, and say which field is wrong."""

from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.csi_translation import (
    TranslationError,
    translate_inline,
    translate_node_affinity,
    translate_volume,
)
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.storage import (
    ClaimReference,
    PersistentVolume,
    persistent_volume_claim_from,
    persistent_volume_from,
)
from tests.scheduler_core.stored import prepare
from tests.tables import table

ZONE = "topology.kubernetes.io/zone"
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
REGION_BETA = "failure-domain.beta.kubernetes.io/region"


def volume(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    return persistent_volume_from(
        {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": spec}
    )


def test_the_beta_annotation_names_the_class_before_the_field_does() -> None:
    meta = {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    claim = persistent_volume_claim_from({"metadata": meta, "spec": {"storageClassName": "new"}})
    assert claim.storage_class == "old"
    assert not claim.is_fully_bound


@pytest.mark.parametrize(("uid", "bound"), [("", True), ("u1", True), ("u2", False)])
def test_a_volume_is_kept_for_a_claim_of_that_name_and_uid(uid: str, bound: bool) -> None:
    kept = volume(claimRef={"namespace": "default", "name": "c", "uid": uid})
    assert kept.claim_ref == ClaimReference("default", "c", uid)
    claim = persistent_volume_claim_from(
        {"metadata": {"name": "c", "namespace": "default", "uid": "u1"}, "spec": {}}
    )
    assert kept.is_bound_to(claim) is bound


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    table(__file__, "what_cannot_be_read_is_named_by_its_path"),
)
def test_what_cannot_be_read_is_named_by_its_path(kind: str, document: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        parse(prepare({"kind": kind, "metadata": {"name": "x"}, **document}))
    assert str(caught.value).startswith(message)


# ---- kinds


def test_a_kind_of_another_group_is_not_read() -> None:
    manifest = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "x"}}
    assert not is_read(manifest)
    with pytest.raises(InvalidObject, match=r"kind: .serving.knative.dev/v1 Service. is not read"):
        parse(manifest)


# ---- in-tree volumes


@pytest.mark.parametrize(
    ("inline", "driver", "handle"), table(__file__, "in_tree_volumes_have_a_driver_and_a_handle")
)
def test_in_tree_volumes_have_a_driver_and_a_handle(inline: dict[str, Any], driver: str, handle: str) -> None:
    source = translate_inline(inline)
    assert (source.driver, source.volume_handle) == (driver, handle)


@pytest.mark.parametrize(
    ("zones", "handle"), table(__file__, "a_google_disk_is_told_apart_by_zone_or_region")
)
def test_a_google_disk_is_told_apart_by_zone_or_region(zones: str, handle: str) -> None:
    disk = volume({ZONE: zones}, gcePersistentDisk={"pdName": "d"})
    assert translate_volume(disk).volume_handle == handle


@pytest.mark.parametrize("zones", ["us-a-1__us-b-1", "us__eu"])
def test_a_google_disk_in_several_regions_cannot_be_translated(zones: str) -> None:
    with pytest.raises(TranslationError, match="failed to get region from zones"):
        translate_volume(volume({ZONE_BETA: zones}, gcePersistentDisk={"pdName": "d"}))


EBS = "topology.ebs.csi.aws.com/zone"


def allows(disk: PersistentVolume, **labels: str) -> bool:
    selector = translate_node_affinity(disk)
    return selector is None or selector.match(labels, "")


def test_zone_requirements_speak_of_the_driver_s_label() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    disk = volume(
        awsElasticBlockStore={"volumeID": "v"}, nodeAffinity={"required": {"nodeSelectorTerms": terms}}
    )
    assert allows(disk, **{EBS: "a"})
    assert not allows(disk, **{ZONE: "a"})


def test_the_zone_label_is_used_where_no_requirement_names_zones() -> None:
    disk = volume({ZONE_BETA: "a__b"}, awsElasticBlockStore={"volumeID": "v"})
    assert allows(disk, **{EBS: "b"})
    assert not allows(disk, **{EBS: "c"})


def test_the_beta_region_becomes_the_current_one() -> None:
    expressions = [
        {"key": ZONE_BETA, "operator": "In", "values": ["a"]},
        {"key": REGION_BETA, "operator": "In", "values": ["r"]},
    ]
    terms = [{"matchExpressions": expressions}]
    disk = volume(
        awsElasticBlockStore={"volumeID": "v"}, nodeAffinity={"required": {"nodeSelectorTerms": terms}}
    )
    assert allows(disk, **{EBS: "a", REGION: "r"})
    assert not allows(disk, **{EBS: "a", REGION_BETA: "r"})


def test_a_volume_without_zones_can_be_used_everywhere() -> None:
    assert translate_node_affinity(volume(awsElasticBlockStore={"volumeID": "v"})) is None
