"""A place in an object that is checked: it reads its fields, and says what is wrong with them in Kubernetes' words.

Source: staging/src/k8s.io/apimachinery/pkg/util/validation, pkg/apis/meta/v1/validation/validation.go, v1.36
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler_core.errors import FieldError, InvalidObject
from scheduler_core.objects import fields
from scheduler_core.objects.fields import Document, SelectorError
from scheduler_core.objects.labels import (
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


class Checked:
    """An object, or one within another, that is checked.

    Parameters
    ----------
    document : mapping
    problems : FieldErrors
        Where what is wrong is collected.
    path : str
        From the root of the whole object; empty for itself.

    Notes
    -----
    Methods take the field's key. Those that read raise InvalidObject where a value has not even the right form.
    """

    __slots__ = ("document", "path", "problems")

    def __init__(self, document: Document, problems: FieldErrors, path: str = "") -> None:
        self.document = document
        self.problems = problems
        self.path = path

    # ---- reading

    def where(self, key: str) -> str:
        """The path of a field, or of an entry (`[key]`); of this place itself for an empty key."""
        if not key or key[0] == "[":
            return f"{self.path}{key}"
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str) -> Any:
        return self.document.get(key)

    def has(self, key: str) -> bool:
        """Whether the field is written and not null."""
        return self.document.get(key) is not None

    def at(self, *keys: str) -> Checked:
        """An object below this one; absent reads as empty."""
        document, path = self.document, self.path
        for key in keys:
            value = document.get(key)
            # Asked here for what most objects hold: a call takes longer than looking.
            document = (
                value if type(value) is dict else {} if value is None else fields.mapping(document, key, path)
            )
            path = f"{path}.{key}" if path else key
        return Checked(document, self.problems, path)

    def each(self, key: str, most: int | None = None) -> list[Checked]:
        """The objects of a list, `most` of them at most."""
        if self.document.get(key) is None:
            return []
        items = fields.mappings(self.document, key, self.path)
        if most is not None:
            self.at_most(key, items, most)
        return [Checked(document, self.problems, path) for path, document in items[:most]]

    def text(self, key: str) -> str:
        value = self.document.get(key)
        if value is None:
            return ""
        return value if type(value) is str else fields.string(self.document, key, self.path)

    def said(self, key: str) -> str | None:
        """A text that may be missing."""
        return fields.optional_string(self.document, key, self.path)

    def texts(self, key: str) -> tuple[str, ...]:
        return fields.strings(self.document, key, self.path)

    def number(self, key: str) -> int | None:
        return fields.optional_integer(self.document, key, self.path)

    def whole(self, key: str) -> int:
        """A number, 0 where it is missing."""
        return fields.integer(self.document, key, self.path)

    # ---- the kinds of errors

    def _add(self, type_: str, key: str, value: Any, detail: str) -> None:
        self.problems.append(FieldError(type_, self.where(key), value, detail))

    def invalid(self, key: str, value: Any, detail: str) -> None:
        self._add("FieldValueInvalid", key, value, detail)

    def required(self, key: str, detail: str = "") -> None:
        self._add("FieldValueRequired", key, None, detail)

    def forbidden(self, key: str, detail: str) -> None:
        self._add("FieldValueForbidden", key, None, detail)

    def duplicate(self, key: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueDuplicate", key, value, detail)

    def unsupported(self, key: str, value: Any, supported: Iterable[str]) -> None:
        listed = ", ".join(f'"{name}"' for name in supported)
        self._add("FieldValueNotSupported", key, value, f"supported values: {listed}")

    def not_found(self, key: str, value: Any, detail: str = "") -> None:
        self._add("FieldValueNotFound", key, value, detail)

    def too_long(self, key: str, most: int) -> None:
        self._add("FieldValueTooLong", key, None, f"may not be more than {most} bytes")

    def at_most(self, key: str, items: Any, most: int) -> None:
        if len(items) > most:
            self._add("FieldValueTooMany", key, len(items), f"must have at most {most} items")

    # ---- single values

    def needs(self, *keys: str, detail: str = "") -> None:
        """Check that texts are not empty."""
        for key in keys:
            if not self.text(key):
                self.required(key, detail)

    def one_of(self, key: str, supported: tuple[str, ...], *, required: bool = False) -> str:
        """Check a word; returns it."""
        value = self.document.get(key)
        if type(value) is not str:
            value = "" if value is None else self.text(key)
        if value and value not in supported:
            self.unsupported(key, value, supported)
        elif required and not value:
            self.required(key)
        return value

    def least(self, *keys: str, least: int = 0, words: str = NEGATIVE) -> int | None:
        """Check numbers that may be missing; returns the last."""
        value = None
        for key in keys:
            value = self.number(key)
            if value is not None and value < least:
                self.invalid(key, value, words)
        return value

    def named(self, key: str, rule: Rule, value: str) -> bool:
        """Check a name by one of the rules for names."""
        found = rule(value)
        for detail in found:
            self.invalid(key, value, detail)
        return not found

    def name(self, key: str, rule: Rule, *, required: bool = False) -> str:
        """Check a name that may be missing; returns it."""
        value = self.document.get(key)
        if type(value) is not str:
            value = "" if value is None else self.text(key)
        if value:
            self.named(key, rule, value)
        elif required:
            self.required(key)
        return value

    def name_of_one(self, seen: dict[str, None]) -> str:
        """Check a name that none of those `seen` before has; returns it."""
        name = self.text("name")
        if not name:
            self.required("name")
        elif self.named("name", label_errors, name) and name in seen:
            self.duplicate("name", name)
        seen[name] = None
        return name

    def once(self, seen: set[Any], key: str, value: Any, *, shown: Any = None, detail: str = "") -> None:
        """Check that none of those `seen` before has the value."""
        if value in seen:
            self.duplicate(key, value if shown is None else shown, detail)
        seen.add(value)

    def port(self, key: str, number: int) -> None:
        if not 0 < number < 65536:
            self.invalid(key, number, PORT)

    # ---- labels and selectors

    def labels(self, key: str) -> dict[str, str]:
        """Check a map of labels; returns it."""
        labels = fields.string_map(self.document, key, self.path)
        for name, value in labels.items():
            self.named(key, qualified_name_errors, name)
            self.named(key, label_value_errors, value)
        return labels

    def label_value(self, key: str, blamed: str = "") -> None:
        """Check a label's value, all that is wrong with it in one sentence."""
        value = self.text(key)
        if wrong := label_value_errors(value):
            self.invalid(blamed or key, value, ";".join(wrong))

    def selector(self, key: str) -> None:
        """Check a label selector that may be missing."""
        selector = self.at(key)
        selector.labels("matchLabels")
        for item in selector.each("matchExpressions"):
            item.requirement()

    def requirement(self, *, numbers: bool = False, any_value: bool = False) -> None:
        """Check one requirement of a selector."""
        operator, values = self.text("operator"), self.texts("values")
        if operator in ("In", "NotIn"):
            if not values:
                self.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                self.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif numbers and operator in ("Gt", "Lt"):
            if len(values) != 1:
                self.required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        else:
            self.invalid("operator", operator, "not a valid selector operator")
        self.named("key", qualified_name_errors, self.text("key"))
        for index, value in enumerate(() if any_value else values):
            self.named(f"values[{index}]", label_value_errors, value)

    def node_selector(self) -> None:
        """Check required node selector terms."""
        terms = self.each("nodeSelectorTerms")
        if not terms:
            self.required("nodeSelectorTerms", "must have at least one node selector term")
        for term in terms:
            term.node_selector_term()

    def node_selector_term(self, *, any_value: bool = False) -> None:
        for item in self.each("matchExpressions"):
            item.requirement(numbers=True, any_value=any_value)
        for item in self.each("matchFields"):
            operator, values = item.text("operator"), item.texts("values")
            if operator not in ("In", "NotIn"):
                item.invalid("operator", operator, "not a valid selector operator")
            elif len(values) != 1:
                words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                item.required("values", words)
            key = item.text("key")
            if key != "metadata.name":
                item.invalid("key", key, "not a valid field selector key")
                continue
            for index, value in enumerate(values):
                item.named(f"values[{index}]", subdomain_errors, value)

    def template_selector(self, labels: Mapping[str, str], whose: str, *, needed: bool = True) -> None:
        """Check that a workload's selector is one, and matches its template's labels."""
        selector = self.at("selector").document
        if not self.has("selector"):
            if needed:
                self.required("selector")
            return
        self.selector("selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            self.invalid("selector", dict(selector), f"empty selector is invalid for {whose}")
            return
        try:
            matches = label_selector_from(selector).matches(labels)
        except (SelectorError, InvalidObject):
            self.invalid("selector", dict(selector), "invalid label selector")
            return
        if not matches:
            words = "`selector` does not match template `labels`"
            self.invalid("template.metadata.labels", dict(labels), words)

    # ---- amounts

    def int_or_percent(self, key: str, *, bounded: bool = True) -> bool | None:
        """Check a number of pods or a percentage; returns whether it is other than 0, None where it is missing."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            if not _PERCENT.fullmatch(value):
                words = (
                    "a valid percent string must be a numeric string followed by an ending '%' "
                    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                )
                self.invalid(key, value, words)
                return False
            is_above = len(value) > 12 or int(value[:-1]) > 100
            if bounded and is_above:
                self.invalid(key, value, "must not be greater than 100%")
            return is_above or int(value[:-1]) != 0
        if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
            raise InvalidObject(self.where(key), value, "must be a whole number of 32 bits or a percentage")
        if value < 0:
            self.invalid(key, value, NEGATIVE)
        return value != 0

    def amount(self, key: str, value: Any, written_at: str = "") -> Quantity:
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
        amount = quantity_at(value, written_at or self.where(key))
        if amount.sign() < 0:
            self.invalid(key, str(amount), NEGATIVE)
        return amount
