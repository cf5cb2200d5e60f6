"""A rule is written in a browser: tried, kept, it decides, is explained on the cycle's page, and travels in a share."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.looks import LOOKS, seen_wrong, wear
from tests.browser.steps import do_every_step
from tests.clusters.builders import make_cluster, make_pod
from tests.web.test_rules_page import disk_node

pytestmark = pytest.mark.django_db(transaction=True)


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
    assert not seen_wrong(page, "tried")
    wear(page, *LOOKS[0])
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("The rule fast-disk is saved")

    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    page.get_by_role("button", name="Run until idle").click()
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    work()
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/1/")
    expect(page.locator("#funnel")).to_contain_text("had no fast disk")
    expect(page.locator("#funnel")).to_contain_text("Rule/fast-disk")
    assert not seen_wrong(page, "cycle")
    wear(page, *LOOKS[0])

    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
    page.get_by_label("Title").fill("Fast disks")
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#messages")).to_contain_text("delete code")
    work()
    expect(page.locator("#proof-badge")).to_contain_text("Reproduced", timeout=90_000)
    page.get_by_role("button", name="Fork to edit").click()
    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Share").click()
    # The rule came after the cluster had begun, so it is a step.
    do_every_step(page, work)
    page.get_by_role("navigation", name="Cluster", exact=True).get_by_role("link", name="Config").click()
    page.get_by_role("link", name="Rules").click()
    expect(page.locator("#rules")).to_contain_text("node(s) had no fast disk")
