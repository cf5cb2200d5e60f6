"""How long a call of a plugin from outside the tree may take, and how one that takes longer is stopped.

A call is stopped by timers of the operating system: one of processor time, so that a busy machine fails no cycle, and
one of time that passes, for a plugin that waits. They work in a process' main thread, where workers and the command
line run cycles; elsewhere, and where a plugin swallows what stops it, it is known when the call returns.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.clock import measure_cpu_ns

DEFAULT_SECONDS: Final = 5.0
WAITING_FACTOR: Final = 12
"""A call may last so many times as long as it may take of the processor."""


class TookTooLong(BaseException):
    """A plugin's call was stopped; no `except Exception` of a plugin's keeps it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How long one call of a plugin may take.

    Attributes
    ----------
    measure_ns : callable
        Processor time so far, in nanoseconds.
    budget_ns : int
        What a call may take of it; 0 for any.
    stops : bool
        Whether a call that takes longer is stopped, not only told of when it returns.
    """

    measure_ns: Callable[[], int]
    budget_ns: int
    stops: bool = False

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function within the limit.

        Raises
        ------
        TookTooLong
        """
        if not self.budget_ns:
            return function(*args)
        began_ns = self.measure_ns()
        result = _ALARM.call(self.budget_ns, function, args) if self.stops else function(*args)
        took_ns = self.measure_ns() - began_ns
        if took_ns > self.budget_ns:
            raise TookTooLong(f"took {took_ns / 1e9:.2f} s, it may take {self.budget_ns / 1e9:g} s")
        return result


class _Alarm:
    """The timers, set for the outermost call."""

    def __init__(self) -> None:
        self._is_set = False
        self._said = ""

    def call(self, budget_ns: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if self._is_set:
            return function(*args)
        seconds = budget_ns / 1e9
        waiting = seconds * WAITING_FACTOR
        try:
            before = signal.signal(signal.SIGPROF, self._stop), signal.signal(signal.SIGALRM, self._stop)
        except ValueError:  # another thread than the main one has no signals
            return function(*args)
        self._said = f"took more than {seconds:g} s of the processor, or {waiting:g} s in all"
        # It goes off again and again: a plugin may swallow it once.
        other = signal.setitimer(signal.ITIMER_REAL, waiting, 1.0)
        try:
            self._is_set = True
            signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
            return function(*args)
        finally:
            self._is_set = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
            signal.signal(signal.SIGPROF, before[0])
            signal.signal(signal.SIGALRM, before[1])
            if other[0]:
                # Somebody else's timer goes on, by what has passed.
                signal.setitimer(signal.ITIMER_REAL, max(other[0] - (waiting - left), 0.001), other[1])

    def _stop(self, number: int, frame: Any) -> None:
        if self._is_set:
            raise TookTooLong(self._said)


_ALARM = _Alarm()
_default: Limit = Limit(measure_cpu_ns, int(DEFAULT_SECONDS * 1e9), stops=True)


def limit_plugins(seconds: float) -> None:
    """What a call may take in this process from now on, where nothing else is said; 0 for any time."""
    global _default
    _default = Limit(measure_cpu_ns, int(seconds * 1e9), stops=True)


def default_limit() -> Limit:
    """What a call may take where nothing else is said."""
    return _default
