"""Forms of PriorityClasses and PodDisruptionBudgets, over the manifests they stand for."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from django import forms

from playground.clusters.errors import InvalidInput
from playground.clusters.selection import label_selector_of, selector_text
from playground.engine.admission import SYSTEM_PREFIX
from playground.web.forms.quantities import NameField

POLICIES = (("PreemptLowerPriority", "PreemptLowerPriority"), ("Never", "Never"))
RULES = (("minAvailable", "minAvailable"), ("maxUnavailable", "maxUnavailable"))
UNHEALTHY = (("", "not set"), ("IfHealthyBudget", "IfHealthyBudget"), ("AlwaysAllow", "AlwaysAllow"))


class ObjectForm(forms.Form):
    """What both forms have: the version that was read, so that another user's change is not undone."""

    KIND = ""
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.manifest = manifest
        if manifest is not None:
            kwargs.setdefault("initial", self.values_of(manifest))
        kwargs["auto_id"] = f"{self.KIND}-%s"
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a stored object."""
        raise NotImplementedError

    def _made(self, kind: str, api_version: str) -> dict[str, Any]:
        if self.manifest is None:
            return {"apiVersion": api_version, "kind": kind, "metadata": {"name": self.cleaned_data["name"]}}
        made: dict[str, Any] = copy.deepcopy(dict(self.manifest))
        made["metadata"]["resourceVersion"] = self.cleaned_data["version"]
        return made


class PriorityClassForm(ObjectForm):
    """A class; value and policy of one that exists may not be changed, as in Kubernetes."""

    KIND = "class"
    name = NameField(label="Name")
    value = forms.IntegerField(label="Value", help_text="up to 1,000,000,000")
    policy = forms.ChoiceField(choices=POLICIES, label="Preemption")
    is_default = forms.BooleanField(required=False, label="Global default")
    description = forms.CharField(required=False, max_length=1000, label="Description")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, **kwargs)
        if manifest is not None:
            # Django takes their initial value whatever is sent.
            for fixed in ("name", "value", "policy"):
                self.fields[fixed].disabled = True
            self.fields["value"].help_text = "fixed once the class exists"
        if self.is_built_in:
            self.fields["is_default"].disabled = True

    @property
    def is_built_in(self) -> bool:
        """Whether every cluster has the class: it stays, and is no default."""
        return self.manifest is not None and self.manifest["metadata"]["name"].startswith(SYSTEM_PREFIX)

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        meta = manifest["metadata"]
        return {
            "name": meta["name"],
            "version": meta.get("resourceVersion", ""),
            "value": manifest.get("value"),
            "policy": manifest.get("preemptionPolicy") or "PreemptLowerPriority",
            "is_default": bool(manifest.get("globalDefault")),
            "description": manifest.get("description") or "",
        }

    def applied(self) -> dict[str, Any]:
        """The class the form asks for; the form is valid."""
        data = self.cleaned_data
        made = self._made("PriorityClass", "scheduling.k8s.io/v1")
        made |= {
            "value": data["value"],
            "preemptionPolicy": data["policy"],
            "globalDefault": data["is_default"],
        }
        made["description"] = data["description"]
        return made if data["description"] else {k: v for k, v in made.items() if k != "description"}


class SelectorField(forms.CharField):
    """Labels as kubectl takes them after -l; cleans to a LabelSelector."""

    def clean(self, value: Any) -> dict[str, Any]:
        try:
            return label_selector_of(super().clean(value) or "")
        except InvalidInput as error:
            raise forms.ValidationError(error.message) from None


class BudgetForm(ObjectForm):
    """A budget: which pods, and how many of them must stay or may be missing."""

    KIND = "budget"
    name = NameField(label="Name")
    namespace = NameField(label="Namespace", initial="default")
    selector = SelectorField(
        required=False, label="Selector", help_text="app=web,tier!=db; empty = every pod there"
    )
    rule = forms.ChoiceField(choices=RULES, label="Rule")
    amount = forms.CharField(max_length=20, strip=True, label="Number or %", help_text="2 or 50%")
    unhealthy = forms.ChoiceField(choices=UNHEALTHY, required=False, label="Unhealthy pods")

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, manifest=manifest, **kwargs)
        if manifest is not None:
            self.fields["name"].disabled = self.fields["namespace"].disabled = True

    @staticmethod
    def values_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
        meta, spec = manifest["metadata"], manifest.get("spec") or {}
        rule = "maxUnavailable" if spec.get("maxUnavailable") is not None else "minAvailable"
        amount = spec.get(rule)
        return {
            "name": meta["name"],
            "namespace": meta.get("namespace") or "default",
            "version": meta.get("resourceVersion", ""),
            "selector": selector_text(spec.get("selector")),
            "rule": rule,
            "amount": "" if amount is None else str(amount),
            "unhealthy": spec.get("unhealthyPodEvictionPolicy") or "",
        }

    def applied(self) -> dict[str, Any]:
        """The budget the form asks for; the form is valid."""
        data = self.cleaned_data
        made = self._made("PodDisruptionBudget", "policy/v1")
        made["metadata"]["namespace"] = data["namespace"]
        spec = {
            k: v for k, v in (made.get("spec") or {}).items() if k not in ("minAvailable", "maxUnavailable")
        }
        if not (self.manifest is not None and spec.get("selector") is None and not data["selector"]):
            spec["selector"] = data["selector"]
        amount = data["amount"]
        spec[data["rule"]] = int(amount) if re.fullmatch(r"-?[0-9]{1,18}", amount) else amount
        spec["unhealthyPodEvictionPolicy"] = data["unhealthy"]
        made["spec"] = {key: value for key, value in spec.items() if value != ""}
        return made
