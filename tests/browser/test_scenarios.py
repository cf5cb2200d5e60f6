"""Scenario pages in a real browser: two people's round trip, and the walk back through a run."""

import pytest
from playwright.sync_api import expect

from playground.scenarios.services.moments import request_moment
from playground.scenarios.services.shares import share
from tests.browser.steps import do_every_step
from tests.scenarios.documents import small, text_of
from tests.tables import table

pytestmark = pytest.mark.django_db(transaction=True)


PODS = table(__file__, "PODS")


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
        expect(ada.locator("#feed")).to_contain_text("3 × web bound")
        ada.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
        ada.get_by_label("Title").fill("Three pods, two nodes")
        ada.get_by_role("button", name="Make a link").click()
        expect(ada.locator("#messages")).to_contain_text("delete code")
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
