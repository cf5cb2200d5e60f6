"""The adapter: the only package that imports scheduler_core. Knows neither Django models nor Celery.

See README.md.
"""

from playground.engine.drive import Budget, CheckpointError, DriveResult, Engine, Goal, drive
from playground.engine.entries import CycleRecord, Entry, NewEntry
from playground.engine.version import engine_version

__all__ = [
    "Budget",
    "CheckpointError",
    "CycleRecord",
    "DriveResult",
    "Engine",
    "Entry",
    "Goal",
    "NewEntry",
    "drive",
    "engine_version",
]
