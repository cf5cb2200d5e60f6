"""Controllers of the simulated cluster, in the order they are run.

A controller is told every change (`noticed`), remembers which of its objects to look at, and brings those in order
when the simulation calls `sync`: nothing else has happened in between, so it sees a settled world.
"""

from __future__ import annotations

from scheduler_core.sim.controllers.base import Controller

CONTROLLERS: tuple[type[Controller], ...] = ()

__all__ = ["CONTROLLERS", "Controller"]
