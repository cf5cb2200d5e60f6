"""Two runs beside each other: where they part, what each plugin said there, who landed elsewhere, and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.framework.record import ERROR, CycleTrace
from scheduler_core.framework.words import sentence
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.scenario.run import run_to_cycle


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """What one plugin gave one node in either run, weighted; None where it was not scored."""

    node: str
    plugin: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first cycle in which two runs decide differently.

    Attributes
    ----------
    number : int
        Its number in both runs; a run may be over before it.
    a, b : str
        What happened in either, in a sentence.
    totals : dict of str to (int or None, int or None)
        Node -> total score in either run, best of run a first; empty without full traces.
    scores : tuple of ScoreDifference
        Weighted scores that differ, largest difference first.
    reasons : dict of str to (str, str)
        Nodes feasible in one run only: the reason in either, empty where the node is feasible.
    """

    number: int
    pod: str
    a: str
    b: str
    totals: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    scores: tuple[ScoreDifference, ...] = ()
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """A pod that ended elsewhere; None: on no node, or not there."""

    pod: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs beside each other.

    Attributes
    ----------
    n_same : int
        Cycles from the first on that are the same.
    figures : dict of str to (float, float)
        Each of `ScenarioRun.metrics` in either run.
    packing : dict of str to (tuple of str, tuple of str)
        Node -> its pods in either run, for nodes whose pods differ.
    """

    n_same: int
    divergence: Divergence | None
    moved: tuple[Moved, ...]
    figures: dict[str, tuple[float, float]]
    packing: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @property
    def is_same(self) -> bool:
        return self.divergence is None

    def explain(self) -> dict[str, Any]:
        """JSON-able."""
        parted = self.divergence
        return {
            "same": self.is_same,
            "nSame": self.n_same,
            "divergence": None
            if parted is None
            else {
                "cycle": parted.number,
                "pod": parted.pod,
                "a": parted.a,
                "b": parted.b,
                "totals": {node: list(pair) for node, pair in parted.totals.items()},
                "scores": [
                    {"node": item.node, "plugin": item.plugin, "a": item.a, "b": item.b}
                    for item in parted.scores
                ],
                "reasons": {node: list(pair) for node, pair in parted.reasons.items()},
            },
            "moved": [{"pod": item.pod, "a": item.a, "b": item.b} for item in self.moved],
            "figures": {name: list(pair) for name, pair in self.figures.items()},
            "packing": {node: [list(pods) for pods in pair] for node, pair in self.packing.items()},
        }


def compare(a: ScenarioRun, b: ScenarioRun) -> ComparedRuns:
    """Compare two runs: of two configurations, two scenarios, or two seeds.

    Where the runs kept summaries only, both are run again up to the cycle in which they part, for its scores.
    """
    n_same = 0
    for first, second in zip(a.cycles, b.cycles, strict=False):
        if first.digest != second.digest:
            break
        n_same += 1
    divergence = None
    if n_same < max(len(a.cycles), len(b.cycles)):
        divergence = beside(full_cycle(a, n_same), full_cycle(b, n_same))
    in_a, in_b = a.placement(), b.placement()
    moved = tuple(
        Moved(pod, in_a.get(pod), in_b.get(pod))
        for pod in sorted(in_a.keys() | in_b.keys())
        if in_a.get(pod) != in_b.get(pod)
    )
    figures_a, figures_b = a.metrics(), b.metrics()
    on_a, on_b = _by_node(in_a), _by_node(in_b)
    return ComparedRuns(
        n_same,
        divergence,
        moved,
        {name: (figures_a[name], figures_b[name]) for name in figures_a},
        {
            node: (on_a.get(node, ()), on_b.get(node, ()))
            for node in sorted(on_a.keys() | on_b.keys())
            if on_a.get(node) != on_b.get(node)
        },
    )


def full_cycle(run: ScenarioRun, place: int) -> CycleTrace | None:
    """The cycle at a place, decided again where only its summary was kept; None behind the last one."""
    if place >= len(run.cycles):
        return None
    trace = run.cycles[place]
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


def _by_node(placement: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    nodes: dict[str, list[str]] = {}
    for pod, node in placement.items():
        nodes.setdefault(node, []).append(pod)
    return {node: tuple(pods) for node, pods in nodes.items()}


def beside(a: CycleTrace | None, b: CycleTrace | None) -> Divergence:
    """Two decisions side by side, one of which may be missing; with scores and reasons where both are full."""
    present = a or b
    assert present is not None
    over = "The run is over."
    said_a = over if a is None else sentence(a)
    said_b = over if b is None else sentence(b)
    if a is None or b is None or not (a.is_full and b.is_full):
        return Divergence(present.number, present.pod, said_a, said_b)
    one, other = a.explain(), b.explain()
    totals_a, totals_b = one["total"] or {}, other["total"] or {}
    nodes = sorted(totals_a.keys() | totals_b.keys(), key=lambda node: (-(totals_a.get(node) or 0), node))
    scores = []
    for plugin in dict.fromkeys((*(one["scores"] or {}), *(other["scores"] or {}))):
        for node in nodes:
            in_a, in_b = _weighted(one, plugin, node), _weighted(other, plugin, node)
            if in_a != in_b:
                scores.append(ScoreDifference(node, plugin, in_a, in_b))
    scores.sort(key=lambda item: -abs((item.a or 0) - (item.b or 0)))
    return Divergence(
        present.number,
        present.pod,
        said_a,
        said_b,
        {node: (totals_a.get(node), totals_b.get(node)) for node in nodes},
        tuple(scores),
        _reasons(one, other),
    )


def _weighted(explained: Mapping[str, Any], plugin: str, node: str) -> int | None:
    score = ((explained["scores"] or {}).get(plugin) or {}).get(node)
    return None if score is None else score * explained["weights"].get(plugin, 1)


def _reasons(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    result = {}
    rejected_a, rejected_b = a["filter"] or {}, b["filter"] or {}
    for node in sorted(rejected_a.keys() | rejected_b.keys()):
        pair = (_reason(rejected_a.get(node)), _reason(rejected_b.get(node)))
        if bool(pair[0]) != bool(pair[1]):
            result[node] = pair
    return result


def _reason(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None:
        return ""
    return f"{verdict['plugin']}: {'; '.join(verdict['reasons'])}"
