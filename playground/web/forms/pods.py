"""The form for submitting a pod."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms

from playground.web.forms import pod_rows
from playground.web.forms.pod_groups import GROUPS, MAX_ROWS, OwnLabels, put, says_something
from playground.web.forms.quantities import AmountsField, NameField, PairsField, QuantityField

MAX_COPIES = 1000

EFFECTS = [
    ("", "every effect"),
    ("NoSchedule", "NoSchedule"),
    ("PreferNoSchedule", "PreferNoSchedule"),
    ("NoExecute", "NoExecute"),
]
OPERATORS = [(word, word) for word in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")]


def _pod_term() -> dict[str, Callable[[], forms.Field]]:
    """Fields of a pod affinity or anti-affinity term."""
    return {
        "key": lambda: forms.CharField(
            required=False, label="Topology key", help_text="kubernetes.io/hostname"
        ),
        "selector": lambda: PairsField(
            required=False, label="Pods with the labels", help_text="empty: this pod's own"
        ),
        "rule": lambda: forms.ChoiceField(
            required=False, choices=[("Required", "Required"), ("Preferred", "Preferred")], label="Rule"
        ),
        "weight": lambda: forms.IntegerField(
            required=False, min_value=1, max_value=100, initial=50, label="Weight, if preferred"
        ),
    }


# group -> its fields; the first one says whether a row is filled.
ROWS: dict[str, dict[str, Callable[[], forms.Field]]] = {
    "toleration": {
        "key": lambda: forms.CharField(required=False, label="Key"),
        "operator": lambda: forms.ChoiceField(
            required=False, choices=[("Equal", "Equal"), ("Exists", "Exists")], label="Operator"
        ),
        "value": lambda: forms.CharField(required=False, label="Value"),
        "effect": lambda: forms.ChoiceField(required=False, choices=EFFECTS, label="Effect"),
    },
    "required": {
        "key": lambda: forms.CharField(required=False, label="Required node label"),
        "operator": lambda: forms.ChoiceField(required=False, choices=OPERATORS, label="Operator"),
        "values": lambda: forms.CharField(required=False, label="Values"),
    },
    "affinity": {
        "key": lambda: forms.CharField(required=False, label="Preferred node label"),
        "operator": lambda: forms.ChoiceField(required=False, choices=OPERATORS, label="Operator"),
        "values": lambda: forms.CharField(required=False, label="Values"),
        "weight": lambda: forms.IntegerField(
            required=False, min_value=1, max_value=100, initial=50, label="Weight"
        ),
    },
    "pod_affinity": _pod_term(),
    "pod_anti_affinity": _pod_term(),
    "spread": {
        "key": lambda: forms.CharField(
            required=False, label="Topology key", help_text="topology.kubernetes.io/zone"
        ),
        "skew": lambda: forms.IntegerField(required=False, min_value=1, initial=1, label="maxSkew"),
        "when": lambda: forms.ChoiceField(
            required=False,
            choices=[("ScheduleAnyway", "ScheduleAnyway"), ("DoNotSchedule", "DoNotSchedule")],
            label="When unsatisfiable",
        ),
        "selector": lambda: PairsField(
            required=False, label="Pods with the labels", help_text="empty: this pod's own"
        ),
    },
}


class PodForm(forms.Form):
    """The common part of a pod; everything else is written in the YAML beside it."""

    name = NameField(initial="web-1", label="Name")
    namespace = NameField(initial="default", label="Namespace")
    copies = forms.IntegerField(min_value=1, max_value=MAX_COPIES, initial=1, label="Copies")
    priority_class = forms.ChoiceField(required=False, label="Priority class")
    labels = PairsField(required=False, label="Labels", help_text="app=web, tier=front")
    cpu = QuantityField(required=False, initial="500m", label="cpu")
    memory = QuantityField(required=False, initial="512Mi", example="4Gi or 512Mi", label="memory")
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
        for group, makers in ROWS.items():
            self.counts[group] = self._count(group)
            for i in range(self.counts[group]):
                for name, make in makers.items():
                    self.fields[f"{group}_{i}_{name}"] = make()

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
        first = pod_rows.container(containers[0], data)
        manifest["spec"] = {**spec, "containers": [first, *containers[1:]]}
        return manifest


LEGENDS = {
    "toleration": "Tolerations",
    "required": "Required node affinity",
    "affinity": "Preferred node affinity",
    "pod_affinity": "Pod affinity: near pods",
    "pod_anti_affinity": "Pod anti-affinity: away from pods",
    "spread": "Topology spread",
}


def _is_filled(group: str, i: int, given: Mapping[str, Any]) -> bool:
    if given.get(f"{group}_{i}_key") or given.get(f"{group}_{i}_selector"):
        return True
    return group == "toleration" and given.get(f"{group}_{i}_operator") == "Exists"
