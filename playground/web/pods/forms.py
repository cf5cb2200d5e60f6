"""The form for submitting a pod, and a pod as the values of its form.

The lists of a pod are rows of the form: `GROUPS` says where each is in the spec, and how an item becomes a row.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms

from playground.web.fields import MAX_COPIES, AmountsField, NameField, PairsField, QuantityField
from scheduler_core.schema.tables import table_beside

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
    """The functions that read and write the list at a path."""

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


AMOUNTS = ("cpu", "memory")


def container(base: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """The first container with the form's image, requests and host port."""
    made = {"name": "main", **base, "image": data["image"] or "pause:3.10"}
    resources = dict(made.pop("resources", None) or {})
    requests = {key: data[key] for key in AMOUNTS if data[key]} | data["extended"]
    limits = {key: value for key, value in (resources.get("limits") or {}).items() if "/" not in key}
    put(resources, "requests", requests)
    put(resources, "limits", limits | data["extended"])
    put(made, "resources", resources)
    others = [port for port in made.pop("ports", None) or [] if not port.get("hostPort")]
    port = data["host_port"]
    return put(made, "ports", ([{"containerPort": port, "hostPort": port}] if port else []) + others)


def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the form's fields are for a manifest; parts it has no field for are not in it."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    first = (spec.get("containers") or [{}])[0]
    requests = (first.get("resources") or {}).get("requests") or {}
    ports = [port["hostPort"] for port in first.get("ports") or [] if port.get("hostPort")]
    values: dict[str, Any] = {
        "name": metadata.get("name") or "",
        "namespace": metadata.get("namespace") or "default",
        "copies": 1,
        "priority_class": spec.get("priorityClassName") or "",
        "labels": _pairs(metadata.get("labels")),
        "cpu": str(requests.get("cpu", "")),
        "memory": str(requests.get("memory", "")),
        "extended": _pairs({key: value for key, value in requests.items() if "/" in key}),
        "image": first.get("image") or "",
        "host_port": ports[0] if ports else "",
        "node_selector": _pairs(spec.get("nodeSelector")),
    }
    for key, group in GROUPS.items():
        for i, row in enumerate(group.rows_of(spec)):
            values |= {f"{key}_{i}_{name}": _posted(value) for name, value in row.items()}
    return values


def _posted(value: Any) -> Any:
    """A cleaned value as it is posted."""
    return _pairs(value) if isinstance(value, Mapping) else "" if value is None else value


def _pairs(pairs: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (pairs or {}).items())


_GROUPS: Final[Mapping[str, Any]] = table_beside(__package__, "rows.yaml")
ROWS: Final[Mapping[str, Mapping[str, Any]]] = {group: said["fields"] for group, said in _GROUPS.items()}
LEGENDS: Final[Mapping[str, str]] = {group: said["legend"] for group, said in _GROUPS.items()}


def _field(label: str, *, help: str = "", choices: Sequence[str] = (), **number: int) -> forms.Field:
    """A field of a row: one of some words, a number from 1 on, or text; of labels, pairs."""
    if choices:
        words = [(word, word or "every effect") for word in choices]
        return forms.ChoiceField(required=False, choices=words, label=label)
    if number:
        return forms.IntegerField(
            required=False, min_value=1, max_value=number.get("most"), initial=number["initial"], label=label
        )
    kind = PairsField if label.endswith("labels") else forms.CharField
    return kind(required=False, label=label, help_text=help)


class PodForm(forms.Form):
    """The common part of a pod; everything else is written in the YAML beside it."""

    name = NameField(initial="web-1", label="Name")
    namespace = NameField(initial="default", label="Namespace")
    copies = forms.IntegerField(min_value=1, max_value=MAX_COPIES, initial=1, label="Copies")
    priority_class = forms.ChoiceField(required=False, label="Priority class")
    labels = PairsField(required=False, label="Labels", help_text="app=web, tier=front")
    cpu = QuantityField(required=False, initial="500m", label="CPU")
    memory = QuantityField(required=False, initial="512Mi", example="4Gi or 512Mi", label="Memory")
    extended = AmountsField(required=False, label="Extended resources", help_text="nvidia.com/gpu=1")
    image = forms.CharField(required=False, initial="nginx:1.29", label="Image")
    host_port = forms.IntegerField(required=False, min_value=1, max_value=65535, label="Host port")
    node_selector = PairsField(required=False, label="Labels the node must have", help_text="disk=ssd")

    def __init__(
        self,
        *args: Any,
        priority_classes: Sequence[tuple[str, int]] = (),
        base: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.base = base
        self.fields["priority_class"].choices = [  # type: ignore[attr-defined]
            ("", "none"),
            *((name, f"{name} ({value})") for name, value in priority_classes),
        ]
        self.counts: dict[str, int] = {}
        for group, fields in ROWS.items():
            self.counts[group] = self._count(group)
            for i in range(self.counts[group]):
                for name, said in fields.items():
                    self.fields[f"{group}_{i}_{name}"] = _field(**said)

    def _count(self, group: str) -> int:
        """Rows up to the last filled one, and an empty one to go on with."""
        given: Mapping[str, Any] = self.data if self.is_bound else self.initial
        filled = [i for i in range(MAX_ROWS) if _is_filled(group, i, given)]
        return min(MAX_ROWS, max(filled, default=-1) + 2)

    def rows(self, group: str) -> list[list[Any]]:
        """The bound fields of a group, row by row."""
        return [[self[f"{group}_{i}_{name}"] for name in ROWS[group]] for i in range(self.counts[group])]

    @property
    def groups(self) -> list[tuple[str, str, list[list[Any]]]]:
        """Every group for the page: (key, legend, rows)."""
        return [(group, LEGENDS[group], self.rows(group)) for group in ROWS]

    def filled(self, group: str) -> list[dict[str, Any]]:
        """Cleaned values of the rows that say something."""
        data = self.cleaned_data
        rows = [
            {name: data.get(f"{group}_{i}_{name}") for name in ROWS[group]} for i in range(self.counts[group])
        ]
        if "rule" in ROWS[group]:
            rows = [row if row["rule"] == "Preferred" else {**row, "weight": None} for row in rows]
        return [row for row in rows if says_something(row)]

    def clean(self) -> dict[str, Any]:
        """See that a term that names pods says within which topology."""
        data: dict[str, Any] = super().clean() or {}
        for group, fields in ROWS.items():
            for i in range(self.counts[group]):
                if (
                    "selector" in fields
                    and data.get(f"{group}_{i}_selector")
                    and not data.get(f"{group}_{i}_key")
                ):
                    self.add_error(f"{group}_{i}_key", "Within which topology? E.g. kubernetes.io/hostname.")
        return data

    def manifests(self) -> list[dict[str, Any]]:
        """The pods this valid form describes; copies are called name-1, name-2, ...

        What the form has no field for stays as it is in `base`.
        """
        copies = self.cleaned_data["copies"]
        name = self.cleaned_data["name"]
        if copies == 1:
            return [self._manifest(name)]
        return [self._manifest(f"{name}-{i}") for i in range(1, copies + 1)]

    def _manifest(self, name: str) -> dict[str, Any]:
        data = self.cleaned_data
        manifest: dict[str, Any] = copy.deepcopy(dict(self.base or {}))
        manifest = {"apiVersion": "v1", "kind": "Pod", **manifest}
        metadata = {**(manifest.get("metadata") or {}), "name": name, "namespace": data["namespace"]}
        own = OwnLabels(now=data["labels"], before=metadata.get("labels") or {})
        manifest["metadata"] = put(metadata, "labels", data["labels"])
        spec = dict(manifest.get("spec") or {})
        containers = spec.pop("containers", None) or [{"name": "main"}]
        put(spec, "priorityClassName", data["priority_class"])
        put(spec, "nodeSelector", data["node_selector"])
        for key, group in GROUPS.items():
            group.put_rows(spec, self.filled(key), own)
        first = container(containers[0], data)
        manifest["spec"] = {**spec, "containers": [first, *containers[1:]]}
        return manifest


def _is_filled(group: str, i: int, given: Mapping[str, Any]) -> bool:
    if given.get(f"{group}_{i}_key") or given.get(f"{group}_{i}_selector"):
        return True
    return group == "toleration" and given.get(f"{group}_{i}_operator") == "Exists"
