"""Reading scenarios: what is accepted, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.scenario import ScenarioError, dump_scenario, load_scenario
from tests.scheduler_core.scenario.builders import document, make_node, make_pod, make_scenario


def problems(source: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(source)
    return [str(problem) for problem in caught.value.problems]


def test_missing_pins_read_as_the_oldest_defaults() -> None:
    scenario = make_scenario()
    assert (scenario.kubernetes_release, scenario.seed, scenario.start_ns) == (
        "1.34",
        0,
        1_735_689_600_000_000_000,
    )


def test_what_is_written_reads_back_equal() -> None:
    scenario = make_scenario(
        make_node("n"),
        make_pod("p"),
        seed=7,
        steps=[
            {"run": "idle"},
            {"advance": "90s"},
            {"run": {"until": "idle", "cycles": 3}},
            {"advance": {"by": "0s", "cycles": 0}},
        ],
        expect=[{"pod": "p", "state": "bound"}, {"cycles": 1}],
    )
    assert load_scenario(dump_scenario(scenario)) == scenario


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


def test_problems_of_a_text_know_their_line() -> None:
    text = dump_scenario(make_scenario(make_node("n"))).replace("seed: 0", "sead: 0")
    assert problems(text)[0].startswith('line 4: sead: 0 unknown field; did you mean "seed"?')


@pytest.mark.parametrize(
    "text",
    ["", "- a", "a: [", "apiVersion: scheduling.playground/v1\nkind: Scenario\n---\na: b\n", "&a [*a]"],
)
def test_texts_that_hold_no_scenario_are_refused_whole(text: str) -> None:
    assert problems(text)


def test_older_api_versions_are_read_as_the_present_one() -> None:
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    assert make_scenario(budget).objects[0]["apiVersion"] == "policy/v1"


def test_a_list_of_manifests_is_opened() -> None:
    scenario = make_scenario({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]})
    assert scenario.objects == ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},)
