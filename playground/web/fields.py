"""Form fields for what Kubernetes writes as text: quantities, labels, taints."""

import re
from typing import Any

from django import forms

from playground.engine.admission import amount_problem, name_problem

MAX_COPIES = 1000
"""Pods that one form makes, or asks about."""


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

    def clean(self, value: Any) -> dict[str, str]:
        text: str = super().clean(value)
        pairs: dict[str, str] = {}
        for piece in re.split(r"[,\n]", text or ""):
            piece = piece.strip()
            if not piece:
                continue
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

    def clean(self, value: Any) -> list[dict[str, str]]:
        text: str = super().clean(value)
        taints = []
        for piece in re.split(r"[,\n]", text or ""):
            piece = piece.strip()
            if not piece:
                continue
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
