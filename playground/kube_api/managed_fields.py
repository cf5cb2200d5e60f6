"""Server-side apply: whose field is whose, and what an apply makes of an object.

A field is a path of steps: ``f:name`` into an object, ``k:{keys}`` to an item of a keyed list, ``v:value`` to a
member of a set, and ``.`` for an item itself. Who set what is kept in metadata.managedFields from an object's first
apply on.

Differs: fields that were never applied have no manager (upstream gives them to "before-first-apply"), and
schema-less maps are objects like others.

Source: sigs.k8s.io/structured-merge-diff/v6; staging/src/k8s.io/apimachinery/pkg/util/managedfields, v1.34
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from playground.kube_api.patches import DEFAULTS, is_set, keys_of, root_of
from playground.kube_api.status import Refusal
from scheduler_core.schema.tables import table_beside

Path = tuple[str, ...]
Document = Mapping[str, Any]

_UNMANAGED: Final = {"apiVersion", "kind"}
_SERVERS: Final[list[str]] = table_beside(__package__, "protocol.yaml")["servers"]


def owned_paths(document: Document) -> set[Path]:
    """Every field a writer of this document says something about."""
    found: set[Path] = set()
    for key, value in document.items():
        if key in _UNMANAGED:
            continue
        if key == "metadata" and isinstance(value, Mapping):
            value = {name: item for name, item in value.items() if name not in _SERVERS}
            if not value:
                continue
        found.update(_paths(value, (f"f:{key}",), (*root_of(document), key)))
    return found


def _paths(value: Any, path: Path, fields: Path) -> Iterator[Path]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _paths(item, (*path, f"f:{key}"), (*fields, key))
    elif isinstance(value, list) and value and is_set(fields):
        for item in value:
            yield (*path, "v:" + _json(item))
    elif isinstance(value, list) and value and _is_keyed(value, fields):
        for item in value:
            here = (*path, _item_step(item, keys_of(fields)))
            yield (*here, ".")
            for key, part in item.items():
                yield from _paths(part, (*here, f"f:{key}"), (*fields, key))
    else:
        yield path


def _is_keyed(value: list[Any], fields: Path) -> bool:
    keys = keys_of(fields)
    return bool(keys) and all(
        isinstance(item, Mapping) and all(key in item or key in DEFAULTS for key in keys) for item in value
    )


def _item_step(item: Document, keys: tuple[str, ...]) -> str:
    return "k:" + _json({key: item.get(key, DEFAULTS.get(key)) for key in sorted(keys)})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """Paths as FieldsV1 writes them."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        level = tree
        for step in path:
            level = level.setdefault(step, {})
    return tree


def from_fields(tree: Any, path: Path = ()) -> set[Path]:
    """Paths of a FieldsV1 tree; what is no tree has none."""
    if not isinstance(tree, Mapping):
        return set()
    if not tree:
        return {path} if path else set()
    return {found for step, below in tree.items() for found in from_fields(below, (*path, str(step)))}


def applied(
    live: Document | None, wanted: Document, *, manager: str, force: bool, time: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The object after a document was applied, and its managedFields.

    Parameters
    ----------
    live
        As stored, or None if the apply creates it.
    wanted
        What was applied.
    manager
        Who applies.
    force
        Take over fields of others that have other values.
    time
        RFC 3339, for the entry.

    Raises
    ------
    Refusal
        Conflict: others own fields with other values, and `force` is not set.
    """
    owns = owned_paths(wanted)
    entries = _entries(live)
    mine = next((e for e in entries if e["manager"] == manager and e["operation"] == "Apply"), None)
    others = [entry for entry in entries if entry is not mine]
    if live is not None:
        others = _settled(others, live, wanted, owns, force=force)
    result: dict[str, Any] = copy.deepcopy(dict(live)) if live is not None else {}
    if mine is not None:
        held = {path for entry in others for path in from_fields(entry.get("fieldsV1"))}
        given_up = from_fields(mine.get("fieldsV1")) - owns - held
        _remove(result, to_fields(given_up), root_of(wanted))
    result = _merged(result, wanted, root_of(wanted))
    entry = _entry(manager, "Apply", wanted, time, owns)
    if mine is not None and mine.get("fieldsV1") == entry["fieldsV1"]:
        entry["time"] = mine.get("time", time)
    return result, _ordered([*others, entry])


def updated(live: Document, new: Document, *, manager: str, time: str) -> list[dict[str, Any]] | None:
    """managedFields after an ordinary write; None for an object that was never applied (nothing is recorded then)."""
    entries = _entries(live)
    if not entries:
        return None
    before, after = owned_paths(live), owned_paths(new)
    root = root_of(new)
    was, now = _Reader(live, root), _Reader(new, root)
    changed = {path for path in after if path not in before or was.at(path) != now.at(path)}
    gone = before - after
    if not changed and not gone:
        return entries
    kept = []
    own: set[Path] = set(changed)
    for entry in entries:
        paths = from_fields(entry.get("fieldsV1")) - gone
        if entry["manager"] == manager and entry["operation"] == "Update":
            own |= paths
            continue
        # An item's "." stays with the manager that put it there.
        paths -= {path for path in changed if path[-1] != "."}
        if paths:
            kept.append(entry | {"fieldsV1": to_fields(paths)})
    return _ordered([*kept, _entry(manager, "Update", new, time, own)] if own else kept)


def _entry(manager: str, operation: str, document: Document, time: str, owns: set[Path]) -> dict[str, Any]:
    said = {
        "manager": manager,
        "operation": operation,
        "apiVersion": document.get("apiVersion"),
        "time": time,
    }
    return {**said, "fieldsType": "FieldsV1", "fieldsV1": to_fields(owns)}


def _ordered(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As an API server lists them, so that an apply that changes nothing writes nothing."""
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return sorted(entries, key=lambda entry: [str(entry.get(key) or "") for key in keys])


def _entries(document: Document | None) -> list[dict[str, Any]]:
    listed = ((document or {}).get("metadata") or {}).get("managedFields") or ()
    return [
        dict(entry)
        for entry in listed
        if isinstance(entry, Mapping) and entry.get("manager") and entry.get("operation")
    ]


def _settled(
    others: list[dict[str, Any]], live: Document, wanted: Document, owns: set[Path], *, force: bool
) -> list[dict[str, Any]]:
    """The other managers' entries without what is taken from them."""
    root = root_of(wanted)
    was, now = _Reader(live, root), _Reader(wanted, root)
    differing = {path for path in owns if path[-1] != "." and was.at(path) != now.at(path)}
    conflicts: list[tuple[str, str]] = []
    kept = []
    for entry in others:
        paths = from_fields(entry.get("fieldsV1"))
        lost = paths & differing
        named = json.dumps(entry["manager"])
        if entry["operation"] == "Update":
            named += f" using {entry.get('apiVersion')}"
        conflicts += [(named, "." + _shown(path)) for path in sorted(lost)]
        if paths - lost:
            kept.append(entry | {"fieldsV1": to_fields(paths - lost)})
    if conflicts and not force:
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
            for manager, field in conflicts
        ]
        raise Refusal("Conflict", _conflict_words(conflicts), causes=causes)
    return kept if force else others


def _conflict_words(conflicts: list[tuple[str, str]]) -> str:
    """Source: staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go, v1.34."""
    if len(conflicts) == 1:
        return "Apply failed with 1 conflict: conflict with {}: {}".format(*conflicts[0])
    lines = []
    for manager in sorted({manager for manager, _ in conflicts}):
        lines += [
            f"conflicts with {manager}:",
            *(f"- {field}" for owner, field in conflicts if owner == manager),
        ]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _shown(path: Path) -> str:
    words = ""
    for step in path:
        mark, _, rest = step.partition(":")
        if mark == "f":
            words += f".{rest}" if words else rest
        elif mark == "k":
            words += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(rest).items()) + "]"
        elif mark == "v":
            words += f"[={rest}]"
    return words


_ABSENT: Final = object()


class _Reader:
    """Finds the values at many paths of one document: the items of each list are looked through once.

    Parameters
    ----------
    root
        Where the document is (`patches`).
    """

    def __init__(self, document: Any, root: Path) -> None:
        self._document, self._root = document, root
        self._items: dict[int, dict[str, Any]] = {}

    def at(self, path: Path) -> Any:
        """The value at a path, or something that equals nothing else."""
        value, fields = self._document, self._root
        for step in path:
            mark, _, rest = step.partition(":")
            if mark == ".":
                return True
            if mark == "f":
                if not isinstance(value, Mapping) or rest not in value:
                    return _ABSENT
                value, fields = value[rest], (*fields, rest)
            elif not isinstance(value, list):
                return _ABSENT if mark == "k" else False
            elif mark == "k":
                value = self._of(value, fields, keyed=True).get(step, _ABSENT)
                if value is _ABSENT:
                    return value
            else:
                return f"v:{_json(json.loads(rest))}" in self._of(value, fields, keyed=False)
        return value

    def _of(self, items: list[Any], fields: Path, *, keyed: bool) -> dict[str, Any]:
        """The items by their steps, the first of equal ones."""
        known = self._items.get(id(items))
        if known is None:
            keys = keys_of(fields)
            known = self._items[id(items)] = {}
            for item in items:
                if not keyed:
                    known.setdefault(f"v:{_json(item)}", item)
                elif isinstance(item, Mapping):
                    known.setdefault(_item_step(item, keys), item)
        return known


def _remove(value: Any, tree: Mapping[str, Any], fields: Path) -> None:
    """Take the fields of a FieldsV1 tree out of a document, and what is empty then; absent ones are none."""
    for step, below in tree.items():
        name = step.partition(":")[2]
        if not isinstance(value, dict) or name not in value:
            continue
        if below:
            child = value[name]
            if isinstance(child, list):
                _remove_items(child, below, (*fields, name))
            else:
                _remove(child, below, (*fields, name))
            if child not in ({}, []):
                continue
        del value[name]


def _remove_items(items: list[Any], tree: Mapping[str, Any], fields: Path) -> None:
    keys = keys_of(fields)
    kept = []
    for item in items:
        if f"v:{_json(item)}" in tree:
            continue
        below = tree.get(_item_step(item, keys)) if isinstance(item, dict) else None
        if below is not None:
            said = {step: inner for step, inner in below.items() if step.partition(":")[2] not in ("", *keys)}
            _remove(item, said, fields)
            # Given up as a whole unless another manager still says something of it.
            if "." in below and set(item) <= set(keys):
                continue
        kept.append(item)
    items[:] = kept


def _merged(live: Any, wanted: Any, fields: Path) -> Any:
    if isinstance(wanted, Mapping):
        result = dict(live) if isinstance(live, Mapping) else {}
        for key, value in wanted.items():
            if fields[1:] == ("metadata",) and key in (
                "managedFields",
                "creationTimestamp",
                "uid",
                "resourceVersion",
            ):
                continue
            result[key] = _merged(result.get(key), value, (*fields, key))
        return result
    if isinstance(wanted, list) and isinstance(live, list):
        if is_set(fields):
            there = {_json(item) for item in live}
            return [*live, *(item for item in wanted if _json(item) not in there)]
        if _is_keyed(wanted, fields) and _is_keyed(live, fields):
            keys = keys_of(fields)
            items = list(live)
            steps: dict[str, int] = {}
            for place, item in enumerate(items):
                steps.setdefault(_item_step(item, keys), place)
            for item in wanted:
                place = steps.setdefault(_item_step(item, keys), len(items))
                if place < len(items):
                    items[place] = _merged(items[place], item, fields)
                else:
                    items.append(copy.deepcopy(item))
            return items
    return copy.deepcopy(wanted)
