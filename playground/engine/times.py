"""Virtual time at the edges: int nanoseconds inside, RFC 3339 outside."""

import time

from scheduler_core.objects.fields import format_seconds, format_time_ns, parse_time_ns

__all__ = ["format_seconds", "format_time_ns", "parse_time_ns", "wall_now_ns"]


def wall_now_ns() -> int:
    """The wall clock, whole seconds: where a new live cluster's virtual clock starts."""
    return time.time_ns() // 1_000_000_000 * 1_000_000_000
