"""What a run leaves out, and what its end says of that.

`pytest -m fast` takes what needs no server and searches nothing, and takes it by itself.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import changes, services
from tests.services import FAST_FOLDERS
from tests.tables import table


def summary_of(reporter: Reporter, stash: Any = ()) -> list[str]:
    services.pytest_terminal_summary(reporter, SimpleNamespace(stash=stash))  # type: ignore[arg-type]
    return reporter.said


class Reporter:
    """As much of pytest's as a summary is told to."""

    def __init__(self, *reasons: str) -> None:
        self.stats = {
            "skipped": [SimpleNamespace(longrepr=("test_sky.py", 7, f"Skipped: {one}")) for one in reasons]
        }
        self.said: list[str] = []

    def section(self, title: str, **_: Any) -> None:
        self.said.append(title)

    def line(self, words: str, **_: Any) -> None:
        self.said.append(words)


def test_every_skip_is_told_with_its_reason() -> None:
    said = summary_of(Reporter("no sun", "no second moon", "no second moon"))
    assert said == ["NOT TESTED", "2 left out: no second moon", "1 left out: no sun"]
    assert not summary_of(Reporter())


@pytest.mark.parametrize(("of_tools", "of_tests", "of_all"), [(1, 0, 1), (1, 2, 2), (0, 0, 0)])
def test_a_tool_that_found_something_is_told_again_and_fails_the_run(
    of_tools: int, of_tests: int, of_all: int
) -> None:
    tools = SimpleNamespace(wait=lambda: of_tools, returncode=of_tools)
    session: Any = SimpleNamespace(exitstatus=of_tests, config=SimpleNamespace(stash={services.TOOLS: tools}))
    services.pytest_sessionfinish(session)
    assert session.exitstatus == of_all
    assert summary_of(Reporter(), session.config.stash)[:1] == ["TOOLS FAILED"] * of_tools


@pytest.mark.parametrize(
    ("touched", "expression", "named", "wanted"),
    table(__file__, "a_nightly_test_runs_where_what_it_is_about_has_changed_or_it_is_asked_for"),
)
def test_a_nightly_test_runs_where_what_it_is_about_has_changed_or_it_is_asked_for(
    touched: str, expression: str, named: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "changed", lambda: ("HEAD~1", (touched,)))
    config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=expression), args=[named])
    marks: dict[str, Any] = {"nightly": pytest.mark.nightly("deploy/").mark}
    item: Any = SimpleNamespace(
        path=changes.ROOT / "tests/deploy/test_wheels.py", get_closest_marker=marks.get
    )
    assert services._is_wanted(config, item) is wanted
    marks.clear()
    assert services._is_wanted(config, item)


def test_changes_are_those_of_a_branch_of_the_last_commit_and_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAYGROUND_BASE", raising=False)
    look = changes.changed.__wrapped__

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    def commit(name: str) -> None:
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", name)

    assert look(tmp_path) == ("HEAD~1", ())
    git("init", "-b", "main")
    commit("first")
    (tmp_path / "new").write_text("new")
    assert look(tmp_path) == ("HEAD~1", ("new",))
    (tmp_path / "new").unlink()
    commit("second")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert look(tmp_path) == ("HEAD~1", ("second",))
    commit("third")
    commit("fourth")
    assert look(tmp_path)[1] == ("fourth", "third")
    (tmp_path / "first").write_text("changed")
    assert look(tmp_path)[1] == ("first", "fourth", "third")
    monkeypatch.setenv("PLAYGROUND_BASE", "HEAD~1")
    assert look(tmp_path) == ("HEAD~1", ("first", "fourth"))


def test_the_paths_that_nightly_tests_name_are_there() -> None:
    named = {
        argument.value
        for path in (changes.ROOT / "tests").rglob("*.py")
        if "nightly(" in (text := path.read_text()) or "one_in(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.mark.nightly", "one_in")
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert len(named) > 20
    assert not [name for name in sorted(named) if not (changes.ROOT / name).exists()]


def test_fast_takes_examples_and_leaves_searches_and_databases() -> None:
    assert [name for name in FAST_FOLDERS if not (changes.ROOT / "tests" / name).is_dir()] == []
    words = "--collect-only -q -n 0 -p no:cacheprovider -m fast tests/scheduler_core/queue tests/broker"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words.split()],
        cwd=changes.ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert "tests/scheduler_core/queue/test_scheduling_queue.py" in files
    assert "tests/scheduler_core/queue/test_queue_machine.py" not in files
    assert not any(name.startswith("tests/broker") for name in files)
