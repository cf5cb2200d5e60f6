"""The API's defaults that are filled in when an object is read, whenever and by which version it was stored.

What scheduling reads is defaulted when it is written (`engine.admission`). This is the rest: clients count on every
default (`kubectl describe` reads pointers without asking whether they are set), and the simulation does not need it.
`read_defaults.yaml` has them, by kind and by the types that fields have in the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from scheduler_core.objects.defaults import pull_policy
from scheduler_core.schema.tables import kinds, table_beside, types

Document = Mapping[str, Any]


def with_read_defaults(kind: str, manifest: Document) -> dict[str, Any]:
    """The object with every default; parts that need none are shared, and nothing wrong is looked at."""
    of_kind = _table()["kinds"].get(kind, {})
    return _filled(_types_of_kinds().get(kind, ""), _merged(of_kind, manifest))


def _table() -> Mapping[str, Mapping[str, Document]]:
    found: Mapping[str, Mapping[str, Document]] = table_beside(__package__, "read_defaults.yaml")
    return found


@cache
def _types_of_kinds() -> Mapping[str, str]:
    """Kind -> its type; all versions of a kind have the same defaults."""
    return {said["kind"]: said["type"] for said in reversed(kinds())}


@cache
def _below(type_name: str) -> tuple[tuple[str, str, bool], ...]:
    """Fields of a type with defaults in them: name, type, and whether it is a list."""
    return tuple(
        (name, field.item, field.type.startswith("[]"))
        for name, field in types().get(type_name, {}).items()
        if not field.type.startswith("{}") and _has_defaults(field.item, frozenset())
    )


def _has_defaults(type_name: str, above: frozenset[str]) -> bool:
    if type_name in _table()["types"] or type_name in _COMPUTED:
        return True
    if type_name in above:
        return False
    fields = types().get(type_name, {})
    return any(_has_defaults(field.item, above | {type_name}) for field in fields.values())


def _filled(type_name: str, value: Document) -> dict[str, Any]:
    result = _merged(_table()["types"].get(type_name, {}), value)
    for name, inner, is_list in _below(type_name):
        part = result.get(name)
        if is_list and isinstance(part, list) and part:
            result[name] = [_filled(inner, item) if isinstance(item, Mapping) else item for item in part]
        elif not is_list and isinstance(part, Mapping):
            result[name] = _filled(inner, part)
    return {**_COMPUTED[type_name](value), **result} if type_name in _COMPUTED else result


def _merged(defaults: Document, value: Document) -> dict[str, Any]:
    result = {**defaults, **value}
    for name, default in defaults.items():
        if isinstance(default, Mapping):
            part = value.get(name)
            if part is None:
                result[name] = default
            elif isinstance(part, Mapping):
                result[name] = _merged(default, part)
    return result


def _pull_policy(container: Document) -> Document:
    image = container.get("image")
    return {"imagePullPolicy": pull_policy(image if isinstance(image, str) else "")}


_COMPUTED: Final[Mapping[str, Callable[[Document], Document]]] = {
    "core.v1.Container": _pull_policy,
    "core.v1.EphemeralContainer": _pull_policy,
    "core.v1.ServicePort": lambda port: {"targetPort": port["port"]} if "port" in port else {},
    "core.v1.Volume": lambda volume: {"emptyDir": {}} if set(volume) <= {"name"} else {},
}
"""Defaults that depend on other fields."""
