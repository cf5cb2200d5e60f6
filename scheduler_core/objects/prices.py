"""Node types and what they cost: shipped small, replaced by a list in YAML or CSV.

Under `types:` each has `name`, `cpu`, `memory`, `price` (an hour), and where they matter `pods` (110), `devices`
(resource name -> amount), `labels`, `taints` (`key=value:Effect`). In CSV the same columns; in a cell `devices` and
`labels` are written `a=1;b=2`, `taints` `key=value:Effect;...`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from scheduler_core.errors import InvalidManifest, InvalidObject
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.labels import label_value_errors, qualified_name_errors
from scheduler_core.objects.node import LABEL_INSTANCE_TYPE
from scheduler_core.objects.quantity import quantity_milli_value

MAX_TYPES = 200
MAX_MILLI = 2**63 - 1
"""Of an amount, in thousandths: what an API server counts with."""
_NO_LIST = "must be one document with a list under `types`, or CSV whose first line names its columns"
_COLUMNS = ("name", "cpu", "memory", "pods", "devices", "labels", "taints", "price")
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")


@dataclass(frozen=True, slots=True)
class NodeType:
    """One line of a price list.

    Attributes
    ----------
    price : float
        Of one node for an hour, in whatever money the list is in.
    allocatable : mapping of str to str
        As a Node's status has it.
    """

    name: str
    price: float
    allocatable: Mapping[str, str]
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]

    def document(self) -> dict[str, Any]:
        """The given list, normalised."""
        amounts = dict(self.allocatable)
        plain = {name: amounts.pop(name) for name in ("cpu", "memory", "pods")}
        taints = [_taint_words(taint) for taint in self.taints]
        more = {"devices": amounts, "labels": dict(self.labels), "taints": taints}
        return {
            "name": self.name,
            **plain,
            "price": self.price,
            **{key: more[key] for key in more if more[key]},
        }


@dataclass(frozen=True, slots=True)
class PriceList:
    """Node types, the cheapest first."""

    types: tuple[NodeType, ...]

    def document(self) -> list[dict[str, Any]]:
        return [item.document() for item in self.types]

    def price_of(self, labels: Mapping[str, str]) -> float | None:
        """What a node with these labels costs, by its instance type; None where the list has it not."""
        name = labels.get(LABEL_INSTANCE_TYPE)
        return next((item.price for item in self.types if item.name == name), None)


def estimated(allocatable: Mapping[str, int]) -> float:
    """What tells large nodes from small ones where no price is known, in about dollars an hour."""
    cpu, memory = allocatable.get("cpu", 0) / 1000, allocatable.get("memory", 0) / 2**30
    devices = sum(amount for name, amount in allocatable.items() if "/" in name and "hugepages" not in name)
    return 0.03 * cpu + 0.005 * memory + min(devices, 64)


@cache
def shipped_prices() -> PriceList:
    """The list that comes with the package."""
    text = resources.files(__package__).joinpath("prices.yaml").read_text(encoding="utf-8")
    return price_list_from(read_prices(text), "prices")


def read_prices(text: str) -> list[Any]:
    """A list in YAML, JSON or CSV (its first line says which), not yet checked.

    Raises
    ------
    InvalidObject
    """
    text = text.removeprefix("\ufeff").lstrip()
    first = text.split("\n", 1)[0]
    # A semicolon separates columns only where no comma does; within cells it separates entries.
    separator = next((mark for mark in ",;\t" if mark in first), "")
    columns = (
        [cell.strip().strip('"').strip().lower() for cell in first.split(separator)] if separator else []
    )
    if "name" in columns and "cpu" in columns:
        return _rows_of_csv(text, separator)
    try:
        documents = load_documents(text)
    except InvalidManifest as error:
        if "must be an object" in error.words:
            raise InvalidObject("prices", None, _NO_LIST) from None
        where = "" if error.line is None else f"line {error.line}: "
        path = f"prices{error.path.removeprefix('types')}" if error.path.startswith("types[") else "prices"
        raise InvalidObject(path, None, where + error.words) from None
    if len(documents) != 1 or not isinstance(documents[0].value.get("types"), list):
        raise InvalidObject("prices", None, _NO_LIST)
    return list(documents[0].value["types"])


def _rows_of_csv(text: str, separator: str) -> list[dict[str, str]]:
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True, skipinitialspace=True)
    try:
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise InvalidObject("prices", None, f"line {reader.line_num} is not CSV: {error}") from None
    columns = [name.lower() for name in rows[0]]
    for place, name in enumerate(columns):
        if name in columns[:place]:
            raise InvalidObject("prices", name, "is the name of two columns")
    found: list[dict[str, str]] = []
    for row in rows[1:]:
        if not any(row):
            continue
        if len(row) > len(columns):
            cell = row[len(columns)]
            raise InvalidObject(
                f"prices[{len(found)}]", cell, f"is a cell more than the {len(columns)} columns"
            )
        found.append({name: cell for name, cell in zip(columns, row, strict=False) if cell})
    return found


def price_list_from(items: Any, path: str) -> PriceList:
    """Check a list.

    Raises
    ------
    InvalidObject
        Names the entry, its field and the value.
    """
    if not isinstance(items, list | tuple) or not items:
        raise InvalidObject(path, None, "must be a list of node types, one at least")
    if len(items) > MAX_TYPES:
        raise InvalidObject(path, None, f"has {len(items)} node types; {MAX_TYPES} are the most")
    found = [_type_from(item, f"{path}[{place}]") for place, item in enumerate(items)]
    names: dict[str, int] = {}
    for place, item in enumerate(found):
        first = names.setdefault(item.name, place)
        if first != place:
            raise InvalidObject(
                f"{path}[{place}].name", item.name, f"is there twice: {path}[{first}] has it too"
            )
    return PriceList(tuple(sorted(found, key=lambda item: (item.price, item.name))))


def _type_from(item: Any, path: str) -> NodeType:
    if not isinstance(item, Mapping):
        raise InvalidObject(path, item, "must have name, cpu, memory and price")
    for key in item:
        if key not in _COLUMNS:
            raise InvalidObject(f"{path}.{key}", None, f"is not known: a node type has {', '.join(_COLUMNS)}")
    for key in ("name", "cpu", "memory", "price"):
        if item.get(key) is None:
            raise InvalidObject(f"{path}.{key}", None, "is missing")
    name = item["name"]
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name):
        raise InvalidObject(f"{path}.name", name, "must be a label's value, 63 characters at most")
    pods = item.get("pods")
    allocatable = {
        "cpu": amount_from(item["cpu"], f"{path}.cpu", least=1),
        "memory": amount_from(item["memory"], f"{path}.memory", least=1),
        "pods": amount_from("110" if pods is None else pods, f"{path}.pods", least=1, whole=True),
    }
    for resource, amount in _pairs(item.get("devices"), f"{path}.devices").items():
        if resource in allocatable:
            raise InvalidObject(f"{path}.devices.{resource}", amount, "is no device: it has its own column")
        allocatable[resource] = amount_from(amount, f"{path}.devices.{resource}", whole=True)
    taints = item.get("taints") or ()
    if not isinstance(taints, str | list | tuple):
        raise InvalidObject(f"{path}.taints", taints, "must be a list of key=value:Effect")
    written = (
        [part for part in taints.split(";") if part.strip()] if isinstance(taints, str) else list(taints)
    )
    return NodeType(
        name,
        _price(item["price"], f"{path}.price"),
        allocatable,
        labels_from(item.get("labels"), f"{path}.labels"),
        tuple(taint_from(taint, f"{path}.taints[{place}]") for place, taint in enumerate(written)),
    )


def _price(value: Any, path: str) -> float:
    try:
        price = float("" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise InvalidObject(path, value, "must be a number, as 0.768") from None
    except OverflowError:
        price = math.inf
    if not 0 <= price < 1e9:
        raise InvalidObject(path, value, "must be from 0 to a thousand million")
    return price


def amount_from(value: Any, path: str, *, least: int = 0, whole: bool = False) -> str:
    """A quantity as text: `least` in thousandths."""
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    try:
        milli = quantity_milli_value(text)
    except ValueError:
        raise InvalidObject(path, value, "must be an amount, as 4, 3920m or 16Gi") from None
    if milli < least or milli > MAX_MILLI or (whole and milli % 1000):
        kind = "a whole number" if whole else "an amount"
        raise InvalidObject(
            path, value, f"must be {kind} {'above' if least else 'from'} 0 that a node can have"
        )
    return text


def labels_from(value: Any, path: str) -> dict[str, str]:
    found = {}
    for key, text in _pairs(value, path).items():
        if wrong := (*qualified_name_errors(key), *label_value_errors("?" if text is None else str(text))):
            raise InvalidObject(f"{path}.{key}", text, wrong[0])
        found[key] = str(text)
    return found


def _pairs(value: Any, path: str) -> dict[str, Any]:
    if not value:
        return {}
    if isinstance(value, str):
        parts: Sequence[str] = [part.strip() for part in value.split(";") if part.strip()]
        if not all("=" in part for part in parts):
            raise InvalidObject(path, value, "must be written a=1;b=2")
        return dict(part.split("=", 1) for part in parts)
    if not isinstance(value, Mapping):
        raise InvalidObject(path, value, "must be a mapping")
    return {str(key): amount for key, amount in value.items()}


def taint_from(value: Any, path: str) -> dict[str, str]:
    if isinstance(value, Mapping):
        value = _taint_words(value)
    found = _TAINT.fullmatch(str(value).strip())
    if found is None:
        raise InvalidObject(path, value, "must be written key=value:Effect")
    return {"key": found[1], "value": found[2] or "", "effect": found[3]}


def _taint_words(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key')}={taint.get('value') or ''}:{taint.get('effect')}"
