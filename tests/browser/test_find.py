"""Find: the palette on every page, and lists that are filtered and sorted by the server."""

import re

from playwright.sync_api import expect

from playground.clusters.models import Node, Run
from tests.browser.boxes import out_of_bounds
from tests.browser.looks import BOTH_WIDTHS, violations
from tests.browser.test_keyboard import tab_to
from tests.browser.test_real_clusters import board, real
from tests.browser.waits import wait_until

__all__ = ["real"]


@BOTH_WIDTHS
def test_the_palette_finds_nodes_pods_workloads_and_cycles_by_keyboard(
    page, asgi_server, real, complaints, width
):
    page.set_viewport_size({"width": width, "height": 844})
    node = Node.objects.filter(cluster=real).order_by("pk")[40].name
    page.goto(board(asgi_server, real, "pods/"))
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name=re.compile("^Find nodes, pods"))
    expect(field).to_be_focused()
    expect(page.locator("#found")).to_contain_text("Run until idle")  # before a word: what there is to do
    page.keyboard.type(node[:14])
    expect(page.locator("#found").get_by_role("link", name=node)).to_be_visible()
    assert not violations(page)
    assert not out_of_bounds(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#found a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"\?node="))
    page.wait_for_load_state("domcontentloaded")  # before its scripts, nothing hears a key
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("nightly")
    expect(page.locator("#found").get_by_role("region", name="Pods")).to_contain_text("nightly-render")
    expect(page.locator("#found").get_by_role("region", name="Workloads")).to_contain_text("Job in reports")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("cycle 12")  # over "nightly", which is selected
    expect(field).to_have_value("cycle 12")
    expect(page.locator("#found").get_by_role("region", name="Cycles")).to_contain_text("Cycle 12")
    page.keyboard.press("Enter")  # the first of what was found, without walking there
    expect(page).to_have_url(re.compile("/cycles/12/$"))


def test_who_types_while_the_page_is_loading_is_answered(page, asgi_server, real):
    held = []
    page.route("**/htmx-2*.js", lambda route: held.append(route))
    page.goto(board(asgi_server, real, "cycles/"), wait_until="commit")
    expect(page.locator("#palette")).to_be_attached()
    page.keyboard.press("Control+k")
    page.keyboard.type("nightly")
    wait_until(page, lambda: held)
    held.pop().continue_()
    expect(page.locator("#found").get_by_role("region", name="Workloads")).to_contain_text("Job in reports")
    # Who walks in a list that the answer to a further letter replaces is at the field again.
    page.route(re.compile("q=nightly-r$"), lambda route: held.append(route))
    page.keyboard.insert_text("-r")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#found a").first).to_be_focused()
    wait_until(page, lambda: held)
    held.pop().continue_()
    expect(page.locator("#palette-q")).to_be_focused()
    expect(page.locator("#status")).to_have_text("6 pods, 1 workload")


def test_actions_are_done_from_the_palette(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real, "cycles/"))
    page.keyboard.press("Control+k")
    page.keyboard.type("until idle")
    expect(page.locator("#found button")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    assert Run.objects.filter(cluster=real).latest("pk").until == "idle"


def test_where_no_cluster_is_open_clusters_are_found(page, asgi_server, real, complaints):
    page.goto(asgi_server)
    page.keyboard.press("/")
    page.keyboard.type("prod-eu")
    expect(page.locator("#found").get_by_role("link", name=re.compile("prod-eu-central-1"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/c/{real.public_id}/$"))


@BOTH_WIDTHS
def test_lists_are_filtered_and_sorted_by_keyboard(page, asgi_server, real, complaints, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(board(asgi_server, real, "pods/"))
    heading, rows = page.locator("#rows h2"), page.locator("#rows tbody tr")
    tab_to(page, page.locator("#f-q"))
    page.keyboard.type("indexer")
    expect(heading).to_have_text("10 pods")
    tab_to(page, page.locator("#f-lane"))
    page.keyboard.type("Unsch")
    expect(page).to_have_url(re.compile("lane=unschedulable"))
    expect(heading).to_have_text("8 pods")
    tab_to(page, page.get_by_role("link", name="CPU", exact=True))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("lane=unschedulable.*sort=-cpu"))
    page.reload()
    expect(heading).to_have_text("8 pods")
    expect(page.locator("#f-q")).to_have_value("indexer")
    expect(page.get_by_label("State")).to_have_value("unschedulable")
    page.get_by_role("link", name="Show all").press("Enter")
    expect(heading).to_have_text("700 pods")
    expect(rows).to_have_count(25)  # pods of one owner are a row
    page.locator("#pods-after").press("Enter")
    expect(page.locator(".pager")).to_contain_text(re.compile(r"Page 2 of \d+"))
    page.goto(board(asgi_server, real, "?view=table&group=none"))
    tab_to(page, page.get_by_role("searchbox", name="Find nodes"))
    page.keyboard.type("gpu eu-central-1a")
    expect(page.locator(".sums")).to_contain_text(re.compile(r"\d+ of 80\s+nodes"))
    expect(page.get_by_role("searchbox", name="Find nodes")).to_be_focused()
    assert not out_of_bounds(page)


def test_a_link_to_a_node_in_a_list_opens_it_on_the_board(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real, "pods/?lane=running&sort=node"))
    link = page.locator("#rows tbody td a").first
    name = link.get_attribute("aria-label").removeprefix("Node ")
    link.click()
    expect(page.locator("#inspector h2")).to_have_text(name)
