"""Form fields for what Kubernetes writes as text: quantities, labels, taints; forms over parts of a manifest."""

import copy
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms

from playground.engine.admission import amount_problem, name_problem

MAX_COPIES = 1000
"""Pods that one form makes, or asks about."""


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in re.split(r"[,\n]", text or "") if piece.strip()]


class QuantityField(forms.CharField):
    """An amount: 1, 0.5, 500m, 4Gi."""

    def __init__(self, *, example: str = "1, 0.5 or 500m", **kwargs: Any) -> None:
        super().__init__(strip=True, **kwargs)
        self.example = example

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if text and (said := amount_problem(text)):
            raise forms.ValidationError(f"{said}. Write {self.example}.")
        return text


class NameField(forms.CharField):
    """A Kubernetes object name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=253, strip=True, **kwargs)

    def clean(self, value: Any) -> str:
        text: str = super().clean(value)
        if text and (said := name_problem(text)):
            raise forms.ValidationError(said)
        return text


class PairsField(forms.CharField):
    """``key=value`` pairs separated by commas or lines; cleans to a dict."""

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{key}={val}" for key, val in value.items()) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:
        text: str = super().clean(value)
        pairs: dict[str, str] = {}
        for piece in _pieces(text):
            key, equals, val = piece.partition("=")
            if not equals or not key.strip():
                raise forms.ValidationError(f'"{piece}" is not key=value.')
            pairs[key.strip()] = val.strip()
        return pairs


class AmountsField(PairsField):
    """``resource=quantity`` pairs, for extended resources; cleans to a dict."""

    def clean(self, value: Any) -> dict[str, str]:
        pairs = super().clean(value)
        for resource, amount in pairs.items():
            if "/" not in resource:
                raise forms.ValidationError(
                    f'"{resource}" is not an extended resource: write domain/name, as in nvidia.com/gpu=1.'
                )
            if not amount.isdigit():
                raise forms.ValidationError(f'{resource}: "{amount}" is not a whole number.')
        return pairs


class TaintsField(forms.CharField):
    """``key=value:Effect`` separated by commas; cleans to a list of taints."""

    EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return "\n".join(
            f"{taint['key']}{'=' + taint['value'] if taint.get('value') else ''}:{taint['effect']}"
            for taint in value
        )

    def clean(self, value: Any) -> list[dict[str, str]]:
        text: str = super().clean(value)
        taints = []
        for piece in _pieces(text):
            pair, _, effect = piece.rpartition(":")
            key, equals, val = pair.partition("=")
            if not key or effect not in self.EFFECTS:
                raise forms.ValidationError(
                    f'"{piece}" is not a taint. Write key=value:Effect with one of {", ".join(self.EFFECTS)}.'
                )
            taint = {"key": key.strip(), "effect": effect}
            if equals:
                taint["value"] = val.strip()
            taints.append(taint)
        return taints


class ManifestForm(forms.Form):
    """A form over some fields of an object; what it does not show, or is not changed, stays.

    Attributes
    ----------
    AT
        Field -> its place in a manifest, or several with spaces between that hold the same.
    API_VERSION, KIND
        Of a new object.
    """

    AT: ClassVar[Mapping[str, str]] = {}
    API_VERSION, KIND = "", ""

    def __init__(self, *args: Any, manifest: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.manifest = manifest
        super().__init__(*args, **kwargs)
        for name, places in self.AT.items() if manifest is not None else ():
            for held in (_within(manifest, place.split(".")) for place in places.split()):
                if held is not None:
                    self.initial[name] = held

    def applied(self) -> dict[str, Any]:
        """The object the form asks for; the form is valid."""
        made: dict[str, Any] = {"apiVersion": self.API_VERSION, "kind": self.KIND}
        if self.manifest is not None:
            made = copy.deepcopy(dict(self.manifest))
        for name, places in self.AT.items():
            if self.manifest is None or name in self.changed_data:
                for place in places.split():
                    _put(made, place.split("."), self.cleaned_data[name])
        return made


def _within(held: Any, path: list[str]) -> Any:
    for step in path:
        held = (held or {}).get(step)
    return held


def _put(held: dict[str, Any], path: list[str], value: Any) -> None:
    """Write a value at its place; what is empty is left out."""
    *above, last = path
    for step in above:
        held[step] = held = held.get(step) or {}
    if value is None or value is False or value in ("", []):
        held.pop(last, None)
    else:
        held[last] = value
