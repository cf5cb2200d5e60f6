"""Virtual time at the edges: int nanoseconds inside, RFC 3339 outside."""

import time

from scheduler_core.objects.fields import format_time_ns, parse_time_ns

__all__ = ["format_seconds", "format_time_ns", "parse_time_ns", "wall_now_ns"]


def format_seconds(at_ns: int) -> str:
    """RFC 3339 in UTC without a fraction, as metadata.creationTimestamp is written."""
    return format_time_ns(at_ns - at_ns % 1_000_000_000)


def wall_now_ns() -> int:
    """The wall clock, whole seconds: where a new live cluster's virtual clock starts."""
    return time.time_ns() // 1_000_000_000 * 1_000_000_000
