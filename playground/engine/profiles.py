"""What a configuration amounts to: plugins per extension point, weights, arguments and extenders."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.errors import ConfigurationError
from scheduler_core.releases import release_from
from scheduler_core.sim.options import load

POINTS: Final = EXTENSION_POINTS
"""Extension points under their names in a configuration, in pipeline order."""


@dataclass(frozen=True, slots=True)
class ProfileOutline:
    """What one profile runs.

    Attributes
    ----------
    plugins
        Point -> plugins in the order they run.
    weights
        Of the score plugins.
    args
        Plugin -> its arguments by field.
    release
        The release of Kubernetes it runs in, as a document; None is the oldest.
    """

    scheduler_name: str
    plugins: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]
    args: Mapping[str, Mapping[str, Any]]
    percentage_of_nodes_to_score: int | None
    release: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ExtenderOutline:
    """One extender: where, which verbs in the order they are called, and how it is treated."""

    url: str
    verbs: tuple[str, ...]
    weight: int
    timeout_s: float
    ignorable: bool
    managed_resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationOutline:
    """A whole configuration."""

    profiles: tuple[ProfileOutline, ...]
    extenders: tuple[ExtenderOutline, ...]


def outline(
    document: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> ConfigurationOutline:
    """Load a configuration that is known to be usable (None = the default one) in a release (None = the oldest).

    Raises
    ------
    ConfigurationError
        It is not usable; `check_configuration` says where.
    """
    loaded: LoadedConfiguration = load(document, release=release_from(release))
    profiles = tuple(
        ProfileOutline(
            plan.scheduler_name,
            dict(plan.plugins),
            dict(plan.weights),
            {name: _fields(args) for name, args in plan.args.items()},
            plan.percentage_of_nodes_to_score,
            release,
        )
        for plan in loaded.plans
    )
    extenders = tuple(
        ExtenderOutline(
            extender.url_prefix,
            tuple(
                verb
                for verb, path in (
                    ("filter", extender.filter_verb),
                    ("prioritize", extender.prioritize_verb),
                    ("preempt", extender.preempt_verb),
                    ("bind", extender.bind_verb),
                )
                if path
            ),
            extender.weight,
            extender.http_timeout_ns / 1e9,
            extender.ignorable,
            tuple(resource.name for resource in extender.managed_resources),
        )
        for extender in loaded.configuration.extenders
    )
    return ConfigurationOutline(profiles, extenders)


def outline_and_problem(
    document: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> tuple[ConfigurationOutline, str]:
    """The same, and why it cannot be used any more (a plugin it names was uninstalled): then of the default one."""
    try:
        return outline(document, release), ""
    except ConfigurationError as error:
        return outline(None, release), str(error)


def _fields(args: Any) -> Mapping[str, Any]:
    if isinstance(args, Mapping):
        return dict(args)
    return dataclasses.asdict(args) if dataclasses.is_dataclass(args) and not isinstance(args, type) else {}
