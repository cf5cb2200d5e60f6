"""The canonical form and its digest: equal for documents that mean the same, and only for those."""

from __future__ import annotations

import random
from typing import Any

import pytest

from scheduler_core.scenario import load_scenario, run_scenario, scenario_digest
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from tests.scheduler_core.scenario.builders import document, make_budget, make_node, make_pod, make_scenario

BASE = (make_node("a"), make_node("b"), make_budget("z", "web"), make_budget("y", "api"), make_pod("p"))


def shuffled_keys(value: Any, seed: int) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled_keys(item, seed)) for key, item in value.items()]
        random.Random(seed).shuffle(items)
        return dict(items)
    return [shuffled_keys(item, seed) for item in value] if isinstance(value, list) else value


def test_spelling_changes_nothing() -> None:
    digest = scenario_digest(make_scenario(*BASE))
    node = {**make_node("a"), "status": {"allocatable": {"cpu": 4, "memory": "16384Mi", "pods": 110}}}
    node["metadata"] = {**node["metadata"], "uid": "17", "resourceVersion": "4", "managedFields": [{}]}
    assert scenario_digest(make_scenario(node, *BASE[1:])) == digest
    assert scenario_digest(load_scenario(shuffled_keys(document(*BASE), 3))) == digest
    assert (
        scenario_digest(make_scenario(*BASE, seed=0, emulates="v1.34.1", steps=[{"run": "idle"}])) == digest
    )
    assert (
        scenario_digest(make_scenario(*BASE, title="words", lesson="words", expect=[{"cycles": 1}])) == digest
    )
    assert scenario_digest(make_scenario(BASE[4], BASE[3], BASE[0], BASE[2], BASE[1])) == digest


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"start": "2025-01-02T00:00:00Z"},
        {"steps": [{"run": "cycle"}]},
        {"objects": [BASE[1], BASE[0], *BASE[2:]]},
        {"objects": [make_node("a", "5"), *BASE[1:]]},
    ],
)
def test_what_may_change_a_decision_changes_the_digest(other: dict[str, Any]) -> None:
    assert scenario_digest(load_scenario({**document(*BASE), **other})) != scenario_digest(
        make_scenario(*BASE)
    )


def test_documents_with_equal_digests_run_alike() -> None:
    pods = [make_pod(f"p{index}") for index in range(12)]
    first = make_scenario(*BASE[:4], *pods, seed=5)
    second = make_scenario(*pods, *reversed(BASE[2:4]), *BASE[:2], seed=5)
    assert scenario_digest(first) == scenario_digest(second)
    assert run_scenario(first).digest == run_scenario(second).digest


def test_templates_keep_their_spelling_because_pods_are_named_after_its_hash() -> None:
    def deployment(cpu: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {"app": "w"}}, "spec": make_pod("x", cpu)["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}

    one, other = (make_scenario(make_node("n"), deployment(cpu)) for cpu in ("1", "1000m"))
    assert run_scenario(one).digest != run_scenario(other).digest
    assert scenario_digest(one) != scenario_digest(other)


def test_no_two_gallery_scenarios_share_a_digest() -> None:
    assert len({scenario_digest(gallery_scenario(name)) for name in ORDER}) == len(ORDER)


def test_a_missing_pin_reads_as_the_oldest_default_for_ever() -> None:
    """These digests and decisions must never change: documents that are out there do not say what they leave out."""
    bare = {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "objects": [*(make_node(f"n{i}") for i in range(5)), *(make_pod(f"p{i}") for i in range(4))],
    }
    pinned = {"emulates": "v1.34", "seed": 0, "start": "2025-01-01T00:00:00Z", "steps": [{"run": "idle"}]}
    digest = "3235b9c17f1f2f05b749fd481ea52f870ee57a9ce835fc435b1acabf192e9471"
    assert scenario_digest(load_scenario(bare)) == digest
    assert scenario_digest(load_scenario(bare | pinned)) == digest
    run = run_scenario(load_scenario(bare))
    assert run.placement() == {
        "default/p0": "n0",
        "default/p1": "n4",
        "default/p2": "n1",
        "default/p3": "n2",
    }
    assert [trace.at_ns for trace in run.cycles] == [1_735_689_600_000_000_000] * 4


def test_without_a_pinned_share_every_node_is_looked_at_and_nothing_fails_by_chance() -> None:
    nodes = [make_node(f"n{i:03}") for i in range(300)]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    for scheduler in (None, config):
        fields = {} if scheduler is None else {"scheduler": scheduler}
        run = run_scenario(make_scenario(*nodes, make_pod("p"), **fields))
        assert run.cycles[0].n_evaluated == 300
        assert not run.simulation.options.faults.any
    sampled = run_scenario(
        make_scenario(*nodes, make_pod("p"), scheduler={**config, "percentageOfNodesToScore": 50})
    )
    assert sampled.cycles[0].n_evaluated == 150
