"""Which Kubernetes this emulates, and which engine did it."""

from scheduler_core import EMULATES, ENGINE_VERSION

__all__ = ["EMULATES", "engine_version"]


def engine_version() -> str:
    """Version of scheduler_core; written beside every decision."""
    return ENGINE_VERSION
