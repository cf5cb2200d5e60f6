"""Scenarios that carry themselves: as a line in a link, and as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from playground.engine.scenarios import (
    RUN_TIMEOUT_S,
    AskProcess,
    ScenarioItem,
    ScenarioProblem,
    ask_process,
    load,
)
from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.carried import MAX_LINK_CHARS as MAX_LINK_CHARS
from scheduler_core.scenario.carried import CarriedError, carried_in, carry, check_words

MOST_UNPACKED: Final = 4
"""How many times the bytes of a document a line may unfold to: it holds the document twice, and words."""


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What a user handed in as a link, a line or a standalone file.

    Attributes
    ----------
    document
        The scenario as it was written, as JSON; its digest is the proved one.
    """

    document: bytes
    note: str
    opens_at: int | None


def unfolded(data: bytes, *, max_bytes: int) -> Unfolded | None:
    """What a link or a standalone file carries; None of any other document.

    Raises
    ------
    ScenarioProblem
        It was cut or changed, or is not a scenario.
    """
    try:
        carried = carried_in(data, max_bytes=MOST_UNPACKED * max_bytes)
        if carried is None:
            return None
        document = carried.text.encode()
        check_words(carried, scenario_digest(load(document)))
    except CarriedError as error:
        raise ScenarioProblem((ScenarioItem("", str(error)),)) from None
    return Unfolded(document, carried.note, carried.opens_at)


def line_of(text: bytes, *, note: str = "", opens_at: int | None = None) -> str:
    """The line of a document that is known to be a scenario."""
    return carry(load(text), note=note, opens_at=opens_at)


def saved_replay(
    text: bytes,
    *,
    note: str = "",
    opens_at: int | None = None,
    address: str = "",
    timeout_s: float = RUN_TIMEOUT_S,
    ask: AskProcess | None = None,
) -> tuple[str, str, str]:
    """Run a scenario in a process of its own and put the replay into one file (`scenario.standalone`).

    Returns
    -------
    html : str
        Empty where it is too large.
    decisions_digest : str
        Of this run.
    too_large : str
        Why there is no file.

    Raises
    ------
    ScenarioProblem, RunStopped
    """
    asked: dict[str, Any] = {"note": note, "opens_at": opens_at, "address": address}
    answer = (ask or ask_process)({"document": text.decode("utf-8-sig"), "standalone": asked}, timeout_s)
    return answer["html"], answer["decisionsDigest"], answer["tooLarge"]
