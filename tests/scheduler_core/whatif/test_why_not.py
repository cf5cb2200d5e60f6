"""Why a node would not be chosen, with the values behind it.

Switch points are exact: the whole weights on either side, run again, have the winners that are told.
"""

import itertools
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.fork import Fork
from scheduler_core.framework.answers import PASSES
from scheduler_core.whatif.causes import cause_of, every_node, names_digest
from scheduler_core.whatif.tries import try_pod
from scheduler_core.whatif.weights import CycleWeights, upper_hull
from scheduler_core.whatif.why_not import UnknownNode, WhyNot, why_not
from tests.scheduler_core.whatif.random_clusters import SPREAD, Cluster, draw_cluster, node, pod


def ask(cluster: Cluster, name: str) -> WhyNot:
    return why_not(Fork(cluster.simulation().scheduler), cluster.pending_pod(), name)


def answer(found: WhyNot, plugin: str) -> tuple[str, bool, list[tuple[str, str, str, bool | None]]]:
    item = next(item for item in found.filters if item.plugin == plugin)
    return item.state, item.stopped, [(v.about, v.asks, v.has, v.ok) for v in item.values]


def test_a_full_node_says_what_is_asked_and_what_is_free() -> None:
    cluster = Cluster(
        [node("n0", cpu="2")], [pod("p0", on="n0", requests={"cpu": "1500m"})],
        pod("pending", requests={"cpu": "1", "memory": "1Gi"}, priority=0),
    )  # fmt: skip
    found = ask(cluster, "n0")
    state, stopped, values = answer(found, "NodeResourcesFit")
    assert (state, stopped) == ("fails", True)
    assert values[0] == ("cpu", "1 CPU", "0.5 free of 2", False)
    assert [value[3] for value in values] == [False, True, True]
    assert found.sentence == "n0 is rejected by NodeResourcesFit: Insufficient cpu."
    assert found.needs == ("0.5 CPU more: it asks 1 CPU, 0.5 free of 2",)


def test_filters_past_the_first_failure_are_asked_too() -> None:
    taint = {"taints": [{"key": "gpu", "value": "t4", "effect": "NoSchedule"}]}
    cluster = Cluster([node("n0", spec=taint)], [], pod("pending", requests={"cpu": "9"}, priority=0))
    found = ask(cluster, "n0")
    assert answer(found, "TaintToleration")[:2] == ("fails", True)
    assert answer(found, "TaintToleration")[2] == [
        ("gpu", "no matching toleration", "gpu=t4:NoSchedule", False)
    ]
    assert answer(found, "NodeResourcesFit")[:2] == ("fails", False)
    assert answer(found, "NodePorts")[0] == "skipped"


def test_a_nominated_pod_is_counted_in_and_told_apart() -> None:
    cluster = Cluster([node("n0", cpu="2")], [], pod("pending", requests={"cpu": "1500m"}, priority=0))
    simulation = cluster.simulation()
    nominated = Cluster([], [], pod("nominated", requests={"cpu": "1"}, priority=10)).pending_pod()
    simulation.scheduler.pods[nominated.uid] = nominated
    simulation.scheduler.nominator.add(nominated, "n0")
    found = why_not(Fork(simulation.scheduler), cluster.pending_pod(), "n0")
    item = next(item for item in found.filters if item.plugin == "NodeResourcesFit")
    assert (item.state, item.stopped, found.nominated) == ("fails", True, ("default/nominated",))
    assert (item.values[0].has, item.values[0].with_nominated) == ("2 free of 2", "1 free")


def test_spread_is_told_in_pods_of_the_domain_and_of_the_emptiest() -> None:
    nodes = [node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"})]
    pods = [pod("p0", on="n0", labels={"app": "x"})]
    pending = pod("pending", labels={"app": "x"}, priority=0, topologySpreadConstraints=[SPREAD])
    state, _, values = answer(ask(Cluster(nodes, pods, pending), "n0"), "PodTopologySpread")
    assert state == "fails"
    assert values == [
        ("zone", "maxSkew 1 over zone", "a holds 1, the emptiest domain 0: with this pod a skew of 2", False)
    ]


def test_a_feasible_node_that_lost_is_compared_score_by_score() -> None:
    nodes = [node("n0", cpu="2"), node("n1", cpu="4", memory="8Gi")]
    pods = [pod("p0", on="n0", requests={"cpu": "1", "memory": "1Gi"})]
    found = ask(Cluster(nodes, pods, pod("pending", requests={"cpu": "500m"}, priority=0)), "n0")
    assert (found.verdict, found.winner, found.rank) == ("lost", "n1", 2)
    assert found.margin == sum((item.winner_score - item.score) * item.weight for item in found.scores)
    assert f"{found.margin} points less than n1" in found.sentence
    assert ask(Cluster(nodes, pods, pod("pending", priority=0)), "n1").verdict == "chosen"


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(UnknownNode):
        ask(Cluster([node("n0")], [], pod("pending", priority=0)), "n9")


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_verdict_is_the_cycles_own(seed: int) -> None:
    cluster = draw_cluster(Random(seed))
    fork = Fork(cluster.simulation().scheduler)
    attempt = fork.attempt(cluster.pending_pod())
    groups = cause_of(fork, cluster.pending_pod(), "").groups
    if attempt.pre_filter_status.is_success:
        assert sum(group.nodes for group in groups) == len(cluster.nodes)
    for row in fork.snapshot.rows.tolist():
        name = fork.snapshot.nodes.name(row)
        found = why_not(fork, cluster.pending_pod(), name)
        feasible = row in attempt.feasible.tolist()
        assert feasible == (found.verdict != "rejected")
        assert found.sentence
        if feasible:
            assert all(item.state != "fails" for item in found.filters)
            continue
        assert any(item.state == "fails" for item in found.filters)
        if attempt.pre_filter_status.is_success and row in attempt.rows.tolist():
            place = attempt.rows.tolist().index(row)
            if int(attempt.stop[place]) < PASSES and row not in attempt.explicit:
                assert found.rejected_by == attempt.framework.filter[int(attempt.stop[place])].name
                item = next(item for item in found.filters if item.stopped)
                # Words of ours never contradict the plugin.
                assert not item.values or any(value.ok is not True for value in item.values)
        for item in found.filters:
            if item.state == "pass":
                assert all(value.ok is not False for value in item.values), (item.plugin, item.values)


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


@settings(max_examples=20, deadline=None)
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


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_which_nodes_take_a_pod_is_what_its_cycle_finds(seed: int) -> None:
    cluster = draw_cluster(Random(seed))
    pending = cluster.pending_pod()
    whole = every_node(Fork(cluster.simulation().scheduler), pending)
    names = sorted(one["metadata"]["name"] for one in cluster.nodes)
    assert whole["names"] == names_digest(names)
    decision = Fork(cluster.simulation().scheduler).decide(pending, preempt=True)
    attempt, told = decision.attempt, decision.post_filter
    fits = (
        {attempt.name_of(row) for row in attempt.feasible.tolist()}
        if attempt.pre_filter_status.is_success
        else set()
    )
    assert {name for name, letter in zip(names, whole["letters"], strict=True) if letter == "f"} == fits
    if told is not None and told.trace.found is not None:
        helped = {told.trace.found.name_of(place) for place in range(len(told.trace.found))}
        assert {name for name, letter in zip(names, whole["letters"], strict=True) if letter == "p"} == helped
    for name, why in zip(names, whole["why"], strict=True):
        found = why_not(Fork(cluster.simulation().scheduler), pending, name)
        assert (whole["reasons"][why]["reason"] == "fits") == (name in fits)
        assert name in fits or whole["reasons"][why]["plugin"] == found.rejected_by
