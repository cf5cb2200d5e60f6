"""Answered questions in a real browser: accessible in every look, and an answer arrives where it is waited for."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from playground.clusters import services, wake
from playground.clusters.models import Cluster, Question
from playground.clusters.services import questions
from playground.clusters.services.memory import EngineMemory
from tests.clusters.builders import make_cluster, make_node, make_pod


@pytest.fixture
def asked(transactional_db: None, no_broker: Any, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a pending pod and every question about it answered."""
    groups: list[dict[str, Any]] = []
    monkeypatch.setattr(wake, "send_group", lambda task, many: bool(groups.extend(many)) or True)
    taint = {"key": "gpu", "value": "t4", "effect": "NoSchedule"}
    cluster = make_cluster(
        make_node("node-a1", cpu="4"),
        make_node("node-a2", cpu="4"),
        make_node("node-b1", cpu="8", taints=[taint]),
        make_node("node-c1", cpu="6", unschedulable=True),
        *(make_pod(f"web-{index}", cpu="1500m") for index in range(3)),
        make_pod("large", cpu="5"),
    )
    services.request_run(cluster=cluster, until="idle")
    services.advance(cluster_id=cluster.pk, memory=EngineMemory())
    cluster.refresh_from_db()
    large = {"namespace": "default", "name": "large"}
    for kind, params in (
        ("what-would-it-take", large),
        ("why-not", {**large, "node": "node-b1"}),
        ("why-not", {"cycle": 1, "node": "node-a2"}),
        ("weights", {"cycle": 1}),
        ("seeds", {"seeds": 5}),
        ("try", {"manifest": questions.admitted_pod(cluster=cluster, text=TRIED)}),
    ):
        question = questions.ask(cluster=cluster, kind=kind, params=params)
        questions.answer(question_id=question.pk, memory=EngineMemory())
    for part in groups:
        questions.run_seeds(**part)
    assert not Question.objects.exclude(state="done").exists()
    return cluster


TRIED = "apiVersion: v1\nkind: Pod\nmetadata: {name: tried}\nspec: {containers: [{name: c, image: i}]}\n"

PAGES = {
    "edits and why not": "/c/{id}/pods/default/large/explain/?node=node-b1",
    "only nodes": "/c/{id}/pods/default/large/explain/?about=nodes",
    "why not then": "/c/{id}/cycles/1/why-not/?node=node-a2",
    "weights": "/c/{id}/cycles/1/weights/",
    "weights set": "/c/{id}/cycles/1/weights/?w-NodeResourcesFit=9",
    "luck": "/c/{id}/luck/",
}


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)], ids=["light", "dark", "phone"]
)
def test_answers_are_accessible_and_fit(
    page: Any, asgi_server: str, asked: Cluster, complaints: Any, scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 844})
    found = []
    tried = Question.objects.get(kind="try").public_id
    for name, path in {**PAGES, "tried": f"/c/{{id}}/questions/{tried}/"}.items():
        page.goto(asgi_server + path.format(id=asked.public_id))
        for details in page.locator("details").all():
            details.evaluate("d => d.open = true")
        for violation in Axe().run(page).response["violations"]:
            found.append(f"{name}: {violation['id']} {violation['nodes'][0]['html'][:120]}")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{name}: {wide} px too wide")
    assert not found, "\n".join(found)


def test_an_answer_arrives_on_the_page_that_waits_for_it(
    page: Any, asgi_server: str, asked: Cluster, complaints: Any
) -> None:
    services.apply_documents(cluster=asked, objects=[make_node("node-d1", cpu="2")])
    page.goto(f"{asgi_server}/c/{asked.public_id}/pods/default/large/explain/")
    page.get_by_role("button", name="Prove again").click()
    page.get_by_text("A worker looks for the answer").wait_for()
    for question in Question.objects.filter(state="queued"):
        questions.answer(question_id=question.pk, memory=EngineMemory())
    page.get_by_text("Add a node like node-d1").or_(
        page.get_by_text("Single edits that place it")
    ).first.wait_for()
    assert page.get_by_text("Prove again").count() == 0


def test_a_slider_changes_the_winner_without_a_new_page(
    page: Any, asgi_server: str, asked: Cluster, complaints: Any
) -> None:
    page.goto(f"{asgi_server}/c/{asked.public_id}/cycles/1/weights/")
    slider = page.locator("#w-NodeResourcesFit")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("was 1").wait_for()
    assert page.evaluate("document.activeElement.id") == "w-NodeResourcesFit"
    assert "w-NodeResourcesFit=2" in page.url
