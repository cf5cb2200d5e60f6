"""`plugin new` makes a package whose tests pass at once, `plugin check` finds what is wrong, `plugin list` says all.

Plugins come from installed packages by entry points, and by name; what is broken or not allowed stays outside.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core import installed_plugins as installed
from scheduler_core.cli.main import main
from scheduler_core.errors import ConfigurationError, PluginDeclarationError
from scheduler_core.sim.simulation import Simulation
from tests.manifests import scheduler_config
from tests.plugin_packages import BROKEN, PACKAGE, install

ROOT = Path(__file__).parents[2]


def run(*words: str, cwd: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.nightly(
    "scheduler_core/cli/new_plugin/", "scheduler_core/plugin_kit.py", "scheduler_core/testing/"
)
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


CONFIG = scheduler_config(profiles=[{"plugins": {"score": {"enabled": [{"name": "NightShift"}]}}}])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder packages are installed into, on the path of this process."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("night_shift", "no_shift")]:
        del sys.modules[name]
    monkeypatch.undo()
    installed.allow(None)
    installed.forget()


def test_an_installed_package_is_known_by_its_entry_points(site: Path) -> None:
    with pytest.raises(ConfigurationError, match='"NightShift" does not exist'):
        Simulation(CONFIG)
    install(site, PACKAGE)
    install(site, BROKEN)
    installed.forget()
    assert list(installed.outside()) == ["NightShift"]
    origin = installed.outside()["NightShift"].origin
    assert (origin.package, origin.version, origin.requirement) == ("night-shift", "1.2", "night-shift==1.2")
    assert "NightShift" in Simulation(CONFIG).scheduler.profiles["default-scheduler"].plugins
    (problem,) = installed.problems()
    assert problem.startswith("no-shift: NoShift (no_shift:NoShift) is left out: ImportError")


def test_what_is_not_allowed_is_not_even_imported(site: Path) -> None:
    install(site, PACKAGE)
    install(site, BROKEN)
    installed.allow(["SomethingElse"])
    assert not installed.outside() and not installed.problems()
    assert "night_shift" not in sys.modules and "no_shift" not in sys.modules


def test_a_plugin_is_added_by_module_and_class(site: Path) -> None:
    (site / "night_shift.py").write_text(PACKAGE.source)
    assert installed.add("night_shift:NightShift").origin.requirement == "night_shift"
    assert "NightShift" in installed.known()
    for reference, words in (
        ("night_shift:DayShift", "has no attribute 'DayShift'"),
        ("nowhere_at_all:X", "No module named 'nowhere_at_all'"),
        ("os:path", "does not inherit Plugin"),
    ):
        with pytest.raises(PluginDeclarationError, match=words):
            installed.add(reference)
