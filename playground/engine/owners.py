"""Owners and finalizers as the engine's garbage collector takes them, and who owns whom among manifests."""

from scheduler_core.objects.meta import finalizers_of, generations, uid_of
from scheduler_core.sim.controllers.garbage_collector import FOREGROUND
from scheduler_core.sim.controllers.garbage_collector import KINDS as WAITING_KINDS

__all__ = [
    "FOREGROUND",
    "WAITING_KINDS",
    "finalizers_of",
    "generations",
    "uid_of",
]
