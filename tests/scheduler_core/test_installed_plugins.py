"""Plugins come from installed packages by entry points, and by name; what is broken or not allowed stays outside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core import installed_plugins as installed
from scheduler_core.errors import ConfigurationError, PluginDeclarationError
from scheduler_core.sim.simulation import Simulation
from tests.plugin_packages import BROKEN, PACKAGE, install

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"enabled": [{"name": "NightShift"}]}}}],
}


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
