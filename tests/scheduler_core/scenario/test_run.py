"""Running: each step does what its name says."""

import re
from typing import Any

import pytest

from scheduler_core.scenario import (
    ScenarioError,
    ScenarioRun,
    dump_scenario,
    load_scenario,
    run_scenario,
    run_to_cycle,
)
from scheduler_core.scenario.gallery import gallery_scenario
from tests.manifests import scheduler_config
from tests.scheduler_core.scenario.builders import make_budget, make_node, make_pod, make_scenario
from tests.tables import table

APPROVAL = scheduler_config(profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": "ManualApproval"}]}}}])
SYSTEM_CLASS = table(__file__, "SYSTEM_CLASS")


def ran(*objects: dict[str, Any], **fields: Any) -> ScenarioRun:
    run = run_scenario(make_scenario(*objects, **fields))
    assert [finding.sentence for finding in run.findings if not finding.holds] == []
    return run


def test_a_pod_made_anew_is_another_pod() -> None:
    run = ran(
        make_node("n"),
        make_pod("p"),
        steps=[
            {"run": "idle"},
            {"delete": {"kind": "Pod", "name": "p", "gracePeriodSeconds": 0}},
            {"apply": make_pod("p")},
            {"run": "idle"},
        ],
    )
    assert [trace.uid for trace in run.cycles] == ["default/p", "default/p#2"]


def test_applying_a_bound_pod_again_leaves_it_where_it_is() -> None:
    labelled = make_pod("p", labels={"tier": "web"})
    run = ran(
        make_node("a"),
        make_node("b"),
        make_pod("p"),
        steps=[{"run": "idle"}, {"apply": labelled}, {"run": "idle"}],
    )
    assert len(run.cycles) == 1 and run.pods()["default/p"].state == "bound"
    assert run.pods()["default/p"].labels == {"tier": "web"}


def test_drain_evicts_as_far_as_budgets_allow_and_says_who_stays() -> None:
    guarded, plain = make_pod("guarded", node="a", labels={"app": "g"}), make_pod("plain", node="a")
    run = ran(
        make_node("a"), make_budget("guard", "g"), guarded, plain, steps=[{"drain": "a"}, {"advance": "60s"}]
    )
    assert run.pods()["default/guarded"].state == "bound"
    assert run.pods()["default/plain"].state == "gone"
    assert run.notes == [
        "steps[0].drain: default/guarded stays on a: its budget default/guard allows no disruption"
    ]


def test_allow_and_reject_answer_at_permit() -> None:
    def waits(name: str) -> dict[str, Any]:
        pod = make_pod(name)
        pod["metadata"]["annotations"] = {"playground.dev/approval": "required"}
        return pod

    run = ran(
        make_node("n"),
        waits("p"),
        waits("q"),
        scheduler=APPROVAL,
        steps=[
            {"run": "idle"},
            {"allow": "p"},
            {"reject": {"pod": "q", "reason": "too late"}},
            {"run": "idle"},
            {"allow": "p"},
        ],
        expect=[{"pod": "p", "state": "bound"}, {"pod": "q", "state": "pending"}],
    )
    assert run.notes == ["steps[4].allow: default/p does not wait at Permit, so the answer changed nothing"]


@pytest.mark.parametrize(
    ("step", "said"), table(__file__, "a_step_on_what_does_not_exist_is_an_error_with_its_path")
)
def test_a_step_on_what_does_not_exist_is_an_error_with_its_path(step: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(said)):
        run_scenario(make_scenario(make_node("n"), make_pod("q"), steps=[{"run": "idle"}, step]))


def test_a_step_about_a_pod_that_is_gone_with_other_draws_changes_nothing() -> None:
    low = [make_pod(f"low-{node}", "1", nodeName=node) for node in ("a", "b")]
    steps = [{"run": "idle"}, {"delete": {"kind": "Pod", "name": "low-a"}}, {"run": "idle"}]
    vip = make_pod("vip", "1", priority=1000)
    scenario = make_scenario(make_node("a", "1"), make_node("b", "1"), *low, vip, steps=steps)
    notes = {}
    for seed in range(8):
        try:
            run = run_scenario(scenario, seed=seed)
        except ScenarioError:
            # With the scenario's own draws it is a mistake of who wrote it.
            assert seed == scenario.seed
        else:
            notes[tuple(run.notes)] = run.placement()
    gone = "steps[1].delete: there is no Pod default/low-a after cycle 2, so the step changed nothing"
    assert notes == {
        (): {"default/vip": "b"},
        (gone,): {"default/low-b": "b", "default/vip": "a"},
    }


def test_a_run_is_bounded() -> None:
    pods = [make_pod(f"p{index}") for index in range(5)]
    with pytest.raises(ScenarioError, match="stopped after 3 cycles"):
        run_scenario(make_scenario(make_node("n"), *pods), max_cycles=3)


def test_a_run_can_end_after_any_cycle_and_go_on_from_there() -> None:
    scenario = gallery_scenario("gang-timeout")
    whole = run_scenario(scenario)
    for number in (1, 4, 8, len(whole.cycles)):
        run, branch = run_to_cycle(scenario, number)
        assert [trace.pod for trace in run.cycles] == [trace.pod for trace in whole.cycles[:number]]
        again = run_scenario(load_scenario(dump_scenario(branch)))
        assert again.digest == run.digest and again.simulation.now_ns == run.simulation.now_ns
    with pytest.raises(ScenarioError, match="there is no cycle 99, the run had 12"):
        run_to_cycle(scenario, 99)


def test_what_a_policy_asks_for_in_vain_is_noted_with_its_place() -> None:
    policy = {"apiVersion": "v1", "kind": "Policy", "predicates": [{"name": "CheckNodeCondition"}]}
    later = {**policy, "priorities": [{"name": "ResourceLimitsPriority", "weight": 1}]}
    steps = [{"run": "idle"}, {"configure": later}, {"configure": APPROVAL}]
    notes = ran(make_node("n"), scheduler=policy, steps=steps).notes
    assert [note.partition(" has no effect: ")[0] for note in notes] == [
        "scheduler.predicates[0]: CheckNodeCondition",
        "steps[1].configure.predicates[0]: CheckNodeCondition",
        "steps[1].configure.priorities[0]: ResourceLimitsPriority",
    ]
