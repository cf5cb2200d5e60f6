"""Answered questions in a real browser: accessible in every look, and an answer arrives where it is waited for."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from playground.clusters import questions, wake
from playground.clusters.demo import create_demo
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Question
from tests.browser.looks import EVERY_LOOK, Looks, what_is_wrong
from tests.browser.waits import wait_until
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.rare_cycles import run_until
from tests.tables import table
from tests.web import factories


@pytest.fixture
def asked(transactional_db: None, wakes: Any) -> Cluster:
    """A cluster with a pending pod and every question about it answered."""
    return factories.copied("asked", lambda: _asked(wakes))


def _asked(wakes: Any) -> Cluster:
    taint = {"key": "gpu", "value": "t4", "effect": "NoSchedule"}
    cluster = make_cluster(
        make_node("node-a1", cpu="4"),
        make_node("node-a2", cpu="4"),
        make_node("node-b1", cpu="8", taints=[taint]),
        make_node("node-c1", cpu="6", unschedulable=True),
        *(make_pod(f"web-{index}", cpu="1500m") for index in range(3)),
        make_pod("large", cpu="5"),
    )
    request_run(cluster=cluster, until="idle")
    advance(cluster_id=cluster.pk, memory=EngineMemory())
    cluster.refresh_from_db()
    large = {"namespace": "default", "name": "large"}
    for kind, params in (
        ("fix", {"pod": "default/large"}),
        ("fix", {}),
        ("why-not", {**large, "node": "node-b1"}),
        ("why-not", {"cycle": 1, "node": "node-a2"}),
        ("weights", {"cycle": 1}),
        ("seeds", {"seeds": 5}),
        ("try", {"manifest": questions.admitted_pod(cluster=cluster, text=TRIED)}),
    ):
        question = questions.ask(cluster=cluster, kind=kind, params=params)
        questions.answer(question_id=question.pk, memory=EngineMemory())
    for task, how in wakes:
        if task == "run_seeds":
            questions.run_seeds(**how)
    assert not Question.objects.exclude(state="done").exists()
    return cluster


TRIED = "apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec: {containers: [{name: c, image: i}]}\n"

PAGES = table(__file__, "PAGES")


@EVERY_LOOK
def test_answers_are_accessible_and_fit(
    page: Any, asgi_server: str, asked: Cluster, complaints: Any, looks: Looks
) -> None:
    tried = Question.objects.get(kind="try").public_id
    pages = {**PAGES, "tried": f"/c/{{id}}/questions/{tried}/"}
    assert not (
        found := what_is_wrong(
            page, asgi_server, {name: path.format(id=asked.public_id) for name, path in pages.items()}, looks
        )
    ), "\n".join(found)


def test_pages_of_questions_ask_as_they_are_opened_and_show_the_answer(
    page, asgi_server, asked, complaints, monkeypatch
):
    """A worker of the test answers at once; each page asks, waits and shows the answer without a press."""
    Question.objects.all().delete()

    def answer_at_once(task, **how):
        if task == "answer":
            questions.answer(question_id=how["question_id"], memory=EngineMemory())
        elif task == "run_seeds":
            questions.run_seeds(**how)

    monkeypatch.setattr(wake, "send", answer_at_once)
    base = f"{asgi_server}/c/{asked.public_id}/"
    page.goto(f"{base}pods/default/large/fix/")
    expect(page.get_by_role("heading", name="Keeps what you asked for")).to_be_visible()
    page.goto(f"{base}cycles/1/why-not/?node=node-a2")
    expect(page.locator("#why h2")).to_be_visible()
    page.goto(f"{base}plan/")
    for ask in ("any-node", "consolidate", "headroom"):
        expect(page.locator(f"#plan-{ask}").get_by_role("link", name="Open")).to_be_visible()
    failed = Question.objects.exclude(state="done")
    assert not failed, [(row.params, row.error) for row in failed]
    expect(page.locator("#plan-drain")).to_contain_text("Enter node names or a label")
    expect(page.locator("#plan-any-domain")).to_contain_text("Not asked")  # no node has a zone
    page.goto(f"{base}cycles/1/weights/")
    expect(page.locator("#weights")).to_be_visible()
    expect(page.locator("#arriving, #asking")).to_have_count(0)
    page.locator("#w-NodeResourcesFit").press("ArrowRight")
    expect(page.get_by_text("was 1")).to_be_visible()
    expect(page).to_have_url(re.compile("w-NodeResourcesFit=2"))
    expect(page.locator("#w-NodeResourcesFit")).to_be_focused()
    page.goto(f"{base}luck/")
    expect(page.get_by_text("End states").first).to_be_visible()
    assert not Question.objects.exclude(state="done").exists()


@pytest.mark.parametrize(
    ("path", "kinds"),
    [("plan/", 3), ("cycles/1/weights/", 1), ("luck/", 1), ("pods/default/large/fix/", 1)],
)
def test_who_leaves_a_page_that_asked_by_itself_wants_no_answer(page, asgi_server, asked, path, kinds):
    Question.objects.all().delete()
    page.goto(f"{asgi_server}/c/{asked.public_id}/{path}")
    expect(page.locator("[data-cancel]")).to_have_count(kinds)
    assert Question.objects.count() == kinds and all(row.is_open for row in Question.objects.all())
    page.goto(f"{asgi_server}/about/")
    wait_until(page, lambda: set(Question.objects.values_list("state", flat=True)) == {"cancelled"})


def test_who_comes_back_is_asked_again_but_who_cancels_is_not(page, asgi_server, asked):
    Question.objects.all().delete()
    pod = {"pod": "default/large"}
    questions.cancel(Question.objects.filter(pk=questions.ask(cluster=asked, kind="fix", params=pod).pk))
    page.goto(f"{asgi_server}/c/{asked.public_id}/pods/default/large/fix/")
    cancel, told = (
        page.get_by_role("button", name="Cancel"),
        page.get_by_role("heading", name="Not asked", exact=True),
    )
    expect(cancel.or_(told)).to_be_visible()
    for _ in range(20):  # the panel is replaced as it polls: a press on what is being replaced is lost
        if told.is_visible():
            break
        with suppress(PlaywrightTimeout):
            cancel.click(timeout=1_000)
        page.wait_for_timeout(1_000)
    expect(told).to_be_visible()
    wait_until(page, lambda: not any(question.is_open for question in Question.objects.all()))


def _answered_newest(page: Any) -> None:
    """Be the worker for what was asked last, once its row is there."""
    wait_until(page, lambda: Question.objects.exclude(state="done").exists())
    questions.answer(question_id=Question.objects.latest("pk").pk, memory=EngineMemory())


def test_a_nodes_panel_leads_to_its_drain(
    page: Any, asgi_server: str, asked: Cluster, complaints: Any
) -> None:
    page.goto(f"{asgi_server}/c/{asked.public_id}/?node=node-a1")
    page.get_by_role("button", name="What a drain does").press("Enter")
    _answered_newest(page)
    expect(page.locator("#verdict")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Drain nodes: node-a1")
    expect(page.locator(".sums")).to_contain_text("leave")


def test_what_is_known_of_all_that_waits_appears_while_the_rest_is_looked_for(
    page, asgi_server, transactional_db, wakes
):
    cluster = create_demo()
    run_until(cluster, "idle")
    question = questions.ask(cluster=cluster, kind="fix", params={})
    questions.answer(question_id=question.pk, memory=EngineMemory())
    answer = Question.objects.get(pk=question.pk).answer
    row = Question.objects.filter(pk=question.pk)
    row.update(state=Question.State.RUNNING, answer=None)
    page.goto(f"{asgi_server}/c/{cluster.public_id}/fix/")
    page.evaluate("window.notReloaded = true")
    expect(page.locator("#asking")).to_be_visible()
    expect(page.locator("#fix-body")).to_have_text("")
    row.update(answer=answer | {"workloads": answer["workloads"][:1]})
    expect(page.locator("#fix-body")).to_contain_text("One line for each workload")
    assert page.evaluate("window.notReloaded")
    row.update(state=Question.State.DONE, answer=answer)
    expect(page.locator("#asking")).to_have_count(0)
