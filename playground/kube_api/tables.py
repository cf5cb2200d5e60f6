"""Server-side tables: objects of a kind with the columns kubectl prints.

Columns of Kubernetes' own kinds are those of `printer_columns.yaml`, those of custom resources the definition's own,
in the same form.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go,
staging/src/k8s.io/client-go/util/jsonpath, v1.34
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from playground.clusters.kinds import Kind, as_stored
from playground.kube_api import cells
from playground.kube_api.cells import Manifest
from scheduler_core.schema.tables import table_beside

Column = Mapping[str, Any]
"""`name`, and as far as they are said: `type`, `priority`, `jsonPath`, `default` and `cell`."""

_STEP: Final = re.compile(
    r"""\.?\[\?\(\s*@\.(?P<field>[\w.\-]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]"""
    r"""|\.?\[["'](?P<quoted>[^"']+)["']\]"""
    r"""|\.?\[(?P<place>-?\d+|\*)\]"""
    r"""|\.(?P<name>(?:\\.|[^.\[\\])+)"""
)

Step = str | int | tuple[str, str]
"""A name, a place in a list, ``*`` as the name of all, or a field and the value it must have."""


def table(
    kind: Kind,
    manifests: Iterable[Manifest],
    now_ns: int,
    *,
    api_version: str = "meta.k8s.io/v1",
    include: str = "Metadata",
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Objects of one kind as a `Table`.

    Parameters
    ----------
    now_ns
        The cluster's time.
    include
        What of each object comes along: ``None``, ``Metadata`` or ``Object``.
    """
    columns = columns_of(kind)
    shown = [_cell(column) for column in columns]
    rows = []
    for manifest in manifests:
        stored = as_stored(kind, dict(manifest))
        rows.append({"cells": [cell(stored, now_ns) for cell in shown], **_object(manifest, include)})
    return _table(columns, rows, api_version, metadata or {})


def scale_table(scale: Manifest, now_ns: int, *, api_version: str, include: str) -> dict[str, Any]:
    """A Scale as a `Table`: what is wanted and what there is."""
    columns = _own_columns()["Scale"]
    rows = [{"cells": [_cell(column)(scale, now_ns) for column in columns], **_object(scale, include)}]
    return _table(
        columns, rows, api_version, {"resourceVersion": scale["metadata"].get("resourceVersion", "")}
    )


def _table(
    columns: Sequence[Column], rows: list[dict[str, Any]], api_version: str, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": dict(metadata),
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column["name"],
        "type": column.get("type", "string"),
        "format": "name" if column["name"] == "Name" else "",
        "description": "",
        "priority": int(column.get("priority") or 0),
    }


def _object(manifest: Manifest, include: str) -> dict[str, Any]:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": manifest}
    return {"object": partial(manifest)}


def partial(manifest: Manifest) -> dict[str, Any]:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": manifest["metadata"],
    }


# --- columns ------------------------------------------------------------------------------------------------


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind; name and age for one without its own."""
    known = _own_columns()
    name, age = known["Scale"][0], known["Scale"][-1]
    if kind.custom is None:
        return known.get(kind.row_kind, (name, age))
    columns = kind.custom.get("additionalPrinterColumns") or ()
    return [name, *map(_of_definition, columns)] if columns else (name, age)


def _own_columns() -> Mapping[str, Sequence[Column]]:
    found: Mapping[str, Sequence[Column]] = table_beside(__package__, "printer_columns.yaml")["kinds"]
    return found


def _of_definition(column: Column) -> Column:
    """A definition's column: its dates are shown as ages, and a text that is none as JSON."""
    shown = {"date": {"type": "string", "cell": "custom_age"}, "string": {"cell": "custom_text"}}
    return {**column, **shown.get(str(column["type"]), {})}


def _cell(column: Column) -> Callable[[Manifest, int], Any]:
    """What shows a column of an object."""
    function: Any = getattr(cells, column["cell"]) if "cell" in column else None
    if "jsonPath" not in column:
        return cast(Callable[[Manifest, int], Any], function)
    path, default, has_default = path_of(column["jsonPath"]), column.get("default"), "default" in column

    def cell(manifest: Manifest, now_ns: int) -> Any:
        found = values(manifest, path)
        if function is None:
            value = found[0] if found else None
        else:
            value = function(found, now_ns) if found or not has_default else None
        return default if has_default and (value is None or value == "") else value

    return cell


# --- JSON paths ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def path_of(text: str) -> tuple[Step, ...]:
    """The steps of a path: names, places, ``[*]`` and ``[?(@.a=="b")]``; none of a text that is no path."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return ()
        position = match.end()
        if match["field"]:
            steps.append((match["field"], match["value"]))
        elif match["place"] is not None:
            steps.append("*" if match["place"] == "*" else int(match["place"]))
        else:
            steps.append(re.sub(r"\\(.)", r"\1", match["quoted"] or match["name"]))
    return tuple(steps)


def values(document: Any, path: tuple[Step, ...]) -> list[Any]:
    """All values at a path that are not null."""
    found = [document] if path else []
    for step in path:
        if isinstance(step, str) and step != "*":
            found = [item[step] for item in found if isinstance(item, Mapping) and step in item]
        else:
            found = [value for item in found for value in _after(item, step)]
    return [value for value in found if value is not None]


def _after(item: Any, step: Step) -> list[Any]:
    """Items of a list: all, one of some place, or those with a value."""
    if isinstance(step, tuple):
        name, wanted = step
        return [each for each in _all(item) if str(cells.get(each, *name.split("."))) == wanted]
    if isinstance(step, int):
        return [item[step]] if isinstance(item, list) and -len(item) <= step < len(item) else []
    return _all(item)


def _all(item: Any) -> list[Any]:
    if isinstance(item, list):
        return item
    return list(item.values()) if isinstance(item, Mapping) else []
