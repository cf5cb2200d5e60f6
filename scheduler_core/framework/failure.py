"""A plugin that fails ends its cycle under its name, never the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from scheduler_core.framework.interface import FilterPlugin, Plugin
from scheduler_core.framework.status import words_of

P = ParamSpec("P")
R = TypeVar("R")


class PluginFailure(Exception):
    """A plugin raised, or returned a status it must not return: the cycle ends in this error.

    Attributes
    ----------
    plugin, point : str
        Whose, and at which extension point.
    said : str
        What it raised, without plugin and place.
    """

    def __init__(self, plugin: str, point: str, message: str, said: str = "") -> None:
        self.plugin = plugin
        self.point = point
        self.said = said or message
        super().__init__(message)


def guarded(plugin: Plugin, point: str, method: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a plugin; what it raises ends the cycle under its name, never the process."""
    try:
        return method(*args, **kwargs)
    except PluginFailure:
        raise
    except Exception as error:
        raise failure_of(plugin, point, error) from error


def failure_of(plugin: Plugin, point: str, error: BaseException) -> PluginFailure:
    """What a plugin raised, under its name."""
    said = words_of(error)
    return PluginFailure(plugin.name, point, f'running {point} plugin "{plugin.name}": {said}', said)


def invalid_score(plugin: Plugin, score: int) -> PluginFailure:
    """Upstream's words for a score out of range."""
    return PluginFailure(
        plugin.name,
        "NormalizeScore",
        f'plugin "{plugin.name}" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing",
    )


def filter_failure(error: Exception) -> PluginFailure:
    """Name the plugin whose frame raised, as far as the traceback tells."""
    name = "Filter"
    trace = error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if isinstance(owner, FilterPlugin):
            name = owner.name
            break
        trace = trace.tb_next
    return PluginFailure(name, "Filter", f'running "{name}" filter plugin: {words_of(error)}')
