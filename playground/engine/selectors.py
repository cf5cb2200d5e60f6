"""Label selectors, for services that must know whether one covers a pod."""

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.labels import SelectorError, label_selector_from


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector document matches; an absent one matches nothing, a broken one too."""
    if selector is None:
        return False
    try:
        return bool(label_selector_from(selector).matches(dict(labels)))
    except SelectorError:
        return False
