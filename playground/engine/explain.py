"""Stored traces back into explanations."""

from typing import Any

from scheduler_core.framework.record import CycleTrace


def explain_trace(data: bytes, *, full: bool = False) -> dict[str, Any]:
    """The explanation of one cycle from its stored bytes.

    Parameters
    ----------
    data
        What `CycleRecord.trace` held.
    full
        With the reason matrix of every filter plugin and the amounts behind it.
    """
    document = CycleTrace.from_bytes(data).explain()
    if not full:
        document.pop("filterByPlugin", None)
        document.pop("amounts", None)
    return document
