"""A plugin that fails ends its cycle under its name, never the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from scheduler_core.framework.interface import FilterPlugin, Plugin

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


LONGEST_TEXT: Final = 10_000
"""Characters a text of a plugin's may have."""


def text_problem(text: Any) -> str | None:
    r"""What keeps a plugin's text from being written down; None for one that can be.

    Examples
    --------
    >>> text_problem("node(s) were full"), text_problem(7), text_problem("a\0")
    (None, 'int, not a text', 'a text with a NUL character')
    """
    if not isinstance(text, str):
        return f"{type(text).__name__}, not a text"
    if len(text) > LONGEST_TEXT:
        return f"a text of {len(text)} characters, it may have {LONGEST_TEXT}"
    if "\0" in text:
        return "a text with a NUL character"
    return None if text == plain(text) else "a text with half of a surrogate pair"


def plain(text: str) -> str:
    """As much of a text as can be written down: no database takes NULs, no file halves of surrogate pairs."""
    return text[:LONGEST_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def words_of(error: BaseException) -> str:
    """What was raised; an exception of a plugin's own may not even say what it is."""
    try:
        return plain(f"{type(error).__name__}: {error}")
    except Exception:
        return plain(f"{type(error).__name__} (which cannot say more)")


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
