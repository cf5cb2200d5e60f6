"""Collecting what is wrong with an object, in Kubernetes' words, and the checks that several kinds share.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation, pkg/apis/meta/v1/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler_core.errors import FieldError, InvalidObject
from scheduler_core.objects.fields import (
    Document,
    SelectorError,
    child,
    mapping,
    mappings,
    optional_integer,
    string,
    string_map,
    strings,
)
from scheduler_core.objects.labels import (
    LabelSelector,
    label_errors,
    label_selector_from,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from scheduler_core.objects.quantity import Quantity
from scheduler_core.objects.resources import quantity_at
from scheduler_core.releases import DEFAULT, Release

NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than 0"
NOT_INTEGER: Final = "must be an integer"
PORT: Final = "must be between 1 and 65535, inclusive"
_MOST: Final = 100
"""Of one object: who has as much to mend is not helped by more."""
_PERCENT: Final = re.compile(r"[0-9]+%")

Rule = Callable[[str], tuple[str, ...]]


class FieldErrors(list[FieldError]):
    """What was found so far, in the order in which an API server lists it.

    Parameters
    ----------
    release : Release
        Whose rules and words they are.
    """

    def __init__(self, release: Release = DEFAULT) -> None:
        super().__init__()
        self.release = release

    def append(self, error: FieldError) -> None:
        super().append(self.release.worded(error))
        if len(self) >= _MOST:
            self.refuse()

    def refuse(self) -> None:
        """Refuse the object if anything was found.

        Raises
        ------
        InvalidObject
        """
        if self:
            raise InvalidObject.of(*self)

    # ---- the kinds of errors

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self.append(FieldError("FieldValueInvalid", path, value, detail))

    def required(self, path: str, detail: str = "") -> None:
        self.append(FieldError("FieldValueRequired", path, None, detail))

    def forbidden(self, path: str, detail: str) -> None:
        self.append(FieldError("FieldValueForbidden", path, None, detail))

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self.append(FieldError("FieldValueDuplicate", path, value, detail))

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        listed = ", ".join(f'"{name}"' for name in supported)
        self.append(FieldError("FieldValueNotSupported", path, value, f"supported values: {listed}"))

    def not_found(self, path: str, value: Any, detail: str = "") -> None:
        self.append(FieldError("FieldValueNotFound", path, value, detail))

    def too_long(self, path: str, most: int) -> None:
        self.append(FieldError("FieldValueTooLong", path, None, f"may not be more than {most} bytes"))

    def at_most(self, items: Any, most: int, path: str) -> None:
        if len(items) > most:
            detail = f"must have at most {most} items"
            self.append(FieldError("FieldValueTooMany", path, len(items), detail))

    # ---- single values

    def one_of(
        self, document: Document, key: str, path: str, supported: tuple[str, ...], *, required: bool = False
    ) -> str:
        """Check a word; returns it."""
        value = string(document, key, path)
        if value and value not in supported:
            self.unsupported(child(path, key), value, supported)
        elif required and not value:
            self.required(child(path, key))
        return value

    def at_least(
        self, document: Document, key: str, path: str, least: int = 0, words: str = NEGATIVE
    ) -> int | None:
        """Check a number that may be missing; returns it."""
        value = optional_integer(document, key, path)
        if value is not None and value < least:
            self.invalid(child(path, key), value, words)
        return value

    def named(self, rule: Rule, value: str, path: str) -> bool:
        """Check a name by one of the rules for names."""
        found = rule(value)
        for detail in found:
            self.invalid(path, value, detail)
        return not found

    def name_of_one(
        self, document: Document, path: str, seen: dict[str, None], rule: Rule = label_errors
    ) -> str:
        """Check a name that none of those `seen` before has; returns it."""
        name = string(document, "name", path)
        if not name:
            self.required(f"{path}.name")
        elif self.named(rule, name, f"{path}.name") and name in seen:
            self.duplicate(f"{path}.name", name)
        seen[name] = None
        return name

    def port(self, number: int, path: str) -> None:
        if not 0 < number < 65536:
            self.invalid(path, number, PORT)

    # ---- labels and selectors

    def labels(self, document: Document, key: str, path: str) -> dict[str, str]:
        """Check a map of labels; returns it."""
        labels = string_map(document, key, path)
        base = child(path, key)
        for name, value in labels.items():
            self.named(qualified_name_errors, name, base)
            self.named(label_value_errors, value, base)
        return labels

    def selector(self, document: Document, key: str, path: str) -> None:
        """Check a label selector that may be missing."""
        selector = mapping(document, key, path)
        base = child(path, key)
        self.labels(selector, "matchLabels", base)
        for where, item in mappings(selector, "matchExpressions", base):
            self.operator(item, where)
            self.named(qualified_name_errors, string(item, "key", where), f"{where}.key")
            for index, value in enumerate(strings(item, "values", where)):
                self.named(label_value_errors, value, f"{where}.values[{index}]")

    def operator(self, item: Document, path: str, *, numbers: bool = False) -> None:
        """Check operator and number of values of a selector's requirement."""
        operator, values = string(item, "operator", path), strings(item, "values", path)
        if operator in ("In", "NotIn"):
            if not values:
                self.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                self.forbidden(f"{path}.values", words)
        elif numbers and operator in ("Gt", "Lt"):
            if len(values) != 1:
                words = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                self.required(f"{path}.values", words)
        else:
            self.invalid(f"{path}.operator", operator, "not a valid selector operator")

    def node_selector(self, document: Document, path: str) -> None:
        """Check required node selector terms."""
        terms = mappings(document, "nodeSelectorTerms", path)
        if not terms:
            self.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        for where, term in terms:
            self.node_selector_term(term, where)

    def node_selector_term(self, term: Document, path: str, *, any_value: bool = False) -> None:
        for where, item in mappings(term, "matchExpressions", path):
            self.operator(item, where, numbers=True)
            self.named(qualified_name_errors, string(item, "key", where), f"{where}.key")
            for index, value in enumerate(() if any_value else strings(item, "values", where)):
                self.named(label_value_errors, value, f"{where}.values[{index}]")
        for where, item in mappings(term, "matchFields", path):
            operator, values = string(item, "operator", where), strings(item, "values", where)
            if operator not in ("In", "NotIn"):
                self.invalid(f"{where}.operator", operator, "not a valid selector operator")
            elif len(values) != 1:
                words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                self.required(f"{where}.values", words)
            key = string(item, "key", where)
            if key != "metadata.name":
                self.invalid(f"{where}.key", key, "not a valid field selector key")
                continue
            for index, value in enumerate(values):
                self.named(subdomain_errors, value, f"{where}.values[{index}]")

    def template_selector(
        self, spec: Document, labels: Mapping[str, str], path: str, whose: str, *, needed: bool = True
    ) -> None:
        """Check that a workload's selector is one, and matches its template's labels."""
        selector = mapping(spec, "selector", path)
        if spec.get("selector") is None:
            if needed:
                self.required(f"{path}.selector")
            return
        self.selector(spec, "selector", path)
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            self.invalid(f"{path}.selector", dict(selector), f"empty selector is invalid for {whose}")
            return
        try:
            parsed: LabelSelector = label_selector_from(selector)
        except SelectorError:
            self.invalid(f"{path}.selector", dict(selector), "invalid label selector")
            return
        if not parsed.matches(labels):
            words = "`selector` does not match template `labels`"
            self.invalid(f"{path}.template.metadata.labels", dict(labels), words)

    # ---- amounts

    def int_or_percent(self, document: Document, key: str, path: str, *, bounded: bool = True) -> bool | None:
        """Check a number of pods or a percentage; returns whether it is other than 0, None where it is missing."""
        value, place = document.get(key), child(path, key)
        if value is None:
            return None
        if isinstance(value, str):
            if not _PERCENT.fullmatch(value):
                words = (
                    "a valid percent string must be a numeric string followed by an ending '%' "
                    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                )
                self.invalid(place, value, words)
                return False
            is_above = len(value) > 12 or int(value[:-1]) > 100
            if bounded and is_above:
                self.invalid(place, value, "must not be greater than 100%")
            return is_above or int(value[:-1]) != 0
        if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
            raise InvalidObject(place, value, "must be a whole number of 32 bits or a percentage")
        if value < 0:
            self.invalid(place, value, NEGATIVE)
        return value != 0

    def amount(self, value: Any, path: str, written_at: str = "") -> Quantity:
        """Check that a quantity is not negative; returns it.

        Parameters
        ----------
        written_at : str
            Where it is in the object, if Kubernetes names another path.

        Raises
        ------
        InvalidObject
            It is none.
        """
        amount = quantity_at(value, written_at or path)
        if amount.sign() < 0:
            self.invalid(path, str(amount), NEGATIVE)
        return amount
