"""The demo as a newcomer meets it, by keyboard alone: a choice, a preemption and its reasons, with the real engine."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters import drafts, questions, wake
from playground.clusters.demo import create_demo
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Pod, Run
from tests.browser.looks import nightly
from tests.browser.waits import wait_until
from tests.real_dump import as_yaml, real_dump, with_few_waiting

MEMORY = EngineMemory()


@pytest.fixture
def demo(transactional_db, monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    return create_demo()


def work(cluster):
    """Be the worker until nothing is open."""
    for _ in range(20):
        advance(cluster_id=cluster.pk, memory=MEMORY)
        if not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists():
            return
    raise AssertionError("the run did not end")


def focus(page):
    return page.evaluate("document.activeElement.id")


def test_two_steps_and_a_click_show_a_preemption_and_why(page, asgi_server, demo, complaints):
    page.goto(f"{asgi_server}/c/{demo.public_id}/")
    guide = page.locator("#first-steps")
    expect(guide).to_contain_text("gateway-0")
    page.locator("#run-step").focus()
    for number, news in ((1, "gateway-0 bound"), (2, "checkout-api-0 preempting")):
        page.keyboard.press("Enter")
        expect(page.locator("#runstate")).to_contain_text("waiting for a worker")
        # The bar was swapped twice, and the focus is still on the button that was pressed.
        expect(page.locator("#run-step")).to_be_focused()
        work(demo)
        expect(page.locator(f"#ev-{number}")).to_contain_text(news)
        expect(page.locator("#runstate")).to_have_count(0)
        expect(page.locator("#run-step")).to_be_focused()
    expect(page.locator("#lane-unschedulable")).to_contain_text("Nominated to node-b3")
    expect(page.locator("#node-node-b3 .ghost")).to_have_count(1)
    page.locator("#ev-2").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("evicts 1 pod from node-b3")
    expect(page.locator("#preempt")).to_contain_text("decided by: latest start time")
    page.get_by_role("link", name="Board as of this cycle").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/replay/\?cycle=2$"))


def test_several_steps_may_be_asked_for_at_once(page, asgi_server, demo, complaints):
    page.goto(f"{asgi_server}/c/{demo.public_id}/")
    for n in range(1, 4):
        page.keyboard.press("s")
        expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
        wait_until(page, lambda n=n: Run.objects.filter(cluster=demo).count() == n)
    work(demo)
    expect(page.locator("#ev-3")).to_be_visible()
    assert Run.objects.filter(cluster=demo, state="done").count() == 3


def test_the_story_of_a_pod_goes_on_while_one_reads(page, asgi_server, demo, complaints):
    request_run(cluster=demo, until="cycle")
    request_run(cluster=demo, until="cycle")
    work(demo)
    page.goto(f"{asgi_server}/c/{demo.public_id}/pods/default/checkout-api-0/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("waits for node-b3")
    page.evaluate("window.notReloaded = true")
    page.locator("#pod-edit").focus()
    request_run(cluster=demo, until="idle")
    work(demo)
    expect(page.get_by_role("heading", level=1)).to_contain_text("is on node-b3 after 2 attempts")
    # The backoff that was counted while it waited for its victim is drawn dashed.
    expect(page.locator("#swim rect.l-out")).to_have_count(2)
    expect(page.locator("#swim")).to_contain_text("1.0 s, over at 00:01.0")
    assert page.evaluate("window.notReloaded") and focus(page) == "pod-edit"


def test_weights_are_moved_on_the_page_of_the_cycle(page, asgi_server, demo, complaints):
    for _ in range(4):
        request_run(cluster=demo, until="cycle")
    work(demo)
    page.goto(f"{asgi_server}/c/{demo.public_id}/cycles/4/")
    page.locator("#weights-box summary").focus()
    page.keyboard.press("Enter")
    slider = page.locator("#w-TaintToleration")
    slider.focus()
    expect(page.locator("#weights")).to_contain_text("node-b2 wins above")
    slider.press("Home")
    expect(page.locator("#weights")).to_contain_text("was 3")
    assert focus(page) == "w-TaintToleration" and page.url.endswith("/cycles/4/")
    page.locator("#weights-reset").click()
    expect(page.locator("#weights")).to_contain_text("As recorded")


# ---- A newcomer's path: from home with a file to why its pods are pending and an applied fix, in three actions


@pytest.fixture
def working(transactional_db, monkeypatch):
    """A worker that does everything at once, as one with nothing else to do."""

    def do(task, **how):
        if task == "work_on_draft":
            drafts.work_on(draft_id=how["draft_id"])
        elif task == "answer":
            questions.answer(question_id=how["question_id"], memory=EngineMemory())
        elif task == "advance":
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
    person.choose(page.locator("#door-file"), as_yaml(with_few_waiting(real_dump(10, 240))))
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
