"""Label selectors, for services that must know whether one covers a pod."""

from collections.abc import Callable, Mapping
from typing import Any

from scheduler_core.objects.labels import SelectorError, label_selector_from


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
