"""Label selectors: for services that must know whether one covers a pod, and those of queries."""

from collections.abc import Callable, Mapping
from typing import Any

from scheduler_core.objects.labels import (
    SelectorError,
    label_selector_from,
    parse_field_selector_text,
    parse_label_selector_text,
)

__all__ = ["SelectorError", "field_terms", "label_test", "matcher", "selector_matches"]


def matcher(selector: Mapping[str, Any] | None) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match a LabelSelector document; an absent one matches nothing, a broken one too."""
    try:
        parsed = None if selector is None else label_selector_from(selector)
    except SelectorError:
        parsed = None
    if parsed is None:
        return lambda labels: False
    return lambda labels: bool(parsed.matches(dict(labels)))


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """`matcher`, asked once."""
    return matcher(selector)(labels)


def label_test(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether labels match the text of a label selector, as clients send it in a query.

    Raises
    ------
    SelectorError
        In Kubernetes' words.
    """
    parsed = parse_label_selector_text(text)
    return lambda labels: bool(parsed.matches(dict(labels)))


def field_terms(text: str) -> list[tuple[str, bool, str]]:
    """The terms of a field selector: field, whether it is to be equal, value.

    Raises
    ------
    SelectorError
        In Kubernetes' words.
    """
    terms = parse_field_selector_text(text).requirements
    return [(term.field, not term.negated, term.value) for term in terms]
