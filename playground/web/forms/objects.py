"""Forms over stored objects: the common fields; everything else is edited as YAML."""

import copy
from collections.abc import Mapping
from typing import Any

from django import forms

from playground.web.forms.quantities import PairsField, QuantityField, TaintsField


class NodeForm(forms.Form):
    """What people change of a node."""

    cpu = QuantityField(label="cpu")
    memory = QuantityField(example="32Gi or 512Mi", label="memory")
    pods = forms.IntegerField(min_value=0, max_value=100_000, label="pods")
    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))
    taints = TaintsField(
        required=False,
        label="Taints",
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="gpu=true:NoSchedule, one a line",
    )
    unschedulable = forms.BooleanField(required=False, label="Cordoned")

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored node."""
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        allocatable = status.get("allocatable") or status.get("capacity") or {}
        return {
            "cpu": allocatable.get("cpu", "0"),
            "memory": allocatable.get("memory", "0"),
            "pods": allocatable.get("pods", "0"),
            "labels": _lines((manifest.get("metadata") or {}).get("labels")),
            "taints": "\n".join(
                f"{t['key']}{'=' + t['value'] if t.get('value') else ''}:{t['effect']}"
                for t in spec.get("taints") or []
            ),
            "unschedulable": bool(spec.get("unschedulable")),
        }

    def applied(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The node with the form's fields; the form is valid."""
        data = self.cleaned_data
        made = copy.deepcopy(dict(manifest))
        made["metadata"] = {**made["metadata"], "labels": data["labels"]}
        spec = {**(made.get("spec") or {}), "taints": data["taints"], "unschedulable": data["unschedulable"]}
        made["spec"] = {key: value for key, value in spec.items() if value or key not in _OPTIONAL}
        amounts = {"cpu": data["cpu"], "memory": data["memory"], "pods": str(data["pods"])}
        status = dict(made.get("status") or {})
        for held in ("capacity", "allocatable"):
            status[held] = {**(status.get(held) or {}), **amounts}
        made["status"] = status
        return made


class PodLabelsForm(forms.Form):
    """What may change of a pod without making it another one."""

    labels = PairsField(required=False, label="Labels", widget=forms.Textarea(attrs={"rows": 4}))

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored pod."""
        return {"labels": _lines((manifest.get("metadata") or {}).get("labels"))}

    def applied(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The pod with the form's labels; the form is valid."""
        made = copy.deepcopy(dict(manifest))
        made["metadata"] = {**made["metadata"], "labels": self.cleaned_data["labels"]}
        return made


_OPTIONAL = ("taints", "unschedulable")
FORMS: dict[str, type[NodeForm] | type[PodLabelsForm]] = {"Node": NodeForm, "Pod": PodLabelsForm}


def _lines(pairs: Mapping[str, Any] | None) -> str:
    return "\n".join(f"{key}={value}" for key, value in (pairs or {}).items())
