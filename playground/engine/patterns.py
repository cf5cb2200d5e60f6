"""Regular expressions of users: the time they take grows with the text alone, whatever the pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

_LONGEST: Final = 4096


@lru_cache(maxsize=1)
def _program() -> Any:
    # Imported where a pattern is first asked for: it brings a command line of its own, which takes each start a while.
    import cel

    return cel.compile("text.matches(pattern)")


def is_pattern(pattern: str) -> bool:
    """Whether a pattern can be read (syntax of RE2)."""
    return _found(pattern, "") is not None


def matches(pattern: str, text: str) -> bool:
    """Whether a text holds a match; a pattern that cannot be read matches all."""
    return _found(pattern, text) is not False


def _found(pattern: str, text: str) -> bool | None:
    if len(pattern) > _LONGEST:
        return None
    try:
        return bool(_program().execute({"text": text, "pattern": pattern}))
    except (RuntimeError, ValueError):
        return None
