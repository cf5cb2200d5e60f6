"""The schema of the kinds held here, for `kubectl explain`, its checks and its dry runs.

Fields and types come from one table, `data/field_types.json` (made by `tests/kube_api/make_field_types.py`). Prose
stays where it is written: each type's description is the address of Kubernetes' own page. kubectl before 1.27 reads
OpenAPI v2 as protobuf, later ones v3 as JSON.

Source: api/openapi-spec of Kubernetes v1.36; gnostic's openapiv2/OpenAPIv2.proto
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from playground.clusters import kinds
from playground.clusters.kinds import Kind
from playground.kube_api import list_keys

_TABLE: Final = Path(__file__).parent / "data/field_types.json"
_PLAIN: Final = ("string", "integer", "number", "boolean")
_FREE_FORM: Final = ("fieldsV1",)
# Struct tags that list keys do not say: a change of type replaces what the other type had.
_STRATEGIES: Final = {
    ("PodSpec", "volumes"): "merge,retainKeys",
    ("DeploymentSpec", "strategy"): "retainKeys",
}
_GVK: Final = "x-kubernetes-group-version-kind"


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """JSON schemas by name, as OpenAPI v2 writes them: `$ref` without a prefix, `required` beside `properties`."""
    table = json.loads(_TABLE.read_text())
    of_kind = {kind.kind: kind for kind in kinds.KINDS}
    found = {}
    for name, entry in table.items():
        properties, required = {}, []
        for field, text in entry["fields"].items():
            if text.endswith("!"):
                required.append(field)
            properties[field] = _schema(text.removesuffix("!"), field, table) | _patching(name, field)
        description = _page(name, entry["group"], _version(entry))
        schema = {"description": description, "type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if name in of_kind:
            schema[_GVK] = [_gvk(of_kind[name])]
        found[_full(name, table)] = schema
    return found


def _schema(text: str, field: str, table: Mapping[str, Any]) -> dict[str, Any]:
    if text.startswith("[]"):
        return {"type": "array", "items": _schema(text[2:], field, table)}
    if text.startswith("{}"):
        return {"type": "object", "additionalProperties": _schema(text[2:], field, table)}
    if text in _PLAIN:
        return {"type": text}
    if text == "object":
        return {"type": "object"} if field in _FREE_FORM else {"type": "string", "format": "int-or-string"}
    return {"$ref": _full(text, table)}


def _patching(name: str, field: str) -> dict[str, str]:
    path = ("spec", field) if name == "ServiceSpec" else (name, field)
    key = list_keys.merge_key_of(path)
    strategy = _STRATEGIES.get((name, field), "merge" if key or list_keys.is_set(path) else "")
    said = {"x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key}
    return {name: value for name, value in said.items() if value}


def _full(name: str, table: Mapping[str, Any]) -> str:
    group = table[name]["group"]
    package = "apimachinery.pkg.apis.meta" if group == "meta" else f"api.{group}"
    return f"io.k8s.{package}.{_version(table[name])}.{name}"


def _version(entry: Mapping[str, Any]) -> str:
    return str(entry.get("version", "v1"))


_DOCUMENTED = "v1.36"
"""The release whose API reference the definitions here follow."""


def _page(name: str, group: str, version: str) -> str:
    domain = "-k8s-io" if group in ("coordination", "resource", "scheduling", "storage") else ""
    base = f"https://kubernetes.io/docs/reference/generated/kubernetes-api/{_DOCUMENTED}"
    return f"{base}/#{name.lower()}-{version}-{group}{domain}"


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def v3_index() -> dict[str, Any]:
    """`GET /openapi/v3`: where the document of each group version is."""
    return {
        "paths": {
            _place(api_version): {"serverRelativeURL": f"/openapi/v3/{_place(api_version)}"}
            for api_version in kinds.api_versions()
        }
    }


def v3_document(place: str, patch: str) -> dict[str, Any] | None:
    """`GET /openapi/v3/api/v1`, `/openapi/v3/apis/apps/v1`; None if there is no such version."""
    versions = {_place(api_version): api_version for api_version in kinds.api_versions()}
    return _v3(versions[place], patch) if place in versions else None


def _place(api_version: str) -> str:
    return f"api{'s' if '/' in api_version else ''}/{api_version}"


@cache
def _v3(api_version: str, patch: str) -> dict[str, Any]:
    held = list(kinds.in_version(api_version))
    every = definitions()
    wanted = [name for name in every if any(_gvk(kind) in every[name].get(_GVK, ()) for kind in held)]
    for name in wanted:  # grows while it is walked
        wanted += [ref for ref in _refs(every[name]) if ref not in wanted]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes scheduling playground", "version": patch},
        # Only what tells a client which kind a resource is: patches are made from the types a client has itself.
        "paths": {
            path: {"get": {_GVK: _gvk(kind), "responses": {"200": {"description": "OK"}}}}
            for kind in held
            for path in _paths(kind)
        },
        "components": {"schemas": {name: _as_v3(every[name]) for name in wanted}},
    }


def _refs(schema: Any) -> list[str]:
    if isinstance(schema, Mapping):
        own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return own + [ref for value in schema.values() for ref in _refs(value)]
    return []


def _as_v3(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {"allOf": [{"$ref": f"#/components/schemas/{schema['$ref']}"}], **rest}
    return {key: _as_v3(value) for key, value in schema.items()}


def _paths(kind: Kind) -> tuple[str, str]:
    base = f"/{_place(kind.api_version)}" + ("/namespaces/{namespace}" if kind.namespaced else "")
    return f"{base}/{kind.plural}", f"{base}/{kind.plural}/{{name}}"


@cache
def v2_document(patch: str) -> bytes:
    """`GET /openapi/v2` as protobuf: the definitions, and that every kind's PATCH knows `dryRun`."""
    dry_run = _text(2, "query") + _text(4, "dryRun") + _text(6, "string")
    parameter = _part(8, _part(1, _part(2, _part(3, dry_run))))
    patches = b"".join(
        _part(
            2, _text(1, _paths(kind)[1]) + _part(2, _part(8, parameter + _part(13, _any(_GVK, _gvk(kind)))))
        )
        for kind in kinds.KINDS
    )
    schemas = b"".join(
        _part(1, _text(1, name) + _part(2, _v2_schema(schema))) for name, schema in definitions().items()
    )
    info = _text(1, "Kubernetes") + _text(2, patch)
    return _text(1, "2.0") + _part(2, info) + _part(8, patches) + _part(9, schemas)


def _v2_schema(schema: Mapping[str, Any]) -> bytes:
    """A schema as gnostic's message. `required` stays out: what is missing is for the server to judge."""
    return b"".join(_v2_parts(schema))


def _v2_parts(schema: Mapping[str, Any]) -> Iterator[bytes]:
    if "$ref" in schema:
        yield _text(1, f"#/definitions/{schema['$ref']}")
    for number, key in ((2, "format"), (4, "description")):
        if key in schema:
            yield _text(number, schema[key])
    if "additionalProperties" in schema:
        yield _part(21, _part(1, _v2_schema(schema["additionalProperties"])))
    if "type" in schema:
        yield _part(22, _text(1, schema["type"]))
    if "items" in schema:
        yield _part(23, _part(1, _v2_schema(schema["items"])))
    if "properties" in schema:
        properties = (
            _part(1, _text(1, name) + _part(2, _v2_schema(value)))
            for name, value in schema["properties"].items()
        )
        yield _part(25, b"".join(properties))
    for key, value in schema.items():
        if key.startswith("x-"):
            yield _part(31, _any(key, value))


def _any(name: str, value: Any) -> bytes:
    # JSON is YAML.
    return _text(1, name) + _part(2, _text(2, json.dumps(value)))


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, body: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
