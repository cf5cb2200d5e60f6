"""Shares that leave the site whole: a link that carries the scenario, and a replay in one file."""

from __future__ import annotations

from typing import Any, Final

from playground.clusters.errors import Conflict, TooLarge
from playground.engine.carrying import MAX_LINK_CHARS, line_of, saved_replay
from playground.engine.scenarios import RunStopped, ScenarioProblem
from playground.scenarios.models import Scenario
from playground.scenarios.services.errands import through_a_worker
from playground.scenarios.services.shares import as_error

MOST_LINK_BYTES: Final = 256 * 1024
"""Documents above are not tried: reading them takes longer than a page may."""
MOST_FILE_PODS: Final = 2000
MOST_FILE_NODES: Final = 1000
MOST_FILE_CYCLES: Final = 5000


def carried_line(*, scenario: Scenario) -> str:
    """What follows the `#` of a link that carries the share, its note and its moment.

    Raises
    ------
    TooLarge
    """
    size = scenario.n_bytes
    said = f"; links carry at most {MAX_LINK_CHARS:,}: pass on the file instead"
    if size > MOST_LINK_BYTES:
        raise TooLarge(f"the scenario has {size:,} bytes{said} characters")
    line = line_of(bytes(scenario.document), note=scenario.note, opens_at=scenario.opens_at)
    if len(line) > MAX_LINK_CHARS:
        raise TooLarge(f"packed the scenario has {len(line):,} characters{said}")
    return line


def standalone_file(*, scenario: Scenario, owner: Any = None, address: str = "") -> str:
    """The share's replay as one HTML file. A worker runs it anew, and it must decide as it was recorded.

    Parameters
    ----------
    owner
        Whose turn it takes.
    address
        Of this site, where the file is opened as a share again.

    Raises
    ------
    Conflict
        It has not been run yet, is decided otherwise today, or no worker had time for it.
    TooLarge
    """
    what = {"kind": "Scenario", "name": scenario.public_id}
    if scenario.state != Scenario.State.RECORDED:
        raise Conflict("it has not been run yet, so there is no replay to save", **what)
    over = [
        f"{number:,} {noun} (at most {most:,})"
        for number, most, noun in (
            (scenario.n_nodes, MOST_FILE_NODES, "nodes"),
            (scenario.n_pods, MOST_FILE_PODS, "pods"),
            (scenario.n_cycles, MOST_FILE_CYCLES, "cycles"),
        )
        if number > most
    ]
    if over:
        raise TooLarge(
            f"the replay is too large for a file: it has {', '.join(over)}; pass on the scenario instead"
        )
    try:
        page, digest, too_large = saved_replay(
            bytes(scenario.document),
            note=scenario.note,
            opens_at=scenario.opens_at,
            address=address,
            ask=through_a_worker(owner=owner),
        )
    except ScenarioProblem as problem:
        raise as_error(problem) from None
    except RunStopped as stopped:
        raise Conflict(f"the file could not be made: {stopped}", **what) from None
    if too_large:
        raise TooLarge(too_large)
    if digest != scenario.decisions_digest:
        raise Conflict(
            "today's engine decides it otherwise than was recorded, so a file would not show this share;"
            " prove it again to see where",
            **what,
        )
    return page
