"""How long and how heavy pages of a 200-node cluster are before something is opened: equal things are shown once."""

import pytest

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cycle, Node, Pod, Question
from playground.clusters.objects.apply import apply_documents
from tests.browser.boxes import out_of_bounds
from tests.browser.looks import BOTH_WIDTHS, wear
from tests.browser.test_real_clusters import load
from tests.clusters.builders import make_pod
from tests.rare_cycles import run_until
from tests.web import factories

DESK_PX, PHONE_PX = 900, 844
MOST = (4, 150, 60)
"""Screens, kilobytes, and controls that are seen."""
LONGER = {
    "board": (10, 440, 130),
    "pods": (14, 170, 340),
    "cycles": (8, 150, 130),
}
"""Pages that are longer than they should be: they grow no further."""
LONGER_ON_A_PHONE = {"cycle": (5, 150, 60), "cycle without a node": (5, 150, 60)}
CONTROLS = "main :is(a[href], button, input:not([type=hidden]), select, textarea, summary)"


def answered(cluster, kind, **params):
    question = questions.ask(cluster=cluster, kind=kind, params=params)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    question.refresh_from_db()
    assert question.state == Question.State.DONE, question.error
    return question


@pytest.fixture
def large(transactional_db, wakes):
    """Two hundred nodes after a run, and answers of its pages."""

    def make():
        cluster = load(200, 2400)
        apply_documents(cluster=cluster, objects=[make_pod("recommendation-engine-7c9d8f6b5-late0")])
        run_until(cluster, "idle")
        cluster.refresh_from_db()
        pod = Pod.objects.filter(cluster=cluster, name__startswith="nightly-render").order_by("pk").first()
        answered(cluster, "fix", pod=f"{pod.namespace}/{pod.name}")
        answered(cluster, "fix")
        return cluster

    return factories.copied("large", make)


def pages_of(cluster):
    c = f"/c/{cluster.public_id}/"
    waiting = Question.objects.filter(cluster=cluster, kind="fix", params__has_key="pod").get().params["pod"]
    drain = answered(cluster, "plan", ask="drain", nodes=[Node.objects.filter(cluster=cluster).first().name])
    pending = Cycle.objects.filter(cluster=cluster, outcome="unschedulable").first()
    bound = Cycle.objects.filter(cluster=cluster, outcome="bound").last()
    return {
        "fix of a pod": f"{c}pods/{waiting}/fix/",
        "fix of all": f"{c}fix/",
        "pod": f"{c}pods/{waiting}/",
        "plan": f"{c}plan/",
        "drain": f"{c}plan/{drain.public_id}/",
        "cycle without a node": f"{c}cycles/{pending.number}/",
        "cycle": f"{c}cycles/{bound.number}/",
        "board": c,
        "pods": f"{c}pods/",
        "cycles": f"{c}cycles/",
    }


@pytest.mark.timeout(900)
@BOTH_WIDTHS
def test_no_page_of_a_large_cluster_is_long_or_heavy(page, asgi_server, large, width):
    found = []
    longer = LONGER if width > 800 else LONGER | LONGER_ON_A_PHONE
    for name, path in pages_of(large).items():
        wear(page, "light", width)
        weight = len(page.goto(asgi_server + path).body()) / 1024
        height = page.evaluate("document.documentElement.scrollHeight")
        screens = height / (DESK_PX if width > 800 else PHONE_PX)
        controls = page.locator(CONTROLS).evaluate_all("all => all.filter(e => e.checkVisibility()).length")
        if out_of_bounds(page):
            found.append(f"{name} at {width}: {out_of_bounds(page)}")
        for what, value, most in zip(
            ("screens", "KB", "controls"), (screens, weight, controls), longer.get(name, MOST), strict=True
        ):
            if value > most:
                found.append(f"{name} at {width}: {value:.1f} {what}, {most} at most")
    assert not found, "\n".join(found)


@pytest.mark.timeout(900)
def test_a_group_of_nodes_opens_in_pages_by_keyboard_and_closes_again(page, asgi_server, large):
    wear(page, "light", 1440)
    page.goto(asgi_server + pages_of(large)["cycle"])
    rows = page.locator("#filter table.mx tbody tr")
    assert not rows.count()
    page.locator("#of-g0").press("Enter")
    page.wait_for_url("**part=g0*")
    page.wait_for_selector("#nodes-after")
    assert rows.count() == 50
    assert page.evaluate("document.activeElement.id") == "of-g0"
    first = rows.first.locator("th").inner_text()
    page.locator("#nodes-after").press("Enter")
    page.wait_for_url("**page=2*")
    page.wait_for_selector("#nodes-before")
    assert rows.count() <= 50 and rows.first.locator("th").inner_text() != first
    page.locator("#of-g0").press("Enter")
    page.wait_for_selector("#filter table.mx", state="detached")
    assert page.evaluate("document.activeElement.id") == "of-g0"
