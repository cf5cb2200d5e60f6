"""Who may import whom: each contract of pyproject.toml bites; that they hold is a step before (tests/tools.py)."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

# For each contract a file and a line in it that must not be.
OFFENCES = table(__file__, "OFFENCES")


def lint(folder: Path) -> dict[str, str]:
    """The verdict (KEPT or BROKEN) on each contract, by its name, for the packages in `folder`."""
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = re.findall(r"^(.+?) (KEPT|BROKEN)\b", result.stdout, re.MULTILINE)
    assert verdicts, result.stdout + result.stderr
    return dict(verdicts)


@pytest.mark.nightly("pyproject.toml")
def test_every_import_contract_bites_when_it_is_broken_on_purpose(tmp_path: Path) -> None:
    assert set(OFFENCES) == {contract["id"] for contract in CONTRACTS}
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in ("scheduler_core", "playground"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, line in OFFENCES.values():
        with (tmp_path / name).open("a") as file:
            file.write(f"\n{line}\n")
    verdicts = lint(tmp_path)
    assert {contract["id"]: verdicts[contract["name"]] for contract in CONTRACTS} == {
        contract["id"]: "BROKEN" for contract in CONTRACTS
    }


IMPORT_EVERYTHING = table(__file__, "IMPORT_EVERYTHING")


def test_scheduler_core_needs_only_numpy_and_pyyaml() -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EVERYTHING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.parametrize("package", ["scheduler_core", "playground"])
def test_no_module_is_named_after_nothing_in_particular(package: str) -> None:
    vague = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "manager.py", "misc.py"}
    assert [str(path) for path in (ROOT / package).rglob("*.py") if path.name in vague] == []
