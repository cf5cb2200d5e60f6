"""Boards and pages of a cluster as a cloud names it: 200 nodes and 3,000 pods, and 5,000 nodes."""

import re

import pytest
from playwright.sync_api import expect

from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Node, Run
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
    page.goto(board(asgi_server, cluster, "?view=cards&q=g5.12xlarge+eu-central-1a"))
    expect(page.locator(".sums")).to_contain_text(re.compile(r"\d+ of 5,000\s+nodes"))
    expect(page.locator("article.node").first).to_be_visible()  # few enough for cards again


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
    page.goto(board(asgi_server, real, "?view=cards"))
    link = page.locator("article.node h3 a").first
    name = link.get_attribute("data-select")
    assert len(name) > 30
    expect(page.get_by_role("link", name=name, exact=True).first).to_be_visible()
    parts = link.locator(".nm")
    expect(parts).to_have_attribute("title", name)
    assert link.text_content() == name
    end = "-".join(name.partition(".")[0].split("-")[-2:])
    assert parts.locator("b").inner_text() == end
    whole = "e => e.scrollWidth <= e.clientWidth"
    assert parts.locator("b").evaluate(whole) and not parts.locator(".dm").evaluate(whole)
    page.locator("#view-table").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
        if link.evaluate("e => e === document.activeElement"):
            break
    expect(link).to_be_focused()
    seen = link.evaluate("""e => {
      const range = document.createRange();
      range.selectNodeContents(e);
      const around = e.closest('article').getBoundingClientRect();
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
    page.wait_for_timeout(600)  # Cancel comes a moment later
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
    page.wait_for_timeout(600)
    assert bar.bounding_box()["height"] == before and not out_of_bounds(page)


def test_nodes_are_grouped_by_type_pool_and_zone_and_summed_over_the_group(
    page, asgi_server, real, complaints
):
    page.goto(board(asgi_server, real, "?view=cards"))
    group = page.get_by_label("Group by", exact=True)
    expect(group).to_have_value("node.kubernetes.io/instance-type")
    for place, words in enumerate(("instance type", "pool", "zone")):
        expect(group.locator("option").nth(place)).to_have_text(words)
    general = page.get_by_role("region", name="m6i.4xlarge")
    n_general = sum("m6i" in str(node.labels) for node in Node.objects.filter(cluster=real))
    expect(general).to_contain_text(f"{n_general} nodes")
    assert general.locator("article.node").count() == 3
    general.get_by_role("link", name=re.compile("Show .* more")).click()
    expect(general.locator("article.node")).to_have_count(n_general)
    expect(page).to_have_url(re.compile("open=m6i.4xlarge"))
    group.select_option(label="pool")
    expect(page.get_by_role("region", name="general", exact=True)).to_contain_text(f"{n_general} nodes")
    expect(page).to_have_url(re.compile("group=karpenter.sh%2Fnodepool"))
    group.select_option(label="zone")
    expect(page.get_by_role("region", name="eu-central-1c", exact=True)).to_be_visible()


def test_the_table_sums_the_group_and_not_its_page(page, asgi_server, transactional_db, wakes, complaints):
    cluster = load(300, 800)
    page.goto(board(asgi_server, cluster, "?view=table&group=none"))
    region = page.get_by_role("region", name="All nodes")
    expect(region.locator("header")).to_contain_text("300 nodes")
    expect(region.locator("tbody tr")).to_have_count(20)
    first = region.locator("tbody th").first.inner_text()
    page.locator("#nodes-after").click()
    expect(region.locator("tbody th").first).not_to_have_text(first)
    expect(region.locator("header")).to_contain_text("300 nodes")


def test_nodes_are_sorted_and_found_on_the_server_and_the_address_says_so(
    page, asgi_server, real, complaints
):
    page.goto(board(asgi_server, real, "?view=table&group=none"))
    page.get_by_role("link", name="cpu", exact=True).click()
    expect(page).to_have_url(re.compile("sort=-cpu"))
    expect(page.locator("th[aria-sort=descending]")).to_have_text("cpu")
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
    expect(page.locator("th[aria-sort=descending]")).to_have_text("cpu")
    page.get_by_role("searchbox", name="Find nodes").fill("no-such-node")
    expect(page.get_by_text("No node has “no-such-node”")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(rows).to_have_count(20)
    page.goto(board(asgi_server, real, "?q=cordoned"))
    n = Node.objects.filter(cluster=real, unschedulable=True).count()
    expect(page.locator("article.node")).to_have_count(n)


def test_the_heat_map_shows_any_resource_and_pods(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real, "?view=heat&group=none"))
    show = page.get_by_label("Resource shown")
    expect(show.locator("option")).to_have_text(["cpu", "memory", "pods", "gpu"])
    maps = set()
    for resource in ("cpu", "memory", "pods", "nvidia.com/gpu"):
        show.select_option(resource)
        expect(page.locator("svg.heat")).to_have_attribute(
            "aria-label", re.compile(f"by requested {resource.split('/')[-1]}")
        )
        maps.add(page.locator("svg.heat").inner_html())
    assert len(maps) == 4
    expect(page).to_have_url(re.compile("by=nvidia.com%2Fgpu"))


def test_two_hundred_pods_that_are_alike_are_one_row(page, asgi_server, real, complaints):
    page.goto(board(asgi_server, real))
    lane = page.locator("#lane-unschedulable")
    groups = lane.locator("summary")
    expect(groups).to_have_count(5)
    render = groups.filter(has_text=RENDER)
    expect(render.locator(".n")).to_contain_text("200")
    expect(render).to_contain_text("Insufficient cpu")
    render.focus()
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
    page.goto(board(asgi_server, real, "?q=general"))
    inspector, nodes = page.locator("#inspector"), page.locator("#nodes")
    link = page.locator("article.node h3 a").last
    link.scroll_into_view_if_needed()
    scrolled, window = nodes.evaluate("e => e.scrollTop"), page.evaluate("scrollY")
    assert scrolled > 100
    name = link.get_attribute("data-select")
    link.click()
    expect(inspector.locator("h2")).to_have_text(name)
    expect(inspector).to_be_in_viewport(ratio=0.9)
    assert (nodes.evaluate("e => e.scrollTop"), page.evaluate("scrollY")) == (scrolled, window)
    expect(page).to_have_url(re.compile(f"node={re.escape(name)}$"))
    inspector.locator("tbody a.tbl-link").first.click()
    expect(page).to_have_url(re.compile("pod="))
    pod = inspector.locator("h2").inner_text().split()[-1]
    page.get_by_role("link", name="Heat map").click()
    expect(page).to_have_url(re.compile("view=heat.*pod="))
    expect(inspector.locator("h2")).to_contain_text(pod)
    page.go_back()
    expect(page.locator("article.node").first).to_be_visible()
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
    page.goto(board(asgi_server, real, "?view=cards"))
    link = page.locator("article.node h3 a").nth(6)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    link.click()
    expect(page.locator("#inspector")).to_be_in_viewport()
    expect(page.locator("#inspector h2")).to_have_text(link.get_attribute("data-select"))
    assert abs(page.evaluate("scrollY") - before) < 2
    expect(link).to_be_in_viewport()
