"""A rule is written in a browser: tried, kept, it decides, is explained on the cycle's page, and travels in a share."""

from __future__ import annotations

import os
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.steps import do_every_step
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.scenarios.conftest import sent, work

__all__ = ["sent", "work"]

pytestmark = pytest.mark.django_db(transaction=True)


def disk_node(name: str, disk: str) -> dict[str, Any]:
    node: dict[str, Any] = make_node(name, cpu="4")
    node["metadata"]["labels"] = {"disk": disk}
    return node


@pytest.mark.timeout(400)
def test_a_rule_is_written_tried_decides_and_travels(
    page: Any, asgi_server: str, work: Any, complaints: Any
) -> None:
    cluster = make_cluster(
        disk_node("n1", "hdd"), disk_node("n2", "ssd"), disk_node("n3", "hdd"), make_pod("web", cpu="1")
    )
    page.goto(f"{asgi_server}/c/{cluster.public_id}/config/")
    page.get_by_role("link", name="Rules").click()
    page.get_by_label("Name").fill("fast-disk")
    page.get_by_label("Filter").fill('node.metadata.labels.disk == "ssd" && nod.x')
    page.get_by_label("Reason").fill("node(s) had no fast disk")
    page.get_by_label("Score").fill("free.cpu / 100")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#rule-filter_error")).to_contain_text('line 1, column 39: there is no "nod"')
    complaints.clear()  # the browser tells of the 400
    page.get_by_label("Filter").fill('node.metadata.labels.disk == "ssd"')
    page.get_by_label("Try it for the pod").fill("default/web")
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#asking")).to_be_visible()
    work()
    expect(page.locator("#tried")).to_contain_text("It holds for 1 of 3 nodes")
    expect(page.get_by_label("Filter")).to_have_value('node.metadata.labels.disk == "ssd"')
    assert not what_is_wrong(page, "tried")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("The rule fast-disk is saved")

    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    work()
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/1/")
    expect(page.locator("main")).to_contain_text("node(s) had no fast disk")
    expect(page.locator("main")).to_contain_text("Rule/fast-disk")
    assert not what_is_wrong(page, "cycle")

    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
    page.get_by_label("Title").fill("Fast disks")
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#messages")).to_contain_text("Delete code")
    work()
    expect(page.locator("#proof-badge")).to_contain_text("Reproduced", timeout=90_000)
    page.get_by_role("button", name="Fork to edit").click()
    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
    # The rule came after the cluster had begun, so it is a step.
    do_every_step(page, work)
    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Config").click()
    page.get_by_role("link", name="Rules").click()
    expect(page.locator("#rules")).to_contain_text("node(s) had no fast disk")


def what_is_wrong(page: Any, name: str) -> list[str]:
    """What is not accessible or does not fit, in light, dark and on a phone."""
    found = []
    for scheme, width in (("light", 1440), ("dark", 1440), ("light", 390)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 844})
        if folder := os.environ.get("RULE_SHOTS"):
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
        found += [violation["id"] for violation in Axe().run(page).response["violations"]]
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append(f"too wide at {width}")
    page.set_viewport_size({"width": 1440, "height": 844})
    return found
