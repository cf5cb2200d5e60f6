"""The formal model holds on what is decided, says where Kubernetes leaves it, and finds decisions that are wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scheduler_core.whatif.model as casualty_module
from scheduler_core.cli.main import main
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.preemption import candidates
from scheduler_core.framework.preemption.candidates import CandidateChoice, choose
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from scheduler_core.queue.lanes import ActiveQueue
from scheduler_core.queue.queued_pod_info import QueuedPodInfo
from scheduler_core.releases import RELEASES
from scheduler_core.scenario import dump_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from scheduler_core.scenario.run import check_scenario
from scheduler_core.schedule_one import Algorithm
from scheduler_core.whatif.model import DEPARTURES, ModelReport
from scheduler_core.whatif.model_filters import FAILS, HOLDS, LEAVES, NOT_COMPUTED, PropertyVerdict
from tests.changes import one_in
from tests.manifests import priority_class
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.scheduler_core.whatif.random_scenarios import draw_scenario

SEEDS = range(25)


def verdicts_of(report: ModelReport, property_: str, status: str = FAILS) -> list[PropertyVerdict]:
    return [verdict for _, verdict in report.with_status(status) if verdict.property == property_]


def failures(property_: str) -> list[PropertyVerdict]:
    """What random clusters violate."""
    return [item for seed in SEEDS for item in verdicts_of(check_scenario(draw_scenario(seed)), property_)]


@pytest.mark.parametrize("name", one_in(4, ORDER, "scheduler_core/whatif/", "scheduler_core/scenario/"))
def test_nothing_in_the_gallery_violates_the_model(name: str) -> None:
    report = check_scenario(gallery_scenario(name))
    assert report.cycles
    assert report.document()["violations"] == []
    assert {entry["departure"] for entry in report.departures()} <= DEPARTURES.keys()


def test_nothing_in_random_clusters_violates_the_model() -> None:
    statuses: dict[str, int] = {}
    releases = list(RELEASES)
    # The last two: a full list of candidates that violate a budget; a port that two pods of a node hold.
    for seed in (*range(30), 2388, 2725):
        report = check_scenario(draw_scenario(seed, releases[seed % len(releases)]))
        assert report.document()["violations"] == [], f"seed {seed}"
        for counts in report.counts().values():
            for status, n in counts.items():
                statuses[status] = statuses.get(status, 0) + n
    assert statuses[HOLDS] > 250 and statuses[LEAVES] > 25 and statuses[NOT_COMPUTED] == 0


# ---- decisions that are wrong


def test_every_worse_node_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = []

    def take_the_worst(self: Algorithm, tied_rows: Any, attempt: Attempt) -> int:
        place = int(np.argmin(attempt.total))
        if attempt.total[place] < attempt.total.max():
            worse.append(attempt.pod.key)
        return int(attempt.feasible[place])

    monkeypatch.setattr(Algorithm, "select_host", take_the_worst)
    assert len(failures("placement")) == len(worse) > 5


def test_a_node_that_is_not_feasible_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = NodeResourcesFit.filter

    def pass_all(self: Any, *args: Any) -> Any:
        found = real(self, *args)
        found.codes[:] = 0
        return found

    monkeypatch.setattr(NodeResourcesFit, "filter", pass_all)
    found = failures("placement")
    assert len(found) > 5
    assert any(
        "is not feasible (NodeResourcesFit), and passed every filter" in item.sentence for item in found
    )
    assert all(item.counterexample for item in found)


def test_wrong_points_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = NodeResourcesFit.score
    monkeypatch.setattr(NodeResourcesFit, "score", lambda self, *args: 100 - real(self, *args))
    assert any(item.sentence.startswith("NodeResourcesFit gave ") for item in failures("placement"))


def test_a_wrong_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def youngest_first(self: ActiveQueue, info: QueuedPodInfo) -> None:
        self._heap.push(info, (info.pod.priority, -info.timestamp_ns))

    monkeypatch.setattr(ActiveQueue, "add", youngest_first)
    found = failures("order")
    assert len(found) > 5
    assert all("which was ready and comes first" in item.sentence for item in found)


def test_a_pod_that_need_not_go_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_core.framework.attempt.AttemptWorlds.feasible", _never)
    found = failures("casualty")
    assert any("the reprieve leaves" in item.sentence for item in found)


def _never(self: Any, places: Any) -> Any:
    return np.zeros(len(places), np.bool_)


def test_a_node_that_loses_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def worst_first(values: Any) -> CandidateChoice:
        return choose(-values)

    monkeypatch.setattr(candidates, "choose", worst_first)
    found = failures("casualty")
    assert any("loses less" in item.sentence for item in found)
    assert all(item.counterexample for item in found)


def test_a_preemption_that_is_missed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "scheduler_core.plugins.default_preemption.ineligible_reason", lambda cycle: "not today"
    )
    assert any(item.sentence.startswith("No pod was evicted, and evicting ") for item in failures("casualty"))


# ---- where Kubernetes leaves the model


def test_the_reprieve_is_not_the_least() -> None:
    """Two small pods go where the large one alone would do: the large one came back first."""
    classes = priority_class("top", 10)
    old = {"startTime": "2024-12-01T00:00:00Z", "phase": "Running"}
    large = {**make_pod("large", "2", node="n"), "status": old}
    report = check_scenario(
        make_scenario(
            classes, make_node("n", "4"), large, make_pod("small-1", "1", node="n"), make_pod("small-2", "1", node="n"),
            make_pod("new", "2", priorityClassName="top"),
        )
    )  # fmt: skip
    [verdict] = verdicts_of(report, "casualty", LEAVES)
    assert verdict.departure == "reprieve"
    assert verdict.counterexample["victims"] == ["default/large"]
    assert verdict.counterexample["loss"]["pods"] == 1


def test_a_sample_of_nodes_may_miss_a_better_one() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 1,
    }  # fmt: skip
    nodes = [make_node(f"n{index}") for index in range(103)]
    report = check_scenario(make_scenario(*nodes, make_pod("p"), scheduler=config))
    [verdict] = verdicts_of(report, "placement", LEAVES)
    assert verdict.departure == "sampling"
    assert verdict.sentence.endswith("only 100 nodes were looked at.")


def test_too_many_sets_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(casualty_module, "MAX_SETS", 6)
    pods = [make_pod(f"p{index}", "1", node="n") for index in range(3)]
    report = check_scenario(
        make_scenario(
            priority_class("top", 10),
            make_node("n", "3"),
            *pods,
            make_pod("new", "1", priorityClassName="top"),
        )
    )
    [verdict] = verdicts_of(report, "casualty", NOT_COMPUTED)
    assert "7 sets of pods are too many to compare (at most 6)" in verdict.sentence


def test_large_clusters_are_checked_for_their_order_alone() -> None:
    scenario = make_scenario(make_node("n"), make_pod("p"), make_pod("q", node="n"))
    counts = check_scenario(scenario, max_objects=1).counts()
    assert counts["order"][HOLDS] == 1 and counts["placement"][NOT_COMPUTED] == 1


def test_possible_feasible_and_viable_nodes_are_counted() -> None:
    nodes = [make_node("full", "500m"), make_node("a"), make_node("b"), make_node("busy")]
    report = check_scenario(make_scenario(*nodes, make_pod("old", "2", node="busy"), make_pod("new")))
    [cycle] = report.cycles
    assert cycle.counts == {"possible": 4, "feasible": 3, "viable": 2}


# ---- the command


def test_a_violation_exits_1_with_its_counterexample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        dump_scenario(
            make_scenario(make_node("a"), make_node("b"), make_pod("old", node="a"), make_pod("new"))
        )
    )
    assert main(["model", str(path), "--cycles"]) == 0
    assert "2 possible, 2 feasible, 1 viable" in capsys.readouterr().out
    monkeypatch.setattr(
        Algorithm, "select_host", lambda self, rows, attempt: int(attempt.feasible[attempt.total.argmin()])
    )
    assert main(["model", str(path)]) == 1
    out = capsys.readouterr().out
    assert "VIOLATED, cycle 1 (default/new), placement: a (" in out and "counterexample: " in out
    assert main(["model", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "fails"
    assert document["violations"][0]["counterexample"]["node"] == "b"


def test_a_file_that_cannot_be_used_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("kind: Scenario\nseed: x\n")
    assert main(["model", str(path), str(tmp_path / "absent.yaml")]) == 2
    said = capsys.readouterr().err
    assert f"{path}: " in said and "absent.yaml: No such file" in said
    assert main(["model", "--json", str(path)]) == 2
    assert json.loads(capsys.readouterr().out)["status"] == "unusable"
    assert main(["model"]) == 2
