"""Tasks: the text as given does not pass, a right answer does, and what a wrong one fails is named."""

import json
from pathlib import Path

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import ScenarioError
from scheduler_core.scenario.tasks import MAX_ANSWER_BYTES, GradedTask, grade, packed, tasks, unpacked
from tests.tables import table

ANSWERS = table(__file__, "answers")


def edited(task: GradedTask, replacements: list[list[str]]) -> str:
    text = task.text
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


def failing(task: GradedTask, text: str) -> list[str]:
    return [title for title, holds, _ in grade(task, text).checks if not holds]


def test_each_task_has_answers() -> None:
    assert list(ANSWERS) == list(tasks()) and len(ANSWERS) >= 10


@pytest.mark.parametrize("name", ANSWERS)
def test_a_right_answer_passes_and_the_others_do_not(name: str) -> None:
    task = tasks()[name]
    assert failing(task, task.text), "nothing is to be done"
    right = edited(task, ANSWERS[name]["right"])
    assert failing(task, right) == []
    assert grade(task, right) == grade(task, unpacked(packed(right)))
    for replacements, wanted in ANSWERS[name]["wrong"]:
        found = failing(task, edited(task, replacements))
        assert set(wanted) <= set(found), found


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("nodes:\n- {name: [}\n", "line 2"),
        ("nodes: []\npods: [{name: web, cpuu: 1}]\n", "cpuu"),
        ("nodes: []\nsteps: []\n", "steps"),
        ("# " + "x" * MAX_ANSWER_BYTES, "bytes"),
        ("nodes: [{name: n, cpu: 1, memory: 1Gi, count: 61}]\n", "61 objects"),
        ("extenders: {postBindings: true}\n", "extenders"),
        (table(__file__, "TOO_MANY_REPLICAS"), "200"),
    ],
)
def test_what_cannot_be_run_is_told_by_its_place(answer: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        grade(tasks()["make-room"], answer)


def test_the_command_grades_files_and_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = tasks()["by-another-name"]
    right, link, bad = (tmp_path / name for name in ("right.yaml", "link.txt", "bad.yaml"))
    right.write_text(edited(task, ANSWERS[task.name]["right"]))
    link.write_text(f"https://playground.example/tasks/{task.name}/?a={packed(task.text)}\n")
    bad.write_text("nodes: [")
    assert main(["grade", task.name, str(right), str(link), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["points"] for one in found.values()] == [3, 1]
    assert main(["grade", task.name, str(right)]) == 0
    assert main(["grade", task.name, str(bad)]) == 2
    assert f"{bad}: " in capsys.readouterr().err
    assert main(["grade", "no-such-task"]) == 2
