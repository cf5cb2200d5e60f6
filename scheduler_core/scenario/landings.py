"""Where pods end in two runs: who ends elsewhere, and why the first of them does.

Pods of one workload stand for each other: a changed template gives its pods other names, and they are no new pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scheduler_core.scenario.difference import (
    MOVED,
    NEWLY_EVICTED,
    NEWLY_PENDING,
    NEWLY_PLACED,
    Divergence,
    full_cycle,
    two_decisions,
)
from scheduler_core.scenario.ran import ScenarioRun
from scheduler_core.whatif.workloads import owner_of

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
    ends_a, ends_b = _ends(a), _ends(b)
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


def _ends(run: ScenarioRun) -> dict[str, _End]:
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


def why(a: ScenarioRun, b: ScenarioRun, landing: Landing, beside: Divergence | None) -> Why:
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
