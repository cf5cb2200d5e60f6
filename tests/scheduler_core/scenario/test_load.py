"""Reading scenarios: what is accepted, and what is said of the rest.

The canonical form and its digest: equal for documents that mean the same, and only for those.
"""

import random
from typing import Any

import pytest

from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario, scenario_digest
from tests.scheduler_core.scenario.builders import document, make_budget, make_node, make_pod, make_scenario


def problems(source: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(source)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"step": []}, 'step: unknown field; did you mean "steps"?'),
        ({"steps": [{"rnu": "idle"}]}, 'steps[0].rnu: "idle" unknown field; did you mean "run"?'),
        ({"steps": [{"run": "idel"}]}, 'steps[0].run.until: "idel" did you mean "idle"?'),
        ({"steps": [{"advance": "-1s"}]}, 'steps[0].advance.by: "-1s" time cannot run backwards'),
        ({"steps": [{"cordon": "a", "drain": "b"}]}, "steps[0]: a step does exactly one of apply"),
        ({"steps": [{"delete": {"kind": "Pod"}}]}, "steps[0].delete.name: is required"),
        ({"expect": [{"pod": "p", "nod": "a"}]}, 'expect[0].nod: "a" unknown field; did you mean "node"?'),
        ({"expect": [{"pod": "p"}]}, "expect[0]: says nothing about the pod"),
        ({"expect": [{"node": "a"}]}, "expect[0]: an expectation is about exactly one of pod"),
        ({"expect": [{"cycles": 1, "node": "a"}]}, "expect[0]: node says nothing about cycles"),
        ({"expect": [{"metric": "bnd", "count": 1}]}, 'expect[0].metric: "bnd" did you mean "bound"?'),
        ({"emulates": "v1.40"}, 'emulates: "v1.40" is no release that is known here'),
        ({"start": "yesterday"}, 'start: "yesterday" must be an RFC 3339 time'),
        ({"seed": -1}, "seed: -1 must be at least 0"),
        ({"objects": [{"kind": "Pod"}]}, "objects[0].apiVersion: is required and must be a string"),
        ({"objects": [make_pod("p", "1x")]}, 'containers[0].resources.requests.cpu: Invalid value: "1x": quantities'),
        ({"objects": [make_node("n"), make_node("n")]}, "objects[1]: Node n is there twice"),
        ({"scheduler": {"apiVersion": "v1", "kind": "Nonsense"}}, "scheduler.kind"),
        ({"extenders": {"mock": [{"rules": [{}]}]}}, "extenders.mock[0].rules[0]: a rule does exactly one of deny"),
        ({"extenders": {"cassette": [{"verb": "guess"}]}}, 'extenders.cassette[0].verb: "guess"'),
        ({"extenders": {"cassette": ["?"]}}, 'extenders.cassette[0]: "?" must be an object'),
        ({"steps": [{"run": "idle"}] * 100_000}, "steps: has 100,000 entries, at most 50,000 are run"),
    ],
)  # fmt: skip
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
