"""A newcomer's path: from home with a file to why its pods are pending and an applied fix, in three actions."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters import drafts, questions, wake
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster, Pod
from tests.browser.looks import nightly
from tests.browser.waits import wait_until
from tests.real_dump import as_yaml, real_dump


@pytest.fixture
def working(transactional_db, monkeypatch):
    """A worker that does everything at once, as one with nothing else to do."""

    def do(task, **how):
        if task == wake.DRAFT:
            drafts.work_on(draft_id=how["draft_id"])
        elif task == wake.ANSWER:
            questions.answer(question_id=how["question_id"], memory=EngineMemory())
        elif task == wake.ADVANCE:
            advance(cluster_id=how["cluster_id"])
        return True

    monkeypatch.setattr(wake, "send", do)


class Actions:
    """What a person does, counted: one file, one press of a button or link, one word typed are an action each."""

    def __init__(self, page, by_keyboard):
        self.page, self.by_keyboard, self.n = page, by_keyboard, 0

    def choose(self, field, text):
        """A file is dropped on the field, or chosen."""
        self.n += 1
        field.set_input_files(
            {"name": "cluster.yaml", "mimeType": "application/yaml", "buffer": text.encode()}
        )

    def press(self, target):
        self.n += 1
        if self.by_keyboard:
            target.focus()
            expect(target).to_be_focused()
            self.page.keyboard.press("Enter")
        else:
            target.click()


@pytest.mark.parametrize(
    ("width", "by_keyboard"),
    [(1440, True), pytest.param(1440, False, marks=nightly), pytest.param(390, True, marks=nightly)],
)
def test_a_newcomer_comes_from_a_file_to_an_applied_fix_in_three_actions(
    page, asgi_server, working, complaints, width, by_keyboard
):
    page.set_viewport_size({"width": width, "height": 844})
    person = Actions(page, by_keyboard)
    page.goto(asgi_server)
    person.choose(page.locator("#door-file"), as_yaml(real_dump(20, 300)))
    # Why: the scheduler's own reasons, and what places them all, before anything is made.
    expect(page.locator("#pending tr", has_text="search/indexer")).to_contain_text("Insufficient cpu")
    best = page.locator(".best")
    expect(best).to_contain_text("Best fix")
    assert not Cluster.objects.exists()
    person.press(page.locator("#make-fixed"))
    expect(page).to_have_url(re.compile(r"/c/\w+/$"))
    expect(page.locator("#messages")).to_contain_text("created")
    cluster = Cluster.objects.get()
    wait_until(
        page, lambda: not Pod.objects.filter(cluster=cluster, node_name="", name__contains="indexer").exists()
    )
    assert person.n <= 3
