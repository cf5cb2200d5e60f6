"""The schema that kubectl explains and checks by."""

from typing import Any

import pytest

from playground.clusters import kinds
from playground.kube_api import openapi, protobuf
from scheduler_core.objects.reading import SERVED_EARLY
from scheduler_core.schema import tables
from scheduler_core.schema.tables import types
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


# ---- The table of kinds: what is said of them, and that each version could be served beside the others


UNSERVED = sorted({said["apiVersion"] for said in tables.kinds()} - {*kinds.BUILT_IN.api_versions()})
SILENT_TYPES = (
    "apiextensions.v1.ExternalDocumentation",
    "apiextensions.v1.JSONSchemaProps",
    "meta.v1.GroupResource",
)
SILENT_FIELDS = (
    ("certificates.v1.CertificateSigningRequest", "metadata"),
    ("networking.v1.IngressRule", "http"),
)
"""What Kubernetes' own schema says nothing of."""


@pytest.fixture(params=["as it is", *UNSERVED])
def table(request: pytest.FixtureRequest) -> kinds.KindTable:
    more = () if request.param == "as it is" else (request.param,)
    return kinds.built_in((*SERVED_EARLY, *more))


def test_what_is_special_is_said_of_kinds_that_are_served() -> None:
    served = {kind.kind for kind in kinds.BUILT_IN.served}
    assert not {*kinds.SPECIAL} - served
    stored = {(said["storedAs"], name) for name, said in kinds.SPECIAL.items() if "storedAs" in said}
    assert stored <= {kind.key for kind in kinds.KINDS}


def test_each_kind_has_its_rows_in_one_version_the_most_stable_one(table: kinds.KindTable) -> None:
    rows = [kind.row_kind for kind in table.kinds]
    assert len(rows) == len({*rows})
    for kind in table.served:
        if kind.is_stored:
            stored = table.stored(kind)
            assert stored.is_main and stored.api_version == (kind.stored_version or kind.api_version)
            if stored.group == kind.group and "storedAs" not in kinds.SPECIAL.get(kind.kind, {}):
                assert kinds.version_order(stored.version) <= kinds.version_order(kind.version)
    # A client is told of the preferred version first.
    for group in table.groups():
        assert next(kind for kind in table.served if kind.group == group).is_main or group == "events.k8s.io"


def shape(name: str, seen: tuple[str, ...] = ()) -> Any:
    """The fields of a type, theirs in them; a type in itself is its name without its version."""
    bare = name.removeprefix("[]").removeprefix("{}")
    if bare not in types():
        return name
    if bare in seen:
        return bare.rpartition(".")[2]
    return {field: shape(each.type, (*seen, bare)) for field, each in types()[bare].items()}


def test_versions_whose_fields_differ_are_converted() -> None:
    """What is served beside the version its rows are in has its fields, or a conversion."""
    served = [kind for kind in kinds.BUILT_IN.served if kind.is_stored and not kind.is_main]
    differ = {kind.type for kind in served if shape(kind.type) != shape(kinds.BUILT_IN.stored(kind).type)}
    assert differ == {*kinds._CONVERSIONS}
    claims = [f"resource.{version}.ResourceClaim" for version in ("v1", "v1beta2", "v1beta1")]
    assert shape(claims[0]) == shape(claims[1]) != shape(claims[2]), "it tells fields apart"


def test_what_kubernetes_says_of_a_field_is_explained(table: kinds.KindTable) -> None:
    definitions = openapi.definitions(table.served)
    silent = {openapi.full_name(name) for name in SILENT_TYPES}
    silent_fields = {(openapi.full_name(name), field) for name, field in SILENT_FIELDS}
    for name, found in definitions.items():
        assert {ref.rpartition("/")[2] for ref in references(found)} <= {*definitions}, name
        if name.endswith("List") or name in silent:
            continue
        for field, inner in found.get("properties", {}).items():
            assert inner.get("description") or (name, field) in silent_fields, f"{name}.{field}"
