"""Boards and pages of a cluster as a cloud names it: 200 nodes and 3,000 pods, and 5,000 nodes."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Node, Question, Run
from playground.clusters.objects.apply import apply_documents
from tests.browser.boxes import out_of_bounds
from tests.browser.looks import BOTH_WIDTHS, nightly
from tests.clusters.builders import make_pod
from tests.rare_cycles import run_until
from tests.real_dump import real_dump
from tests.web import factories

INDEXER, RENDER = "search/indexer", "reports/nightly-render"


def load(n_nodes, n_pods, **how):
    cluster = create_cluster(name=how.pop("name", "prod-eu-central-1"), seed=7)
    dump = real_dump(n_nodes, n_pods, **how)
    for start in range(0, len(dump), 5000):
        apply_documents(cluster=cluster, objects=dump[start : start + 5000])
    cluster.refresh_from_db()
    return cluster


def real_run():
    """Eighty nodes, after a run: 223 pods unschedulable for five reasons, two gated."""

    def make():
        cluster = load(80, 700)
        run_until(cluster, "idle")
        cluster.refresh_from_db()
        return cluster

    return factories.copied("real", make)


@pytest.fixture
def real(transactional_db, wakes):
    return real_run()


def share(cell):
    used, has = cell.split(" / ")
    return float(used) / float(has)


def board(asgi_server, cluster, query=""):
    return f"{asgi_server}/c/{cluster.public_id}/{query}"


@nightly
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_five_thousand_nodes_are_found(page, asgi_server, transactional_db, wakes, complaints):
    cluster = load(5000, 5400)
    page.goto(board(asgi_server, cluster, "?q=g5.12xlarge+eu-central-1a"))
    expect(page.locator(".sums")).to_contain_text(re.compile(r"\d+ of 5,000\s+nodes"))
    expect(page.locator("a.nd").first).to_be_visible()  # few enough for boxes again


@BOTH_WIDTHS
def test_totals_by_weights_are_seen_beside_long_names(page, asgi_server, real, complaints, width):
    apply_documents(cluster=real, objects=[make_pod("late")])
    run_until(real, "idle")
    bound = real.cycles.filter(outcome="bound").latest("number").number
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(board(asgi_server, real, f"cycles/{bound}/weights/"))
    totals = page.get_by_role("group", name="Totals")
    expect(totals.locator("tbody td").nth(1)).to_be_visible()
    assert totals.evaluate("e => e.scrollWidth - e.clientWidth") <= 1


def test_a_long_name_keeps_its_end_and_is_whole_when_focused(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real, "?view=table"))
    link = page.locator("tbody th a").first
    name = link.get_attribute("data-select")
    assert len(name) > 30
    expect(page.get_by_role("link", name=name, exact=True).first).to_be_visible()
    parts = link.locator(".nm")
    expect(parts).to_have_attribute("title", name)
    assert link.text_content() == name
    end = "-".join(name.partition(".")[0].split("-")[-2:])
    assert parts.locator("b").inner_text() == end
    whole = "e => e.scrollWidth <= e.clientWidth"
    assert parts.locator("b").evaluate(whole)
    page.locator("#sort-state").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if link.evaluate("e => e === document.activeElement"):
            break
    expect(link).to_be_focused()
    seen = link.evaluate("""e => {
      const range = document.createRange();
      range.selectNodeContents(e);
      const around = e.closest('th').getBoundingClientRect();
      return [...range.getClientRects()].every(r => r.left >= around.left && r.right <= around.right);
    }""")
    assert seen and link.inner_text().replace("\n", "") == name


@pytest.mark.parametrize("width", [1440, 1280])
def test_the_run_bar_stays_one_line(page, asgi_server, real, complaints, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(board(asgi_server, real))
    bar = page.locator(".runbar")
    before = bar.bounding_box()["height"]
    page.get_by_role("button", name="Run until idle").click()
    expect(bar).to_contain_text("waiting for a worker")
    expect(bar.get_by_role("button", name="Cancel")).to_be_visible()
    assert bar.bounding_box()["height"] == before < 60
    tops = bar.evaluate(
        "e => [...e.querySelectorAll('button')].filter(b => b.getClientRects().length)"
        ".map(b => b.getBoundingClientRect().top)"
    )
    assert max(tops) - min(tops) < 12
    # While it runs, with all there is to tell.
    what = "the flush of unschedulable pods"
    Cluster.objects.update(next_deadline_ns=real.start_ns + 330 * 10**9, next_deadline_what=what)
    Run.objects.update(state="running", cycles_done=1154, pending_at_start=2223, pending_now=2223)
    page.reload()
    expect(bar).to_contain_text("1,154 cycles")
    expect(bar.get_by_role("button", name="Cancel")).to_be_visible()
    assert bar.bounding_box()["height"] == before and not out_of_bounds(page)


def test_nodes_are_rows_by_pool_or_any_label_and_columns_by_zone(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real))
    group = page.get_by_label("Group by", exact=True)
    expect(group).to_have_value("")
    for place, words in enumerate(("pool", "instance type", "pool", "zone")):
        expect(group.locator("option").nth(place)).to_have_text(words)
    rows, zones = page.locator(".poolh"), page.locator(".look thead th b")
    expect(zones).to_have_text(["eu-central-1a", "eu-central-1b", "eu-central-1c"])
    n_general = sum("m6i" in str(node.labels) for node in Node.objects.filter(cluster=real))
    expect(rows.first).to_contain_text(f"general {n_general} × m6i.4xlarge")
    assert page.locator("a.nd").count() == 80
    group.select_option(label="zone")
    expect(page).to_have_url(re.compile("group=topology"))
    expect(rows).to_have_count(3)
    group.select_option(label="none")
    expect(rows).to_have_text([re.compile("All nodes 80 nodes")])


def test_nodes_are_sorted_and_found_on_the_server_and_the_address_says_so(
    page, asgi_server, real, complaints
):
    page.goto(board(asgi_server, real, "?view=table&group=none"))
    page.get_by_role("link", name="CPU", exact=True).click()
    expect(page).to_have_url(re.compile("sort=-cpu"))
    expect(page.locator("th[aria-sort=descending]")).to_have_text("CPU")
    shares = [share(cell) for cell in page.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]
    find = page.get_by_role("searchbox", name="Find nodes")
    find.press_sequentially("memory eu-central-1a", delay=5)
    expect(page).to_have_url(re.compile("q=memory"))
    rows = page.locator("tbody tr")
    expect(page.locator(".sums")).to_contain_text(f"{rows.count()} of 80 nodes")
    expect(find).to_be_focused()
    page.reload()
    expect(page.get_by_role("searchbox", name="Find nodes")).to_have_value("memory eu-central-1a")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("CPU")
    page.get_by_role("searchbox", name="Find nodes").fill("no-such-node")
    expect(page.get_by_text("No node has “no-such-node”")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(rows).to_have_count(20)
    first = rows.first.locator("th").inner_text()
    page.locator("#nodes-after").click()
    expect(rows.first.locator("th")).not_to_have_text(first)
    page.goto(board(asgi_server, real, "?q=cordoned"))
    n = Node.objects.filter(cluster=real, unschedulable=True).count()
    expect(page.locator("a.nd.off")).to_have_count(n)


def test_a_picked_group_colours_every_node_and_a_second_press_leaves(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real))
    group = page.locator(".pgp", has_text="checkout-canary").locator("a.picks")
    group.click()
    expect(page).to_have_url(re.compile("pick=shop%2Fcheckout-canary"))
    expect(page.locator("#asking")).to_be_visible()
    question = Question.objects.get(kind="why-not")
    for _ in range(2):  # a poll leaves the map where it is
        page.wait_for_event("response", lambda answer: question.public_id in answer.url)
    expect(page.locator("a.nd")).to_have_count(80)
    questions.answer(question_id=question.pk, memory=EngineMemory())
    expect(page.locator("#picked")).to_contain_text("fits 0 of 80 nodes")
    question.refresh_from_db()
    for letter, css in (("f", "fits"), ("p", "evicts"), ("n", "out")):
        expect(page.locator(f"a.nd.{css}")).to_have_count(question.answer["letters"].count(letter))
    expect(page.locator(".says").first).to_contain_text("not what its selector or affinity asks for")
    expect(group).to_have_attribute("aria-current", "true")
    page.locator("a.nd.out").first.hover()
    expect(page.locator("[data-tip]")).to_contain_text("not what its selector or affinity asks for")
    group.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#picked")).to_have_count(0)
    expect(page.locator("a.nd.out")).to_have_count(0)
    assert "pick=" not in page.url


def test_two_hundred_pods_that_are_alike_are_one_row(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real))
    lane = page.locator("#lane-unschedulable")
    groups = lane.locator(".pgp")
    expect(groups).to_have_count(5)
    render = groups.filter(has_text=RENDER)
    expect(render.locator(".n")).to_contain_text("200")
    expect(render).to_contain_text("Insufficient cpu")
    render.locator("summary").focus()
    page.keyboard.press("Enter")
    pods = lane.locator("details[open] a.qp")
    expect(pods).to_have_count(10)
    more = lane.get_by_role("link", name="190 more")
    expect(more).to_be_visible()
    # What a tick brings leaves it open.
    apply_documents(cluster=real, objects=[make_pod("one-more")])
    expect(page.locator("#lane-active")).to_contain_text("one-more")
    expect(pods).to_have_count(10)
    more.click()
    expect(page.locator("tbody tr").first).to_contain_text("nightly-render")


def test_what_is_selected_is_in_the_address_and_the_map_stays(page, asgi_server, real):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(board(asgi_server, real))
    inspector, nodes = page.locator("#inspector"), page.locator("#nodes")
    link = page.locator("a.nd").last
    nodes.evaluate("e => { e.scrollTop = 9999; }")
    scrolled, window = nodes.evaluate("e => e.scrollTop"), page.evaluate("scrollY")
    name = link.get_attribute("id").removeprefix("node-")
    link.click(position={"x": 4, "y": 4})
    expect(inspector.locator("h2")).to_have_text(name)
    expect(inspector).to_be_in_viewport(ratio=0.9)
    assert (nodes.evaluate("e => e.scrollTop"), page.evaluate("scrollY")) == (scrolled, window)
    expect(page).to_have_url(re.compile(f"node={re.escape(name)}$"))
    inspector.locator("tbody a.tbl-link").first.click()
    expect(page).to_have_url(re.compile("pod="))
    pod = inspector.locator("h2").inner_text().split()[-1]
    page.get_by_role("link", name="Table").click()
    expect(page).to_have_url(re.compile("view=table.*pod="))
    expect(inspector.locator("h2")).to_contain_text(pod)
    page.go_back()
    expect(page.locator("a.nd").first).to_be_visible()
    expect(inspector.locator("h2")).to_contain_text(pod)
    page.go_back()
    expect(inspector.locator("h2")).to_have_text(name)
    page.go_back()
    expect(inspector.locator("h2")).to_have_text("Nothing selected")
    page.go_forward()
    expect(inspector.locator("h2")).to_have_text(name)
    page.goto(page.url)  # as a user does who was sent it
    expect(inspector.locator("h2")).to_have_text(name)
    page.get_by_role("link", name=f"Close {name}").click()
    expect(inspector.locator("h2")).to_have_text("Nothing selected")
    assert "node=" not in page.url


def test_on_a_phone_the_inspector_comes_up_and_the_map_stays(page, asgi_server, real, complaints):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(board(asgi_server, real))
    link = page.locator("a.nd").nth(6)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    link.click()
    expect(page.locator("#inspector")).to_be_in_viewport()
    expect(page.locator("#inspector h2")).to_have_text(link.get_attribute("id").removeprefix("node-"))
    assert abs(page.evaluate("scrollY") - before) < 2
    expect(link).to_be_in_viewport()
