"""The schema of a cluster's kinds as OpenAPI: `kubectl explain`, checks by clients, their dry runs.

Types come from the one table (`scheduler_core.schema`), prose included; CustomResourceDefinitions bring their own.
kubectl before 1.27 reads OpenAPI v2 as protobuf, later ones v3 as JSON.

Source: api/openapi-spec of Kubernetes v1.36
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from playground.clusters.custom_kinds import schema_of
from playground.clusters.kinds import Kind, KindTable
from scheduler_core.schema.tables import Field, atomic_types, prose, table_beside, types

GVK: Final = "x-kubernetes-group-version-kind"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TYPES: Final = table_beside(__package__, "protocol.yaml")
_PACKAGES: Final[Mapping[str, str]] = _TYPES["packages"]
_PLAIN: Final[Mapping[str, Mapping[str, str]]] = _TYPES["plain"]
_NAMED: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = _TYPES["named"]
_VERBS: Final = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
"""What a PATCH knows in its query: clients look here whether a server can do dry runs and check fields."""


def full_name(type_name: str) -> str:
    """``io.k8s.api.core.v1.PodSpec`` for ``core.v1.PodSpec``."""
    if type_name in _NAMED:
        return _NAMED[type_name][0]
    package, rest = type_name.split(".", 1)
    return f"{_PACKAGES.get(package, f'io.k8s.api.{package}')}.{rest}"


@cache
def _definition(type_name: str) -> dict[str, Any]:
    """A type as a JSON schema: `$ref` without a prefix."""
    if type_name in _NAMED:
        return dict(_NAMED[type_name][1])
    said, fields = prose().get(type_name, ("", {}))
    known = types()[type_name]
    properties = {
        name: _schema(field.type)
        | ({"description": fields[name]} if fields.get(name) else {})
        | _merging(field)
        for name, field in known.items()
    }
    found: dict[str, Any] = {"description": said, "type": "object"}
    if properties:
        found["properties"] = properties
    if required := [name for name, field in known.items() if field.required]:
        found["required"] = required
    if type_name in atomic_types():
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _schema(kind: str) -> dict[str, Any]:
    if kind.startswith("[]"):
        return {"type": "array", "items": _schema(kind[2:])}
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _schema(kind[2:])}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if kind not in _NAMED and kind not in types():
        return {"type": "object"}
    return {"$ref": full_name(kind)}


def _merging(field: Field) -> dict[str, Any]:
    said = {
        "x-kubernetes-list-type": field.list_type,
        "x-kubernetes-list-map-keys": list(field.keys),
        "x-kubernetes-map-type": "atomic" if field.atomic else "",
        "x-kubernetes-patch-merge-key": field.merge_key,
        "x-kubernetes-patch-strategy": field.strategy,
    }
    return {key: value for key, value in said.items() if value}


def _gvk(kind: Kind, name: str = "") -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": name or kind.kind}


def _place(api_version: str) -> str:
    return f"api{'s' if '/' in api_version else ''}/{api_version}"


def _name_of(kind: Kind) -> str:
    if kind.custom is None:
        return full_name(kind.type)
    return f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"


def definitions(kinds: Iterable[Kind]) -> dict[str, dict[str, Any]]:
    """Schemas by name of some kinds, their lists, and all they refer to."""
    found: dict[str, dict[str, Any]] = {}
    waiting: list[str] = ["meta.v1.DeleteOptions", "meta.v1.ListMeta", "meta.v1.ObjectMeta"]
    for kind in kinds:
        name = _name_of(kind)
        if kind.custom is None:
            found[name] = _definition(kind.type) | {GVK: [_gvk(kind)]}
            waiting += _refers_to(kind.type)
        else:
            found[name] = _custom(kind)
        if "list" in kind.verbs:
            found[f"{name.removesuffix(kind.kind)}{kind.list_kind}"] = _list_of(kind, name)
    seen: set[str] = set()
    while waiting:
        type_name = waiting.pop()
        if type_name in seen:
            continue
        seen.add(type_name)
        found.setdefault(full_name(type_name), _definition(type_name))
        waiting += _refers_to(type_name)
    return dict(sorted(found.items()))


def _refers_to(type_name: str) -> list[str]:
    found = []
    for field in types().get(type_name, {}).values():
        kind = field.type
        while kind[:2] in ("[]", "{}"):
            kind = kind[2:]
        if kind in _NAMED or kind in types():
            found.append(kind)
    return found


def _list_of(kind: Kind, name: str) -> dict[str, Any]:
    return {
        "description": f"{kind.list_kind} is a list of {kind.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": name}},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"{_META}ListMeta"},
        },
        GVK: [_gvk(kind, kind.list_kind)],
    }


def _custom(kind: Kind) -> dict[str, Any]:
    found = dict(schema_of(kind) or {})
    properties = dict(found.get("properties") or {})
    of_pod = _definition("core.v1.Pod")["properties"]
    for name in ("apiVersion", "kind"):
        properties[name] = dict(of_pod[name])
    properties["metadata"] = {
        "$ref": f"{_META}ObjectMeta",
        "description": "Standard object's metadata.",
    }
    return found | {"type": "object", "properties": properties, GVK: [_gvk(kind)]}


def v3_index(table: KindTable) -> dict[str, Any]:
    """`GET /openapi/v3`: where the document of each group version is."""
    return {
        "paths": {
            _place(api_version): {"serverRelativeURL": f"/openapi/v3/{_place(api_version)}"}
            for api_version in table.api_versions()
        }
    }


@lru_cache(maxsize=32)
def v3_document(table: KindTable, place: str, patch: str) -> dict[str, Any] | None:
    """`GET /openapi/v3/api/v1`, `/openapi/v3/apis/apps/v1`; None if there is no such version."""
    api_version = {_place(each): each for each in table.api_versions()}.get(place)
    if api_version is None:
        return None
    held = list(table.in_version(api_version))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": patch},
        "paths": {path: item for kind in held for path, item in _paths(kind).items()},
        "components": {"schemas": {name: _as_v3(found) for name, found in definitions(held).items()}},
    }


def _paths(kind: Kind) -> dict[str, Any]:
    """What tells a client which kind a resource is, and what its PATCH can do."""
    answer = {"responses": {"200": {"description": "OK"}}, GVK: _gvk(kind)}
    listed = {"get": answer | {"x-kubernetes-action": "list"}} if "list" in kind.verbs else {"post": answer}
    base = collection_path(kind)
    if "patch" not in kind.verbs:
        return {base: listed}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": True}}
        for name, type_ in _VERBS
    ]
    return {
        base: listed,
        f"{base}/{{name}}": {
            "get": answer | {"x-kubernetes-action": "get"},
            "patch": answer | {"parameters": parameters, "x-kubernetes-action": "patch"},
        },
    }


def collection_path(kind: Kind) -> str:
    """``/apis/apps/v1/namespaces/{namespace}/deployments``."""
    base = f"/{_place(kind.api_version)}" + ("/namespaces/{namespace}" if kind.namespaced else "")
    return f"{base}/{kind.plural}"


def _as_v3(found: Any) -> Any:
    if isinstance(found, list):
        return [_as_v3(item) for item in found]
    if not isinstance(found, Mapping):
        return found
    if isinstance(found.get("$ref"), str):
        rest = {key: value for key, value in found.items() if key != "$ref"}
        return {"allOf": [{"$ref": f"#/components/schemas/{found['$ref']}"}], **rest}
    return {key: value if key == GVK else _as_v3(value) for key, value in found.items()}


@lru_cache(maxsize=4)
def v2_document(table: KindTable, patch: str) -> bytes:
    """`GET /openapi/v2` as protobuf: the definitions, and what every kind's PATCH knows."""
    patched = [kind for kind in table.served if "patch" in kind.verbs]
    return _v2_message(
        patch,
        definitions(table.served),
        {f"{collection_path(kind)}/{{name}}": (GVK, _gvk(kind)) for kind in patched},
        [name for name, _ in _VERBS],
    )


# --- OpenAPI v2 as protobuf (gnostic's openapiv2/OpenAPIv2.proto) --------------------------------------------


def _v2_message(
    version: str,
    definitions: Mapping[str, Mapping[str, Any]],
    patches: Mapping[str, tuple[str, Mapping[str, str]]],
    parameters: Sequence[str],
) -> bytes:
    """A document of schemas and of what PATCH knows at some paths.

    Parameters
    ----------
    definitions
        JSON schemas by name; `$ref` without a prefix.
    patches
        Path -> name and value of the extension that says which kind it is.
    parameters
        What each PATCH takes in its query.
    """
    known = b"".join(
        _part(8, _part(1, _part(2, _part(3, _text(2, "query") + _text(4, name) + _text(6, "string")))))
        for name in parameters
    )
    paths = b"".join(
        _part(2, _text(1, path) + _part(2, _part(8, known + _part(13, _any(*said)))))
        for path, said in patches.items()
    )
    schemas = b"".join(
        _part(1, _text(1, name) + _part(2, _schema_message(found))) for name, found in definitions.items()
    )
    info = _text(1, "Kubernetes") + _text(2, version)
    return _text(1, "2.0") + _part(2, info) + _part(8, paths) + _part(9, schemas)


def _schema_message(found: Mapping[str, Any]) -> bytes:
    """`required` stays out: what is missing is for the server to judge."""
    return b"".join(_parts(found))


def _parts(found: Mapping[str, Any]) -> Iterator[bytes]:
    if isinstance(found.get("$ref"), str):
        yield _text(1, f"#/definitions/{found['$ref']}")
    for number, key in ((2, "format"), (4, "description")):
        if isinstance(found.get(key), str):
            yield _text(number, found[key])
    if isinstance(found.get("additionalProperties"), Mapping):
        yield _part(21, _part(1, _schema_message(found["additionalProperties"])))
    if isinstance(found.get("type"), str):
        yield _part(22, _text(1, found["type"]))
    if isinstance(found.get("items"), Mapping):
        yield _part(23, _part(1, _schema_message(found["items"])))
    if isinstance(found.get("properties"), Mapping):
        properties = (
            _part(1, _text(1, name) + _part(2, _schema_message(value if isinstance(value, Mapping) else {})))
            for name, value in found["properties"].items()
        )
        yield _part(25, b"".join(properties))
    for key, value in found.items():
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
