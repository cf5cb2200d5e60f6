"""A replay in one HTML file: it needs no server, loads nothing and sends nothing, and shows its digests proved.

The file holds two lines of text and a page that reads them: the scenario (`scenario.carried`, so any playground opens
the file) and the record of its run, zlib and base64url of JSON (`record.cycle_document`, `record.Boards`). The page
hashes both before it shows anything. Whatever a person wrote reaches the page through these lines and
`textContent`, and the head of the file through `html.escape`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.carried import MAX_LINK_CHARS, STANDALONE_MARK, carry
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.run import FULL_TRACES_UP_TO_NODES, run
from scheduler_core.scenario.standalone.record import Boards, Names, cycle_document
from scheduler_core.scenario.types import Scenario
from scheduler_core.sim.simulation import Simulation
from scheduler_core.version import ENGINE_VERSION

MAX_FILE_BYTES: Final = 5 * 2**20
MAX_RECORD_BYTES: Final = 48 * 2**20
"""Of the record unpacked: what a phone can hold."""


class TooLargeForOneFile(ValueError):
    """The replay does not fit the bounds of a file; the message has the sizes and says what to do."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """A file, and the run that is in it."""

    html: str
    run: ScenarioRun


def standalone(
    scenario: Scenario,
    *,
    note: str = "",
    opens_at: int | None = None,
    address: str = "",
    max_bytes: int = MAX_FILE_BYTES,
    bounds: RunBounds | None = None,
) -> Standalone:
    """Run a scenario and put the replay into one file.

    Parameters
    ----------
    note
        What its author says of it.
    opens_at
        The cycle it opens at; None for the last one.
    address
        Of a playground that opens it (``https://host``); empty where none is known.
    max_bytes
        Of the file.

    Raises
    ------
    ScenarioError
        A step cannot be done.
    TooLargeForOneFile
    """
    names = Names()
    boards = Boards(names)
    n_nodes = sum(manifest.get("kind") == "Node" for manifest in scenario.objects)

    def begin(simulation: Simulation) -> None:
        if n_nodes > FULL_TRACES_UP_TO_NODES and simulation.scheduler.cycle == 0:
            # Of a large cluster every verdict is kept where a pod found no node.
            simulation.keep_full_traces(False, unplaced=True)

    result = run(scenario, before_cycle=begin, after_cycle=boards.look, bounds=bounds)
    record = json.dumps(
        _record(scenario, result, boards, names, note, opens_at),
        separators=(",", ":"), ensure_ascii=False, allow_nan=False,
    ).encode()  # fmt: skip
    if len(record) > MAX_RECORD_BYTES:
        raise TooLargeForOneFile(_too_large(result, len(record), MAX_RECORD_BYTES, "unpacked"))
    whole = _page(result, record, carry(scenario, note=note, opens_at=opens_at), address)
    size = len(whole.encode())
    if size > max_bytes:
        raise TooLargeForOneFile(_too_large(result, size, max_bytes, "as a file"))
    return Standalone(whole, result)


def _too_large(result: ScenarioRun, size: int, limit: int, form: str) -> str:
    return (
        f"this replay of {len(result.cycles):,} cycles has {size:,} bytes {form}, and {limit:,} are"
        " the most: share the scenario itself (YAML), or an earlier cycle of the cluster"
    )


def _record(
    scenario: Scenario, result: ScenarioRun, boards: Boards, names: Names, note: str, opens_at: int | None
) -> dict[str, Any]:
    cycles = [cycle_document(trace, scenario.start_ns, names) for trace in result.cycles]
    return {
        "version": 1,
        "title": scenario.title or scenario.name or "Scenario",
        "lesson": scenario.lesson,
        "note": note,
        "opensAt": opens_at,
        "digest": scenario_digest(scenario),
        "decisionsDigest": result.digest,
        "emulates": scenario.release.patch,
        "engine": ENGINE_VERSION,
        "seed": scenario.seed,
        "stop": result.stop,
        "figures": result.metrics(),
        "findings": [asdict(finding) for finding in result.findings],
        "notes": list(result.notes),
        "path": [{"cycle": stop.cycle, "text": stop.text} for stop in scenario.path],
        "boards": boards.changes,
        "cycles": cycles,
        "names": names.all,
    }


def _page(result: ScenarioRun, record: bytes, line: str, address: str) -> str:
    """The file. Scripts and styles are allowed by their digests, and nothing else is: no request leaves the page."""
    folder = files("scheduler_core.scenario.standalone") / "page"
    style, script = (
        (folder / "standalone.css").read_text("utf-8"),
        (folder / "carried.js").read_text("utf-8") + (folder / "standalone.js").read_text("utf-8"),
    )
    policy = "; ".join(
        (
            "default-src 'none'", f"script-src '{_hash(script)}'", f"style-src '{_hash(style)}'",
            "img-src data:", "base-uri 'none'", "form-action 'none'",
        )
    )  # fmt: skip
    scenario = result.scenario
    title = scenario.title or scenario.name or "Scenario"
    link = f"{address.rstrip('/')}/open/#{line}" if address and len(line) <= MAX_LINK_CHARS else ""
    values = {
        "MARK": STANDALONE_MARK,
        "POLICY": policy,
        "TITLE": html.escape(title),
        "STYLE": style,
        "SCRIPT": script,
        "SCENARIO": line,
        "RECORD": base64.urlsafe_b64encode(zlib.compress(record, 9)).decode().rstrip("="),
        "SHA256": hashlib.sha256(record).hexdigest(),
        "DIGEST": line.split(".")[1],
        "EMULATES": html.escape(scenario.release.patch),
        "ENGINE": html.escape(ENGINE_VERSION),
        "OPEN": html.escape(link, quote=True),
        "DECISIONS": "\n".join(
            f"<li>{html.escape(trace.sentence)}</li>" for trace in result.cycles[:NO_SCRIPT_CYCLES]
        ),
        "MORE": f"<p>and {len(result.cycles) - NO_SCRIPT_CYCLES:,} more</p>"
        if len(result.cycles) > NO_SCRIPT_CYCLES
        else "",
    }
    page = (folder / "standalone.html").read_text("utf-8")
    # One pass: what a person wrote is never looked through for places to fill.
    return re.sub(r"\{\{([A-Z0-9]+)\}\}", lambda place: values[place[1]], page)


NO_SCRIPT_CYCLES: Final = 500
"""Decisions that are listed for a reader without script."""


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
