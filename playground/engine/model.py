"""The formal model, asked about a scenario in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playground.engine.scenarios import RUN_TIMEOUT_S, ask_process
from scheduler_core.whatif.model import DEPARTURES
from scheduler_core.whatif.model_filters import PROPERTIES

MODEL_DEPARTURES: Final[Mapping[str, str]] = DEPARTURES
"""Where Kubernetes leaves the model on purpose: key -> sentence."""
MODEL_PROPERTIES: Final[tuple[str, ...]] = PROPERTIES
MOST_CYCLES_TOLD: Final = 2000
"""Cycles whose verdicts are kept: those first of which there is something to tell."""


def check_document(text: str | bytes, *, timeout_s: float = RUN_TIMEOUT_S) -> dict[str, Any]:
    """Check every cycle of a scenario.

    Returns
    -------
    dict
        `scheduler_core.whatif.model.ModelReport.document`, with ``nCycles``, and ``cycles`` cut to
        `MOST_CYCLES_TOLD`.

    Raises
    ------
    ScenarioProblem, RunStopped
    """
    document = text if isinstance(text, str) else text.decode("utf-8-sig")
    found: dict[str, Any] = ask_process({"document": document, "model": True}, timeout_s)["model"]
    cycles = found["cycles"]
    found["nCycles"] = len(cycles)
    if len(cycles) > MOST_CYCLES_TOLD:
        cycles.sort(key=lambda cycle: all(verdict["status"] == "holds" for verdict in cycle["verdicts"]))
        found["cycles"] = sorted(cycles[:MOST_CYCLES_TOLD], key=lambda cycle: cycle["cycle"])
    return found
