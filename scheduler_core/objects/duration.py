"""Durations as Go writes them (`1h15m30.5s`, `100ms`, `-2s`), and as people do: days and plain seconds, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DAY_NS = 24 * _UNIT_NS["h"]
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d)")
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


@lru_cache(maxsize=1024)
def parse_duration_ns(text: str) -> int:
    """Read a duration.

    Source: Go's time.ParseDuration

    Raises
    ------
    ValueError
        The text is not a duration, or does not fit 64 bits.
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total_ns = _total_ns(rest, _UNIT_NS)
    if total_ns is None or total_ns > 2**63 - (sign > 0):
        raise ValueError(f'time: invalid duration "{text}"')
    return sign * total_ns


@lru_cache(maxsize=4096)
def duration_ns(text: str) -> int:
    """Read a duration as people write it: `90s`, `1m30s`, `1.5h`, `2d`, or plain seconds.

    Raises
    ------
    ValueError
        The text is not one.

    Examples
    --------
    >>> duration_ns("1m30s") == 90 * 10**9, duration_ns("2.5") == 25 * 10**8
    (True, True)
    """
    text = text.strip()
    total_ns = _total_ns(f"{text}s" if _PLAIN.fullmatch(text) else text, {**_UNIT_NS, "d": _DAY_NS})
    if total_ns is None:
        raise ValueError(f'"{text}" is not a duration like 30s, 5m or 1h30m')
    return total_ns


def _total_ns(text: str, units: Mapping[str, int]) -> int | None:
    """The sum of numbers with units; None for any other text."""
    total_ns, position = 0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or not (part[1] or part[2]) or part[3] not in units:
            return None
        fraction = part[2] or ""
        unit_ns = units[part[3]]
        total_ns += int(part[1] or "0") * unit_ns + int(fraction or "0") * unit_ns // 10 ** len(fraction)
        position = part.end()
    return total_ns if text else None


def format_duration(duration_ns: int) -> str:
    """Write a duration.

    Source: Go's time.Duration.String

    >>> [format_duration(ns) for ns in (0, 100_000_000, 90_000_000_000, 1_500)]
    ['0s', '100ms', '1m30s', '1.5µs']
    """
    if duration_ns == 0:
        return "0s"
    sign, rest_ns = ("-", -duration_ns) if duration_ns < 0 else ("", duration_ns)
    if rest_ns < 1_000_000_000:
        unit, unit_ns = next(
            (unit, size) for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if rest_ns >= size
        )
        return f"{sign}{_decimal(rest_ns, unit_ns)}{unit}"
    minutes, seconds_ns = divmod(rest_ns, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds_ns, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).rjust(len(str(unit)) - 1, '0').rstrip('0')}"
