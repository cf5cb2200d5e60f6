"""Virtual time, in nanoseconds since the Unix epoch. Nothing else in this package may ask what time it is."""

from __future__ import annotations

import time

SECOND_NS = 1_000_000_000


class Clock:
    """The cluster's clock: it is set from outside and never moves backwards."""

    __slots__ = ("now_ns",)

    def __init__(self, start_ns: int) -> None:
        self.now_ns = start_ns

    def move_to(self, at_ns: int) -> None:
        """Move forward to `at_ns`; an earlier moment changes nothing."""
        self.now_ns = max(self.now_ns, at_ns)


def measure_ns() -> int:
    """Real elapsed time for measuring how long something took; never for deciding anything."""
    return time.perf_counter_ns()


def measure_cpu_ns() -> int:
    """Processor time this process has used, for measuring on a machine that others use too; never for deciding."""
    return time.process_time_ns()
