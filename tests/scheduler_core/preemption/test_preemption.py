"""What the recorded preemptions leave open: candidates that are sampled, and a trace that tells of every node."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.framework.interface import ChoiceOptions
from scheduler_core.framework.preemption.candidates import CRITERIA
from tests.scheduler_core.recorded_clusters import RecordedCluster

pytestmark = pytest.mark.usefixtures("every_threshold")

SEEDS = st.integers(0, 2**32)
FEW_EXAMPLES = settings(max_examples=40)


@given(SEEDS, st.integers(0, 100), st.integers(0, 3))
@FEW_EXAMPLES
def test_sampled_candidates_are_the_first_ones_from_the_offset_on(
    seed: int, percentage: int, absolute: int
) -> None:
    full = RecordedCluster("preemption", seed)
    pod = full.incoming()
    everything = full.cluster.schedule(pod).post_filter
    framework = full.cluster.framework_for(pod)
    framework.handle.choices = ChoiceOptions(first_of_ties=True)
    plugin: Any = framework.plugins["DefaultPreemption"]
    plugin._percentage, plugin._absolute = percentage, max(1, absolute)
    sampled = full.cluster.schedule(pod).post_filter
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
    full = RecordedCluster("preemption", seed)
    result = full.cluster.schedule(full.incoming()).post_filter
    if result is None:
        return
    found = result.trace.explain()
    if not found.get("eligible", True):
        return
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
