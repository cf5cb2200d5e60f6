"""Seeded faults: an API server that is slow or refuses, and a watch that loses events.

Faults stand between the scheduler and the world, on the same port as everything else, so whatever they do is
something a real cluster could do too. The same seed brings the same faults.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.randomness import Randomness

SLOW_BIND, SLOW_EVICT, RELIST = "bind-answers", "evictions-answered", "watch-lists-again"
"""Timers."""

REFUSAL = "the API server is not answering"


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """How often what goes wrong; all off by default.

    Attributes
    ----------
    slow_binds_percent : int
        Bindings that take `slow_bind_ms`.
    failed_binds_percent : int
        Bindings that are refused (slow ones included).
    slow_evictions_percent : int
        Preemptions whose evictions are asked for `slow_eviction_ms` later: the preemptor is held meanwhile.
    failed_evictions_percent : int
        Preemptions whose evictions are refused.
    lost_events_percent : int
        Changes of assigned pods the scheduler is not told of until its watch lists again, `relist_ms` later.
    """

    slow_binds_percent: int = 0
    slow_bind_ms: int = 2_000
    failed_binds_percent: int = 0
    slow_evictions_percent: int = 0
    slow_eviction_ms: int = 2_000
    failed_evictions_percent: int = 0
    lost_events_percent: int = 0
    relist_ms: int = 60_000

    @property
    def any(self) -> bool:
        return bool(
            self.slow_binds_percent
            or self.failed_binds_percent
            or self.slow_evictions_percent
            or self.failed_evictions_percent
            or self.lost_events_percent
        )


class Faults:
    """Draws what goes wrong next."""

    def __init__(self, options: FaultOptions, randomness: Randomness) -> None:
        self.options = options
        self._randomness = randomness

    def bind(self) -> tuple[int, str | None]:
        """How long the next binding takes in nanoseconds, and why it is refused (None when it is not)."""
        delay_ns = self.options.slow_bind_ms * 1_000_000 if self._hits(self.options.slow_binds_percent) else 0
        return delay_ns, REFUSAL if self._hits(self.options.failed_binds_percent) else None

    def evict(self) -> tuple[int, str | None]:
        """How long the next preemption's evictions take in nanoseconds, and why they are refused, if they are."""
        slow = self._hits(self.options.slow_evictions_percent)
        delay_ns = self.options.slow_eviction_ms * 1_000_000 if slow else 0
        return delay_ns, REFUSAL if self._hits(self.options.failed_evictions_percent) else None

    def loses_event(self) -> bool:
        """Whether the next change of an assigned pod is lost on its way to the scheduler."""
        return self._hits(self.options.lost_events_percent)

    def _hits(self, percent: int) -> bool:
        return percent > 0 and self._randomness.stream("faults").below(100) < percent
