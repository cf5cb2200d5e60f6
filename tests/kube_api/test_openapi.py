"""The schema that kubectl explains and checks by."""

from __future__ import annotations

from typing import Any

from playground.clusters import kinds
from playground.kube_api import openapi, protobuf
from tests.kube_api.conftest import Kube


def fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in protobuf._fields(data):
        found.setdefault(number, []).append(value)
    return found


def test_v3_has_a_document_a_version_and_every_reference_resolves(kube: Kube) -> None:
    index = kube.get("/openapi/v3").json()["paths"]
    assert set(index) == {"api/v1", *(f"apis/{v}" for v in kinds.api_versions() if v != "v1")}
    seen = set()
    for place, entry in index.items():
        document = kube.get(entry["serverRelativeURL"]).json()
        schemas = document["components"]["schemas"]
        for name, schema in schemas.items():
            for ref in openapi._refs(schema):
                assert ref.removeprefix("#/components/schemas/") in schemas, (place, name, ref)
            seen |= {
                (f"{gvk['group']}/{gvk['version']}".lstrip("/"), gvk["kind"])
                for gvk in schema.get("x-kubernetes-group-version-kind", ())
            }
    assert seen >= {kind.key for kind in kinds.KINDS}
    assert kube.get("/openapi/v3/apis/apps/v9").status_code == 404


def test_lists_say_how_they_merge_as_the_server_merges_them() -> None:
    pod = openapi.definitions()["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert pod["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert "x-kubernetes-patch-strategy" not in pod["tolerations"]
    service = openapi.definitions()["io.k8s.api.core.v1.ServiceSpec"]["properties"]
    container = openapi.definitions()["io.k8s.api.core.v1.Container"]["properties"]
    assert service["ports"]["x-kubernetes-patch-merge-key"] == "port"
    assert container["ports"]["x-kubernetes-patch-merge-key"] == "containerPort"
    probe = openapi.definitions()["io.k8s.api.core.v1.HTTPGetAction"]["properties"]["port"]
    assert probe == {"type": "string", "format": "int-or-string"}


def test_v2_is_the_same_in_protobuf(kube: Kube) -> None:
    answer = kube.get("/openapi/v2")
    document = fields(answer.content)
    assert document[1] == [b"2.0"]
    named = [fields(item) for item in fields(document[9][0])[1]]
    assert [item[1][0].decode() for item in named] == list(openapi.definitions())
    paths = [fields(item)[1][0].decode() for item in fields(document[8][0])[2]]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in paths
    assert len(paths) == len(kinds.KINDS)
