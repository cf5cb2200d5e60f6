"""The pytest plugin as a stranger uses it: in a folder of their own, by the entry point of what is installed."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.scenario import dump_scenario, load_scenario, run_scenario, with_decisions
from tests.manifests import scenario
from tests.scheduler_core.whatif.clusters import node, pod
from tests.tables import table

PLUGIN = "scheduler_core.testing.pytest_plugin"


def _scenario(*expect: dict[str, Any], cpu: str = "1") -> dict[str, Any]:
    web = pod("web", cpu=cpu)
    del web["spec"]["priority"]
    return scenario(objects=[node("a", zone="x"), web], expect=list(expect))


def _pytest(folder: Path, *words: str) -> tuple[int, str]:
    """Only this plugin is loaded: the others of this environment take seconds to import."""
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "-q", "-rA", *words]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_pytest_finds_it_where_it_is_installed() -> None:
    assert PLUGIN in [one.value for one in entry_points(group="pytest11")]


def test_each_expectation_and_each_test_is_told_by_its_file(tmp_path: Path) -> None:
    holds, fails = {"pod": "web", "node": "a"}, {"pod": "web", "node": "b"}
    recorded = with_decisions(run_scenario(load_scenario(_scenario(holds))))
    other = {"digest": "0" * 64, "count": 1, "cycles": ["0" * 12 + " nothing"]}
    nodes = {"apiVersion": "v1", "kind": "List", "items": [node("a", zone="x"), node("b", zone="y")]}
    for name, text in (
        ("zones.scenario.json", json.dumps(_scenario(holds, fails))),
        ("kept.scenario.yaml", dump_scenario(recorded)),
        ("changed.scenario.json", json.dumps(_scenario(holds, cpu="2") | {"decisions": other})),
        ("broken.scenario.yaml", "apiVersion: scheduling.playground/v1\nkind: Scenario\nobjcts: []\n"),
        ("other.yaml", "a: b"),
        ("nodes.json", json.dumps(nodes)),
        ("test_it.py", table(__file__, "the_fixture_schedules_files_and_manifests")),
    ):
        (tmp_path / name).write_text(text)
    status, said = _pytest(tmp_path, "--continue-on-collection-errors")
    assert status == 1 and "2 failed, 6 passed, 1 error" in said, said
    for words in (
        *("PASSED zones.scenario.json::expect[0]", "zones.scenario.json: expect[1]: "),
        *("PASSED kept.scenario.yaml::decisions", "PASSED test_it.py::test_a_configuration"),
        *("FAILED changed.scenario.json::decisions", "cycle 1 differs", "objcts"),
    ):
        assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("release", "words"), [("1.37", "1 passed"), ("1.2", '"1.2" is no release that is known here')]
)
def test_a_release_is_chosen_for_all_files(tmp_path: Path, release: str, words: str) -> None:
    # Up to 1.36 it says that there are no claims to deallocate in between.
    waits = _scenario({"pod": "web", "reason": "1 Insufficient cpu. preemption: "}, cpu="99")
    (tmp_path / "one.scenario.json").write_text(json.dumps(waits))
    _, said = _pytest(tmp_path, "--scheduling-release", release)
    assert words in said
