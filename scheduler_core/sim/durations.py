"""Durations as people write them: `90s`, `1m30s`, `1.5h`, or plain seconds."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h|d)")


@lru_cache(maxsize=4096)
def duration_ns(text: str) -> int:
    """Nanoseconds of a duration.

    Raises
    ------
    ValueError
        When the text is not one.

    Examples
    --------
    >>> duration_ns("1m30s") == 90 * 10**9, duration_ns("2.5") == 25 * 10**8
    (True, True)
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return int((int(text) if text.isdigit() else Fraction(text)) * 10**9)
    total: Fraction | int = 0
    position = 0
    for part in _PART.finditer(text):
        if part.start() != position:
            break
        number = part[1].removesuffix(".")
        total += (int(number) if number.isdigit() else Fraction(number)) * _UNITS_NS[part[2]]
        position = part.end()
    if not text or position != len(text):
        raise ValueError(f'"{text}" is not a duration like 30s, 5m or 1h30m')
    return int(total)
