"""The real simulator: scheduler_core's simulation behind the port, and the translation to log entries."""

from functools import lru_cache

from playground.engine.core_simulator import CoreSimulator
from playground.engine.ports import Simulator


@lru_cache(maxsize=1)
def default_simulator() -> Simulator:
    """The one simulator of this process."""
    return CoreSimulator()
