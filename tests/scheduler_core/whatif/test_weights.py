"""Switch points are exact: the whole weights on either side, run again, have the winners that are told."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.whatif.fork import Fork
from scheduler_core.whatif.tries import try_pod
from scheduler_core.whatif.weights import CycleWeights, upper_hull
from tests.scheduler_core.whatif.random_clusters import Cluster, draw_cluster, node, pod

LINES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8)), min_size=1, max_size=8)


@given(LINES)
def test_the_hull_has_the_winners_of_every_weight(lines: list[tuple[int, int]]) -> None:
    base, slopes = np.array(lines, np.int64).T
    names = tuple(f"n{index}" for index in range(len(lines)))
    parts = upper_hull(names, base, slopes)
    assert parts[0].start == 0
    assert parts[-1].end is None
    for before, after in itertools.pairwise(parts):
        assert before.end == after.start
    for part in parts:
        end = part.start + 2 if part.end is None else part.end
        for step in range(1, 4):
            weight = part.start + (end - part.start) * Fraction(step, 4)
            totals = [int(b) + weight * int(s) for b, s in lines]
            assert part.winners == tuple(
                name for name, total in zip(names, totals, strict=True) if total == max(totals)
            )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whole_weights_on_either_side_run_again_have_the_winners_told(seed: int) -> None:
    cluster = draw_cluster(Random(seed))
    pending = pod("pending", labels={"app": "x"}, requests={"cpu": "100m"}, priority=0)
    pending["spec"]["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
    cluster = Cluster(cluster.nodes, cluster.pods, pending)
    fork = Fork(cluster.simulation().scheduler)
    decision = fork.decide(cluster.pending_pod())
    if decision.n_feasible < 2:
        return
    trace = try_pod(cluster.simulation().scheduler, cluster.pending_pod()).trace
    assert trace is not None
    found = CycleWeights.of(trace)
    assert found is not None
    assert found.winners() == tuple(decision.ties)
    for plugin in found.all_plugins():
        for switch in plugin.switches:
            for weight in (switch.below, switch.above):
                if weight < 1:  # no configuration has one
                    continue
                again = fork.decide(cluster.pending_pod(), weights={plugin.plugin: weight})
                assert set(again.ties) == set(plugin.winners_at(weight))
                assert set(again.ties) == set(found.winners({plugin.plugin: weight}))


def test_a_cycle_with_one_feasible_node_has_no_weights() -> None:
    cluster = Cluster([node("n0")], [], pod("pending", priority=0))
    trace = try_pod(cluster.simulation().scheduler, cluster.pending_pod()).trace
    assert trace is not None
    assert CycleWeights.of(trace) is None
