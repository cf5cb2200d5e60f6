"""How a list merges: by which key, as a set, or as a whole; asked of the schema of the kind it is in.

Strategic merge knows one key a list, server-side apply may need several (a container port is its number and
protocol). A list of a kind that the schema does not have, of a CustomResourceDefinition say, is replaced as a whole.

A place in an object is a path: the object's type (`root_of`), then field names, list positions left out.

Source: the patchMergeKey, patchStrategy, listType and listMapKey tags in staging/src/k8s.io/api, v1.36, as the schema
has them (scheduler_core/schema)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from playground.engine.schema import Field, kinds, types

Path = tuple[str, ...]
DEFAULTS: Final = {"protocol": "TCP", "name": ""}
"""What a key of an item is when the item does not say."""


def root_of(document: Any) -> Path:
    """Where the fields of an object begin: its type; of one the schema does not have, no type at all."""
    if not isinstance(document, Mapping):
        return ("",)
    return (_roots().get((str(document.get("apiVersion")), str(document.get("kind"))), ""),)


@cache
def _roots() -> Mapping[tuple[str, str], str]:
    return {(entry["apiVersion"], entry["kind"]): entry["type"] for entry in kinds()}


@lru_cache(maxsize=4096)
def _field(path: Path) -> Field | None:
    name, found, is_key = path[0], None, False
    for step in path[1:]:
        if is_key:  # of a map, whose values have the type
            is_key, found = False, None
            continue
        found = types().get(name, {}).get(step)
        if found is None:
            return None
        name, is_key = found.item, found.type.startswith("{}")
    return found


def keys_of(path: Path) -> tuple[str, ...]:
    """The keys by which items of the list at a path are the same item; empty = no such keys."""
    found = _field(path)
    return () if found is None else found.keys


def merge_key_of(path: Path) -> str:
    """The one key of strategic merge; empty = the list is replaced."""
    found = _field(path)
    return found.merge_key if found is not None and "merge" in found.strategy.split(",") else ""


def is_set(path: Path) -> bool:
    """Whether a list of plain values is a set: each is owned by itself."""
    found = _field(path)
    return found is not None and found.list_type == "set"


def is_merged(path: Path) -> bool:
    """Whether strategic merge adds to a list of plain values instead of replacing it."""
    found = _field(path)
    return found is not None and not found.merge_key and "merge" in found.strategy.split(",")
