"""What is kept of a scheduling cycle: declared fields and arrays; `framework.words` says it when it is read.

A record has a summary, which is always kept, and a body (every verdict, score and candidate), which is kept when it
is asked for. As bytes it is `zlib(version byte, header length, JSON header, arrays)`: the header holds the declared
fields under their names, and each array's dtype and shape.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework import words
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
        return words.sentence(self)

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
        return words.explain(self)

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
