"""Which Kubernetes this emulates, and which engine did it."""

from typing import Final

import scheduler_core

EMULATES: Final = "v1.34.1"


def engine_version() -> str:
    """Version of scheduler_core; written beside every decision."""
    return str(getattr(scheduler_core, "__version__", "0"))
