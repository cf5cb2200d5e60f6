"""A limit of processor time for what a request asks of the site's own processes: validations, patches."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class OverLimit(Exception):
    """What a piece of work of the site's own processes took is more than it may take; the words name the limit."""


_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


@contextmanager
def at_most(processor_s: float) -> Iterator[None]:
    """Hold what is done inside, in this thread, to so much processor time: `go_on` raises when it is used up."""
    token = _left.set([time.thread_time() + processor_s, processor_s])
    try:
        yield
    finally:
        _left.reset(token)


def go_on() -> None:
    """To be called at each step of what may take long.

    Raises
    ------
    OverLimit
    """
    left = _left.get()
    if left is not None and time.thread_time() > left[0]:
        raise OverLimit(f"takes more than the {left[1]:g} s of processor time that it may take")
