"""Preemption takes no more than it must, leaves no mark, and tells of every node."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.framework.interface import ChoiceOptions
from scheduler_core.framework.preemption.candidates import CRITERIA
from tests.scheduler_core.preemption.clusters import FullCluster, set_choices

pytestmark = pytest.mark.usefixtures("every_threshold")

SEEDS = st.integers(0, 2**32)
FEW_EXAMPLES = settings(max_examples=40)


@given(SEEDS)
@FEW_EXAMPLES
def test_a_preemption_takes_only_lower_pods_of_one_node_and_no_part_of_them_would_do(seed: int) -> None:
    full = FullCluster(seed, pod_affinity=False)
    decision = full.schedule()
    result = decision.post_filter
    if result is None or not result.status.is_success:
        return
    assert result.victims
    assert {victim.node_name for victim in result.victims} == {result.nominated_node_name}
    assert all(victim.priority < full.pod.priority for victim in result.victims)
    row = np.array([full.cluster.cache.nodes.row_of[result.nominated_node_name or ""]], np.int64)
    pods = full.cluster.cache.pods
    place = np.zeros(1, np.int64)

    def fits_without(gone: Any) -> bool:
        world = decision.attempt.what_if(row)
        for victim in gone:
            world.remove_pods(place, np.array([pods.id_of[victim.uid]], np.int64))
        return bool(world.feasible(place)[0])

    assert fits_without(result.victims)
    for size in range(len(result.victims)):
        for part in combinations(result.victims, size):
            # Two pods with one host port: upstream forgets the port with the first of them.
            if not any(victim.host_ports for victim in result.victims):
                assert not fits_without(part)


@given(SEEDS)
@FEW_EXAMPLES
def test_preemption_leaves_the_cluster_as_it_was(seed: int) -> None:
    full = FullCluster(seed)
    cache = full.cluster.cache
    nodes = cache.nodes
    before = [
        column.copy()
        for column in (nodes.requested, nodes.non_zero, nodes.n_pods, cache.pods.row, cache.pods.priority)
    ]
    known = dict(cache.pods.id_of)
    first, second = full.schedule(), full.schedule()
    after = (nodes.requested, nodes.non_zero, nodes.n_pods, cache.pods.row, cache.pods.priority)
    for old, new in zip(before[:4], after[:4], strict=True):
        assert np.array_equal(old, new[..., : old.shape[-1]])
    assert known == cache.pods.id_of
    assert first.message == second.message
    if first.post_filter is not None and second.post_filter is not None:
        assert first.post_filter.victims == second.post_filter.victims


@given(SEEDS, st.integers(0, 100), st.integers(0, 3))
@FEW_EXAMPLES
def test_sampled_candidates_are_the_first_ones_from_the_offset_on(
    seed: int, percentage: int, absolute: int
) -> None:
    full = FullCluster(seed)
    everything = full.schedule().post_filter
    set_choices(full.cluster, ChoiceOptions(first_of_ties=True))
    plugin: Any = full.framework.plugins["DefaultPreemption"]
    plugin._percentage, plugin._absolute = percentage, max(1, absolute)
    sampled = full.schedule().post_filter
    if everything is None or sampled is None:
        return
    whole, part = everything.trace.explain(), sampled.trace.explain()
    if part["sampling"] is None:
        return
    assert everything.status.code is sampled.status.code
    all_of_them = {item["node"]: item for item in whole["candidates"]}
    offset, wanted = part["sampling"]["offset"], part["sampling"]["wanted"]
    potential = sampled.trace.potential.tolist()
    turns = [full.cluster.cache.nodes.name(row) for row in potential[offset:] + potential[:offset]]
    harmless: list[str] = []
    harmful: list[str] = []
    for name in turns:
        if name in all_of_them:
            kind = harmful if all_of_them[name]["numPDBViolations"] else harmless
            if len(kind) < wanted:
                kind.append(name)
            if harmless and len(harmless) + len(harmful) >= wanted:
                break
    assert [item["node"] for item in part["candidates"]] == sorted(harmless + harmful)
    for item in part["candidates"]:
        assert item["victims"] == all_of_them[item["node"]]["victims"]


@given(SEEDS)
@FEW_EXAMPLES
def test_the_trace_tells_of_every_node_and_why_each_candidate_was_dropped(seed: int) -> None:
    full = FullCluster(seed)
    result = full.schedule().post_filter
    if result is None:
        return
    found = result.trace.explain()
    names = [item["node"] for item in found["candidates"]]
    others = [name for group in found["notCandidates"] for name in group["nodes"]]
    assert sorted(names + others) == sorted(full.cluster.cache.node_order())
    left = len(names)
    for criterion in found["criteria"]:
        dropped = [item for item in found["candidates"] if item["eliminatedAt"] == criterion["name"]]
        left -= len(dropped)
        assert criterion["left"] == left
        for item in dropped:
            assert item["criterionValues"][criterion["name"]] != criterion["best"]
            assert list(item["criterionValues"]) == list(CRITERIA[: len(item["criterionValues"])])
    if names:
        assert left == max(1, len(found["tied"]))
    for item in found["candidates"]:
        victims = [step for step in item["steps"] if not step["kept"]]
        assert sorted(item["victims"]) == sorted(step["pod"] for step in victims)
        assert item["numPDBViolations"] == sum(step["violatesBudget"] for step in victims)
        assert item["violatedBudgets"] == sorted({name for step in victims for name in step["budgets"]})
        assert all(step["violatesBudget"] == bool(step["budgets"]) for step in item["steps"])
        # After the preemption the pod has room on every candidate.
        assert all(room["after"] <= room["allocatable"] for room in item["room"].values())
