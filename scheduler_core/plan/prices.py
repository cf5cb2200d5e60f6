"""Node types and what they cost: shipped small, replaced by a list in YAML or CSV.

Under `types:` each has `name`, `cpu`, `memory`, `price` (an hour), and where they matter `pods` (110), `devices`
(resource name -> amount), `labels`, `taints` (`key=value:Effect`). In CSV the same columns; in a cell `devices` and
`labels` are written `a=1;b=2`, `taints` `key=value:Effect;...`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.documents import DocumentError, load_documents
from scheduler_core.objects.quantity import quantity_milli_value
from scheduler_core.plan.node_groups import INSTANCE_TYPE

MAX_TYPES = 200
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
        """As it was given, normalised."""
        devices = {
            key: value for key, value in self.allocatable.items() if key not in ("cpu", "memory", "pods")
        }
        found: dict[str, Any] = {
            "name": self.name,
            "cpu": self.allocatable["cpu"],
            "memory": self.allocatable["memory"],
            "pods": self.allocatable["pods"],
            "price": self.price,
        }
        if devices:
            found["devices"] = devices
        if self.labels:
            found["labels"] = dict(self.labels)
        if self.taints:
            found["taints"] = [_taint_words(taint) for taint in self.taints]
        return found


@dataclass(frozen=True, slots=True)
class PriceList:
    """Node types, the cheapest first."""

    types: tuple[NodeType, ...]

    def document(self) -> list[dict[str, Any]]:
        return [item.document() for item in self.types]

    def price_of(self, labels: Mapping[str, str]) -> float | None:
        """What a node with these labels costs, by its instance type; None where the list has it not."""
        name = labels.get(INSTANCE_TYPE)
        return next((item.price for item in self.types if item.name == name), None)


@cache
def shipped_prices() -> PriceList:
    """The list that comes with the package."""
    text = resources.files(__package__).joinpath("prices.yaml").read_text(encoding="utf-8")
    return price_list_from(read_prices(text), "prices")


def read_prices(text: str) -> list[Any]:
    """A list in YAML, JSON or CSV (told by its first line), not yet checked.

    Raises
    ------
    InvalidObject
    """
    first = text.lstrip().split("\n", 1)[0]
    if re.match(r"\"?name\"?\s*[,;\t]", first):
        separator = next(mark for mark in ",;\t" if mark in first)
        # A semicolon separates columns only where no comma does; within cells it separates entries.
        return [
            {key.strip(): value for key, value in row.items() if key is not None and (value or "").strip()}
            for row in csv.DictReader(io.StringIO(text.lstrip()), delimiter=separator)
        ]
    try:
        documents = load_documents(text)
    except DocumentError as error:
        raise InvalidObject(f"prices {error.path}".strip(), None, error.reason) from None
    if len(documents) != 1 or not isinstance(documents[0].value.get("types"), list):
        raise InvalidObject("prices", None, "must be one document with a list under `types`, or CSV")
    return list(documents[0].value["types"])


def price_list_from(items: Any, path: str) -> PriceList:
    """Check a list.

    Raises
    ------
    InvalidObject
        Names the entry, its field and the value.
    """
    if not isinstance(items, list | tuple) or not items:
        raise InvalidObject(path, None, "must be a list of node types")
    if len(items) > MAX_TYPES:
        raise InvalidObject(path, None, f"has {len(items)} node types; {MAX_TYPES} are the most")
    found = [_type_from(item, f"{path}[{place}]") for place, item in enumerate(items)]
    names = [item.name for item in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidObject(f"{path}[{place}].name", name, "is there twice")
    return PriceList(tuple(sorted(found, key=lambda item: (item.price, item.name))))


def _type_from(item: Any, path: str) -> NodeType:
    if not isinstance(item, Mapping):
        raise InvalidObject(path, item, "must have name, cpu, memory and price")
    for key in item:
        if key not in _COLUMNS:
            raise InvalidObject(f"{path}.{key}", None, f"is not known: a node type has {', '.join(_COLUMNS)}")
    name = item.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name):
        raise InvalidObject(f"{path}.name", name, "must be a label's value, 63 characters at most")
    try:
        price = float(item.get("price", ""))
    except (TypeError, ValueError):
        raise InvalidObject(f"{path}.price", item.get("price"), "must be a number") from None
    if not 0 <= price < 1e9:
        raise InvalidObject(f"{path}.price", price, "must be from 0 to a thousand million")
    amounts = {"cpu": item.get("cpu"), "memory": item.get("memory"), "pods": item.get("pods") or "110"}
    amounts |= _pairs(item.get("devices"), f"{path}.devices")
    allocatable = {}
    for resource, amount in amounts.items():
        text = str(amount) if isinstance(amount, int | float | str) and not isinstance(amount, bool) else ""
        try:
            if quantity_milli_value(text) < 0:
                raise ValueError
        except ValueError:
            raise InvalidObject(f"{path}.{resource}", amount, "must be an amount") from None
        allocatable[resource] = text
    taints = item.get("taints") or ()
    written = (
        [part for part in taints.split(";") if part.strip()] if isinstance(taints, str) else list(taints)
    )
    return NodeType(
        name,
        price,
        allocatable,
        {key: str(value) for key, value in _pairs(item.get("labels"), f"{path}.labels").items()},
        tuple(_taint_from(taint, f"{path}.taints[{place}]") for place, taint in enumerate(written)),
    )


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


def _taint_from(value: Any, path: str) -> dict[str, str]:
    if isinstance(value, Mapping):
        value = _taint_words(value)
    found = _TAINT.fullmatch(str(value).strip())
    if found is None:
        raise InvalidObject(path, value, "must be written key=value:Effect")
    return {"key": found[1], "value": found[2] or "", "effect": found[3]}


def _taint_words(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key')}={taint.get('value') or ''}:{taint.get('effect')}"
