"""What every controller is."""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.randomness import Randomness
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Noticed, World


class Controller:
    """Brings the world to what some objects ask for.

    Attributes
    ----------
    timer_names : tuple of str
        `Timer.what` of the timers it sets.
    """

    timer_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, world: World, timers: Timers, randomness: Randomness) -> None:
        self.world = world
        self.timers = timers
        self.randomness = randomness

    def noticed(self, change: Noticed) -> None:
        """An object changed; only remember what to look at."""

    def sync(self) -> bool:
        """Do what is to be done; True when anything was written."""
        return False

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        """One of our timers has come."""
