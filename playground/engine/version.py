"""Which engine this is."""

from scheduler_core import ENGINE_VERSION

__all__ = ["engine_version"]


def engine_version() -> str:
    """Version of scheduler_core; written beside every decision."""
    return ENGINE_VERSION
