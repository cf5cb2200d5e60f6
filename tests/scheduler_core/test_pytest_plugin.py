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
from tests.changes import one_in
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


def test_each_expectation_of_a_file_is_a_test(tmp_path: Path) -> None:
    holds, fails = {"pod": "web", "node": "a"}, {"pod": "web", "node": "b"}
    (tmp_path / "zones.scenario.json").write_text(json.dumps(_scenario(holds, fails)))
    recorded = with_decisions(run_scenario(load_scenario(_scenario(holds))))
    (tmp_path / "kept.scenario.yaml").write_text(dump_scenario(recorded))
    (tmp_path / "other.yaml").write_text("a: b")
    status, said = _pytest(tmp_path)
    assert status == 1
    assert "3 passed, 1 failed" in said or "1 failed, 3 passed" in said
    assert "PASSED zones.scenario.json::expect[0]" in said
    assert "PASSED kept.scenario.yaml::decisions" in said
    assert "zones.scenario.json: expect[1]: " in said and "Traceback" not in said
    changed = json.loads(json.dumps(_scenario(holds, cpu="2")))
    changed["decisions"] = {"digest": "0" * 64, "count": 1, "cycles": ["0" * 12 + " nothing"]}
    (tmp_path / "kept.scenario.yaml").unlink()
    (tmp_path / "changed.scenario.json").write_text(json.dumps(changed))
    status, said = _pytest(tmp_path, "changed.scenario.json")
    assert status == 1 and "FAILED changed.scenario.json::decisions" in said and "cycle 1 differs" in said


def test_a_file_that_is_no_scenario_is_told_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "broken.scenario.yaml").write_text(
        "apiVersion: scheduling.playground/v1\nkind: Scenario\nobjcts: []\n"
    )
    status, said = _pytest(tmp_path)
    assert status == 2 and "objcts" in said and "Traceback" not in said
    status, said = _pytest(tmp_path, "--scheduling-release", "1.2")
    assert status != 0


def test_the_fixture_schedules_files_and_manifests(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a", zone="x"), node("b", zone="y")]})
    )
    (tmp_path / "test_it.py").write_text(table(__file__, "the_fixture_schedules_files_and_manifests"))
    status, said = _pytest(tmp_path)
    assert status == 0, said
    assert "2 passed" in said


@pytest.mark.parametrize("release", one_in(2, ["1.36", "1.34"], "scheduler_core/testing/"))
def test_a_release_is_chosen_for_all_files(tmp_path: Path, release: str) -> None:
    (tmp_path / "one.scenario.json").write_text(json.dumps(_scenario({"pod": "web", "node": "a"})))
    status, said = _pytest(tmp_path, "--scheduling-release", release)
    assert status == 0 and "1 passed" in said
