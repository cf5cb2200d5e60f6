"""A newcomer's path: from home to why a pod of a pasted dump is pending, and the cheapest fix, in five actions."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters import drafts, questions, wake
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster, Question
from tests.browser.looks import nightly
from tests.real_dump import as_yaml, real_dump


@pytest.fixture
def working(transactional_db, monkeypatch):
    """A worker that does everything at once, as one with nothing else to do, but for the longest search there is.

    The page of plans asks for the cheapest nodes by itself: many seconds, in which the page is left again.
    """

    def do(task, **how):
        if task == wake.DRAFT:
            drafts.work_on(draft_id=how["draft_id"])
        elif task == wake.ANSWER and not Question.objects.filter(
            pk=how["question_id"], params__ask="backlog"
        ):
            questions.answer(question_id=how["question_id"], memory=EngineMemory())
        elif task == wake.ADVANCE:
            advance(cluster_id=how["cluster_id"])
        return True

    monkeypatch.setattr(wake, "send", do)


class Actions:
    """What a person does, counted: one paste, one press of a button or link, one word typed are an action each."""

    def __init__(self, page, by_keyboard):
        self.page, self.by_keyboard, self.n = page, by_keyboard, 0

    def paste(self, field, text):
        self.n += 1
        field.focus()
        # As the browser does with a paste; typing a megabyte would take minutes.
        field.evaluate(
            "(e, text) => { e.value = text; e.dispatchEvent(new Event('input', {bubbles: true})); }", text
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
def test_a_newcomer_learns_why_a_pod_is_pending_and_the_cheapest_fix_in_five_actions(
    page, asgi_server, working, complaints, width, by_keyboard
):
    page.set_viewport_size({"width": width, "height": 844})
    person = Actions(page, by_keyboard)
    page.goto(asgi_server)
    person.paste(page.get_by_label("A dump of your cluster"), as_yaml(real_dump(20, 300)))
    person.press(page.locator("#door-paste"))
    # Why: the scheduler's own reasons, before anything is made.
    pending = page.locator("#pending tr", has_text="search/indexer")
    expect(pending).to_contain_text("Insufficient cpu")
    assert not Cluster.objects.exists()
    person.press(page.get_by_role("button", name="Create cluster"))
    pod = page.locator("#lane-active a.qp", has_text="indexer").first
    expect(pod).to_be_visible()
    person.press(pod)
    person.press(page.locator("#in-explain"))
    # The cheapest fix stands first, and was proved by a run.
    expect(page.locator("h1")).to_contain_text("What would it take to place indexer")
    fix = page.locator(".edits li, #edits li").first
    expect(fix).to_be_visible()
    expect(fix).to_contain_text(re.compile("cpu|node|pod"))
    assert person.n == 5
