"""Owners and finalizers as the engine's garbage collector takes them, and who owns whom among manifests."""

from scheduler_core.objects.finalizers import finalizers_of
from scheduler_core.objects.owners import generations, uid_of
from scheduler_core.sim.controllers.garbage_collector import FOREGROUND, OWNER_KINDS
from scheduler_core.sim.controllers.garbage_collector import KINDS as WAITING_KINDS
from scheduler_core.sim.world import ACTS as FOREGROUND_SINCE
from scheduler_core.sim.world import HOLDS_PODS as PODS_HELD_SINCE

__all__ = [
    "FOREGROUND",
    "FOREGROUND_SINCE",
    "PODS_HELD_SINCE",
    "WAITING_KINDS",
    "engine_collects",
    "finalizers_of",
    "generations",
    "uid_of",
]


def engine_collects(simulation: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kinds of owners whose dependents the engine sees to, and the kinds of these, besides pods."""
    if simulation >= FOREGROUND_SINCE:
        return WAITING_KINDS, WAITING_KINDS
    return OWNER_KINDS, ("ReplicaSet", "ControllerRevision")
