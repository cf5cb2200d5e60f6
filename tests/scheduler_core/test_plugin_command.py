"""`plugin new` makes a package whose tests pass at once, `plugin check` finds what is wrong, `plugin list` says all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_core.cli.main import main

ROOT = Path(__file__).parents[2]


def run(*words: str, cwd: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_new_package_passes_its_own_tests_and_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "new", "FewPodsOnly", "--into", str(tmp_path)]) == 0
    package = tmp_path / "few-pods-only"
    status, said = run("pytest", "-q", "-p", "no:cacheprovider", cwd=package)
    assert status == 0 and "7 passed" in said, said
    status, said = run("scheduler_core", "plugin", "check", "few_pods_only:FewPodsOnly", cwd=package)
    assert status == 0 and "FewPodsOnly conforms" in said and "filter: " in said and "score: " in said, said
    assert main(["plugin", "new", "FewPodsOnly", "--into", str(tmp_path)]) == 2
    assert "is there already; nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Json", "Numpy", "Class"])
def test_a_new_package_hides_no_module_that_others_import(tmp_path: Path, name: str) -> None:
    assert main(["plugin", "new", name, "--into", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.glob("*/*_plugin.py")] == [f"{name.lower()}_plugin.py"]


def test_bad_names_are_refused_and_all_plugins_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "new", "no-name", "--into", str(tmp_path)]) == 2
    assert main(["plugin", "new", "NodeName", "--into", str(tmp_path)]) == 2
    assert main(["plugin", "new", "None", "--into", str(tmp_path)]) == 2
    assert main(["plugin", "new", "Aa" * 100, "--into", str(tmp_path)]) == 2
    assert main(["plugin", "check", "Nowhere"]) == 2
    said = capsys.readouterr().err
    assert (
        "a word such as NightShift" in said
        and "at most 60 characters" in said
        and "NodeName already exists" in said
        and "Nowhere is known" in said
    )
    assert main(["plugin", "list"]) == 0
    assert "TaintToleration: filter, preScore, score (in the tree)" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
