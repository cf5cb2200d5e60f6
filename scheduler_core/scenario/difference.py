"""The difference of runs: decisions side by side, the first pod whose outcome differs and why, who moved, the figures.

The one home of these rules, for branches, comparisons, upgrades and `diff`. Decisions are paired by pod and attempt,
never by the number of a cycle, which an edit moves for all pods after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from scheduler_core.framework.record import ERROR, CycleTrace, headline, of_one, sentence
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.record import CycleEnd
from scheduler_core.scenario.run import run_to_cycle
from scheduler_core.whatif.workloads import owner_of

MOVED, NEWLY_PENDING, NEWLY_PLACED, NEWLY_EVICTED = "moved", "newlyPending", "newlyPlaced", "newlyEvicted"

# ---- decisions side by side


class DecidedCycle(CycleEnd, Protocol):
    """What is asked of a decision; a `CycleTrace` has it."""

    @property
    def message(self) -> str | None: ...


D = TypeVar("D", bound=DecidedCycle)
Ends = Mapping[str, str]
"""Pod -> its node at the end, empty while it waits; a pod that is not there is left out."""


@dataclass(frozen=True, slots=True)
class Beside(Generic[D]):
    """The decisions about a pod's nth attempt, one a side.

    Attributes
    ----------
    decisions
        The last one of a side that made no nth attempt and on which the pod waits; None where it stays on its node, was
        not tried or is not there.
    is_same
        All sides decided alike: the same outcome on the same node. What they say may differ.
    """

    pod: str
    nth: int
    decisions: tuple[D | None, ...]
    is_same: bool

    @property
    def says_same(self) -> bool:
        """Whether the sides that found no node give the same reason."""
        return len({one.message or "" for one in self.decisions if one is not None and not one.node}) < 2


def beside(sides: Sequence[Sequence[D]], ends: Sequence[Ends], before: Iterable[D] = ()) -> list[Beside[D]]:
    """Pair the decisions of all sides by pod and attempt, in the order in which any of them made them first.

    Parameters
    ----------
    sides
        The decisions of each, in order, from where the runs have parted.
    ends
        Where the pods of each side ended.
    before
        Decisions that all sides share.
    """
    shared = {one.pod: one for one in before}
    made: list[dict[str, list[D]]] = [{} for _ in sides]
    order: dict[tuple[str, int], tuple[int, int]] = {}
    for side, decisions in enumerate(sides):
        attempts: Counter[str] = Counter()
        for place, one in enumerate(decisions):
            attempts[one.pod] += 1
            made[side].setdefault(one.pod, []).append(one)
            key = (one.pod, attempts[one.pod])
            order[key] = min((place, side), order.get(key, (place, side)))
    pairs = []
    for (pod, nth), _ in sorted(order.items(), key=lambda item: (item[1], item[0])):
        row = tuple(
            _nth(found.get(pod, ()), nth, end.get(pod), shared.get(pod))
            for found, end in zip(made, ends, strict=True)
        )
        outcomes = {_outcome(one, end.get(pod)) for one, end in zip(row, ends, strict=True)}
        pairs.append(Beside(pod, nth, row, len(outcomes) == 1))
    return pairs


def _nth(made: Sequence[D], nth: int, end: str | None, shared: D | None) -> D | None:
    if nth <= len(made):
        return made[nth - 1]
    if end:
        return None  # it stays where it is
    if made:
        return made[-1]
    return shared if end == "" else None


def _outcome(one: DecidedCycle | None, end: str | None) -> tuple[str, str] | None:
    if one is None:
        return ("bound", end) if end else None
    return one.outcome, one.node or ""


def partings(pairs: Sequence[Beside[D]], ends: Sequence[Ends]) -> list[Beside[D]]:
    """The first pair of each pod in which the sides part: pods that end elsewhere first, then those that took another
    course to the same end, then those that wait on all sides with different messages; each in the order of the pairs.
    """
    found: dict[str, tuple[int, int]] = {}
    for place, pair in enumerate(pairs):
        if pair.is_same and pair.says_same:
            continue
        ended = len({end.get(pair.pod) for end in ends}) > 1
        rank = 2 if pair.is_same else 0 if ended else 1
        found[pair.pod] = min((rank, place), found.get(pair.pod, (rank, place)))
    return [pairs[place] for _, place in sorted(found.values())]


def n_same(pairs: Sequence[Beside[D]]) -> int:
    """Decisions that are the same on all sides before the first that is not."""
    return next((place for place, pair in enumerate(pairs) if not pair.is_same), len(pairs))


# ---- why they part

Told = Mapping[str, Any] | None
"""The explanation of a cycle (`filter`, `scores`, `weights`, `total`, `tie`); None where none is kept."""


def why(
    pair: Beside[Any],
    told: tuple[Told, Told],
    names: tuple[str, str],
    ends: tuple[str | None, str | None] = ("", ""),
) -> str:
    """One sentence: which plugin, score or filter made the difference between two sides; empty where it is not known.

    Parameters
    ----------
    names
        What the sides are called within a sentence.
    ends
        The node the pod is on, a side: empty while it waits, None where it is not there.
    """
    a, b = pair.decisions
    if a is None or b is None:
        return _why_alone(pair, told, names, ends)
    for here, other, name, others in ((0, 1, names[1], names[0]), (1, 0, names[0], names[1])):
        node = (a, b)[here].node
        rejected = _rejected(told[other], node)
        if node and rejected:
            return f"{rejected[0]} rejects {node} in {name} ({rejected[1]}), but not in {others}."
    if not a.node and not b.node and a.outcome == b.outcome:
        return "It waits on both sides, with different messages."
    if not a.node and not b.node:
        return f"No node fits on either side; {names[0]} ends with {a.outcome}, {names[1]} with {b.outcome}."
    if not a.node or not b.node:
        side, node = (1, b.node) if b.node else (0, a.node)
        if told[1 - side] is not None:
            return f"{node} is no candidate in {names[1 - side]}."
        return ""
    if told[0] is None or told[1] is None or a.node == b.node:
        return ""
    return _why_points(a.node, b.node, told[0], told[1], names)


def _why_alone(
    pair: Beside[Any], told: tuple[Told, Told], names: tuple[str, str], ends: tuple[str | None, str | None]
) -> str:
    side = 0 if pair.decisions[0] is not None else 1
    name, other, stays = names[side], names[1 - side], ends[1 - side]
    if stays is None:
        return f"Only {name} decided this pod; in {other} it does not exist."
    if not stays:
        return f"Only {name} decided this pod; in {other} it was not tried."
    rejected = _rejected(told[side], stays)
    if rejected:
        return f"In {other} it stays on {stays}. In {name} {rejected[0]} rejects that node ({rejected[1]})."
    document = told[side]
    if document is not None and stays not in (document.get("total") or {}):
        return f"In {other} it stays on {stays}, which is no candidate in {name}."
    return f"In {other} it stays on {stays}; in {name} it is placed anew."


def _rejected(told: Told, node: str) -> tuple[str, str] | None:
    """The plugin that rejects a node, and its reasons."""
    verdict = ((told or {}).get("filter") or {}).get(node)
    if verdict is None:
        return None
    return str(verdict.get("plugin")), "; ".join(map(of_one, verdict.get("reasons") or ()))


def _why_points(
    x: str, y: str, in_a: Mapping[str, Any], in_b: Mapping[str, Any], names: tuple[str, str]
) -> str:
    """Why x has the most points on one side and y on the other: the plugin whose points moved most."""
    points = [points_of(document) for document in (in_a, in_b)]
    lead = [
        {plugin: by_node.get(x, 0) - by_node.get(y, 0) for plugin, by_node in side.items()} for side in points
    ]
    moved = {
        plugin: lead[0].get(plugin, 0) - lead[1].get(plugin, 0)
        for plugin in dict.fromkeys([*lead[0], *lead[1]])
    }
    totals = [document.get("total") or {} for document in (in_a, in_b)]
    most = max(sorted(moved), key=lambda plugin: moved[plugin], default="")
    if not most or moved[most] <= 0:
        if all(total.get(x) == total.get(y) for total in totals):
            return f"{x} and {y} have the same points on both sides: a tie, which a random draw settles."
        return f"{x} has the most points in {names[0]}, {y} in {names[1]}."
    told = "; ".join(
        f"in {name} {side.get(most, {}).get(x, 0)} to {x} and {side.get(most, {}).get(y, 0)} to {y}"
        for side, name in zip(points, names, strict=True)
    )
    return f"The points of {most} make the difference: {told}."


def points_of(document: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Plugin -> node -> weighted points."""
    weights = document.get("weights") or {}
    return {
        plugin: {node: score * weights.get(plugin, 1) for node, score in by_node.items()}
        for plugin, by_node in (document.get("scores") or {}).items()
    }


# ---- two runs


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """What one plugin gave one node in either run, weighted; None where it was not scored."""

    node: str
    plugin: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first decision about the first pod whose outcome differs between two runs (`partings`).

    Attributes
    ----------
    number : int
        Its number in the first run, or in the second where the first made none.
    a, b : str
        What happened in either, in a sentence; never the same twice.
    cycles : tuple of (int or None)
        Its number in either run.
    totals : dict of str to (int or None, int or None)
        Node -> total score in either run, best of run a first; empty without full traces.
    scores : tuple of ScoreDifference
        Weighted scores that differ, largest difference first.
    reasons : dict of str to tuple of str
        Nodes feasible in one run only: the reason in either, empty where the node is feasible.
    """

    number: int
    pod: str
    a: str
    b: str
    cycles: tuple[int | None, int | None]
    totals: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    scores: tuple[ScoreDifference, ...] = ()
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)


def compare(a: ScenarioRun, b: ScenarioRun) -> Divergence | None:
    """The first decision that differs between two runs: of two configurations, two scenarios, or two seeds.

    Where the runs kept summaries only, both are run again up to the cycle in which they part, for its scores.
    """
    ends = _ends(a), _ends(b)
    parted = next(iter(partings(beside((a.cycles, b.cycles), ends), ends)), None)
    return None if parted is None else _divergence(a, b, parted, ends)


def _ends(run: ScenarioRun) -> dict[str, str]:
    return {stored.typed.key: stored.typed.node_name for stored in run.simulation.world.all("Pod")}


def _divergence(
    a: ScenarioRun, b: ScenarioRun, pair: Beside[CycleTrace], ends: tuple[Ends, Ends]
) -> Divergence:
    traces = [one and full_cycle(run, one) for run, one in zip((a, b), pair.decisions, strict=True)]
    return two_decisions(traces[0], traces[1], (ends[0].get(pair.pod), ends[1].get(pair.pod)))


def full_cycle(run: ScenarioRun, trace: CycleTrace) -> CycleTrace:
    """A cycle of the run, decided again where only its summary was kept."""
    if trace.is_full or trace.outcome == ERROR:
        return trace
    again, _ = run_to_cycle(
        run.scenario,
        trace.number,
        seed=run.simulation.randomness.seed,
        release=run.release,
        first_of_ties=run.first_of_ties,
    )
    return again.cycle(trace.number) or trace


def no_decision(end: str | None) -> str:
    """What became of a pod that a side did not decide, by its node there: empty while it waits, None without one."""
    if end is None:
        return "There is no such pod."
    return f"It stays on {end}." if end else "It was not tried."


def two_decisions(
    a: CycleTrace | None, b: CycleTrace | None, ends: tuple[str | None, str | None] = (None, None)
) -> Divergence:
    """Two decisions side by side, one of which may be missing; with scores and reasons where both are full.

    Parameters
    ----------
    ends
        Where the pod ended in either run, for the one without a decision.
    """
    present = a or b
    assert present is not None
    cycles = None if a is None else a.number, None if b is None else b.number
    said_a = no_decision(ends[0]) if a is None else sentence(a)
    said_b = no_decision(ends[1]) if b is None else sentence(b)
    if a is not None and b is not None and said_a == said_b and a.message != b.message:
        said_a, said_b = (f"{headline(cycle)}: {cycle.message or 'nothing is said'}" for cycle in (a, b))
    if a is None or b is None or not (a.is_full and b.is_full):
        return Divergence(present.number, present.pod, said_a, said_b, cycles)
    one, other = a.explain(), b.explain()
    totals_a, totals_b = one["total"] or {}, other["total"] or {}
    nodes = sorted(totals_a.keys() | totals_b.keys(), key=lambda node: (-(totals_a.get(node) or 0), node))
    points_a, points_b = points_of(one), points_of(other)
    scores = [
        ScoreDifference(node, plugin, in_a, in_b)
        for plugin in dict.fromkeys((*points_a, *points_b))
        for node in nodes
        if (in_a := points_a.get(plugin, {}).get(node)) != (in_b := points_b.get(plugin, {}).get(node))
    ]
    scores.sort(key=lambda item: -abs((item.a or 0) - (item.b or 0)))
    return Divergence(
        present.number,
        present.pod,
        said_a,
        said_b,
        cycles,
        {node: (totals_a.get(node), totals_b.get(node)) for node in nodes},
        tuple(scores),
        reasons_apart((one, other)),
    )


def reasons_apart(told: Sequence[Told]) -> dict[str, tuple[str, ...]]:
    """Nodes that some sides reject and others do not -> the reason on each side, empty where it is no reason."""
    verdicts = [(document or {}).get("filter") or {} for document in told]
    rows = {
        node: tuple(_reason(found.get(node)) for found in verdicts)
        for node in sorted({node for found in verdicts for node in found})
    }
    return {node: reasons for node, reasons in rows.items() if len(set(map(bool, reasons))) > 1}


def _reason(verdict: Mapping[str, Any] | None) -> str:
    return "" if verdict is None else f"{verdict.get('plugin')}: {'; '.join(verdict.get('reasons') or ())}"


NEW, NEW_PENDING, GONE = "new", "newPending", "gone"
KINDS: Final = (MOVED, NEWLY_PENDING, NEWLY_PLACED, NEWLY_EVICTED, NEW_PENDING, NEW, GONE)

NODE_MISSING, NODE_NEW, REJECTED, ADMITTED, POINTS, DRAW, NOT_DECIDED, NO_NODE, EVICTED = (
    "nodeMissing", "nodeNew", "rejected", "admitted", "points", "draw", "notDecided", "noNode", "evicted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Landing:
    """A pod that ends otherwise in the second run.

    Attributes
    ----------
    kind : str
        One of `KINDS`: on another node; without one; with one only now; evicted and not made again; there in the second
        run only, without a node or with one; there in the first run only.
    pod, was : str
        Its name in the second run and in the first; empty where it is not there.
    workload : str
        `Deployment shop/web`.
    before, after : str
        Its node, empty for none.
    cycles : tuple of (int or None)
        Its last decision in either run, None where there was none.
    message : str
        Why it has no node in the second run.
    """

    kind: str
    pod: str
    was: str
    workload: str
    before: str
    after: str
    cycles: tuple[int | None, int | None]
    message: str = ""

    @property
    def name(self) -> str:
        """In the second run where it is there, else in the first."""
        return self.pod or self.was


@dataclass(frozen=True, slots=True)
class Why:
    """Why a pod does not end as in the first run.

    Attributes
    ----------
    kind : str
        ``nodeMissing``, ``nodeNew``: the node is in one run only. ``rejected``: a plugin rejects the first run's node
        now. ``admitted``: it rejects the second run's node no longer. ``points``: a plugin parts them. ``draw``: equals
        were drawn. ``notDecided``: one run has it on its node from the start. ``noNode``: none takes it. ``evicted``.
    plugin, reason : str
        Where a plugin is the cause.
    points : tuple of int
        Of the first run's node and of the second run's, both in the second run.
    n_nodes : int
        Nodes that the plugin treats so now and did not before.
    """

    kind: str
    plugin: str = ""
    reason: str = ""
    points: tuple[int, int] = (0, 0)
    n_nodes: int = 0


@dataclass(frozen=True, slots=True)
class _End:
    pod: str
    workload: str
    node: str
    cycle: int | None
    message: str


def landings(a: ScenarioRun, b: ScenarioRun) -> tuple[list[Landing], int]:
    """Pods that end otherwise, in the order the second run came to them, and how many end alike.

    Of pods that were not decided in the second run the first run's order counts, and then their names.
    """
    ends_a, ends_b = _landing_ends(a), _landing_ends(b)
    pairs: list[tuple[_End | None, _End | None]] = [
        (end, ends_b[pod]) for pod, end in ends_a.items() if pod in ends_b
    ]
    rest_a = [end for pod, end in ends_a.items() if pod not in ends_b]
    rest_b = [end for pod, end in ends_b.items() if pod not in ends_a]
    pairs += _stand_ins(rest_a, rest_b)
    evicted = {one.pod for one in b.evictions} - {one.pod for one in a.evictions}
    found, n_same = [], 0
    for one, other in pairs:
        landing = _landing(one, other, evicted)
        if landing is None:
            n_same += 1
        else:
            found.append(landing)
    last = max(len(a.cycles), len(b.cycles)) + 1
    found.sort(key=lambda one: (one.cycles[1] or last, one.cycles[0] or last, one.name))
    return found, n_same


def _landing_ends(run: ScenarioRun) -> dict[str, _End]:
    found = {}
    for stored in run.simulation.world.all("Pod"):
        pod = stored.typed
        if pod.is_terminal:
            continue
        kind, name = owner_of(run.simulation, pod)
        cycles = run.cycles_of(pod.key)
        found[pod.key] = _End(
            pod.key,
            f"{kind} {pod.namespace}/{name}",
            pod.node_name,
            cycles[-1].number if cycles else None,
            (cycles[-1].message or "") if cycles and not pod.node_name else "",
        )
    return dict(sorted(found.items()))


def _stand_ins(rest_a: Sequence[_End], rest_b: Sequence[_End]) -> list[tuple[_End | None, _End | None]]:
    """Pods of other names paired within their workload: those on the same node first, then in order."""
    pairs: list[tuple[_End | None, _End | None]] = []
    of_b: dict[str, list[_End]] = {}
    for end in rest_b:
        of_b.setdefault(end.workload, []).append(end)
    left: list[_End] = []
    for end in rest_a:
        others = of_b.get(end.workload, [])
        same = next((other for other in others if other.node == end.node), None)
        if same is None:
            left.append(end)
        else:
            others.remove(same)
            pairs.append((end, same))
    for end in left:
        others = of_b.get(end.workload, [])
        pairs.append((end, others.pop(0) if others else None))
    return pairs + [(None, end) for ends in of_b.values() for end in ends]


def _landing(a: _End | None, b: _End | None, evicted: set[str]) -> Landing | None:
    before, after = a.node if a else "", b.node if b else ""
    if a is None:
        kind = NEW if after else NEW_PENDING
    elif b is None:
        kind = NEWLY_EVICTED if a.pod in evicted else GONE
    elif before == after:
        return None
    elif before and after:
        kind = MOVED
    else:
        kind = NEWLY_PENDING if before else NEWLY_PLACED
    present = b or a
    assert present is not None
    return Landing(
        kind,
        b.pod if b else "",
        a.pod if a else "",
        present.workload,
        before,
        after,
        (a.cycle if a else None, b.cycle if b else None),
        b.message if b else "",
    )


def decisions_of_landing(a: ScenarioRun, b: ScenarioRun, landing: Landing) -> Divergence | None:
    """The last decision about the pod in either run, side by side; None where neither run decided about it."""
    traces = []
    for run, number in ((a, landing.cycles[0]), (b, landing.cycles[1])):
        trace = None if number is None else run.cycle(number)
        traces.append(trace and full_cycle(run, trace))
    if traces[0] is None and traces[1] is None:
        return None
    ends = (landing.before if landing.was else None, landing.after if landing.pod else None)
    return two_decisions(traces[0], traces[1], ends)


def why_elsewhere(a: ScenarioRun, b: ScenarioRun, landing: Landing, beside: Divergence | None) -> Why:
    """What makes a pod end otherwise, as its two decisions show it."""
    before, after = landing.before, landing.after
    if landing.kind == NEWLY_EVICTED:
        return Why(EVICTED, reason=next(one.preemptor for one in b.evictions if one.pod == landing.was))
    if before and b.simulation.world.get("Node", "", before) is None:
        return Why(NODE_MISSING)
    if beside is not None:
        rejected = _plugin_of(beside, before, 1)
        if before and rejected:
            n_nodes = sum(_plugin_of(beside, node, 1) == rejected for node in beside.reasons)
            return Why(REJECTED, *rejected, n_nodes=n_nodes)
        admitted = _plugin_of(beside, after, 0)
        if after and admitted:
            n_nodes = sum(_plugin_of(beside, node, 0) == admitted for node in beside.reasons)
            return Why(ADMITTED, *admitted, n_nodes=n_nodes)
    if not after:
        return Why(NO_NODE, reason=landing.message)
    if a.simulation.world.get("Node", "", after) is None:
        return Why(NODE_NEW)
    if beside is None or None in landing.cycles:
        return Why(NOT_DECIDED)
    return _by_points(beside, before, after) or Why(DRAW)


def _plugin_of(beside: Divergence, node: str, side: int) -> tuple[str, str] | None:
    said = beside.reasons.get(node, ("", ""))[side]
    plugin, colon, reason = said.partition(": ")
    return (plugin, reason) if colon else None


def _by_points(beside: Divergence, before: str, after: str) -> Why | None:
    """The plugin that did most for the second run's node, against what it did in the first."""
    gains: dict[str, int] = {}
    for score in beside.scores:
        if score.node in (before, after) and score.a is not None and score.b is not None:
            gain = score.b - score.a
            gains[score.plugin] = gains.get(score.plugin, 0) + (gain if score.node == after else -gain)
    best = max(gains, key=lambda plugin: gains[plugin], default=None)
    if best is None or gains[best] <= 0:
        return None
    totals = beside.totals
    return Why(POINTS, best, points=(totals.get(before, (0, 0))[1] or 0, totals.get(after, (0, 0))[1] or 0))
