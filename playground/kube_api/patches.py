"""The patches of the Kubernetes API beyond the merge patch (`clusters.merging`), and by which keys lists merge.

Strategic merge knows one key a list, server-side apply may need several (a container port is its number and protocol).
A list of a kind that the schema does not have, of a CustomResourceDefinition say, is replaced as a whole. A place in an
object is a path: the object's type (`root_of`), then field names, list positions left out. No patch changes what it is
given.

Source: RFC 6902 (JSON patch), staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go, v1.34; the
patchMergeKey, patchStrategy, listType and listMapKey tags in staging/src/k8s.io/api, v1.36, as the schema has them
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from playground.clusters.structural import OverLimit, at_most, copied, go_on, same
from playground.kube_api.status import Refusal
from scheduler_core.schema.tables import Field, kinds, types

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


MAX_OPERATIONS = 10_000
PATCH_S = 1.0
"""Of processor time."""


def strategic_merge_patch(target: Any, patch: Any, path: tuple[str, ...] = ()) -> Any:
    """As `merge_patch`, but lists with a merge key merge item by item; `$patch` and its kin are obeyed.

    Parameters
    ----------
    path
        Where the target is; empty for a whole object.

    Raises
    ------
    Refusal
        BadRequest: a directive is not one.
    """
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    path = path or root_of(target)
    result = dict(target) if isinstance(target, Mapping) else {}
    directive = patch.get("$patch")
    if directive == "replace":
        return _without_directives(patch)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise Refusal("BadRequest", f'unknown $patch directive "{directive}"')
    if "$retainKeys" in patch:
        kept = patch["$retainKeys"]
        names = {name for name in kept if isinstance(name, str)} if isinstance(kept, list) else set()
        result = {key: value for key, value in result.items() if key in names}
    orders: dict[str, list[Any]] = {}
    for key, value in patch.items():
        if key in ("$patch", "$retainKeys"):
            continue
        name, _, field = key.partition("/")
        if name == "$setElementOrder" and isinstance(value, list):
            orders[field] = value
        elif name == "$deleteFromPrimitiveList" and isinstance(value, list):
            gone = {as_key(item) for item in value}
            result[field] = [item for item in result.get(field) or () if as_key(item) not in gone]
        elif key.startswith("$"):
            raise Refusal("BadRequest", f'unknown directive "{key}"')
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merged_list(result.get(key), value, (*path, key))
        else:
            result[key] = strategic_merge_patch(result.get(key), value, (*path, key))
    for field, order in orders.items():
        if isinstance(result.get(field), list):
            result[field] = _ordered(result[field], order, (*path, field))
    return result


def _without_directives(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_directives(item) for key, item in value.items() if not key.startswith("$")}
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return copy.deepcopy(value)


def _merged_list(target: Any, patch: list[Any], path: tuple[str, ...]) -> list[Any]:
    present = list(target) if isinstance(target, list) else []
    if is_merged(path):
        there = {as_key(item) for item in present}
        return [*present, *(item for item in patch if as_key(item) not in there)]
    key = merge_key_of(path)
    if not key or not all(isinstance(item, Mapping) for item in patch):
        return [_without_directives(item) for item in patch if not _is_directive(item)]
    if any(item.get("$patch") == "replace" and key not in item for item in patch):
        return [_without_directives(item) for item in patch if not _is_directive(item)]
    by_key: dict[str, list[int]] = {}
    for place, old in enumerate(present):
        if isinstance(old, Mapping):
            by_key.setdefault(as_key(old.get(key)), []).append(place)
    for item in patch:
        value = item.get(key)
        if value is None:
            raise Refusal("BadRequest", f"{'.'.join(path[1:])}: an item of the patch has no merge key {key}")
        alike = by_key.setdefault(as_key(value), [])
        places = [place for place in alike if _same_item(present[place], item, key, path)]
        if item.get("$patch") == "delete":
            for place in places:
                present[place] = _GONE
        elif places:
            present[places[0]] = strategic_merge_patch(present[places[0]], item, path)
        else:
            alike.append(len(present))
            present.append(_without_directives(item))
    return [item for item in present if item is not _GONE]


_GONE: Final = object()


def as_key(value: Any) -> str:
    """A text that is the same for equal values."""
    return json.dumps(value, sort_keys=True)


def _is_directive(item: Any) -> bool:
    return isinstance(item, Mapping) and "$patch" in item and len(item) == 1


def _same_item(old: Any, new: Mapping[str, Any], key: str, path: tuple[str, ...]) -> bool:
    """Equal in the merge key; where the list has further keys, also in those the patch names."""
    if not isinstance(old, Mapping) or old.get(key) != new.get(key):
        return False
    others = [other for other in keys_of(path) if other != key and other in new]
    return all(old.get(other, DEFAULTS.get(other)) == new[other] for other in others)


def _ordered(items: list[Any], order: list[Any], path: tuple[str, ...]) -> list[Any]:
    """Items in the order the patch wishes; those it does not know stay after the one they followed."""
    key = merge_key_of(path)
    wanted: dict[str, int] = {}
    for place, entry in enumerate(order):
        wanted.setdefault(as_key(entry.get(key) if isinstance(entry, Mapping) else entry), place)

    def identity(item: Any) -> str:
        return as_key(item.get(key) if key and isinstance(item, Mapping) else item)

    known = [item for item in items if identity(item) in wanted]
    known.sort(key=lambda item: wanted[identity(item)])
    others = [item for item in items if identity(item) not in wanted]
    return known + others


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902: add, remove, replace, move, copy, test.

    Raises
    ------
    Refusal
        BadRequest (not a JSON patch), Invalid (it does not fit the object, or a test fails) or RequestEntityTooLarge
        (it takes too long: what is copied can be copied again).
    """
    try:
        with at_most(PATCH_S):
            return _patched(target, operations)
    except OverLimit as error:
        raise Refusal("RequestEntityTooLarge", f"the JSON patch {error}") from None


def _patched(target: Any, operations: Any) -> Any:
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise Refusal("BadRequest", f"a JSON patch is a list of at most {MAX_OPERATIONS} operations")
    result = copied(target)
    for number, operation in enumerate(operations):
        go_on()
        if not isinstance(operation, Mapping) or not isinstance(operation.get("path"), str):
            raise Refusal("BadRequest", f"operation {number} of the JSON patch has no path")
        result = _operated(result, operation, number)
    return result


def _operated(document: Any, operation: Mapping[str, Any], number: int) -> Any:
    name, path = operation.get("op"), operation["path"]
    steps = _steps(path, number)
    if name in ("add", "replace", "test") and "value" not in operation:
        raise Refusal("BadRequest", f"operation {number} of the JSON patch has no value")
    if name == "test":
        if not same(_found(document, steps, path), operation["value"]):
            raise Refusal("Invalid", f"the test of {path} in the JSON patch failed")
        return document
    if name in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise Refusal("BadRequest", f'operation {number} of the JSON patch has no "from"')
        value = copied(_found(document, _steps(source, number), source))
        if name == "move":
            document = _removed(document, _steps(source, number), source)
        return _added(document, steps, value, path)
    if name == "add":
        return _added(document, steps, copied(operation["value"]), path)
    if name == "replace":
        _found(document, steps, path)
        if not steps:
            return copied(operation["value"])
        parent = _found(document, steps[:-1], path)
        parent[_index(parent, steps[-1], path)] = copied(operation["value"])
        return document
    if name == "remove":
        return _removed(document, steps, path)
    raise Refusal("BadRequest", f'operation {number} of the JSON patch: "{name}" is no operation')


def _steps(path: str, number: int) -> list[str]:
    if path and not path.startswith("/"):
        raise Refusal("BadRequest", f'operation {number} of the JSON patch: "{path}" is not a path')
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _index(parent: Any, step: str, path: str) -> Any:
    if isinstance(parent, dict):
        return step
    if isinstance(parent, list) and step.isascii() and step.isdecimal() and int(step) < len(parent):
        return int(step)
    raise Refusal("Invalid", f"the JSON patch names {path}, which is not there")


def _found(document: Any, steps: list[str], path: str) -> Any:
    for step in steps:
        index = _index(document, step, path)
        if isinstance(document, dict) and index not in document:
            raise Refusal("Invalid", f"the JSON patch names {path}, which is not there")
        document = document[index]
    return document


def _added(document: Any, steps: list[str], value: Any, path: str) -> Any:
    if not steps:
        return value
    parent, last = _found(document, steps[:-1], path), steps[-1]
    if isinstance(parent, list):
        if last == "-" or last == str(len(parent)):
            parent.append(value)
        else:
            parent.insert(_index(parent, last, path), value)
    else:
        parent[_index(parent, last, path)] = value
    return document


def _removed(document: Any, steps: list[str], path: str) -> Any:
    if not steps:
        raise Refusal("Invalid", "the JSON patch removes the whole object")
    _found(document, steps, path)
    parent = _found(document, steps[:-1], path)
    del parent[_index(parent, steps[-1], path)]
    return document
