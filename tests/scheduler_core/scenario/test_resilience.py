"""Expectations about losses, drains and growth: what holds, what does not, and the README's job on two manifests."""

import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

import scheduler_core.scenario
from scheduler_core.cli.main import main
from scheduler_core.scenario import Finding, ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.gallery import gallery_text
from tests.manifests import budget, deployment
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.tables import table

ZONE = "topology.kubernetes.io/zone"
README = (Path(scheduler_core.scenario.__file__).parent / "README.md").read_text()


NODES = (
    make_node("a", "4", **{ZONE: "x", "rack": "1"}),
    make_node("b", "4", **{ZONE: "y", "rack": "1"}),
    make_node("c", "4", **{ZONE: "y", "rack": "2"}),
)
CLUSTER = (*NODES, deployment("web", 4), budget("web", maxUnavailable=1))


def finding(expectation: dict[str, Any], *objects: dict[str, Any]) -> Finding:
    (found,) = run_scenario(make_scenario(*(objects or CLUSTER), expect=[expectation])).findings
    return found


@pytest.mark.parametrize("expectation", table(__file__, "what_the_cluster_bears_holds"))
def test_what_the_cluster_bears_holds(expectation: dict[str, Any]) -> None:
    found = finding(expectation)
    assert found.holds, found.sentence


@pytest.mark.parametrize(
    ("expectation", "n_nodes", "replicas", "max_unavailable", "words"),
    table(__file__, "what_it_does_not_bear_is_told_with_the_pod_and_the_reason"),
)
def test_what_it_does_not_bear_is_told_with_the_pod_and_the_reason(
    expectation: dict[str, Any], n_nodes: int, replicas: int, max_unavailable: int | None, words: str
) -> None:
    budgets = [] if max_unavailable is None else [budget("web", maxUnavailable=max_unavailable)]
    found = finding(expectation, *NODES[:n_nodes], deployment("web", replicas), *budgets)
    assert not found.holds
    assert re.search(words, found.sentence), found.sentence


def test_a_pod_without_an_owner_and_a_zone_that_no_node_names_are_told() -> None:
    found = finding({"drain": {"nodes": ["a"]}}, *NODES, make_pod("bare", node="a"))
    assert not found.holds and "bare has no owner that recreates it" in found.sentence
    found = finding({"survives": {"anyOneNode": True, "anyZone": True}}, make_node("a"), deployment("web", 1))
    assert not found.holds and f"to be survived, but no node carries {ZONE}." in found.sentence


@pytest.mark.parametrize(("replicas", "holds"), [(2, True), (10, False)])
@pytest.mark.parametrize(("wanted", "label"), [({"anyZone": True}, ZONE), ({"anyOf": "rack"}, "rack")])
def test_nodes_that_no_loss_takes_away_for_want_of_the_label_are_told(
    wanted: dict[str, Any], label: str, replicas: int, holds: bool
) -> None:
    found = finding({"survives": wanted}, *NODES, make_node("d", "1"), deployment("web", replicas))
    assert found.holds is holds
    told = f"1 of 4 nodes carries no {label}, so no loss takes it away: d."
    assert found.sentence.endswith(told) and found.sentence.count("carries no") == 1, found.sentence
    assert "carries no" not in finding({"survives": wanted}).sentence


@pytest.mark.parametrize(
    ("expectation", "words"),
    table(__file__, "what_cannot_be_asked_is_bad_input"),
)
def test_what_cannot_be_asked_is_bad_input(expectation: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        finding(expectation)


@pytest.mark.parametrize(
    ("before", "after", "words"), table(__file__, "the_gallery_drain_fails_as_its_lesson_says")
)
def test_the_gallery_drain_fails_as_its_lesson_says(before: str, after: str, words: str) -> None:
    text = gallery_text("drain-in-time")
    assert before in text
    run = run_scenario(load_scenario(text.replace(before, after)))
    assert any(words in found.sentence for found in run.findings if not found.holds)


def test_the_job_of_the_readme_passes_on_good_manifests_and_fails_on_those_that_break_zone_resilience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = README.partition("### A test of resilience")[2]
    scenario, job = re.findall(r"^```yaml\n(.*?)^```", part, re.DOTALL | re.MULTILINE)[:2]
    command = shlex.split(yaml.safe_load(job)[1]["run"])
    assert command[:4] == ["PYTHONPATH=playground", "python", "-m", "scheduler_core"]
    top = (Path(scheduler_core.__file__).parent.parent / "README.md").read_text()
    assert " ".join(command) in top
    (tmp_path / "resilience.yaml").write_text(scenario)
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    monkeypatch.chdir(tmp_path)

    def run(made: dict[str, Any]) -> int:
        (manifests / "web.yaml").write_text(json.dumps(made))
        return main(command[4:])

    assert run(deployment("web", 3)) == 0
    pinned = {ZONE: "a"}
    assert run(deployment("web", 3, nodeSelector=pinned)) == 1
    suite = ElementTree.parse("result.xml").getroot()
    assert suite.get("failures") == "1"
    told = next(case.find("failure") for case in suite if case.find("failure") is not None)
    assert told is not None and "The loss of node a-1 leaves 3 pods without a node" in str(
        told.get("message")
    )
    assert run(deployment("web", 5)) == 1
    assert run(deployment("web", 3, cpu="lots")) == 2
    said = ElementTree.parse("result.xml").getroot()[0].find("error")
    assert said is not None and "manifests/web.yaml: line 1: Deployment web: spec.template" in str(
        said.get("message")
    )
