"""A question about a cluster as a value, the one shape of its answer, and the sentences of all surfaces.

An answer holds: `question` (normal form), `verdict` (one sentence), `tone` (good, warning, bad), `figures` (words and
values), `lines` (sentences by cause), `moves` (pods that move), `map` (nodes by group, with what becomes of each),
`steps` (what a scenario would do to show it), `test` (an expectation), `decisions`, `luck`, `leavesOut`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.whatif.fork import ZONE, Fork, Report, group_of
from scheduler_core.whatif.headroom import Headroom
from scheduler_core.whatif.prices import PriceList, price_list_from, shipped_prices
from scheduler_core.whatif.take_away import BLOCKED, LANDS, LOST, PENDING, Followed, TakenAway

DRAIN, LOSE, ANY_NODE, ANY_DOMAIN, HEADROOM, BACKLOG, CONSOLIDATE = ASKS = (
    "drain",
    "lose",
    "any-node",
    "any-domain",
    "headroom",
    "backlog",
    "consolidate",
)
_FIELDS = {
    DRAIN: ("nodes", "label"),
    LOSE: ("nodes", "label"),
    ANY_NODE: (),
    ANY_DOMAIN: ("label",),
    HEADROOM: ("workload", "pod"),
    BACKLOG: ("workload", "prices"),
    CONSOLIDATE: ("prices",),
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
        Of `backlog` and `consolidate`: in place of the list that is shipped.
    """

    ask: str
    nodes: tuple[str, ...] = ()
    label: str = ""
    workload: str = ""
    pod: Mapping[str, Any] | None = None
    prices: PriceList | None = None

    def document(self) -> dict[str, Any]:
        """The normal form, JSON-able: what is not asked is left out."""
        found: dict[str, Any] = {"ask": self.ask}
        if self.nodes:
            found["nodes"] = list(self.nodes)
        for name in ("label", "workload"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        if self.pod is not None:
            found["pod"] = dict(self.pod)
        if self.prices is not None:
            found["prices"] = self.prices.document()
        return found

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
    return PlanQuestion(ask, tuple(dict.fromkeys(nodes)), label, workload, pod, listed)


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


# ---- sentences

_NAMED = 3
NOUNS = {"topology.kubernetes.io/zone": "zone", "topology.kubernetes.io/region": "region"}


def taken_away_verdict(answer: TakenAway) -> str:
    """One sentence: how many of the nodes' pods find another node, and what that costs pods of other nodes."""
    own, elsewhere = answer.own, answer.elsewhere
    lands, pending, blocked, lost = (
        [item for item in own if item.outcome == outcome] for outcome in (LANDS, PENDING, BLOCKED, LOST)
    )
    parts = []
    if lands or pending:
        n_leave = sum(map(len, (lands, pending, blocked, lost)))
        parts.append(_found_words(n_leave, len(lands), pending, len(answer.nodes)))
    if blocked:
        parts.append(f"{names_of(blocked)} {held_words(len(blocked))}")
    if lost:
        parts.append(f"{names_of(lost)} {lost_words(len(lost))}")
    if elsewhere:
        parts.append(
            f"{counted(len(elsewhere), 'pod')} elsewhere {'is' if len(elsewhere) == 1 else 'are'} evicted for them"
        )
        without = [item for item in elsewhere if item.outcome == PENDING]
        gone = [item for item in elsewhere if item.outcome == LOST]
        if without:
            parts[-1] += f", {len(without):,} of which {finds(len(without))} no other node"
        if gone:
            parts[-1] += f", {len(gone):,} of which {lost_words(len(gone))}"
    if not parts:
        parts.append("No pod has to move")
    return f"{'; '.join(parts)}."


def _found_words(n_leave: int, n_lands: int, pending: Sequence[Followed], n_nodes: int) -> str:
    whose = "its" if n_nodes == 1 else "their"
    later = sum(bool(item.once_deleted) for item in pending)
    until = f" {until_deleted(n_nodes)}" if later and later == len(pending) else ""
    if n_leave == 1:
        one = f"{whose.title()} one pod"
        return (
            f"{one}, {pending[0].pod}, finds no other node{until}" if pending else f"{one} finds another node"
        )
    if n_lands == n_leave:
        return f"All {n_leave:,} of {whose} pods find another node"
    found = f"{n_lands:,} of {whose} {n_leave:,} pods {finds(n_lands)} another node"
    some = f" ({later:,} only {until_deleted(n_nodes)})" if later and not until else ""
    return f"{found}, {len(pending):,} {finds(len(pending))} none{until}{some}" if pending else found


def until_deleted(n_nodes: int) -> str:
    """How long a pod waits that the drained nodes keep off, for being domains still."""
    return "until the node is deleted" if n_nodes == 1 else "until the nodes are deleted"


def held_words(number: int) -> str:
    return "is held up by a budget" if number == 1 else "are held up by a budget"


def lost_words(number: int) -> str:
    return "has no owner that recreates it" if number == 1 else "have no owner that recreates them"


def counted(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def finds(number: int) -> str:
    return "finds" if number == 1 else "find"


def any_node_verdict(answers: Sequence[TakenAway]) -> str:
    """One sentence for the loss of any one node."""
    n_nodes = len(answers)
    if not n_nodes:
        return "There is no node to lose."
    strands = [answer for answer in answers if answer.count(PENDING)]
    harmless = sum(answer.is_harmless for answer in answers)
    if harmless == n_nodes:
        return f"Any one of the {n_nodes:,} nodes can be lost: every pod finds another node."
    if strands:
        which = f"Losing any one of {len(strands):,} of the {n_nodes:,} nodes"
        if len(strands) == n_nodes:
            which = "Losing the only node" if n_nodes == 1 else f"Losing any one of the {n_nodes:,} nodes"
        elif len(strands) == 1:
            which = f"Losing {strands[0].nodes[0]}, 1 of the {n_nodes:,} nodes,"
        rest = [f"{which} leaves pods without a node"]
        if hurt := n_nodes - len(strands) - harmless:
            rest.append(f"the loss of {hurt:,} more preempts, holds back or loses pods")
        rest.append(f"{harmless:,} can be lost without harm" if harmless else "none can be lost without harm")
        return f"{'; '.join(rest)}."
    found = f"Any one of the {n_nodes:,} nodes can be lost and every pod that is recreated finds a node"
    return f"{found}; the loss of {n_nodes - harmless:,} of them preempts, holds back or loses pods."


def any_domain_verdict(label: str, answers: Mapping[str, TakenAway]) -> str:
    """One sentence for the loss of any one value of a label."""
    noun = NOUNS.get(label, f"value of {label}")
    total = len(answers)
    left = {value: answer.count(PENDING) for value, answer in answers.items()}
    kind = min(left, key=lambda value: (left[value], value))
    n_good = sum(not number for number in left.values())
    if n_good == total:
        if total == 1:
            return f"The one {noun} can be lost: every pod that is recreated finds a node."
        return f"Any one {noun} of {total} can be lost: every pod that is recreated finds a node."
    if not n_good:
        return f"No {noun} can be lost: even {kind} leaves {counted(left[kind], 'pod')} without a node."
    worst = max(left, key=lambda value: (left[value], value))
    return f"{n_good} of {total} {noun}s can be lost; {worst} leaves {counted(left[worst], 'pod')} without a node."


def room_verdict(rooms: Sequence[tuple[str, Headroom]], n_workloads: int) -> str:
    """One sentence for how many more of each workload fit."""
    if not rooms:
        return "There is no workload to ask about."
    full = [key for key, room in rooms if not room.replicas]
    asked = (
        f"{len(rooms):,} workloads"
        if len(rooms) == n_workloads
        else f"{len(rooms):,} workloads that were asked about ({n_workloads:,} in all)"
    )
    if not full:
        return f"At least one more pod of each of {asked} fits."
    named = ", ".join(full[:_NAMED]) + (f" and {len(full) - _NAMED:,} more" if len(full) > _NAMED else "")
    have = "has" if len(full) == 1 else "have"
    return f"{len(full):,} of {asked} {have} no room for another pod: {named}."


def headroom_verdict(answer: Headroom) -> str:
    """One sentence: how many more fit."""
    if answer.limit is not None:
        return f"At least {answer.limit:,} more of {answer.pod} fit; the count was stopped there."
    if not answer.replicas:
        return f"No more of {answer.pod} fits."
    fits = "fits" if answer.replicas == 1 else "fit"
    return f"{answer.replicas:,} more of {answer.pod} {fits}, on {len(answer.by_node):,} of {answer.n_nodes:,} nodes."


def causes(pods: Sequence[Followed]) -> list[tuple[str, list[Followed]]]:
    """Pods grouped by the reason that they share, the commonest first."""
    counts = Counter(item.reason for item in pods)
    return [(reason, [item for item in pods if item.reason == reason]) for reason, _ in counts.most_common()]


def without_label(label: str, nodes: Sequence[str], total: int) -> str:
    """One sentence for nodes that no loss of a label's value takes away; empty if there are none.

    Examples
    --------
    >>> without_label("rack", ["a"], 3)
    '1 of 3 nodes carries no rack, so no loss takes it away: a.'
    >>> without_label("rack", ["a", "b", "c", "d"], 9)
    '4 of 9 nodes carry no rack, so no loss takes them away: a, b, c and 1 more.'
    """
    if not nodes:
        return ""
    verb, them = ("carry", "them") if len(nodes) > 1 else ("carries", "it")
    named = first_of(nodes)
    return f"{len(nodes):,} of {total:,} nodes {verb} no {label}, so no loss takes {them} away: {named}."


def names_of(pods: Sequence[Followed]) -> str:
    """The first few, and how many more."""
    return first_of([item.pod for item in pods])


def first_of(every: Sequence[str]) -> str:
    """The first few names, and how many more."""
    names = list(every[:_NAMED])
    more = len(every) - len(names)
    if more:
        return f"{', '.join(names)} and {more:,} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
