"""Decisions of another scheduler as steps of a scenario: as recorded, judged by an expectation, or decided by ours."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import load_scenario
from scheduler_core.scenario.expectations import run_scenario as run
from scheduler_core.scenario.load import dump_scenario
from scheduler_core.scenario.make import make_scenario
from scheduler_core.scenario.redact import redact
from tests.scheduler_core.scenario.builders import Recorded
from tests.scheduler_core.whatif.random_clusters import node, pod

START_NS = 1_800_000_000_000_000_000
BY = "bin-packer/v0.9"


def write(seq: int, manifest: dict[str, Any], by: str = "") -> Recorded:
    return Recorded(seq, "api", "write", START_NS, {"manifest": manifest} | ({"by": by} if by else {}))


def bound(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "spec": {**manifest["spec"], "nodeName": name}}


def log() -> list[Recorded]:
    """Two equal nodes, one half full: another scheduler puts a pod there, and finds no node for a big one."""
    there = pod("there", on="n1", requests={"cpu": "1"})
    pods = [pod(name, requests={"cpu": "500m"}, schedulerName="bin-packer") for name in ("a", "b")]
    big = pod("big", requests={"cpu": "1500m"}, schedulerName="bin-packer")
    pods.append(big)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    refused = {**big, "status": {"conditions": [condition]}}
    entries = [node("n1"), node("n2"), there, *pods]
    return [
        *(write(seq, manifest) for seq, manifest in enumerate(entries, 1)),
        write(7, bound(pods[0], "n1"), BY),
        write(8, bound(pods[1], "n2"), BY),
        write(9, refused, BY),
    ]


def made(**more: Any) -> Any:
    return make_scenario(log(), start_ns=START_NS, name="packed", **more).scenario


def judged(text: str, expectation: str) -> Any:
    scenario = load_scenario(text.replace("\nsteps:", f"\nexpect:\n- {{agreement: {expectation}}}\nsteps:"))
    [finding] = run(scenario).findings
    return finding


def test_recorded_decisions_are_steps_with_their_author() -> None:
    scenario = made()
    told = [(step.bind.pod, step.bind.node, step.bind.by) for step in scenario.steps if step.bind is not None]
    assert told == [("default/a", "n1", BY), ("default/b", "n2", BY)]
    assert [step.patch.by for step in scenario.steps if step.patch is not None] == [BY]
    assert run(scenario).placement() == {"default/a": "n1", "default/b": "n2", "default/there": "n1"}
    assert load_scenario(dump_scenario(scenario)) == scenario


def test_names_are_taken_out_of_their_decisions_too() -> None:
    redacted = redact(made())
    text = dump_scenario(redacted.scenario)
    assert "bin-packer" not in text
    assert {step.bind.by for step in redacted.scenario.steps if step.bind is not None} == {"scheduler-1"}
    assert judged(text, "{min: 33, max: 34}").holds


def test_without_another_scheduler_nothing_is_agreed_on() -> None:
    scenario = make_scenario(log()[:6], start_ns=START_NS).scenario
    finding = judged(dump_scenario(scenario), "{min: 1}")
    assert not finding.holds and "no other scheduler decided anything" in finding.sentence


def test_ours_decides_instead_when_asked_to() -> None:
    scenario = made(ours_decide=True)
    assert not any(step.bind or step.patch for step in scenario.steps)
    ours = run(scenario)
    assert {trace.pod for trace in ours.cycles} == {"default/a", "default/b", "default/big"}
    assert {trace.profile for trace in ours.cycles} == {"default-scheduler"}
    assert ours.placement()["default/a"] == "n2"
    assert run(made()).cycles == []


@pytest.mark.parametrize(
    ("bounds", "words"),
    [("{min: 33}", ""), ("{min: 34}", "is 33.33, less than 34"), ("{max: 20}", "is 33.33, more than 20")],
)
def test_the_command_tells_the_agreement_as_junit(tmp_path: Path, bounds: str, words: str) -> None:
    """`a` differs, `b` agrees, and 1.5 cpu do fit on n2 when it is said that they do not... beside b."""
    path, report = tmp_path / "packed.yaml", tmp_path / "result.xml"
    expectation = f"\nexpect:\n- {{agreement: {bounds}}}\nsteps:"
    path.write_text(dump_scenario(made()).replace("\nsteps:", expectation))
    assert main(["replay", str(path), "--check", "--junit", str(report)]) == bool(words)
    suite = ElementTree.parse(report).getroot()
    assert (suite.tag, suite.get("tests")) == ("testsuite", "1")
    assert (suite.get("failures"), suite.get("errors")) == ("1" if words else "0", "0")
    [case] = suite.findall("testcase")
    assert case.get("name") == "expect[0]"
    told = "".join(case.itertext())
    assert ("in per cent of 3 decisions" in told and words in told) == bool(words)
