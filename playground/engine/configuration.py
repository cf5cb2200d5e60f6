"""KubeSchedulerConfiguration documents and Policy files: is this one usable?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.config.policy import POLICY_KIND
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.errors import ConfigurationError
from scheduler_core.sim.simulation import load


@dataclass(frozen=True, slots=True)
class ConfigurationItem:
    """One thing wrong with a configuration."""

    field: str
    value: object
    message: str


class ConfigurationProblem(ValueError):
    """A configuration that cannot be used; `items` are in the order they were found."""

    def __init__(self, message: str, items: tuple[ConfigurationItem, ...] = ()) -> None:
        super().__init__(message)
        self.items = items


def is_policy(document: Mapping[str, Any] | None) -> bool:
    """Whether it is a legacy Policy file, which a scheduler translates before it starts."""
    return document is not None and document.get("kind") == POLICY_KIND


def check_configuration(document: Mapping[str, Any]) -> None:
    """Load a document to see whether the scheduler would start with it.

    Raises
    ------
    ConfigurationProblem
        With every field at fault.
    """
    if not is_policy(document):
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            if document.get(key) not in (wanted, None):
                item = ConfigurationItem(key, document.get(key), f"must be {wanted}")
                raise ConfigurationProblem(f"{key}: {item.message}", (item,))
    try:
        load(document)
    except ConfigurationError as error:
        items = tuple(ConfigurationItem(item.field, item.value, item.detail) for item in error.errors)
        raise ConfigurationProblem(str(error), items) from None
