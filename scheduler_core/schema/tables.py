"""The tables of this folder, read when first asked for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

import yaml

_FOLDER: Final = resources.files(__package__)
SCALARS: Final = frozenset(
    (
        "string", "bool", "int32", "int64", "double", "bytes", "quantity", "time", "microtime", "intOrString",
        "json", "raw", "fieldsV1", "schemaOrArray", "schemaOrBool", "schemaOrStrings",
    )
)  # fmt: skip


class Field(NamedTuple):
    """One field of a type.

    Attributes
    ----------
    type
        ``string``, ``[]core.v1.Container``, ``{}quantity``, ...
    number
        Path of protobuf numbers: two of a field whose struct JSON writes into the one around it; empty = none.
    keys
        Of a list: by which fields its items are the same item.
    list_type
        ``set``, ``atomic``, ``map`` (it has `keys`) or empty.
    merge_key, strategy
        Of strategic merge.
    atomic
        Whether a map or object changes as a whole.
    required
        Whether it must be there.
    pointer
        Whether an empty value is one that was given: protobuf writes the others when they are empty, too.
    """

    type: str
    number: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    list_type: str = ""
    merge_key: str = ""
    strategy: str = ""
    atomic: bool = False
    required: bool = False
    pointer: bool = False

    @property
    def item(self) -> str:
        """The type without its leading ``[]`` or ``{}``."""
        return self.type[2:] if self.type[:2] in ("[]", "{}") else self.type


Type = Mapping[str, Field]


@cache
def table_beside(package: str, name: str) -> Any:
    """The YAML table `name` in the folder of a package, which may be in an archive."""
    return table_of(resources.files(package).joinpath(name).read_text("utf-8"))


def table_of(text: str) -> Any:
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def kinds() -> list[dict[str, Any]]:
    """What discovery tells of each kind and version: apiVersion, kind, plural, namespaced, verbs, type, ..."""
    found: list[dict[str, Any]] = json.loads((_FOLDER / "kinds.json").read_text("utf-8"))
    later = [
        {**said, "apiVersion": _LATER[said["apiVersion"], said["kind"]]}
        for said in found
        if (said["apiVersion"], said["kind"]) in _LATER
    ]
    return found + later


_LATER: Final = {("resource.k8s.io/v1beta2", "DeviceTaintRule"): "resource.k8s.io/v1"}
"""Versions of 1.37, whose schema could not be had; their objects are of the type of the version before."""


@cache
def types_by_kind() -> Mapping[tuple[Any, Any], str]:
    """(apiVersion, kind) -> the type of its objects."""
    return {(said["apiVersion"], said["kind"]): said["type"] for said in kinds()}


@cache
def types() -> Mapping[str, Type]:
    """Every type by name."""
    return {
        name: {field: _field(entry) for field, entry in fields.items() if field != "/map"}
        for name, fields in _raw().items()
    }


@cache
def atomic_types() -> frozenset[str]:
    """Types whose objects change as a whole."""
    return frozenset(name for name, fields in _raw().items() if "/map" in fields)


@cache
def prose() -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Type -> what it is, and what each of its fields is."""
    return {name: (said, fields) for name, (said, fields) in _read("prose").items()}


@cache
def _raw() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = _read("fields")
    return found


def _read(name: str) -> Any:
    return json.loads(gzip.decompress((_FOLDER / f"{name}.json.gz").read_bytes()))


def _field(entry: list[Any]) -> Field:
    kind, number, *rest = entry
    said = rest[0] if rest else {}
    keys = tuple(said.get("keys", ()))
    return Field(
        kind,
        tuple(int(part) for part in number.split(".")) if number else (),
        keys,
        said.get("list", "map" if keys else ""),
        said.get("mergeKey", ""),
        said.get("strategy", ""),
        said.get("map") == "atomic",
        said.get("required", False),
        said.get("pointer", False),
    )
