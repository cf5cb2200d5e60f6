"""Scenarios that run plugins from outside the tree: named in the document, part of the digest, known to `replay`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from scheduler_core.cli.main import main
from scheduler_core.scenario import dump_scenario
from tests.plugin_packages import PACKAGE, install
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario


def replay(tmp_path: Path, text: str, *options: str, path: Path | None = None) -> tuple[int, str]:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path or tmp_path), os.getcwd()])}
    done = subprocess.run(
        [sys.executable, "-m", "scheduler_core", "replay", str(file), *options],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_replay_runs_an_installed_plugin_or_one_named_on_the_command_line(tmp_path: Path) -> None:
    profile = {"plugins": {"filter": {"enabled": [{"name": "NightShift"}]}}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]
    }  # fmt: skip
    bare = make_scenario(make_node("n"), make_pod("p"), expect=[{"pod": "p", "reason": "no night slot left"}])
    text = dump_scenario(bare).replace("seed: 0\n", f"seed: 0\nscheduler: {json.dumps(config)}\n")
    status, said = replay(tmp_path, text)
    assert status == 2 and '"NightShift" does not exist' in said

    site = tmp_path / "site"
    site.mkdir()
    install(site, PACKAGE)
    status, said = replay(tmp_path, text, "--record", str(tmp_path / "recorded.yaml"), path=site)
    assert status == 0 and "with the plugin NightShift of night-shift==1.2" in said
    recorded = (tmp_path / "recorded.yaml").read_text()
    status, said = replay(tmp_path, recorded, "--check", path=site)
    assert status == 0 and "1 of 1 expectations hold" in said
    # A reader who lacks it is told what to install.
    status, said = replay(tmp_path, recorded)
    assert status == 2
    assert (
        "the plugin NightShift is not installed here; it comes with the package: pip install night-shift==1.2"
        in said
    )

    (tmp_path / "night_shift.py").write_text(PACKAGE.source)
    status, said = replay(tmp_path, text, "--plugin", "night_shift:NightShift")
    assert status == 0 and "with the plugin NightShift of night_shift" in said
    status, said = replay(tmp_path, text, "--plugin", "night_shift:DayShift")
    assert status == 2 and "--plugin night_shift:DayShift: AttributeError" in said


def test_a_plugin_of_the_tree_is_not_listed(tmp_path: Path, capsys: object) -> None:
    text = dump_scenario(make_scenario(make_node("n"))).replace(
        "seed: 0\n", "seed: 0\nplugins: [{name: NodeName}]\n"
    )
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    assert main(["replay", str(file)]) == 2
