"""How long a call of a plugin from outside the tree may take, and how one that takes longer is stopped.

A call is stopped by timers of the operating system: one of processor time, so that a busy machine fails no cycle, and
one of time that passes, for a plugin that waits. They work in a process' main thread, where workers and the command
line run cycles; elsewhere, and where a plugin swallows what stops it, it is known when the call returns.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.clock import measure_cpu_ns, measure_ns

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
    """The timers, for the outermost call.

    Setting them for each call would cost more than most calls do. They are set once and left running: one that goes
    off looks at the call of that moment, which has had its time, or is given what it has left; where there is none,
    the timers end. Where a real timer of someone else's runs, ours is taken away again after each call.
    """

    def __init__(self) -> None:
        self._is_running = False
        self._began_cpu_ns = self._began_ns = 0
        self._budget_ns = 0
        self._due_ns = 0
        self._before: Any = None
        self._other: tuple[float, float, int] | None = None
        atexit.register(self._take_away)
        # A child has the handlers, and none of the timers.
        os.register_at_fork(after_in_child=self._forget)

    def call(self, budget_ns: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if self._is_running:
            return function(*args)
        try:
            signal.signal(signal.SIGPROF, self._stop)
        except ValueError:  # another thread than the main one has no signals
            return function(*args)
        self._began_ns = measure_ns()
        if self._began_ns >= self._due_ns or budget_ns != self._budget_ns:
            self._set(budget_ns)
        self._began_cpu_ns = measure_cpu_ns()
        self._is_running = True
        try:
            return function(*args)
        finally:
            self._is_running = False
            if self._other is not None:
                self._take_away()

    def _set(self, budget_ns: int) -> None:
        seconds = budget_ns / 1e9
        waiting = seconds * WAITING_FACTOR
        if signal.getsignal(signal.SIGALRM) != self._stop:
            self._before = signal.signal(signal.SIGALRM, self._stop)
            left, interval = signal.getitimer(signal.ITIMER_REAL)
            self._other = (left, interval, self._began_ns) if left else None
        # They go off again and again: a plugin may swallow it once.
        signal.setitimer(signal.ITIMER_REAL, waiting, 1.0)
        signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
        self._budget_ns, self._due_ns = budget_ns, self._began_ns + budget_ns * WAITING_FACTOR

    def _stop(self, number: int, frame: Any) -> None:
        if not self._is_running:
            self._take_away()
            return
        cpu_left = self._budget_ns - (measure_cpu_ns() - self._began_cpu_ns)
        left = self._budget_ns * WAITING_FACTOR - (measure_ns() - self._began_ns)
        if cpu_left <= 0 or left <= 0:
            seconds = self._budget_ns / 1e9
            waiting = seconds * WAITING_FACTOR
            raise TookTooLong(f"took more than {seconds:g} s of the processor, or {waiting:g} s in all")
        timer, left = (
            (signal.ITIMER_PROF, cpu_left) if number == signal.SIGPROF else (signal.ITIMER_REAL, left)
        )
        signal.setitimer(timer, max(left / 1e9, 0.001), 1.0)

    def _take_away(self) -> None:
        if not self._due_ns:
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        if signal.getsignal(signal.SIGALRM) == self._stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
            # A signal may still be under way, and what the system does by default is to end the process.
            if self._before not in (None, signal.SIG_DFL):
                signal.signal(signal.SIGALRM, self._before)
            if self._other is not None:
                # The other timer goes on, by what has passed.
                left, interval, since_ns = self._other
                passed = (measure_ns() - since_ns) / 1e9
                signal.setitimer(signal.ITIMER_REAL, max(left - passed, 0.001), interval)
        self._other, self._due_ns = None, 0

    def _forget(self) -> None:
        self._due_ns = 0


_ALARM = _Alarm()
_default: Limit = Limit(measure_cpu_ns, int(DEFAULT_SECONDS * 1e9), stops=True)


def limit_plugins(seconds: float) -> None:
    """What a call may take in this process from now on, where nothing else is said; 0 for any time."""
    global _default
    _default = Limit(measure_cpu_ns, int(seconds * 1e9), stops=True)


def default_limit() -> Limit:
    """What a call may take where nothing else is said."""
    return _default
