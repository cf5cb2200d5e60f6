"""What is kept of a scheduling cycle: declared fields and arrays, and the words that are made of them when it is read.

A record has a summary, which is always kept, and a body (every verdict, score and candidate), which is kept when it
is asked for. As bytes it is `zlib(version byte, header length, JSON header, arrays)`: the header holds the declared
fields under their names, and each array's dtype and shape.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler_core.config.catalog import EXTENSION_POINTS
from scheduler_core.framework.amounts import unpacked
from scheduler_core.framework.status import Code
from scheduler_core.objects.fields import format_time_ns
from scheduler_core.releases import OLDEST, Release, release_from
from scheduler_core.version import ENGINE_VERSION

FORMAT_VERSION: Final = 2
COMPRESSION: Final = 3

BOUND, UNSCHEDULABLE, PREEMPTING, WAITING, ERROR = "bound", "unschedulable", "preempting", "waiting", "error"
BINDING, EXPIRED = "binding", "expired"
"""An extender said that it bound the pod, and its Binding is not heard of yet; or it came in no time."""

FEASIBLE = -1
"""In verdict columns: the node passes."""
UNSEEN = -2
"""In verdict columns: the node was not looked at."""

Arrays = dict[str, NDArray[Any]]


@dataclass(slots=True)
class Tie:
    """A draw among nodes with the best total.

    Attributes
    ----------
    count : int
        Nodes that tied; which ones, the body's `best` says.
    chosen : str
    stream : str
        The random stream it was drawn from.
    """

    count: int
    chosen: str
    stream: str


@dataclass(slots=True)
class Body:
    """Everything the plugins said.

    Attributes
    ----------
    nodes : list of str
        Names by place: all of the snapshot in evaluation order, then node objects out of extenders' answers.
    pre_filter : dict
        {plugin, code, reasons, nodeNames}.
    filter_plugins, score_plugins : list of str
        Of the profile, in order.
    skipped_filter, skipped_score : list of str
    weights : dict of str to int
    verdicts : list of [plugin or None, code, reasons]
        What the numbers in `verdict` and `matrix` stand for.
    scored_plugins : list of str
        Rows of `raw` and `scores`.
    matrix_plugins : list of str
        Rows of `matrix`.
    matrix_notes : dict of str to dict
        What a plugin's own PreFilter said.
    amounts : list of [plugin, sentences, number of lines]
        Of the array `amounts` (`framework.amounts`).
    domains : list of dict
        Rules that count pods by topology domain (`framework.domain_lanes`).
    nominated_passes : dict or None
        `framework.two_passes`.
    arrays : dict of str to ndarray
        ``verdict`` by place; ``feasible`` places; ``best`` bits by place, absent where no node was chosen;
        ``total``, ``raw``, ``scores`` aligned with ``feasible``; ``matrix`` of plugins by places; ``amounts``.
    """

    nodes: list[str]
    pre_filter: dict[str, Any]
    filter_plugins: list[str]
    score_plugins: list[str]
    skipped_filter: list[str]
    skipped_score: list[str]
    weights: dict[str, int]
    verdicts: list[list[Any]] = field(default_factory=list)
    scored_plugins: list[str] = field(default_factory=list)
    matrix_plugins: list[str] = field(default_factory=list)
    matrix_notes: dict[str, Any] = field(default_factory=dict)
    amounts: list[list[Any]] = field(default_factory=list)
    domains: list[dict[str, Any]] = field(default_factory=list)
    nominated_passes: dict[str, Any] | None = None
    arrays: Arrays = field(default_factory=dict)

    @property
    def best(self) -> list[str] | None:
        """Nodes with the best total in evaluation order; None where no node was chosen."""
        bits = self.arrays.get("best")
        if bits is None:
            return None
        return [
            self.nodes[place] for place in np.flatnonzero(np.unpackbits(bits, count=len(self.nodes))).tolist()
        ]

    def choose(self, best: Sequence[str] | None) -> None:
        """Keep the nodes with the best total as bits."""
        if best is None:
            self.arrays.pop("best", None)
            return
        wanted = set(best)
        self.arrays["best"] = np.packbits(np.array([name in wanted for name in self.nodes], np.bool_))


@dataclass(slots=True, kw_only=True)
class CycleTrace:
    """One scheduling cycle.

    Attributes
    ----------
    number : int
        From 1 on.
    at_ns : int
        Virtual time, nanoseconds since the Unix epoch.
    pod, uid : str
        `namespace/name`, and which of that name.
    outcome : str
        ``bound``, ``unschedulable``, ``preempting``, ``waiting`` (at Permit), ``binding`` (a bind extender said yes,
        and its Binding is not heard of yet), ``expired`` (it came in no time: no longer assumed) or ``error``.
    node : str or None
        The node chosen, also where it was given back later.
    message : str or None
        Kubernetes' own text of the FailedScheduling event.
    n_nodes, n_evaluated, n_feasible : int
    best_total : int or None
        None where no scores were needed.
    tie : Tie or None
    error : str or None
        What ended an attempt that is neither a success nor a rejection.
    fit_error : str or None
        `message` without PostFilter's part.
    failed_point, failed_plugin : str or None
        The extension point that ended the cycle, and the plugin where it is one.
    victims : list of str
        Pods evicted for this one.
    nominated_node : str or None
        Empty where a nomination is taken back.
    preemption : dict or None
        `preemption.trace.preemption_document`.
    extenders : list of dict
        Calls, as `ExtenderCall.explain` gives them.
    group : dict or None
        Of a member of a pod group, what its group's cycle was: {group, first, place, members, placed,
        scheduledBefore, status, message}; `first` is the number of the first member's cycle.
    permit : list of dict
        {plugin, decision, timeoutS | afterS, reason}, in order.
    awaited : dict or None
        Of a pod that a bind extender said it bound: ``{sinceNs, untilNs, node}``, the last two as soon as it is known
        how that ended; `node` is the one its Binding names, None where no Binding came.
    engine : str
        Version that decided.
    release : str
        The release of Kubernetes that was followed; records from before there was a choice are of the oldest.
    gates : dict of str to bool or None
        Feature gates (and changes) of the release that were switched.
    dry_run : bool
        It was only tried.
    body : Body or None
        None where only the summary is kept.
    """

    number: int
    at_ns: int
    pod: str
    uid: str
    profile: str
    attempt: int
    outcome: str
    node: str | None = None
    message: str | None = None
    n_nodes: int
    n_evaluated: int
    n_feasible: int
    priority: int = 0
    best_total: int | None = None
    tie: Tie | None = None
    error: str | None = None
    fit_error: str | None = None
    failed_point: str | None = None
    failed_plugin: str | None = None
    victims: list[str] = field(default_factory=list)
    nominated_node: str | None = None
    preemption: dict[str, Any] | None = None
    extenders: list[dict[str, Any]] = field(default_factory=list)
    permit: list[dict[str, Any]] = field(default_factory=list)
    awaited: dict[str, Any] | None = None
    engine: str = ENGINE_VERSION
    release: str = OLDEST.name
    gates: dict[str, bool] | None = None
    dry_run: bool = False
    group: dict[str, Any] | None = None
    body: Body | None = None

    @property
    def is_full(self) -> bool:
        """Whether the body is there."""
        return self.body is not None

    @property
    def followed(self) -> Release:
        """The release that was followed, its gates switched."""
        return release_from({"name": self.release, "switched": self.gates or {}})

    @property
    def n_victims(self) -> int:
        return len(self.victims)

    @property
    def n_tied(self) -> int:
        """Nodes that shared the best total; 0 without a tie."""
        return 0 if self.tie is None else self.tie.count

    @property
    def n_viable(self) -> int:
        """Feasible nodes none of which scores higher than another; 0 where none is feasible."""
        if self.tie is not None:
            return self.tie.count
        return 1 if self.node and self.n_feasible else 0

    @property
    def sentence(self) -> str:
        """How it ended, in one sentence."""
        return sentence(self)

    @property
    def digest(self) -> str:
        """Hex digest of what was decided: the same decision has the same digest in every engine version.

        Whether and when a Binding is heard of is no decision: a pod that its bind extender accepted is bound here.
        """
        # Summaries from before the fields were declared had no victims where PostFilter was not asked.
        asked = self.preemption is not None
        decided = [
            self.pod,
            self.outcome if self.awaited is None else BOUND,
            self.node,
            self.message if self.awaited is None else None,
            self.victims if asked else None,
            self.nominated_node if asked else None,
        ]
        return hashlib.sha256(json.dumps(decided, separators=(",", ":")).encode()).hexdigest()

    def explain(self) -> dict[str, Any]:
        """The explanation: JSON-able, the same words and shape for the API, the pages and conformance."""
        return explain(self)

    # ---- bytes

    def to_bytes(self) -> bytes:
        """Versioned, compressed."""
        header = {name: value for name, value in _plain(self).items() if name != "body"}
        arrays: Arrays = {}
        if self.body is not None:
            arrays = {name: np.ascontiguousarray(array) for name, array in self.body.arrays.items()}
            header["body"] = {name: value for name, value in _plain(self.body).items() if name != "arrays"}
            header["arrays"] = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        text = json.dumps(header, separators=(",", ":")).encode()
        parts = [bytes([FORMAT_VERSION]), len(text).to_bytes(4, "big"), text]
        parts.extend(array.tobytes() for array in arrays.values())
        return zlib.compress(b"".join(parts), COMPRESSION)

    @classmethod
    def from_bytes(cls, data: bytes) -> CycleTrace:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError
            When the bytes are of an unknown version.
        """
        plain = zlib.decompress(data)
        if plain[0] != FORMAT_VERSION:
            raise ValueError(
                f"trace format {plain[0]} is not known to this engine (it reads {FORMAT_VERSION})"
            )
        length = int.from_bytes(plain[1:5], "big")
        header = json.loads(plain[5 : 5 + length])
        arrays: Arrays = {}
        offset = 5 + length
        for name, (dtype, shape) in header.pop("arrays", {}).items():
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(plain, dtype=dtype, count=count, offset=offset).reshape(shape)
            offset += count * np.dtype(dtype).itemsize
        body, tie = header.pop("body", None), header.pop("tie", None)
        return cls(
            **header,
            tie=None if tie is None else Tie(**tie),
            body=None if body is None else Body(**body, arrays=arrays),
        )


def _plain(record: CycleTrace | Body) -> dict[str, Any]:
    """Fields by name that are not as they are by default, none of them copied."""
    found = {}
    for declared in fields(record):
        value = getattr(record, declared.name)
        if value == declared.default or (declared.default_factory is list and not value):
            continue
        found[declared.name] = asdict(value) if isinstance(value, Tie) else value
    return found


# ---- The words of a record: the one place that words a cycle for pages, the API and the command line


BESIDE_NOMINATED: Final = "passes by itself, not beside the pods nominated there"
_PLACED: Final = {
    "bound": "bound to",
    "waiting": "waits at Permit on",
    "binding": "waits for its Binding to",
}
_ON_A_NODE: Final = ("Reserve", "Permit", "PreBind", "Bind")


class CycleFacts(Protocol):
    """What a sentence about a cycle is made of; a record has it, and so has a stored summary."""

    @property
    def pod(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def node(self) -> str | None: ...
    @property
    def message(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def failed_point(self) -> str | None: ...
    @property
    def n_nodes(self) -> int: ...
    @property
    def n_feasible(self) -> int: ...
    @property
    def n_tied(self) -> int: ...
    @property
    def best_total(self) -> int | None: ...
    @property
    def n_victims(self) -> int: ...
    @property
    def nominated_node(self) -> str | None: ...
    @property
    def dry_run(self) -> bool: ...


def sentence(told: CycleFacts) -> str:
    """One plain sentence that says how the cycle ended, or how it would have, where it was only tried."""
    if told.outcome == "error":
        return f"{headline(told)}: {told.error or told.message}."
    if told.outcome in ("unschedulable", "expired"):
        return f"{headline(told)}: {told.message}"
    if told.outcome == "bound" and told.message:
        return f"{headline(told)}; {told.message}."
    return f"{headline(told)}."


def headline(told: CycleFacts) -> str:
    """The sentence without what Kubernetes says in the pod's event, and without its full stop."""
    if told.outcome == "expired":
        return f"{told.pod} is no longer assumed on {told.node}"
    if told.outcome in ("bound", "waiting", "binding"):
        verb = _PLACED[told.outcome]
        if told.dry_run:
            verb = "would wait at Permit on" if told.outcome == "waiting" else "would be bound to"
        return f"{told.pod} {verb} {placed(told)}"
    return f"{told.pod} {_unplaced(told)}"


def placed(told: CycleFacts) -> str:
    """Of a pod that got a node: which, and what spoke for it."""
    if told.n_feasible == 1:
        only = "the only node" if told.n_nodes == 1 else f"the only feasible node of {told.n_nodes:,}"
        return f"{told.node}: {only}"
    best = f"{told.best_total:,} points" if told.best_total is not None else "highest score"
    if told.n_tied:
        return f"{told.node}: drawn among {told.n_tied:,} nodes that tie with {best}, {told.n_feasible:,} feasible"
    return f"{told.node}: highest of {told.n_feasible:,} feasible nodes, {best}"


def _unplaced(told: CycleFacts) -> str:
    tried = told.dry_run
    if told.outcome == "error":
        return "could not be scheduled"
    if told.outcome == "unschedulable" and told.failed_point in _ON_A_NODE:
        return f"{'would be' if tried else 'was'} rejected at {told.failed_point} on {told.node}"
    fits = "would fit no node" if tried else "fits no node"
    if told.outcome == "unschedulable":
        return fits
    noun = "pod" if told.n_victims == 1 else "pods"
    evicts, waits = ("would evict", "wait") if tried else ("evicts", "waits")
    return (
        f"{fits}, so it {evicts} {told.n_victims} {noun} from {told.nominated_node} and {waits} for the room"
    )


def of_one(reason: str) -> str:
    """A filter's reason beside the one node it is about: the scheduler words it for a number of nodes.

    >>> of_one("node(s) were unschedulable"), of_one("node(s) had untolerated taint {gpu: true}")
    ('was unschedulable', 'had untolerated taint {gpu: true}')
    >>> of_one("node(s) didn't match Pod's node affinity/selector"), of_one("Insufficient cpu")
    ("didn't match Pod's node affinity/selector", 'Insufficient cpu')
    """
    words = reason.removeprefix("node(s) ")
    if words == reason:
        return reason
    return f"was {words.removeprefix('were ')}" if words.startswith("were ") else words


def explain(record: CycleTrace) -> dict[str, Any]:
    """Everything of a record, JSON-able: the same words and shape for the API, the pages and conformance."""
    tie, body = record.tie, record.body
    result: dict[str, Any] = {
        "cycle": record.number,
        "pod": record.pod,
        "uid": record.uid,
        "profile": record.profile,
        "attempt": record.attempt,
        "at": format_time_ns(record.at_ns),
        "outcome": record.outcome,
        "sentence": sentence(record),
        "headline": headline(record),
        "node": record.node,
        "nNodes": record.n_nodes,
        "nFeasible": record.n_feasible,
        "nViable": record.n_viable,
        "nodesEvaluated": record.n_evaluated,
        "bestTotal": record.best_total,
        "tie": None
        if tie is None
        else {
            "count": tie.count,
            "chosen": tie.chosen,
            "stream": tie.stream,
            "nodes": (body.best or []) if body is not None else [],
        },
        "message": record.message,
        "fitError": record.fit_error,
        "error": record.error,
        "failedPlugin": record.failed_plugin,
        "victims": record.victims,
        "nominatedNode": record.nominated_node,
        "points": points(record),
        "extenders": record.extenders,
        "permit": record.permit,
        "awaited": None if record.awaited is None else _told_wait(record.awaited),
        **({} if record.group is None else {"group": record.group}),
        "emulates": record.followed.patch,
        "kubernetesRelease": record.release,
        "featureGates": record.gates or {},
        "engine": record.engine or ENGINE_VERSION,
        "digest": record.digest,
        "full": record.is_full,
    }
    if record.dry_run:
        result["dryRun"] = True
    if body is not None:
        result.update(_told_body(body))
        result["preemption"] = record.preemption
    return result


def _told_wait(awaited: Mapping[str, Any]) -> dict[str, Any]:
    """Since and until when a Binding was awaited, and the node it named; the end is None as long as it is."""
    until_ns = awaited.get("untilNs")
    return {
        "since": format_time_ns(awaited["sinceNs"]),
        "until": None if until_ns is None else format_time_ns(until_ns),
        "node": awaited.get("node"),
    }


def _told_body(body: Body) -> dict[str, Any]:
    arrays, names = body.arrays, body.nodes
    rejected = body.pre_filter["code"] != Code.Success.name
    told = [_verdict(entry) for entry in body.verdicts]
    best = body.best
    result: dict[str, Any] = {
        "nodes": names,
        "preFilter": body.pre_filter,
        "filterPlugins": body.filter_plugins,
        "scorePlugins": body.score_plugins,
        "skippedFilter": body.skipped_filter,
        "skippedScore": body.skipped_score,
        "weights": body.weights,
        "filter": None
        if rejected or not names
        else {
            name: None if index < 0 else told[index]
            for name, index in zip(names, arrays["verdict"].tolist(), strict=True)
            if index != UNSEEN
        },
        "feasible": sorted(names[place] for place in arrays["feasible"].tolist()),
        "rawScores": None,
        "scores": None,
        "total": None,
        "best": None if best is None else sorted(best),
        "nominatedPasses": body.nominated_passes,
    }
    if "matrix" in arrays:
        result["filterByPlugin"] = _filter_by_plugin(body)
        result["domains"] = body.domains
        result["amounts"] = _amounts(body, result["filter"] or {}, result["filterByPlugin"])
    if "total" in arrays:
        feasible = [names[place] for place in arrays["feasible"].tolist()]
        result["total"] = dict(zip(feasible, arrays["total"].tolist(), strict=True))
        for key, column in (("rawScores", "raw"), ("scores", "scores")):
            result[key] = {
                plugin: dict(zip(feasible, arrays[column][index].tolist(), strict=True))
                for index, plugin in enumerate(body.scored_plugins)
            }
    return result


def _filter_by_plugin(body: Body) -> dict[str, Any]:
    result: dict[str, Any] = {}
    column_of = {plugin: body.arrays["matrix"][row] for row, plugin in enumerate(body.matrix_plugins)}
    for plugin, column in column_of.items():
        entry: dict[str, Any] = dict(body.matrix_notes.get(plugin, {}))
        failed = np.flatnonzero(column >= 0)
        fails = {
            body.nodes[place]: {"code": body.verdicts[index][1], "reasons": sorted(body.verdicts[index][2])}
            for place, index in zip(failed.tolist(), column[failed].tolist(), strict=True)
        }
        if fails:
            entry["fails"] = fails
        result[plugin] = entry
    return result


def _amounts(
    body: Body, stops: Mapping[str, Any], alone: Mapping[str, Any]
) -> dict[str, dict[str, list[str]]]:
    """By plugin and node, the amounts behind each rejection of `filterByPlugin` that has any.

    A plugin that stopped a node it accepts alone did so for the pods nominated there.
    """
    result: dict[str, dict[str, list[str]]] = {}
    start = 0
    for plugin, sentences, n_lines in body.amounts:
        lines = body.arrays["amounts"][start : start + n_lines]
        start += n_lines
        result[plugin] = unpacked(sentences, lines, body.nodes)
    for name, verdict in stops.items():
        found = alone.get(verdict["plugin"]) if verdict else None
        if found is not None and "preFilter" not in found and name not in found.get("fails", {}):
            result.setdefault(verdict["plugin"], {})[name] = [BESIDE_NOMINATED]
    return result


def _verdict(entry: Sequence[Any]) -> dict[str, Any]:
    plugin, code, reasons = entry
    return {"plugin": plugin, "code": code, "reasons": sorted(reasons)}


# --- How far a cycle came: the state of every extension point, told from its record.


PIPELINE = tuple(f"{point[0].upper()}{point[1:]}" for point in EXTENSION_POINTS)
PIPELINE = (*PIPELINE[:7], "NormalizeScore", *PIPELINE[7:])
"""In the order a pod goes through them."""

DONE, SKIPPED, FAILED, ACTED = "done", "skipped", "failed", "acted"
WAITS, NOT_REACHED = "waiting", "not reached"

Point = dict[str, str]
"""``{point, state, detail}``."""

_SCORING = ("PreScore", "Score", "NormalizeScore")
_FILTERING = ("PreFilter", "Filter")


def points(record: CycleTrace) -> list[Point]:
    """Tell what became of each extension point.

    Parameters
    ----------
    record : CycleTrace
        A summary is enough, the body adds details.

    Returns
    -------
    list of dict
        ``{point, state, detail}`` in the order of `PIPELINE`. States: ``done``; ``skipped`` (there was no need);
        ``failed`` (it rejected the pod, or broke); ``acted`` (PostFilter made room); ``waiting``; ``not reached``.

    Examples
    --------
    >>> from scheduler_core.framework.record import CycleTrace
    >>> record = CycleTrace(
    ...     number=1, at_ns=0, pod="a/p", uid="u", profile="s", attempt=1, outcome="unschedulable",
    ...     failed_point="Filter", n_nodes=3, n_evaluated=3, n_feasible=0,
    ... )
    >>> [(p["point"], p["detail"]) for p in points(record) if p["state"] == "failed"]
    [('Filter', '3 → 0 nodes')]
    """
    failed = record.failed_point
    told = {name: (DONE, detail) for name, detail in _details(record).items()}
    if failed is not None:
        told[failed] = (FAILED, _why(record, failed))
        for later in PIPELINE[PIPELINE.index(failed) + 1 :]:
            told[later] = (NOT_REACHED, "")
    if failed in _FILTERING and record.outcome != "error":
        told["PostFilter"] = _post_filter(record)
    if record.outcome == "waiting":
        told["Permit"] = (WAITS, _permit(record))
        for later in ("PreBind", "Bind", "PostBind"):
            told[later] = (NOT_REACHED, "")
    if record.outcome == "binding":
        told["Bind"] = (WAITS, "for the Binding")
    if record.outcome == "expired":
        told["Bind"] = (FAILED, "no Binding came")
    if record.dry_run and record.outcome == "bound":
        told |= dict.fromkeys(("PreBind", "Bind", "PostBind"), (NOT_REACHED, "only tried"))
    if record.n_feasible:
        if told["PostFilter"][0] == DONE:
            told["PostFilter"] = (SKIPPED, "not needed")
        if record.n_feasible == 1:
            for name in _SCORING:
                if told[name][0] == DONE:
                    told[name] = (SKIPPED, "one feasible node")
    return [{"point": name, "state": told[name][0], "detail": told[name][1]} for name in PIPELINE]


def _why(record: CycleTrace, failed: str) -> str:
    """A few words for the point that ended the cycle."""
    if record.outcome != "error" and failed in _FILTERING:
        if failed == "Filter":
            return _filtered(record)
        return record.failed_plugin or str(_pre_filter(record).get("plugin") or "rejected the pod")
    if record.outcome == "error" and not record.n_nodes:
        return "no node in the cluster"
    if record.failed_plugin:
        return record.failed_plugin
    if any(call.get("error") and not call.get("ignored") for call in record.extenders):
        return "extender"
    return "error" if record.outcome == "error" else ""


def _pre_filter(record: CycleTrace) -> Mapping[str, Any]:
    return {} if record.body is None else record.body.pre_filter


def _post_filter(record: CycleTrace) -> tuple[str, str]:
    if record.outcome == "preempting":
        return ACTED, f"→ {record.nominated_node}"
    if record.preemption is None:
        return SKIPPED, "no plugin"
    return FAILED, "no help"


def _details(record: CycleTrace) -> dict[str, str]:
    """A few words for every point of a pod that gets through."""
    details = dict.fromkeys(PIPELINE, "")
    body = record.body
    n_skip = 0 if body is None else len(body.skipped_filter)
    narrowed = _pre_filter(record).get("nodeNames")
    parts = [f"{n_skip} skip"] if n_skip else []
    if narrowed is not None:
        parts.append(f"only {len(narrowed)} {'node' if len(narrowed) == 1 else 'nodes'}")
    details["PreFilter"] = ", ".join(parts)
    details["Filter"] = _filtered(record)
    details |= dict.fromkeys(_SCORING, f"{record.n_feasible} nodes")
    n_out = 0 if body is None else len(body.skipped_score)
    if n_out:
        details["PreScore"] = f"{n_out} skip"
    if record.best_total is not None:
        details["NormalizeScore"] = f"best {record.best_total}"
    details["Reserve"] = f"on {record.node}" if record.node else ""
    details["Permit"] = _permit(record) or "no wait"
    return details


def _filtered(record: CycleTrace) -> str:
    n = record.n_evaluated
    return f"{n} → {record.n_feasible} {'node' if n == 1 else 'nodes'}"


def _permit(record: CycleTrace) -> str:
    """The last word of Permit's history."""
    if not record.permit:
        return ""
    last = record.permit[-1]
    if last.get("decision") == "wait":
        return f"{last['plugin']}, up to {last['timeoutS']:g} s"
    return f"{last['decision']} after {last.get('afterS', 0):g} s"
