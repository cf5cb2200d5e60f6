"""The schema that kubectl explains and checks by."""

from typing import Any

from playground.clusters import kinds
from playground.kube_api import openapi, protobuf
from tests.kube_api.conftest import SERVED, Kube


def fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in protobuf._fields(data):
        found.setdefault(number, []).append(value)
    return found


def references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [found for item in schema for found in references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + [found for value in schema.values() for found in references(value)]


def test_v3_has_a_document_a_version_and_every_reference_resolves(kube: Kube) -> None:
    index = kube.get("/openapi/v3").json()["paths"]
    assert set(index) == {"api/v1", *(f"apis/{v}" for v in SERVED.api_versions() if v != "v1")}
    seen = set()
    for place, entry in index.items():
        document = kube.get(entry["serverRelativeURL"]).json()
        schemas = document["components"]["schemas"]
        for name, schema in schemas.items():
            for ref in references(schema):
                assert ref.removeprefix("#/components/schemas/") in schemas, (place, name, ref)
            seen |= {
                (f"{gvk['group']}/{gvk['version']}".lstrip("/"), gvk["kind"])
                for gvk in schema.get("x-kubernetes-group-version-kind", ())
            }
    assert seen >= {kind.key for kind in kinds.KINDS}
    assert kube.get("/openapi/v3/apis/apps/v9").status_code == 404


def test_lists_say_how_they_merge_as_the_server_merges_them() -> None:
    every = openapi.definitions(SERVED.served)
    pod = every["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert pod["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert "x-kubernetes-patch-strategy" not in pod["tolerations"]
    service = every["io.k8s.api.core.v1.ServiceSpec"]["properties"]
    container = every["io.k8s.api.core.v1.Container"]["properties"]
    assert service["ports"]["x-kubernetes-patch-merge-key"] == "port"
    assert container["ports"]["x-kubernetes-patch-merge-key"] == "containerPort"
    probe = every["io.k8s.api.core.v1.HTTPGetAction"]["properties"]["port"]
    either = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    assert probe["$ref"] == either
    assert (every[either]["type"], every[either]["format"]) == ("string", "int-or-string")


def test_explanations_are_kubernetes_own() -> None:
    spec = openapi.definitions(SERVED.served)["io.k8s.api.networking.v1.IngressSpec"]
    assert "IngressClass" in spec["properties"]["ingressClassName"]["description"]


def test_v2_is_the_same_in_protobuf(kube: Kube) -> None:
    answer = kube.get("/openapi/v2")
    document = fields(answer.content)
    assert document[1] == [b"2.0"]
    named = [fields(item) for item in fields(document[9][0])[1]]
    assert [item[1][0].decode() for item in named] == list(openapi.definitions(SERVED.served))
    paths = [fields(item)[1][0].decode() for item in fields(document[8][0])[2]]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in paths
    assert len(paths) == sum("patch" in kind.verbs for kind in SERVED.served)
