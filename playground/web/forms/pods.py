"""The form for submitting a pod."""

from typing import Any

from django import forms

from playground.web.forms.quantities import AmountsField, NameField, PairsField, QuantityField

MAX_COPIES = 1000


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
    toleration_key = forms.CharField(required=False, label="Key")
    toleration_operator = forms.ChoiceField(
        required=False, choices=[("Equal", "Equal"), ("Exists", "Exists")], label="Operator"
    )
    toleration_value = forms.CharField(required=False, label="Value")
    toleration_effect = forms.ChoiceField(
        required=False,
        choices=[
            ("", "every effect"),
            ("NoSchedule", "NoSchedule"),
            ("PreferNoSchedule", "PreferNoSchedule"),
            ("NoExecute", "NoExecute"),
        ],
        label="Effect",
    )
    affinity_key = forms.CharField(required=False, label="Preferred node label")
    affinity_operator = forms.ChoiceField(
        required=False, choices=[(o, o) for o in ("In", "NotIn", "Exists", "DoesNotExist")], label="Operator"
    )
    affinity_values = forms.CharField(required=False, label="Values")
    affinity_weight = forms.IntegerField(
        required=False, min_value=1, max_value=100, initial=50, label="Weight"
    )
    spread_key = forms.CharField(required=False, label="Topology key")
    spread_skew = forms.IntegerField(required=False, min_value=1, initial=1, label="maxSkew")
    spread_when = forms.ChoiceField(
        required=False,
        choices=[("ScheduleAnyway", "ScheduleAnyway"), ("DoNotSchedule", "DoNotSchedule")],
        label="When unsatisfiable",
    )

    def __init__(self, *args: Any, priority_classes: list[tuple[str, int]] = [], **kwargs: Any) -> None:  # noqa: B006
        super().__init__(*args, **kwargs)
        self.fields["priority_class"].choices = [  # type: ignore[attr-defined]
            ("", "none"),
            *((name, f"{name} ({value})") for name, value in priority_classes),
        ]

    def manifests(self) -> list[dict[str, Any]]:
        """The pods this valid form describes; copies are called name-1, name-2, ..."""
        copies = self.cleaned_data["copies"]
        name = self.cleaned_data["name"]
        if copies == 1:
            return [self._manifest(name)]
        return [self._manifest(f"{name}-{i}") for i in range(1, copies + 1)]

    def _manifest(self, name: str) -> dict[str, Any]:
        data = self.cleaned_data
        metadata: dict[str, Any] = {"name": name, "namespace": data["namespace"]}
        if data["labels"]:
            metadata["labels"] = data["labels"]
        spec: dict[str, Any] = {}
        if data["priority_class"]:
            spec["priorityClassName"] = data["priority_class"]
        if data["node_selector"]:
            spec["nodeSelector"] = data["node_selector"]
        if data["toleration_key"] or data["toleration_operator"] == "Exists":
            spec["tolerations"] = [self._toleration()]
        if data["affinity_key"]:
            spec["affinity"] = {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [self._term()]}
            }
        if data["spread_key"]:
            constraint: dict[str, Any] = {
                "maxSkew": data["spread_skew"] or 1,
                "topologyKey": data["spread_key"],
                "whenUnsatisfiable": data["spread_when"] or "ScheduleAnyway",
            }
            if data["labels"]:
                constraint["labelSelector"] = {"matchLabels": data["labels"]}
            spec["topologySpreadConstraints"] = [constraint]
        container: dict[str, Any] = {"name": "main", "image": data["image"] or "pause:3.10"}
        requests = {key: data[key] for key in ("cpu", "memory") if data[key]} | data["extended"]
        if requests:
            container["resources"] = {"requests": requests}
            if data["extended"]:
                container["resources"]["limits"] = data["extended"]
        if data["host_port"]:
            container["ports"] = [{"containerPort": data["host_port"], "hostPort": data["host_port"]}]
        spec["containers"] = [container]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _toleration(self) -> dict[str, str]:
        data = self.cleaned_data
        toleration = {"operator": data["toleration_operator"] or "Equal"}
        if data["toleration_key"]:
            toleration = {"key": data["toleration_key"], **toleration}
        if toleration["operator"] == "Equal" and data["toleration_value"]:
            toleration["value"] = data["toleration_value"]
        if data["toleration_effect"]:
            toleration["effect"] = data["toleration_effect"]
        return toleration

    def _term(self) -> dict[str, Any]:
        data = self.cleaned_data
        operator = data["affinity_operator"] or "In"
        expression: dict[str, Any] = {"key": data["affinity_key"], "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = [v.strip() for v in data["affinity_values"].split(",") if v.strip()]
        return {"weight": data["affinity_weight"] or 1, "preference": {"matchExpressions": [expression]}}
