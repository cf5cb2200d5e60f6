"""What a core test leaves behind keeps its invariants."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import pytest

from scheduler_core.cluster.cache import Cache
from scheduler_core.queue.scheduling_queue import SchedulingQueue
from scheduler_core.sim.simulation import Simulation

_MADE: Final[deque[Any]] = deque(maxlen=12)
"""The last of each test: one that tries many examples makes thousands."""


def _remember(kind: type[Any]) -> None:
    made = kind.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _MADE.append(self)

    kind.__init__ = init


for kind in (Cache, SchedulingQueue, Simulation):
    _remember(kind)


@pytest.fixture(autouse=True)
def made_here() -> Iterator[deque[Any]]:
    """Caches, queues and simulations of this test, validated at its end."""
    _MADE.clear()
    yield _MADE
    for item in _MADE:
        item.validate()
    _MADE.clear()
