"""The gallery: every scenario does what its lesson says."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import scheduler_core.scenario.gallery as gallery_package
from scheduler_core.cli.main import main
from scheduler_core.framework.preemption.candidates import CRITERIA
from scheduler_core.releases import RELEASES
from scheduler_core.scenario import Scenario, ScenarioRun, run_scenario, with_seed
from scheduler_core.scenario.gallery import ORDER, gallery, gallery_scenario
from scheduler_core.scenario.luck import unexpecting
from scheduler_core.scenario.upgrade import preview
from scheduler_core.whatif.pod_group import group_story

SEEDS = range(8)


def run_with(scenario: Scenario, seeds: Iterable[int]) -> list[ScenarioRun]:
    bare = unexpecting(scenario)
    return [run_scenario(with_seed(bare, seed), full_traces=False) for seed in seeds]


@pytest.mark.parametrize("name", ORDER)
def test_a_gallery_scenario_has_a_lesson_a_path_through_its_cycles_and_expects_what_happens(
    name: str,
) -> None:
    scenario = gallery_scenario(name)
    assert scenario.name == name and scenario.title and len(scenario.lesson) > 100
    run = run_scenario(scenario)
    assert run.findings, "a gallery scenario expects something"
    assert [finding.sentence for finding in run.findings if not finding.holds] == []
    assert run.notes == []
    assert scenario.path and {stop.cycle for stop in scenario.path} <= {trace.number for trace in run.cycles}


def test_every_file_of_the_gallery_is_shown() -> None:
    folder = Path(gallery_package.__file__).parent
    assert {path.stem for path in folder.glob("*.yaml")} == set(ORDER)
    assert [scenario.name for scenario in gallery()] == list(ORDER)


@pytest.mark.parametrize(
    ("name", "decided_by"),
    [
        (name, CRITERIA[index])
        for index, name in enumerate(name for name in ORDER if name[:10] == "tie-break-" and name[10] < "6")
    ],
)
def test_each_tie_break_scene_is_decided_by_its_own_criterion_whatever_the_seed(
    name: str, decided_by: str
) -> None:
    for seed in SEEDS:
        run = run_scenario(with_seed(gallery_scenario(name), seed))
        assert (run.cycles[0].preemption or {})["decidedBy"] == decided_by
        assert all(finding.holds for finding in run.findings)


def test_the_last_tie_break_is_a_draw_and_either_pod_may_be_evicted() -> None:
    run = run_scenario(gallery_scenario("tie-break-6-draw"))
    assert (run.cycles[0].preemption or {})["decidedBy"] == "tie"
    runs = run_with(gallery_scenario("tie-break-6-draw"), range(30))
    assert len({str(run.placement()) for run in runs}) == 2


def test_ties_that_are_drawn_spread_what_a_packing_score_cannot_tell_apart() -> None:
    scenario = replace(gallery_scenario("ties-spread"), expect=())
    runs = run_with(scenario, SEEDS)
    assert len({str(run.placement()) for run in runs}) > 1
    assert all(run.metrics()["pending"] >= 1 for run in runs)
    config = scenario.scheduler
    assert config is not None
    told = json.loads(json.dumps(config).replace('"name": "cpu"', '"name": "nvidia.com/gpu"'))
    assert told != config
    by_gpu = run_with(replace(scenario, scheduler=told), SEEDS)
    assert {run.metrics()["pending"] for run in by_gpu} == {0}


def test_the_optimum_of_the_greedy_scene_places_the_pod_that_one_by_one_finds_no_room(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(gallery_package.__file__).parent / "greedy-against-optimum.yaml"
    assert main(["optimum", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["placed"] == [2, 3] and found["proved"]


def test_without_popping_from_backoff_the_pod_sits_its_backoff_out() -> None:
    scenario = gallery_scenario("differs-pop-from-backoff")
    early = run_scenario(scenario).cycles[1].at_ns - run_scenario(scenario).cycles[0].at_ns
    assert early == 500_000_000
    without = run_scenario(replace(scenario, feature_gates={"SchedulerPopFromBackoffQ": False}))
    assert len(without.cycles) == 1 and not all(finding.holds for finding in without.findings)


def test_normalize_score_scales_the_best_node_to_100() -> None:
    once, thrice = (
        cycle.explain() for cycle in run_scenario(gallery_scenario("differs-normalize-50-25-25")).cycles
    )
    assert once["total"] == {"rack-a": 100, "rack-b": 50, "rack-c": 50}
    assert thrice["total"] == {"rack-a": 300, "rack-b": 150, "rack-c": 150}
    assert once["rawScores"]["NodeAffinity"] == {"rack-a": 50, "rack-b": 25, "rack-c": 25}


def test_the_balanced_lesson_moves_its_pod_by_one_proved_cause() -> None:
    scenario = replace(gallery_scenario("balanced-moves"), expect=())
    moved = preview(scenario, RELEASES["1.35"], RELEASES["1.36"])
    assert [(cause.name, len(cause.differences)) for cause in moved.causes] == [
        ("BalancedAllocationByChange", 1)
    ]
    assert moved.unexplained == ()


def test_the_gang_of_the_lesson_would_be_placed_by_one_more_node_or_one_member_less() -> None:
    scenario = gallery_scenario("gang-almost-fits")
    waiting = run_scenario(replace(scenario, steps=scenario.steps[:2], expect=()))
    story = group_story(waiting.simulation.scheduler, "default", "train")
    assert story["missing"] == 1
    assert [(item["kind"], item.get("to"), item.get("count")) for item in story["remedies"]] == [
        ("minCount", 4, None),
        ("addNodes", None, 1),
    ]
