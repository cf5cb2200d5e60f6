"""The lists of a pod that its form shows as rows: where each stands in the spec, and what a row of it says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
MAX_ROWS: Final = 8

Item = dict[str, Any]
Row = Mapping[str, Any]


def put(holder: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Set a key, or leave it out when there is nothing to say."""
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)
    return holder


@dataclass(frozen=True)
class Group:
    """One list of a pod's spec as rows of the form.

    Attributes
    ----------
    items, put_items
        Take the list out of a spec, and write it into one in place.
    read
        An item -> the cleaned values of its row.
    write
        An item and a row -> the item as the row says, with what the form has no field for.
    """

    items: Callable[[Mapping[str, Any]], Sequence[Item]]
    put_items: Callable[[dict[str, Any], list[Item]], None]
    read: Callable[[Item], dict[str, Any]]
    write: Callable[[Item, Row], Item]

    def rows_of(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of the items a row can say; the others stay in the YAML."""
        return [self.read(item) for item in self._shown(self.items(spec))]

    def put_rows(self, spec: dict[str, Any], rows: Sequence[Row], own: "OwnLabels") -> None:
        """Write rows over the items there were.

        A row that says what an item says leaves that item as it is. The other rows change the items that are left,
        both in their order, so that what the form has no field for stays where it is.
        """
        items = self.items(spec)
        left = self._shown(items)
        hidden = [item for item in items if not any(item is shown for shown in left)]
        same = {}
        for place, row in enumerate(rows):
            item = next((item for item in left if self.read(item) == row), None)
            if item is not None:
                left.remove(item)
                same[place] = item
        made = []
        for place, row in enumerate(rows):
            before = same.get(place) or (left.pop(0) if left else {})
            item = before if place in same else self.write(before, row)
            made.append(own.select(item, before, row["selector"]) if "selector" in row else item)
        self.put_items(spec, made + hidden)

    def _shown(self, items: Sequence[Item]) -> list[Item]:
        return [item for item in items if says_something(self.read(item))][:MAX_ROWS]


@dataclass(frozen=True)
class OwnLabels:
    """The pod's labels, now and before this change: what a selector is when its field is empty."""

    now: Mapping[str, str]
    before: Mapping[str, str]

    def select(self, item: Item, before: Item, pairs: Mapping[str, str]) -> Item:
        """The item with a label selector; one that named no pod while the pod had labels goes on naming none."""
        selector = dict(before.get("labelSelector") or {})
        had = selector.get("matchLabels") or {}
        is_new = not before
        if not pairs and (had or is_new or not (self.before or selector)):
            pairs = self.now
        if pairs == had:
            return item
        return put(dict(item), "labelSelector", put(selector, "matchLabels", dict(pairs)))


def says_something(row: Row) -> bool:
    """Whether a row is filled; a toleration of everything has no key."""
    return bool(row["key"]) or ("effect" in row and row["operator"] == "Exists")


def read_expression(item: Item) -> dict[str, Any]:
    """A match expression as a row."""
    return {
        "key": item.get("key") or "",
        "operator": item.get("operator") or "In",
        "values": ", ".join(map(str, item.get("values") or [])),
    }


def write_expression(item: Item, row: Row) -> Item:
    """One match expression."""
    made: Item = {"key": row["key"], "operator": row["operator"] or "In"}
    if made["operator"] not in ("Exists", "DoesNotExist"):
        made["values"] = [value.strip() for value in (row["values"] or "").split(",") if value.strip()]
    return made


def _read_toleration(item: Item) -> dict[str, Any]:
    row = {key: item.get(key) or "" for key in ("key", "operator", "value", "effect")}
    return {**row, "operator": row["operator"] or "Equal"}


def _write_toleration(item: Item, row: Row) -> Item:
    made = {"key": row["key"]} if row["key"] else {}
    made["operator"] = row["operator"] or "Equal"
    if made["operator"] == "Equal" and row["value"]:
        made["value"] = row["value"]
    put(made, "effect", row["effect"])
    if row["effect"] == "NoExecute" and "tolerationSeconds" in item:
        made["tolerationSeconds"] = item["tolerationSeconds"]
    return made


def _read_preferred(item: Item) -> dict[str, Any]:
    expressions = (item.get("preference") or {}).get("matchExpressions") or [{}]
    return {**read_expression(expressions[0]), "weight": item.get("weight") or 1}


def _write_preferred(item: Item, row: Row) -> Item:
    preference = dict(item.get("preference") or {})
    others = (preference.get("matchExpressions") or [])[1:]
    preference["matchExpressions"] = [write_expression({}, row), *others]
    return {"weight": row["weight"] or 1, "preference": preference}


def _read_spread(item: Item) -> dict[str, Any]:
    return {
        "key": item.get("topologyKey") or "",
        "skew": item.get("maxSkew") or 1,
        "when": item.get("whenUnsatisfiable") or "DoNotSchedule",
        "selector": _match_labels(item),
    }


def _write_spread(item: Item, row: Row) -> Item:
    return {
        **item,
        "maxSkew": row["skew"] or 1,
        "topologyKey": row["key"],
        "whenUnsatisfiable": row["when"] or "ScheduleAnyway",
    }


def _read_term(item: Item) -> dict[str, Any]:
    return {
        "key": item.get("topologyKey") or "",
        "selector": _match_labels(item),
        "rule": "Preferred" if "weight" in item else "Required",
        "weight": item.get("weight"),
    }


def _write_term(item: Item, row: Row) -> Item:
    made = {**item, "topologyKey": row["key"]}
    return put(made, "weight", (row["weight"] or 1) if row["rule"] == "Preferred" else None)


def _match_labels(item: Item) -> dict[str, str]:
    return dict((item.get("labelSelector") or {}).get("matchLabels") or {})


def _at(spec: Mapping[str, Any], path: Sequence[str]) -> list[Item]:
    found: Any = spec
    for key in path:
        found = (found or {}).get(key)
    return found or []


def _put_at(holder: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    key, *rest = path
    return put(holder, key, _put_at(dict(holder.get(key) or {}), rest, value) if rest else value)


def _list(*path: str) -> tuple[Callable[..., list[Item]], Callable[..., None]]:
    """How a list that stands at a path is taken out and written."""

    def write(spec: dict[str, Any], items: list[Item]) -> None:
        _put_at(spec, path, items)

    return lambda spec: _at(spec, path), write


_TERMS = ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")


def _required(spec: Mapping[str, Any]) -> list[Item]:
    """Expressions of the first term; further terms, of which one must be met, stay in the YAML."""
    terms = _at(spec, _TERMS)
    return (terms[0].get("matchExpressions") or []) if terms else []


def _put_required(spec: dict[str, Any], items: list[Item]) -> None:
    first, *others = _at(spec, _TERMS) or [{}]
    first = put(dict(first), "matchExpressions", items)
    _put_at(spec, _TERMS, [first, *others] if first else others)


def _terms(kind: str) -> Group:
    """Required and preferred terms of pod (anti-)affinity; a preferred one has its weight beside its other keys."""
    required, preferred = ("affinity", kind, REQUIRED), ("affinity", kind, PREFERRED)

    def items(spec: Mapping[str, Any]) -> list[Item]:
        weighted = [
            {**(item.get("podAffinityTerm") or {}), "weight": item.get("weight") or 1}
            for item in _at(spec, preferred)
        ]
        return [*_at(spec, required), *weighted]

    def put_items(spec: dict[str, Any], found: list[Item]) -> None:
        _put_at(spec, required, [item for item in found if "weight" not in item])
        weighted = [
            {
                "weight": item["weight"],
                "podAffinityTerm": {key: value for key, value in item.items() if key != "weight"},
            }
            for item in found
            if "weight" in item
        ]
        _put_at(spec, preferred, weighted)

    return Group(items, put_items, _read_term, _write_term)


GROUPS: Final[Mapping[str, Group]] = {
    "toleration": Group(*_list("tolerations"), _read_toleration, _write_toleration),
    "required": Group(_required, _put_required, read_expression, write_expression),
    "affinity": Group(*_list("affinity", "nodeAffinity", PREFERRED), _read_preferred, _write_preferred),
    "pod_affinity": _terms("podAffinity"),
    "pod_anti_affinity": _terms("podAntiAffinity"),
    "spread": Group(*_list("topologySpreadConstraints"), _read_spread, _write_spread),
}
