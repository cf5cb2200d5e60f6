"""A question about a cluster as a value, the one shape of its answer, and the sentences of all surfaces.

An answer holds: `question` (normal form), `verdict` (one sentence), `tone` (good, warning, bad), `figures` (words and
values), `lines` (sentences by cause), `moves` (pods that move), `map` (nodes by group, with what becomes of each),
`steps` (what a scenario would do to show it), `test` (an expectation), `decisions`, `luck`, `leavesOut`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.autoscaler.pasted import autoscaler_from
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import ZONE, Fork, Report, group_of
from scheduler_core.objects.prices import PriceList, price_list_from, shipped_prices

DRAIN, LOSE, ANY_NODE, ANY_DOMAIN, HEADROOM, BACKLOG, CONSOLIDATE, DESCHEDULE, AUTOSCALE = ASKS = (
    "drain",
    "lose",
    "any-node",
    "any-domain",
    "headroom",
    "backlog",
    "consolidate",
    "deschedule",
    "autoscale",
)
_FIELDS = {
    DRAIN: ("nodes", "label"),
    LOSE: ("nodes", "label"),
    ANY_NODE: (),
    ANY_DOMAIN: ("label",),
    HEADROOM: ("workload", "pod"),
    BACKLOG: ("workload", "prices"),
    CONSOLIDATE: ("prices",),
    DESCHEDULE: ("policy",),
    AUTOSCALE: ("autoscaler", "prices"),
}
MAX_NODES = 5_000
"""Nodes that one question names."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked.

    Attributes
    ----------
    ask : str
        One of `ASKS`.
    nodes : tuple of str
        Of `drain` and `lose`: names.
    label : str
        Of `drain` and `lose`: `KEY=VALUE`, all nodes that carry it; of `any-domain`: `KEY`.
    workload : str
        Of `headroom` and `backlog`: `Kind namespace/name`; without it, and without a pod, every workload.
    pod : mapping or None
        Of `headroom`: a manifest.
    prices : PriceList or None
        Of `backlog`, `consolidate` and `autoscale`: in place of the list that is shipped.
    policy : mapping or None
        Of `deschedule`: a DeschedulerPolicy.
    autoscaler : mapping or None
        Of `autoscale`: flags and node groups (`autoscaler.pasted`); without them groups are guessed.
    """

    ask: str
    nodes: tuple[str, ...] = ()
    label: str = ""
    workload: str = ""
    pod: Mapping[str, Any] | None = None
    prices: PriceList | None = None
    policy: Mapping[str, Any] | None = None
    autoscaler: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The normal form, JSON-able: what is not asked is left out."""
        asked = {
            "ask": self.ask,
            "nodes": list(self.nodes),
            "label": self.label,
            "workload": self.workload,
            "pod": None if self.pod is None else dict(self.pod),
            "policy": None if self.policy is None else dict(self.policy),
            "autoscaler": None if self.autoscaler is None else dict(self.autoscaler),
            "prices": None if self.prices is None else self.prices.document(),
        }
        return {name: value for name, value in asked.items() if value not in ("", [], None)}

    @property
    def price_list(self) -> PriceList:
        """That of the question, else the one that is shipped."""
        return self.prices or shipped_prices()


def question_from(document: Mapping[str, Any]) -> PlanQuestion:
    """Read a question.

    Raises
    ------
    InvalidObject
        Names the field and its value.
    """
    ask = document.get("ask")
    if ask not in ASKS:
        raise InvalidObject("ask", ask, f"must be one of {', '.join(ASKS)}")
    known = _FIELDS[ask]
    for name in document:
        if name != "ask" and name not in known:
            takes = ", ".join(known) or "nothing else"
            raise InvalidObject(str(name), None, f"says nothing about {ask}, which takes {takes}")
    nodes = document.get("nodes") or []
    if not isinstance(nodes, list | tuple) or not all(isinstance(name, str) and name for name in nodes):
        raise InvalidObject("nodes", nodes, "must be a list of names")
    if len(nodes) > MAX_NODES:
        raise InvalidObject("nodes", None, f"names {len(nodes):,} nodes; {MAX_NODES:,} are the most")
    label, workload = (_text(document, name) for name in ("label", "workload"))
    pod = document.get("pod")
    if pod is not None and not isinstance(pod, Mapping):
        raise InvalidObject("pod", None, "must be a manifest of kind Pod")
    policy = document.get("policy")
    if ask == DESCHEDULE and not isinstance(policy, Mapping):
        raise InvalidObject("policy", policy, "must be a DeschedulerPolicy")
    autoscaler = document.get("autoscaler")
    if autoscaler is not None:
        autoscaler_from(autoscaler)
    if ask in (DRAIN, LOSE):
        if label and "=" not in label:
            raise InvalidObject("label", label, "must be KEY=VALUE")
        if not label and not nodes:
            raise InvalidObject("nodes", None, "name a node, or give a label")
    if ask == ANY_DOMAIN:
        label = label or ZONE
        if "=" in label:
            raise InvalidObject("label", label, "must be the KEY alone: each of its values is lost in turn")
    if workload and pod is not None:
        raise InvalidObject("pod", None, "give a workload or a pod, not both")
    if workload and (workload.count(" ") != 1 or workload.count("/") != 1):
        raise InvalidObject("workload", workload, "must be KIND NAMESPACE/NAME")
    prices = document.get("prices")
    listed = None if prices is None else price_list_from(prices, "prices")
    return PlanQuestion(ask, tuple(dict.fromkeys(nodes)), label, workload, pod, listed, policy, autoscaler)


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise InvalidObject(name, value, "must be text")
    if len(value) > 700:
        raise InvalidObject(name, None, "is longer than 700 characters")
    return value.strip()


# ---- answers

GOOD, WARNING, BAD = "good", "warning", "bad"
MOST_LUCK_DECISIONS: Final = 4_000
"""Decisions that the other seeds of one answer may cost; where it would be more, they are not asked."""
MOST_MOVES: Final = 2_000
"""Pods an answer lists; the counts are of all."""
MOST_LINES: Final = 400
OUTSIDE: Final = (
    "Permit and PreBind are not run.",
    "Autoscalers of nodes and pods, and pods that were pending before, do nothing.",
)
NO_TIME: Final = "Time does not pass: grace periods and how long a pod takes to be ready are left out."


@dataclass(slots=True)
class Answer:
    """Answer to one question; `document` is its JSON."""

    verdict: str
    tone: str
    figures: list[tuple[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    map: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    test: dict[str, Any] | None = None
    decisions: int = 0
    luck: dict[str, int] | None = None
    leaves_out: tuple[str, ...] = OUTSIDE
    more: dict[str, Any] = field(default_factory=dict)

    def line(self, tone: str, text: str, note: str = "", **more: Any) -> None:
        """Add one sentence, with its note."""
        self.lines.append({"tone": tone, "text": text, "note": note, **more})

    def document(self, question: PlanQuestion) -> dict[str, Any]:
        return {
            "question": question.document(),
            "verdict": self.verdict,
            "tone": self.tone,
            "figures": [{"words": words, "value": value} for words, value in self.figures],
            "lines": self.lines[:MOST_LINES],
            "nLines": len(self.lines),
            "moves": self.moves[:MOST_MOVES],
            "nMoves": len(self.moves),
            "map": self.map,
            "steps": self.steps,
            "test": self.test,
            "decisions": self.decisions,
            "luck": self.luck,
            "leavesOut": list(self.leaves_out),
            **self.more,
        }


def told_luck(
    fork: Fork, n_decisions: int, holds: Callable[[], bool], report: Report
) -> dict[str, int] | None:
    """In how many of some seeds it holds; None when that would cost too much."""
    seeds, found = fork.luck(n_decisions, holds, MOST_LUCK_DECISIONS, report)
    return {"seeds": seeds, "holds": found} if seeds else None


def node_map(
    fork: Fork, state: Callable[[str], tuple[str, int]], cpu_after: Mapping[str, int] = {}
) -> list[dict[str, Any]]:
    """Groups of nodes, each node with its state, requested CPU in percent, and a number that its state explains.

    Parameters
    ----------
    cpu_after : mapping of str to int
        Requested CPU of nodes where it is not that of the fork.
    """
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for node in fork.nodes():
        group = group_of(node.meta.labels)
        kept = groups.setdefault(
            (group.name, group.shape), {"name": group.name, "shape": group.shape, "nodes": []}
        )
        what, number = state(node.name)
        share = cpu_after[node.name] if node.name in cpu_after else fork.cpu_share(node.name)
        kept["nodes"].append([node.name, what, share, number, node.meta.labels.get(ZONE, "")])
    return [groups[key] for key in sorted(groups)]
