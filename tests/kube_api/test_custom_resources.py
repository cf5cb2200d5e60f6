"""Custom resources as their definition says: rules in CEL, scale, several versions, many definitions, their end."""

import time
from typing import Any

import pytest

from playground.clusters.errors import InvalidManifest
from playground.clusters.lifecycle import clone_cluster, create_cluster, export_manifests, reset_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.kube_api.conftest import Kube
from tests.tables import table

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "rules.example"
SPEC: dict[str, Any] = table(__file__, "SPEC")  # fmt: skip


def definition(plural: str = "ranges", group: str = GROUP, *more: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": SPEC,
            "status": {"type": "object", "properties": {"now": {"type": "integer"}}},
        },
    }
    scale = {"specReplicasPath": ".spec.min", "statusReplicasPath": ".status.now"}
    versions = [
        {
            "name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": scale}, "selectableFields": [{"jsonPath": ".spec.min"}],
        }
        for name in ("v1", *more)
    ]  # fmt: skip
    names = {"plural": plural, "kind": plural.capitalize()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


@pytest.fixture
def ranges(kube: Kube) -> str:
    assert kube.post(CRDS, definition("ranges", GROUP, "v2")).status_code == 201
    return f"/apis/{GROUP}/v1/namespaces/default/ranges"


def made(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": spec}


def test_rules_in_cel_are_held_and_told_once(kube: Kube, ranges: str) -> None:
    refused = kube.post(ranges, made(min=9)).json()
    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "spec.min")
    assert (
        refused["message"].startswith(f'Ranges.{GROUP} "a" is invalid')
        and refused["details"]["group"] == GROUP
    )
    assert refused["message"].count("min must not be above max") == 1
    item = kube.post(ranges, made(min=1, items=[{"n": 1}, {"n": 0}])).json()
    assert item["details"]["causes"][0]["field"] == "spec.items[1]"
    assert "failed rule: !has(self.n) || self.n > 0" in item["message"]
    huge = kube.post(ranges, made(min=1, size="1e999999999")).json()
    assert huge["details"]["causes"][0]["field"] == "spec.size"
    assert (
        "unable to parse numeric part of quantity evaluating rule: quantity(self).sign() > 0"
        in huge["message"]
    )
    assert kube.post(ranges, made(min=1, size="1e9", items=[{}, {"n": 2}])).status_code == 201


@pytest.mark.parametrize("how", ["kubernetes", "apply"])
def test_a_rule_about_a_change_knows_what_was(kube: Kube, ranges: str, cluster: Cluster, how: str) -> None:
    assert kube.post(ranges, made(min=1, **{"class": "gold"})).status_code == 201
    assert kube.patch(f"{ranges}/a", {"spec": {"min": 2}}).status_code == 200
    if how == "kubernetes":
        told = kube.patch(f"{ranges}/a", {"spec": {"class": "tin"}}).json()["message"]
    else:
        other = {"apiVersion": f"{GROUP}/v1", "kind": "Ranges", **made(min=1, **{"class": "tin"})}
        cluster.refresh_from_db()
        with pytest.raises(InvalidManifest) as refused:
            apply_documents(cluster=cluster, objects=[other])
        told = refused.value.message
    assert "class stays gold" in told


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"type": "string", "default": 5}, 'default: Invalid value: 5: must be of type string: "integer"'),
        ({"type": "text"}, 'type: Unsupported value: "text": supported values: "array"'),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        ({"type": "string", "default": "a", "enum": 5}, "enum: Invalid value: 5: must be a list"),
        (
            {"type": "object", "default": {"a": 1}, "required": "a"},
            'required: Invalid value: "a": must be a list',
        ),
    ],
)
def test_a_schema_that_cannot_be_is_refused(kube: Kube, field: dict[str, Any], said: str) -> None:
    wrong = definition()
    for version in wrong["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"] = {"x": field}
    refused = kube.post(CRDS, wrong).json()
    assert (refused["code"], refused["reason"]) == (422, "Invalid")
    assert f"openAPIV3Schema.properties[x].{said}" in refused["message"]


def test_a_status_changes_nothing_else(kube: Kube, ranges: str) -> None:
    kube.post(ranges, {"metadata": {"name": "a", "finalizers": [f"{GROUP}/held"]}, "spec": {"min": 2}})
    kube.patch(f"{ranges}/a", {"spec": {"min": 3}})
    going = kube.delete(f"{ranges}/a").json()["metadata"]
    said = kube.patch(f"{ranges}/a/status", {"status": {"now": 1, "x": 1}, "spec": {"min": 4}}).json()
    assert (said["spec"]["min"], said["status"]) == (3, {"now": 1})
    kept = ("generation", "deletionTimestamp", "deletionGracePeriodSeconds")
    assert [said["metadata"][key] for key in kept] == [going[key] for key in kept]
    kube.patch(f"{ranges}/a", {"metadata": {"finalizers": None}})
    assert kube.get(f"{ranges}/a").status_code == 404


def test_no_strategic_merge_is_known_of_a_custom_resource(kube: Kube, ranges: str) -> None:
    kube.post(ranges, made(min=2))
    refused = kube.patch(f"{ranges}/a", {"spec": {"min": 3}}, "strategic-merge-patch+json")
    assert refused.status_code == 415 and "strategic" not in refused.json()["message"]


def test_a_scale_is_where_the_definition_says(kube: Kube, ranges: str) -> None:
    kube.post(ranges, made(min=2))
    kube.patch(f"{ranges}/a/status", {"status": {"now": 1}})
    scale = kube.get(f"{ranges}/a/scale").json()
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1})
    assert kube.patch(f"{ranges}/a/scale", {"spec": {"replicas": 4}}).json()["spec"] == {"replicas": 4}
    assert kube.get(f"{ranges}/a").json()["spec"] == {"min": 4, "max": 5}
    found = [len(kube.get(f"{ranges}?fieldSelector=spec.min={n}").json()["items"]) for n in (4, 5)]
    assert found == [1, 0]
    said = kube.get(f"{ranges}?fieldSelector=spec.max=5").json()
    assert (said["code"], said["message"]) == (400, "field label not supported: spec.max")
    # What the rules forbid a scale cannot do either.
    assert kube.patch(f"{ranges}/a/scale", {"spec": {"replicas": 6}}).status_code == 422
    kube.post(ranges, {"metadata": {"name": "none"}, "spec": {}})
    assert '".spec.min" does not exist' in kube.get(f"{ranges}/none/scale").json()["message"]
    wrong = definition("wrong")
    wrong["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = "min"
    assert "specReplicasPath" in kube.post(CRDS, wrong).json()["message"]


def test_objects_of_several_versions_come_through_reset_copy_and_export(
    kube: Kube, ranges: str, cluster: Cluster
) -> None:
    kube.post(ranges, made(min=1))
    second = made(min=2)
    second["metadata"]["name"] = "b"
    assert kube.post(ranges.replace("/v1/", "/v2/"), second).json()["apiVersion"] == f"{GROUP}/v2"

    def held(of: Cluster) -> list[tuple[str, str, int]]:
        there = Kube(kube.client, f"/k8s/{of.public_id}")
        items = there.get(ranges.replace("/v1/", "/v2/")).json()["items"]
        return [(item["apiVersion"], item["metadata"]["name"], item["spec"]["min"]) for item in items]

    wanted = [(f"{GROUP}/v2", "a", 1), (f"{GROUP}/v2", "b", 2)]
    assert held(cluster) == wanted
    cluster.refresh_from_db()
    text = "".join(export_manifests(cluster))
    reset_cluster(cluster=cluster)
    assert held(cluster) == wanted
    assert held(clone_cluster(cluster=cluster, name="copy")) == wanted
    other = create_cluster(name="other", seed=1)
    apply_documents(cluster=other, text=text)
    assert held(other) == wanted


def test_two_hundred_definitions_are_discovered_soon(kube: Kube, cluster: Cluster) -> None:
    objects = [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
         **definition(f"things{number}", f"g{number % 20}.example", "v2")}
        for number in range(200)
    ]  # fmt: skip
    apply_documents(cluster=cluster, objects=objects)
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    kube.get("/apis", accept=accept)
    started = time.process_time()
    groups = kube.get("/apis", accept=accept).json()["items"]
    took_s = time.process_time() - started
    found = [each for group in groups for version in group["versions"] for each in version["resources"]]
    assert sum(each["resource"].startswith("things") for each in found) == 400
    # Processor time of this process; ten times what it took when it was measured.
    assert took_s < 3, took_s


def test_a_definition_waits_for_objects_that_finalizers_keep(kube: Kube, ranges: str) -> None:
    for name, finalizers in (("held", ["rules.example/hold"]), ("free", [])):
        item = {"metadata": {"name": name, "finalizers": finalizers}, "spec": {"min": 1}}
        uid = kube.post(ranges, item).json()["metadata"]["uid"]
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Ranges", "name": "free", "uid": uid}
    maps = "/api/v1/namespaces/default/configmaps"
    kube.post(maps, {"metadata": {"name": "owned", "ownerReferences": [owner]}})
    place = f"{CRDS}/ranges.{GROUP}"
    gone = kube.delete(place).json()["metadata"]
    assert gone["deletionTimestamp"] and gone["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert [item["metadata"]["name"] for item in kube.get(ranges).json()["items"]] == ["held"]
    assert kube.get(f"{maps}/owned").status_code == 404
    assert kube.patch(f"{ranges}/held", {"metadata": {"finalizers": None}}).status_code == 200
    assert kube.get(place).status_code == kube.get(ranges).status_code == 404
    # And at once where nothing keeps one.
    assert kube.post(CRDS, definition("ranges")).status_code == 201
    kube.post(ranges, made(min=1))
    assert kube.delete(place).status_code == 200
    assert kube.get(place).status_code == kube.get(ranges).status_code == 404
