"""What a person does, in a real browser."""

import re
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from playground.clusters.models import Cluster, Node, Pod, Run
from playground.clusters.objects.write import set_cordon
from tests.tables import table
from tests.web import factories

MANIFESTS = table(__file__, "MANIFESTS")


A_POLL_MS = 5_000
"""So often, at least, a page asks by itself; the clock of the browser is put forward by it."""

PASTE = """(field, text) => {
  field.value = text;
  field.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertFromPaste' }));
}"""


def test_what_is_pasted_while_the_page_still_loads_is_asked_about(page, asgi_server, wakes, complaints):
    with held_back(page, r"/htmx-.*\.js") as until_asked:
        page.goto(f"{asgi_server}/new/import/", wait_until="commit")
        page.get_by_label("Or pasted").fill(MANIFESTS)
        until_asked()
    expect(page.locator("#import-preview")).to_contain_text("Gadget g")


def test_an_error_in_the_manifests_is_shown_at_its_line(page, asgi_server, wakes, db):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{asgi_server}/new/import/")
    sending, field = page.locator("#import-sending"), page.get_by_label("Or pasted")
    field.focus()
    with held_back(page, "/new/import/") as until_asked:
        field.evaluate(PASTE, MANIFESTS.replace('cpu: "8"', "cpu: 8x"))
        until_asked()
        expect(sending).to_be_visible()
        expect(sending).to_be_in_viewport()
    refused = page.get_by_role("region", name="It cannot be imported")
    expect(refused).to_contain_text("line 4")
    expect(refused).to_be_focused()
    expect(refused).to_be_in_viewport()
    expect(sending).to_be_hidden()
    with page.expect_response("**/new/import/"):
        field.press_sequentially(" ")
    expect(field).to_be_focused()  # who types stays where they type
    assert not Node.objects.exists()


def test_the_board_follows_the_cluster_without_a_reload(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    expect(page.locator("#feed")).to_contain_text("#8")
    page.evaluate("window.notReloaded = true")
    page.locator("#ev-8").focus()  # in what is replaced
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    expect(page.locator("#ev-10")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("Cycle 10")
    assert page.evaluate("window.notReloaded")
    assert page.evaluate("document.activeElement.id") == "ev-8"


def test_keys_work_and_can_be_turned_off(page, asgi_server, cluster):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    page.keyboard.press("s")
    expect(page.locator("#runbar")).to_contain_text("waiting for a worker")
    page.keyboard.press("?")
    page.get_by_label("Turn single keys off").check()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(rf"/c/{cluster.public_id}/$"))


def test_a_gate_of_the_funnel_shows_only_its_nodes(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/1/")
    rows = page.locator("#filter tbody tr:visible")
    before = rows.count()
    part = page.locator("[data-part=r0]")
    part.click()
    expect(part).to_have_attribute("aria-pressed", "true")
    assert 0 < rows.count() < before
    part.click()
    assert rows.count() == before


def test_cycles_are_walked_with_the_bracket_keys(page, asgi_server, cluster):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/3/")
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile("/cycles/4/$"))
    page.wait_for_load_state("domcontentloaded")  # before its scripts, nothing hears a key
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile("/cycles/3/$"))


def test_the_theme_is_remembered(page, asgi_server, cluster, complaints):
    page.emulate_media(color_scheme="light")
    page.goto(asgi_server)
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{asgi_server}/about/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_phone_too_advances_to_the_next_timer(page, asgi_server, cluster, complaints):
    Cluster.objects.filter(pk=cluster.pk).update(
        next_deadline_ns=factories.START_NS + 90 * factories.SECOND_NS,
        next_deadline_what="the Permit deadline of default/mpi-0 (Gang)",
    )
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.get_by_role("button", name="Advance to it").click()
    assert Run.objects.get(cluster=cluster).until == "time"


def test_the_open_tab_is_seen_on_a_phone(page, asgi_server, cluster, complaints):
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("cluster/", "config/", "replay/", ""):
        page.goto(f"{asgi_server}/c/{cluster.public_id}/{path}")
        expect(page.locator(".sub-tabs [aria-current]")).to_be_in_viewport(ratio=1)
        assert page.evaluate("window.scrollX + window.scrollY") == 0


def test_the_yaml_fills_the_form_while_one_types(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/pods/new/")
    page.get_by_label("Key").first.fill("gpu")
    expect(page.locator("#text")).to_have_value(re.compile("key: gpu"))
    expect(page.locator("#id_toleration_1_key")).to_be_visible()
    text = page.locator("#text").input_value()
    page.locator("#text").fill(text.replace("cpu: 500m", "cpu: 750m"))
    expect(page.locator("#id_cpu")).to_have_value("750m")
    page.locator("#text").fill(text.replace("cpu: 500m", "cpu: 5x"))
    expect(page.locator("#podfields")).to_contain_text("quantities must match")
    assert page.evaluate("document.activeElement.id") == "text"


def test_what_only_the_yaml_says_is_submitted_with_the_form(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/pods/new/")
    text = page.locator("#text").input_value()
    with page.expect_response("**/pods/new/"):
        page.locator("#text").fill(text.replace("spec:\n", "spec:\n  terminationGracePeriodSeconds: 5\n"))
    page.locator("#id_name").fill("both")
    expect(page.locator("#text")).to_have_value(re.compile("name: both"))
    page.locator("#id_pod_anti_affinity_0_key").fill("kubernetes.io/hostname")
    page.locator("#id_pod_anti_affinity_0_selector").fill("app=web")
    expect(page.locator("#text")).to_have_value(re.compile("app: web"))
    expect(page.locator("#id_pod_anti_affinity_1_key")).to_be_visible()
    page.locator("#id_cpu").fill("1x")
    expect(page.locator("#yaml-side")).to_contain_text("quantities must match")
    expect(page.locator("#text")).to_have_value(re.compile("terminationGracePeriodSeconds: 5"))
    page.locator("#id_cpu").fill("1")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("both")
    spec = Pod.objects.get(cluster=cluster, name="both").manifest["spec"]
    assert spec["terminationGracePeriodSeconds"] == 5 and "podAntiAffinity" in spec["affinity"]


def test_what_is_typed_while_an_answer_is_on_its_way_is_kept(page, asgi_server, cluster, complaints):
    """The answer to the YAML replaces the form's fields; the answer comes when another field was filled since."""
    address = f"{asgi_server}/c/{cluster.public_id}/pods/new/"
    held = []

    def first_post_waits(route):
        if route.request.method == "POST" and not held:
            held.append(route)
        else:
            route.continue_()

    page.route(address, first_post_waits)
    page.goto(address)
    text = page.locator("#text").input_value()
    with page.expect_request(lambda request: request.method == "POST"):
        page.locator("#text").fill(text.replace("cpu: 500m", "cpu: 700m"))
    page.locator("#id_name").fill("typed-since")
    held[0].continue_()
    expect(page.locator("#id_cpu")).to_have_value("700m")
    expect(page.locator("#id_name")).to_have_value("typed-since")
    expect(page.locator("#text")).to_have_value(re.compile("name: typed-since"))
    expect(page.locator("#text")).to_have_value(re.compile("cpu: 700m"))


def test_the_map_is_one_tab_stop_that_is_walked_in_and_pointed_at(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    nodes, tip = page.locator("a.nd"), page.locator("[data-tip]")
    page.locator("#node-node-2").hover()
    expect(tip).to_contain_text("node-2: CPU")
    assert nodes.evaluate_all("all => all.filter(one => one.tabIndex === 0).length") == 1
    first = nodes.first
    first.focus()
    page.keyboard.press("End")
    expect(nodes.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(nodes.nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    below = page.evaluate("document.activeElement.id").removeprefix("node-")
    assert below not in (first.get_attribute("id"), nodes.nth(1).get_attribute("id"))
    expect(tip).to_contain_text(f"{below}: CPU")
    page.keyboard.press("Enter")
    expect(page.locator("#inspector h2")).to_have_text(below)
    expect(page.locator("a.nd.is-sel")).to_have_attribute("id", f"node-{below}")
    # What a tick brings leaves it one tab stop, where it was.
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    expect(page.locator("#ev-10")).to_be_visible()
    assert nodes.evaluate_all("all => all.filter(one => one.tabIndex === 0).map(one => one.id)") == [
        f"node-{below}"
    ]


def test_the_clock_runs_by_itself_at_1x(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    page.get_by_role("button", name="Auto").click()
    clock = page.locator("#clock b")
    expect(clock).to_have_attribute("data-rate", "1.0")
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#run-auto")).to_be_enabled()


def test_a_pod_opens_in_the_inspector_and_escape_leads_back(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    box = page.locator("#inspector")
    page.locator("a.nd g").first.click()
    expect(box).to_contain_text("Scheduler's cache")
    page.locator("#q-default-train-2").focus()
    page.keyboard.press("Enter")
    expect(box).to_contain_text("Best fix")
    expect(box).to_be_focused()
    expect(box).to_be_in_viewport()
    expect(page.locator("#status")).to_contain_text("train-2 selected")
    page.keyboard.press("Tab")
    expect(page.locator("#in-story")).to_be_focused()
    # A tick brings the inspector anew: the focus stays.
    factories.add_cycle(cluster, "unschedulable", pod_name="train-2")
    expect(box.locator("#in-cycle")).to_have_text("Cycle 10")
    expect(page.locator("#in-story")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#q-default-train-2")).to_be_focused()


@contextmanager
def held_back(page, pattern):
    """Keep what the page asks for under ``pattern`` on its way until the block ends; yields a wait for the first."""
    kept = []
    page.route(re.compile(pattern), lambda route: kept.append(route))

    def until_asked():
        while not kept:
            page.wait_for_timeout(10)

    yield until_asked
    for route in kept:
        route.continue_()
    page.unroute(re.compile(pattern))


def test_a_pick_is_answered_although_a_tick_replaces_the_inspector(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    box = page.locator("#inspector")
    with held_back(page, "/inspector/") as until_asked:
        page.locator("#q-default-train-2").click()
        until_asked()
        factories.add_cycle(cluster, "scored", pod_name="web-5")
        expect(box).to_have_attribute("data-selected", "default/train-2")
        factories.add_cycle(cluster, "unschedulable", pod_name="train-2")
        expect(box.locator("#in-cycle")).to_have_text("Cycle 11")
    expect(box).to_have_attribute("data-selected", "default/train-2")
    expect(page.locator("#pulse-selected")).to_have_value("default/train-2")


def test_a_view_is_kept_although_a_tick_replaces_the_nodes_before_its_answer(
    page, asgi_server, cluster, complaints
):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    with held_back(page, "view=table") as until_asked:
        page.locator("#view-table").click()
        until_asked()
        page.evaluate("document.getElementById('nodes-view').dataset.before = 'the tick'")
        set_cordon(cluster=cluster, node="node-2", unschedulable=True)
        expect(page.locator("#nodes-view")).not_to_have_attribute("data-before", "the tick")
    expect(page.locator("#view-table")).to_have_attribute("aria-current", "true")
    cluster.refresh_from_db()
    factories.add_cycle(cluster, "scored", pod_name="web-6")
    expect(page.locator("#feed")).to_contain_text("web-6")
    expect(page.locator("#view-table")).to_have_attribute("aria-current", "true")
    expect(page.locator("#pulse-state [name=view]")).to_have_value("table")


@pytest.mark.parametrize("first", ["a pick", "a tick"])
def test_what_is_on_its_way_does_not_undo_a_later_pick(page, asgi_server, cluster, complaints, first):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    box = page.locator("#inspector")
    with held_back(page, "/live/|node=node-1") as until_asked:
        if first == "a pick":
            page.locator("#node-node-1").click()
        else:
            factories.add_cycle(cluster, "scored", pod_name="web-5")
        until_asked()
        page.locator("#q-default-train-2").click()
        expect(box).to_have_attribute("data-selected", "default/train-2")
    factories.add_cycle(cluster, "scored", pod_name="web-6")
    expect(page.locator("#feed")).to_contain_text("web-6")
    expect(box).to_have_attribute("data-selected", "default/train-2")
    expect(page.locator("#pulse-selected")).to_have_value("default/train-2")


def enter_on(page, link, shown):
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#inspector")).to_contain_text(shown)
    expect(page.locator("#inspector")).to_be_focused()


def test_a_pod_of_a_node_is_reached_by_keyboard(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    enter_on(page, page.locator("#node-node-1"), "node-1")
    enter_on(page, page.locator("#inspector tbody a").first, "Scheduler's cache")
    page.keyboard.press("Escape")
    expect(page.locator("#node-node-1")).to_be_focused()
    enter_on(page, page.locator("#node-node-1"), "node-1")
    page.get_by_role("button", name="Cordon").press("Enter")
    expect(page.locator("#inspector")).to_contain_text("Uncordon")


def test_a_board_without_its_event_stream_asks_by_itself(page, asgi_server, cluster, clock):
    with page.expect_event("requestfailed"):
        page.route("**/ticks/", lambda route: route.abort())
        page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    expect(page.locator("#feed")).to_contain_text("#8")
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    clock.fast_forward(A_POLL_MS)
    expect(page.locator("#ev-10")).to_be_visible()
    expect(page.locator("#lost")).to_be_hidden()
    page.route("**/live/**", lambda route: route.abort())
    clock.fast_forward(A_POLL_MS)
    expect(page.locator("#lost")).to_be_visible()
    page.unroute("**/live/**")
    clock.fast_forward(A_POLL_MS)
    expect(page.locator("#lost")).to_be_hidden()


def test_the_cards_of_home_follow_their_clusters(page, asgi_server, cluster, clock, complaints):
    page.goto(asgi_server)
    card = page.locator(f"#card-{cluster.public_id}")
    card.focus()
    page.evaluate("window.notReloaded = true")
    factories.add_cycle(cluster, "scored", pod_name="web-5")
    clock.fast_forward(A_POLL_MS)
    expect(page.locator("#cards")).to_contain_text("Cycle 10: web-5 bound")
    expect(card).to_be_focused()
    expect(page.locator("#status")).to_have_text("")
    assert page.evaluate("window.notReloaded")
