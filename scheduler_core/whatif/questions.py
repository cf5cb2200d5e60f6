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
from scheduler_core.errors import InvalidManifest, InvalidObject
from scheduler_core.fork import ZONE, Fork, Report, group_of
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.duration import duration_ns
from scheduler_core.objects.prices import PriceList, price_list_from, shipped_prices
from scheduler_core.sim.controllers.programs import PROGRAMS, settings_text

DRAIN, LOSE, ANY_NODE, ANY_DOMAIN, HEADROOM, BACKLOG, CONSOLIDATE, DESCHEDULE, AUTOSCALE, COMPARE = ASKS = (
    "drain",
    "lose",
    "any-node",
    "any-domain",
    "headroom",
    "backlog",
    "consolidate",
    "deschedule",
    "autoscale",
    "compare",
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
    AUTOSCALE: ("autoscaler", "nodes", "label", "prices"),
    COMPARE: ("variants", "time", "prices"),
}
MAX_NODES = 5_000
"""Nodes that one question names."""
MAX_VARIANTS: Final = 6
DEFAULT_TIME: Final = "2h"
MOST_TIME_NS: Final = 24 * 3600 * 10**9
VARIANT_FIELDS: Final = ("name", *(annotation.partition("/")[2] for annotation in PROGRAMS))
"""Of a variant: its name, and the programs as a scenario's `controllers` has them."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked.

    Attributes
    ----------
    ask : str
        One of `ASKS`.
    nodes : tuple of str
        Of `drain`, `lose` and `autoscale`: names.
    label : str
        Of `drain`, `lose` and `autoscale`: `KEY=VALUE`, all nodes that carry it; of `any-domain`: `KEY`.
    workload : str
        Of `headroom` and `backlog`: `Kind namespace/name`; without it, and without a pod, every workload.
    pod : mapping or None
        Of `headroom`: a manifest.
    prices : PriceList or None
        Of `backlog`, `consolidate`, `autoscale` and `compare`: in place of the list that is shipped.
    policy : mapping or None
        Of `deschedule`: a DeschedulerPolicy.
    autoscaler : mapping or None
        Of `autoscale`: flags and node groups (`autoscaler.pasted`); without them groups are guessed.
    variants : tuple of mapping
        Of `compare`: each a `name` and settings of programs as a scenario's `controllers` has them; None turns one
        off, one that is not named is as the cluster has it.
    time : str
        Of `compare`: how long each runs.
    """

    ask: str
    nodes: tuple[str, ...] = ()
    label: str = ""
    workload: str = ""
    pod: Mapping[str, Any] | None = None
    prices: PriceList | None = None
    policy: Mapping[str, Any] | None = None
    autoscaler: Mapping[str, Any] | None = None
    variants: tuple[Mapping[str, Any], ...] = ()
    time: str = ""

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
            "variants": [dict(variant) for variant in self.variants],
            "time": self.time,
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
    if ask in (DRAIN, LOSE, AUTOSCALE) and label and "=" not in label:
        raise InvalidObject("label", label, "must be KEY=VALUE")
    if ask in (DRAIN, LOSE) and not label and not nodes:
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
    variants = _variants(document.get("variants")) if ask == COMPARE else ()
    time = _time(document.get("time") or DEFAULT_TIME) if ask == COMPARE else ""
    names = tuple(dict.fromkeys(nodes))
    return PlanQuestion(
        ask, names, label, workload, pod, listed, policy, autoscaler, variants=variants, time=time
    )


def read_variants(text: str | bytes) -> list[Any]:
    """Variants of a text: a document each, or a list of them under `variants`; not yet checked.

    Raises
    ------
    InvalidObject
        It cannot be read.
    """
    try:
        documents = [document.value for document in load_documents(text)]
    except InvalidManifest as error:
        raise InvalidObject("variants", None, f"cannot be read: {error.in_text}") from None
    found = documents[0].get("variants") if len(documents) == 1 else None
    return found if isinstance(found, list) else documents


def _variants(given: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(given, list) or not 2 <= len(given) <= MAX_VARIANTS:
        raise InvalidObject("variants", None, f"must be a list of 2 to {MAX_VARIANTS} variants")
    found: list[Mapping[str, Any]] = []
    for place, variant in enumerate(given):
        path = f"variants[{place}]"
        if not isinstance(variant, Mapping):
            raise InvalidObject(path, variant, "must be a name, and programs with their settings")
        for key in variant:
            if key not in VARIANT_FIELDS:
                raise InvalidObject(f"{path}.{key}", None, f"is not known: {', '.join(VARIANT_FIELDS)} are")
        given_name = variant.get("name", "")
        if not isinstance(given_name, str) or len(given_name) > 100:
            raise InvalidObject(f"{path}.name", given_name, "must be text of 100 characters at most")
        name = given_name.strip() or f"variant {place + 1}"
        if name in [one["name"] for one in found]:
            raise InvalidObject(f"{path}.name", name, "is there twice")
        for annotation, read in PROGRAMS.items():
            field = annotation.partition("/")[2]
            settings = variant.get(field)
            if settings is None:
                continue
            try:
                read(settings_text(settings))
            except InvalidObject as error:
                raise InvalidObject(f"{path}.{field}", None, str(error)) from None
        found.append({**variant, "name": name})
    return tuple(found)


def _time(given: Any) -> str:
    try:
        time_ns = duration_ns(str(given))
    except ValueError as error:
        raise InvalidObject("time", None, str(error)) from None
    if not 60 * 10**9 <= time_ns <= MOST_TIME_NS:
        raise InvalidObject("time", given, "must be from 1m to 24h")
    return str(given)


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
