"""Scenario pages in a real browser: accessible, fitting, and two people's round trip."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters import questions
from playground.clusters.models import Cluster
from playground.scenarios.models import RecordedCycle
from playground.scenarios.services import (
    fork,
    request_comparison,
    request_moment,
    request_verification,
    share,
    share_gallery,
)
from tests.browser.looks import EVERY_LOOK, seen_wrong
from tests.browser.steps import do_every_step
from tests.scenarios.conftest import sent, work
from tests.scenarios.documents import PACKING, node, pod, priority_class, small, text_of
from tests.scenarios.test_clusters import made_by_hand
from tests.scenarios.test_pages import EDIT

__all__ = ["sent", "work"]

pytestmark = pytest.mark.django_db(transaction=True)


def storefront():
    """Three zones, three classes of priority, more pods than fit."""
    zone = "topology.kubernetes.io/zone"
    nodes = [
        node(f"node-{z}{i}", cpu="8", memory="32Gi", **{zone: f"zone-{z}"}) for z in "abc" for i in (1, 2, 3)
    ]
    pods = []
    for i in range(18):
        name = ("payments", "web", "etl")[i % 3]
        cpu = ("2", "1500m", "3")[i % 3]
        priority = ("critical", "standard", "batch")[i % 3]
        pods.append(pod(f"{name}-{i}", cpu=cpu, memory="2Gi", priorityClassName=priority))
    pods += [pod(f"late-{i}", cpu="7", priorityClassName="critical") for i in range(3)]
    pods += [pod("giant", cpu="64", priorityClassName="batch")]
    classes = [
        priority_class("critical", 100000),
        priority_class("standard", 1000),
        priority_class("batch", 100),
    ]
    return small(
        name="storefront",
        title="Storefront under load: checkout preempts a batch job",
        lesson="Three zones of three nodes. Watch the late pods arrive: they preempt what is cheapest.",
        objects=[*classes, *nodes, *pods[:18]],
        steps=[{"run": "idle"}, {"apply": pods[18:]}, {"run": "idle"}],
        path=[
            {"cycle": 1, "focus": "NodeResourcesFit", "text": "The first pod: every node is equal."},
            {"cycle": 19, "text": "A late pod finds no room. Who has to go?"},
        ],
        expect=[{"pod": "giant", "reason": "Insufficient cpu"}, {"metric": "bound", "count": {"min": 99}}],
    )


@pytest.fixture
def pages(work, monkeypatch):
    """Paths of everything there is to see."""
    from playground.engine.scenarios import gallery_documents

    few = dict(list(gallery_documents().items())[:2])
    monkeypatch.setattr("playground.scenarios.services.gallery.gallery_documents", lambda: few)
    spread = share(document=text_of(storefront())).scenario
    packed = share(
        document=text_of(storefront() | {"scheduler": PACKING, "title": "The same, packed"})
    ).scenario
    broken = share(document=text_of(storefront() | {"seed": 8, "title": "Another engine's"})).scenario
    cluster = made_by_hand(work)
    forked = fork(scenario=spread)
    work()
    RecordedCycle.objects.filter(scenario=broken, number=4).update(digest="0" * 64)
    request_verification(scenario=broken)
    sides = [{"kind": "scenario", "id": one.public_id, "cycle": None} for one in (spread, packed)]
    comparison = request_comparison(a=sides[0], b=sides[1])
    questions.ask(kind="optimum", cluster=cluster, params={"time_limit_s": 5})
    asked = questions.ask(kind="luck", share=spread, params={"seeds": 3})
    questions.run_seeds(question_id=asked.pk, seeds=range(asked.params["first"], asked.params["first"] + 3))
    share_gallery()
    work()
    return {
        "share": f"/s/{spread.public_id}/",
        "share at 12": f"/s/{spread.public_id}/?cycle=12",
        "differs": f"/s/{broken.public_id}/",
        "cycle": f"/s/{spread.public_id}/cycles/19/?node=node-a1&plugin=NodeResourcesFit",
        "embed": f"/s/{spread.public_id}/embed/?cycle=7",
        "mine": "/s/",
        "new": "/s/new/",
        "delete": f"/s/{spread.public_id}/delete/",
        "gallery": "/gallery/",
        "compare ask": "/compare/",
        "compare": f"/compare/{comparison.public_id}/",
        "replay": f"/c/{cluster.public_id}/replay/?cycle=5",
        "share cluster": f"/c/{forked.public_id}/share/",
        "optimum": f"/c/{cluster.public_id}/optimum/",
        "luck": f"/s/{spread.public_id}/luck/",
    }


@EVERY_LOOK
def test_every_scenario_page_is_accessible_and_fits(page, asgi_server, pages, work, complaints, looks):
    found = []
    for name, path in pages.items():
        page.goto(asgi_server + path)
        work()
        if page.locator("#deciding").count():
            page.wait_for_selector("#deciding", state="detached", timeout=15_000)
        found += seen_wrong(page, name, looks)
    assert not found, "\n".join(found)


PODS = """\
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0}
spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1}
spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2}
spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
"""


def test_two_people_share_fork_change_and_compare(browser, asgi_server, work):
    """Ada builds a cluster and shares it; Bob, in a browser of his own, forks it, packs instead, compares."""
    with browser.new_context() as adas:
        ada = adas.new_page()
        ada.goto(f"{asgi_server}/new/import/")
        ada.get_by_label("Or pasted").fill(PODS)
        expect(ada.locator("#import-preview")).to_contain_text("create")
        ada.get_by_role("button", name="Create cluster").click()
        ada.get_by_role("button", name="Run until idle").click()
        expect(ada.locator("#runbar")).to_contain_text("waiting for a worker")
        work()
        expect(ada.locator("#feed")).to_contain_text("web-2 bound")
        ada.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
        ada.get_by_label("Title").fill("Three pods, two nodes")
        ada.get_by_role("button", name="Make a link").click()
        expect(ada.locator("#messages")).to_contain_text("Delete code")
        link = ada.locator("#lnk").input_value()
        work()
        expect(ada.locator("#proof-badge")).to_contain_text("Reproduced 3 of 3 decisions")
    with browser.new_context() as bobs:
        bob = bobs.new_page()
        bob.goto(link)
        expect(bob.get_by_role("heading", level=1)).to_have_text("Three pods, two nodes")
        bob.keyboard.press("[")
        expect(bob.locator("#timeline")).to_contain_text("Cycle 2 of 3")
        work()
        expect(bob.locator("#past")).to_contain_text("node-b")
        bob.get_by_role("button", name="Fork to edit").click()
        bob.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Config").click()
        weight = bob.locator('[name="w:NodeResourcesBalancedAllocation"]')
        expect(weight).to_have_value("1")
        weight.fill("10")
        bob.locator("form:has([name='w:NodeResourcesBalancedAllocation'])").get_by_role(
            "button", name="Save"
        ).click()
        expect(bob.locator("#text")).to_contain_text("weight: 10")
        bob.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
        expect(bob.locator("#changed")).to_contain_text("changed since forked")
        do_every_step(bob, work)
        bob.get_by_role("button", name="Make a link").click()
        work()
        expect(bob.locator("#proof-badge")).to_contain_text("Reproduced 3 of 3 decisions")
        expect(bob.locator(".ro")).to_contain_text("Forked from Three pods, two nodes")
        bob.get_by_label("Or a scenario's link").fill(link)
        bob.get_by_role("button", name="Compare").click()
        work()
        expect(bob.locator("#divergence")).to_contain_text("First decision that differs")
        comparison = bob.url
    with browser.new_context() as adas:
        ada = adas.new_page()
        ada.goto(comparison)
        expect(ada.locator("#divergence")).to_contain_text("NodeResourcesBalancedAllocation × 10")
        expect(ada.locator("#moved")).to_contain_text("default/web-")


def test_the_slider_the_keys_and_play_move_through_a_replay(page, asgi_server, work, complaints):
    scenario = share(document=text_of(small())).scenario
    request_moment(scenario=scenario, cycle=1)
    work()
    page.goto(f"{asgi_server}/s/{scenario.public_id}/?cycle=1")
    shown = page.locator("#cyc-shown")
    page.keyboard.press("]")
    expect(shown).to_have_text("2")
    page.keyboard.press("[")
    expect(shown).to_have_text("1")
    page.locator("#cyc").fill("3")
    expect(page.locator("#hbo")).to_have_text("Nodes after cycle 3")
    assert page.url.endswith("?cycle=3")
    page.locator("#speed").select_option("60")
    page.locator("#play").click()
    expect(shown).to_have_text("5")
    expect(page.locator("#play")).to_have_text("Play")
    page.go_back()
    expect(shown).not_to_have_text("5")


def test_a_cluster_is_walked_back_by_slider_keys_and_play_and_branched_off_with_an_edit(
    page, asgi_server, work, complaints
):
    cluster = made_by_hand(work)
    request_moment(cluster=cluster, cycle=1)
    work()
    page.goto(f"{asgi_server}/c/{cluster.public_id}/replay/?cycle=1")
    expect(page.locator("#hbo")).to_have_text("Nodes after cycle 1")
    page.keyboard.press("]")
    expect(page.locator("#cyc-shown")).to_have_text("2")
    page.locator("#cyc").fill("3")
    expect(page.locator("#hbo")).to_have_text("Nodes after cycle 3")
    assert page.url.endswith("?cycle=3")
    edit = page.get_by_label("With an edit")
    edit.fill(EDIT)
    edit.press("End")
    page.keyboard.type("  # ]p[")
    expect(page.locator("#cyc-shown")).to_have_text("3")
    page.locator("#speed").select_option("60")
    page.locator("#play").click()
    last = cluster.next_cycle - 1
    expect(page.locator("#cyc-shown")).to_have_text(str(last))
    expect(page.locator("#play")).to_have_text("Play")
    expect(edit).to_have_value(re.compile("name: extra"))
    page.locator("#cyc").fill("2")
    expect(page.locator("#branch")).to_have_text("Branch off after cycle 2")
    page.locator("#branch").click()
    expect(page.locator("#messages")).to_contain_text("was after cycle 2")
    made = Cluster.objects.order_by("-pk").first()
    assert made.nodes.filter(name="extra").exists() and not cluster.nodes.filter(name="extra").exists()
    expect(page).to_have_url(re.compile("/difference/$"))
    work()  # a branch with an edit is run
    page.goto(f"{asgi_server}/c/{made.public_id}/")
    expect(page.locator("#feed")).to_contain_text("extra")
