"""The composite action of deploy/github-action: its steps as a runner runs them."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.clusters.builders import make_node, make_pod
from tests.deploy.commands import ROOT
from tests.deploy.test_distributions import KEPT
from tests.tables import table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.nightly("deploy/github-action/", "scheduler_core/cli/", "scheduler_core/pyproject.toml"),
]
ACTION = ROOT / "deploy" / "github-action"


@dataclass
class Job:
    """What a job that uses the action is left with."""

    status: int
    log: str
    summary: str
    outputs: dict[str, str]
    folder: Path


class Runner:
    """Runs the action's steps: inputs as expressions in `env`, bash as a runner calls it."""

    def __init__(self, temporary: Path) -> None:
        self.action = yaml.safe_load((ACTION / "action.yml").read_text())
        self.temporary = temporary
        self.install, self.check = self.action["runs"]["steps"]

    def step(self, step: dict[str, Any], inputs: dict[str, str], folder: Path) -> Job:
        declared = self.action["inputs"]
        assert set(inputs) <= set(declared) and step["shell"] == "bash"
        given = {name: inputs.get(name, about["default"]) for name, about in declared.items()}

        def evaluated(text: str) -> str:
            return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)

        output, summary = folder / ".output", folder / ".summary"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.temporary),
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            **{name: value for name, value in os.environ.items() if name.startswith(KEPT)},
            **{name: evaluated(value) for name, value in step["env"].items()},
        }
        script = folder / ".step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        lines = output.read_text().splitlines() if output.exists() else []
        return Job(
            done.returncode,
            done.stdout + done.stderr,
            summary.read_text() if summary.exists() else "",
            dict(line.split("=", 1) for line in lines),
            folder,
        )


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runner = Runner(tmp_path_factory.mktemp("runner"))
    folder = tmp_path_factory.mktemp("install")
    installed = runner.step(runner.install, {"python": sys.executable}, folder)
    assert installed.status == 0, installed.log
    return runner


def scenario(node: str) -> str:
    body = {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "name": "web",
        "objects": [make_node("a"), make_pod("web")],
        "expect": [{"pod": "web", "node": node}],
    }
    return json.dumps(body)


def objects(path: Path, *items: dict[str, Any]) -> None:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def test_outputs_are_those_of_the_step_that_makes_them(runner: Runner) -> None:
    for name, about in runner.action["outputs"].items():
        assert about["value"] == f"${{{{ steps.{runner.check['id']}.outputs.{name} }}}}"


def test_good_scenarios_and_a_change_that_moves_nothing_hold(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a web.scenario.yaml").write_text(scenario("a"))
    objects(tmp_path / "main.yaml", make_node("a"), make_pod("web"))
    inputs = {"scenarios": "tests", "base": "main.yaml", "head": "main.yaml", "release": "1.35"}
    job = runner.step(runner.check, inputs, tmp_path)
    assert job.status == 0, job.log
    assert job.outputs == {"result": "holds", "verdict": "No pod would land elsewhere; the one pod stays."}
    assert "::error" not in job.log and job.summary.count("## Scheduling: ") == 2
    assert sorted(path.name for path in (tmp_path / "scheduling-results").iterdir()) == [
        "diff.xml",
        "scenario-1.xml",
    ]


def test_a_broken_scenario_and_a_moved_pod_fail_with_annotations_and_a_summary(
    runner: Runner, tmp_path: Path
) -> None:
    (tmp_path / "web.yaml").write_text(scenario("b"))
    nodes = make_node("a"), make_node("b")
    for node in nodes:
        node["metadata"]["labels"] = {"kubernetes.io/hostname": node["metadata"]["name"]}
    objects(tmp_path / "nodes.yaml", *nodes)
    objects(tmp_path / "main.yaml", make_pod("web", nodeSelector={"kubernetes.io/hostname": "a"}))
    objects(tmp_path / "head.yaml", make_pod("web", nodeSelector={"kubernetes.io/hostname": "b"}))
    inputs = {"scenarios": "web.yaml\n", "base": "main.yaml", "head": "head.yaml", "cluster": "nodes.yaml"}
    job = runner.step(runner.check, inputs, tmp_path)
    assert job.status == 1 and job.outputs["result"] == "fails"
    assert "::error file=web.yaml,title=expect[0] fails::" in job.log
    assert "::error file=head.yaml,title=placement fails::1 elsewhere" in job.log
    assert job.outputs["verdict"].startswith("1 pod would land elsewhere because NodeAffinity now rejects a")
    assert "| default/web | a | b |" in job.summary
    suite = ElementTree.parse(tmp_path / "scheduling-results" / "diff.xml").getroot()
    assert suite.get("failures") == "1"
    assert runner.step(runner.check, inputs | {"scenarios": "", "at-most": "1"}, tmp_path).status == 0


@pytest.mark.parametrize(("inputs", "words"), table(__file__, "bad_inputs_are_told_and_run_nothing"))
def test_bad_inputs_are_told_and_run_nothing(
    runner: Runner, tmp_path: Path, inputs: dict[str, str], words: str
) -> None:
    job = runner.step(runner.check, inputs, tmp_path)
    assert job.status == 2 and job.outputs["result"] == "unusable"
    assert words in job.log and "::error" in job.log
    assert not (tmp_path / "owned").exists()
