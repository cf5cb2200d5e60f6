"""Reading scenarios: what is accepted, and what is said of the rest.

The canonical form and its digest: equal for documents that mean the same, and only for those.
"""

import random
from typing import Any

import pytest

from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario, scenario_digest
from tests.scheduler_core.scenario.builders import document, make_budget, make_node, make_pod, make_scenario
from tests.tables import table


def problems(source: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(source)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(("fields", "said"), table(__file__, "every_mistake_is_named_with_its_path"))
def test_every_mistake_is_named_with_its_path(fields: dict[str, Any], said: str) -> None:
    assert said in problems({**document(), **fields})[0]


def test_a_scenario_from_the_future_is_told_from_a_wrong_one() -> None:
    assert "a newer one is needed" in problems({**document(), "apiVersion": "scheduling.playground/v2"})[0]
    assert 'must be "scheduling.playground/v1"' in problems({**document(), "apiVersion": "apps/v1"})[0]
    assert problems({**document(), "kind": "scenaro"}) == ['kind: "scenaro" did you mean "Scenario"?']


@pytest.mark.parametrize(
    "text",
    ["", "- a", "a: [", "apiVersion: scheduling.playground/v1\nkind: Scenario\n---\na: b\n", "&a [*a]"],
)
def test_texts_that_hold_no_scenario_are_refused_whole(text: str) -> None:
    assert problems(text)


def test_a_list_of_manifests_is_opened() -> None:
    scenario = make_scenario({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]})
    assert scenario.objects == ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},)


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
