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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

from scheduler_core.framework.record import CycleTrace
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY, PODS
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.carried import MAX_LINK_CHARS, STANDALONE_MARK, carry
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.run import FULL_TRACES_UP_TO_NODES
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

    result = run_scenario(scenario, before_cycle=begin, after_cycle=boards.look, bounds=bounds, timed=True)
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
        "timeline": _lanes(result, names),
        "names": names.all,
    }


def _lanes(result: ScenarioRun, names: Names) -> dict[str, Any]:
    """Lanes of pods, the longest waits first: a span is its state, from and until which millisecond, and the node."""
    found = result.timeline()
    whole = (found.from_ns, found.to_ns)
    lanes = sorted(found.pods, key=lambda lane: (-lane.waited_ns(*whole), lane.pod))

    def ms(at_ns: int) -> int:
        return (at_ns - found.from_ns) // MILLISECOND_NS

    spans = {
        lane.pod: [
            [span.state, ms(span.from_ns), ms(span.to_ns), names.place(span.node) if span.node else None]
            for span in lane.spans
        ]
        for lane in lanes[:MAX_LANES]
    }
    return {"toMs": ms(found.to_ns), "count": len(lanes), "lanes": spans}


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


MILLISECOND_NS: Final = 1_000_000
MAX_LANES: Final = 100
"""Pods whose lanes are drawn; the others are counted."""
LANE_PODS: Final = 30
"""Pods of a lane that are named; the others are counted."""
MAX_CANDIDATES: Final = 60
"""Candidates of a preemption that are shown; the others are counted."""
_ENDED: Final = ("Succeeded", "Failed")


class Names:
    """Node names as numbers, so that a cycle of many nodes stays short."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._place_of: dict[str, int] = {}

    def place(self, name: str) -> int:
        """The number of a name."""
        place = self._place_of.setdefault(name, len(self.all))
        if place == len(self.all):
            self.all.append(name)
        return place

    def places(self, names: Sequence[str]) -> list[int]:
        """The numbers of some names."""
        return [self.place(name) for name in names]


class Boards:
    """Looks at a simulation after each cycle, and tells what has changed since the last look."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._nodes: dict[str, list[Any]] = {}
        self._pods: dict[str, list[Any]] = {}
        self.changes: list[dict[str, Any]] = []

    def look(self, simulation: Simulation) -> None:
        """Keep what is different now.

        Each entry of `changes` has ``cycle``; ``nodes``: name -> [zone, millicores, bytes, pods, state] or None of
        one that is gone; ``pods``: key -> [node's number or -1, state, millicores, bytes, priority] or None; and
        ``queue``: lane -> [how many, the first of them].
        """
        queue = {lane: items for lane, items in simulation.queue_view().items() if items}
        held = {
            str(item["pod"]): item.get("node")
            for lane in ("permit", "binding")
            for item in queue.get(lane, ())
        }
        nodes = {stored.typed.name: _node(stored.typed) for stored in simulation.world.all("Node")}
        pods = {stored.typed.key: self._pod(stored.typed, held) for stored in simulation.world.all("Pod")}
        change: dict[str, Any] = {"cycle": simulation.scheduler.cycle}
        for word, now, before in (("nodes", nodes, self._nodes), ("pods", pods, self._pods)):
            found: dict[str, Any] = {key: value for key, value in now.items() if before.get(key) != value}
            found |= {key: None for key in before if key not in now}
            if found:
                change[word] = found
        change["queue"] = {
            lane: [len(items), [str(item["pod"]) for item in items[:LANE_PODS]]]
            for lane, items in queue.items()
        }
        self._nodes, self._pods = nodes, pods
        self.changes.append(change)

    def _pod(self, pod: Pod, held: Mapping[str, Any]) -> list[Any]:
        node, state = pod.node_name, "on"
        if pod.phase in _ENDED:
            state = "ended"
        elif node and pod.meta.deletion_ns is not None:
            state = "ends"
        elif not node and held.get(pod.key):
            node, state = str(held[pod.key]), "reserved"
        elif not node and pod.nominated_node_name:
            node, state = pod.nominated_node_name, "nominated"
        elif not node:
            state = "pending"
        place = self._names.place(node) if node else -1
        return [place, state, pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0), pod.priority]


def _node(node: Node) -> list[Any]:
    has = node.allocatable
    ready = dict(node.conditions).get("Ready", "True") == "True"
    state = "cordoned" if node.unschedulable else "" if ready else "not ready"
    zone = node.zone_key.rpartition("\0:")[2]
    return [zone, has.get(CPU, 0), has.get(MEMORY, 0), has.get(PODS, 0), state]


def cycle_document(trace: CycleTrace, start_ns: int, names: Names) -> dict[str, Any]:
    """One cycle, explained, with nodes as numbers."""
    said = trace.explain()
    document: dict[str, Any] = {
        "n": trace.number,
        "atMs": (trace.at_ns - start_ns) // 1_000_000,
        "pod": trace.pod,
        "priority": trace.priority,
        "attempt": trace.attempt,
        "profile": trace.profile,
        "outcome": trace.outcome,
        "node": trace.node,
        "nominated": trace.nominated_node,
        "headline": said["headline"],
        "message": trace.message,
        "error": trace.error,
        "victims": trace.victims,
        "digest": trace.digest,
        "nNodes": trace.n_nodes,
        "nEvaluated": trace.n_evaluated,
        "nFeasible": trace.n_feasible,
        "points": [[item["point"], item["state"], item["detail"]] for item in said["points"]],
        "permit": [_permit(item) for item in trace.permit],
        "extenders": [
            [call["url"], call["verb"], call["error"] or f"answered {call['status']}"]
            for call in trace.extenders
        ],
        "filter": _filter(said, names),
        "score": _score(said, names),
        "preemption": _preemption(said.get("preemption"), names),
    }
    if trace.tie is not None:
        document["tie"] = [trace.tie.count, trace.tie.stream]
    return {key: value for key, value in document.items() if value not in (None, "", [], {})}


def _permit(item: Mapping[str, Any]) -> list[str]:
    time = next((f"{item[key]:g} s" for key in ("timeoutS", "afterS") if item.get(key) is not None), "")
    reason = str(item.get("reason") or "")
    return [
        str(item.get("plugin") or ""),
        str(item.get("decision") or ""),
        ", ".join(filter(None, (time, reason))),
    ]


def _filter(said: Mapping[str, Any], names: Names) -> dict[str, Any] | None:
    """Nodes of one verdict together: ``[plugin, code, reasons, nodes, amounts]``, in the plugins' order."""
    verdicts: Mapping[str, Any] = said.get("filter") or {}
    if not verdicts:
        return None
    plugins: list[str] = list(said.get("filterPlugins") or ())
    amounts: Mapping[str, Any] = said.get("amounts") or {}
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    feasible = []
    for node, verdict in verdicts.items():
        if verdict is None:
            feasible.append(node)
        else:
            key = (
                verdict.get("plugin") or "",
                verdict.get("code") or "",
                tuple(verdict.get("reasons") or ()),
            )
            groups.setdefault(key, []).append(node)
    rank = {name: place for place, name in enumerate(plugins)}
    return {
        "plugins": plugins,
        "skipped": list(said.get("skippedFilter") or ()),
        "feasible": names.places(feasible),
        "groups": [
            [
                plugin,
                code,
                list(reasons),
                names.places(nodes),
                ["; ".join((amounts.get(plugin) or {}).get(node) or ()) for node in nodes],
            ]
            for (plugin, code, reasons), nodes in sorted(
                groups.items(), key=lambda item: (rank.get(item[0][0], len(rank)), item[0])
            )
        ],
        "also": {
            plugin: names.places(list(fails["fails"]))
            for plugin, fails in (said.get("filterByPlugin") or {}).items()
            if fails.get("fails")
        },
    }


def _score(said: Mapping[str, Any], names: Names) -> dict[str, Any] | None:
    """``rows``: [node, total, points of each plugin], best first."""
    totals: Mapping[str, int] = said.get("total") or {}
    scores: Mapping[str, Mapping[str, int]] = said.get("scores") or {}
    if not totals or not scores:
        return None
    weights = said.get("weights") or {}
    nodes = sorted(totals, key=lambda node: -totals[node])
    return {
        "plugins": [[plugin, weights.get(plugin, 1)] for plugin in scores],
        "rows": [
            [names.place(node), totals[node], [by_node.get(node, 0) for by_node in scores.values()]]
            for node in nodes
        ],
    }


def _preemption(said: Mapping[str, Any] | None, names: Names) -> dict[str, Any] | None:
    if not said:
        return None
    candidates = said.get("candidates") or ()
    return {
        "why": said.get("ineligibleReason") or said.get("message") or "",
        "tried": said.get("nTried") or 0,
        "nCandidates": len(candidates),
        "chosen": said.get("nominatedNode") or "",
        "decidedBy": said.get("decidedBy") or "",
        "candidates": [
            [
                names.place(item["node"]),
                list(item.get("victims") or ()),
                int(item.get("numPDBViolations") or 0),
                item.get("eliminatedAt") or "",
            ]
            for item in candidates[:MAX_CANDIDATES]
        ],
    }
