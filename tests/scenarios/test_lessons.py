"""Lessons ask before they show, and answer at once; tasks are graded by their address."""

import re
import time
import zlib
from base64 import urlsafe_b64encode

import pytest

from playground.engine.scenarios import questions
from playground.web.scenarios.lessons import MOST_CHOICES, NO_NODE, rights, view_question
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from scheduler_core.scenario.tasks import MAX_ANSWER_BYTES, packed, tasks
from tests.changes import one_in
from tests.markup import html_of
from tests.scheduler_core.test_tasks import ANSWERS, edited

pytestmark = pytest.mark.django_db

CHOSEN = "the scheduler’s choice"


@pytest.mark.parametrize(
    "name", one_in(4, ORDER, "playground/web/scenarios/", "playground/engine/", "scheduler_core/scenario/")
)
def test_each_lesson_asks_what_its_run_decides_within_a_second(client, name):
    questions.cache_clear()
    began = time.process_time()
    first = html_of(client.get(f"/gallery/{name}/"))
    assert time.process_time() - began < 1
    assert CHOSEN not in first and "Remember" not in first
    run = run_scenario(gallery_scenario(name), full_traces=True)
    asked = questions(name)
    assert len(asked) == len(gallery_scenario(name).path) > 0
    for stop, one in zip(gallery_scenario(name).path, asked, strict=True):
        record = run.cycle(stop.cycle)
        taken = record.node if record.outcome in ("bound", "waiting", "binding") else record.nominated_node
        right = rights(one.cycle)
        assert right[0] == (taken or NO_NODE) and one.cycle["digest"] == record.digest
        choices = [choice["name"] for choice in view_question(one)["choices"]]
        assert len(choices) <= MOST_CHOICES and (right[0] in choices or right[0] == NO_NODE)
        page = {"q": one.number}
        wrong = next(choice for choice in [*choices, NO_NODE] if choice not in right)
        said = html_of(client.get(f"/gallery/{name}/", page | {"choice": right[0]}))
        assert re.search(r"Yes:\s", said) and (right[0] == NO_NODE or CHOSEN in said)
        assert re.search(r"No:\s", html_of(client.get(f"/gallery/{name}/", page | {"choice": wrong})))


def test_a_question_shows_the_cluster_before_the_cycle():
    asked = questions("tie-break-3-priority-sum")[0]
    placed = {pod["name"]: pod["node_name"] for pod in asked.state["pods"]}
    assert placed["urgent"] == "" and placed["b-first"] == placed["b-second"] == "node-b"


def test_a_lesson_or_a_question_that_is_not_there_is_not_found(client):
    for path in ("/gallery/no-such-lesson/", "/gallery/gpu-isolation/?q=99", "/tasks/no-such-task/"):
        assert client.get(path).status_code == 404, path


@pytest.mark.parametrize("name", ["make-room", "pack-the-nodes"])
def test_an_answer_is_graded_and_its_address_is_what_is_handed_in(client, name):
    task = tasks()[name]
    assert task.title in html_of(client.get("/tasks/")) and task.goal[:40] in html_of(
        client.get(f"/tasks/{name}/")
    )
    for text, passes in ((edited(task, ANSWERS[name]["right"]), True), (task.text, False)):
        answer = client.post(f"/tasks/{name}/", {"answer": text.replace("\n", "\r\n")})
        assert answer.status_code == 302 and answer["Location"].endswith("#grade")
        said = html_of(client.get(answer["Location"].removesuffix("#grade")))
        n_checks = len(task.checks) + 1
        assert (f"{n_checks} of {n_checks} checks hold" in said) is passes, said
        assert "Its digest is" in said


def test_an_answer_that_cannot_be_read_is_kept_in_the_editor_with_what_is_wrong(client):
    answer = client.post("/tasks/make-room/", {"answer": "nodes:\n- {name: [}"})
    said = html_of(client.get(answer["Location"]))
    assert "It cannot be run" in said and "line 2" in said and "- {name: [}</textarea>" in said


@pytest.mark.parametrize("line", ["%%%", "abc", packed("x")[:-4], packed("x" * (MAX_ANSWER_BYTES + 1)),
                                  urlsafe_b64encode(zlib.compress(b"\0" * 50_000_000)).decode()])  # fmt: skip
def test_an_address_without_a_whole_answer_is_not_found(client, line):
    assert client.get("/tasks/make-room/", {"a": line}).status_code == 404
