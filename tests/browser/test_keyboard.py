"""Everything by keyboard alone: reached in turn, seen when it has the focus, and kept over what is swapped."""

import re

from playwright.sync_api import expect

from playground.clusters.models import Cluster, Pod, Question
from playground.scenarios.models import Scenario
from playground.scenarios.services.moments import request_moment
from tests.scenarios.test_clusters import made_by_hand
from tests.scenarios.test_pages import EDIT


def focus(page):
    return page.evaluate("document.activeElement.id || document.activeElement.name")


def press(page, locator, key="Enter"):
    locator.focus()
    page.keyboard.press(key)


def test_a_cluster_is_found_and_made(page, asgi_server, cluster, complaints):
    page.goto(asgi_server)
    press(page, page.get_by_role("searchbox", name="Find a cluster"), "n")
    page.keyboard.type("ope")
    expect(page.locator("#cards")).to_contain_text("No cluster is called")
    expect(page.locator("#status")).to_have_text("0 clusters")
    assert focus(page) == "q"
    page.goto(asgi_server)
    press(page, page.get_by_role("link", name="Node pools"))
    page.locator("#id_count").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("7")
    expect(page.locator("#pool-preview")).to_contain_text("7")
    assert focus(page) == "id_count"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/c/"))
    assert Cluster.objects.order_by("-pk").first().nodes.count() == 7


def test_a_pod_is_written_tried_and_submitted(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/pods/new/")
    page.locator("#id_name").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("by-keys")
    expect(page.locator("#text")).to_have_value(re.compile("name: by-keys"))
    assert focus(page) == "id_name"
    press(page, page.get_by_role("button", name="Try", exact=False).first)
    expect(page.locator("#asking")).to_be_visible()
    assert Question.objects.filter(kind="try").exists()
    page.go_back()
    page.locator("#id_name").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("by-keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("by-keys")
    assert Pod.objects.filter(cluster=cluster, name="by-keys").exists()


def test_the_configuration_is_switched_and_weighed(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/config/")
    press(page, page.get_by_role("checkbox", name="ImageLocality at Score"), "Space")
    page.keyboard.press("Enter")
    expect(page.locator(".hero")).to_contain_text("1 difference")
    expect(page.locator("#text")).to_contain_text("ImageLocality")
    weight = page.get_by_role("spinbutton", name="Weight of NodeAffinity")
    press(page, weight, "ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(".hero")).to_contain_text("2 differences")


def test_the_matrix_and_the_folds_of_a_preemption(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/cycles/9/")
    press(page, page.locator("#filter-box > summary"))
    part = page.locator("#funnel [data-part]").first
    press(page, part)
    expect(part).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#status")).to_contain_text("nodes shown")
    for fold in page.locator("main details > summary").all():
        was_open = fold.evaluate("s => s.parentElement.open")
        for key, is_open in (("Enter", not was_open), ("Space", was_open)):
            press(page, fold, key)
            assert fold.evaluate("s => s.parentElement.open") is is_open


def test_nodes_are_walked_in_the_table_and_grouped(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/c/{cluster.public_id}/")
    press(page, page.locator("#view-table"))
    expect(page).to_have_url(re.compile("view=table"))
    press(page, page.get_by_role("link", name="node-2", exact=True))
    expect(page.locator("#inspector h2")).to_have_text("node-2")
    expect(page.locator("tr.is-sel")).to_contain_text("node-2")
    expect(page.locator("#inspector")).to_be_focused()
    page.keyboard.press("Escape")
    assert focus(page) == "node-node-2"
    press(page, page.locator("#view-look"))
    press(page, page.locator("#group-by"), "End")
    expect(page).to_have_url(re.compile("group=none"))


def test_a_share_is_made_and_the_gallery_opened(page, asgi_server, cluster, complaints):
    page.goto(f"{asgi_server}/gallery/")
    card = page.locator(".sg h3 a").first
    name = card.inner_text()
    press(page, page.get_by_role("searchbox", name="Find a scenario"), "t")
    page.keyboard.type("aint")
    page.keyboard.press("Enter")
    expect(page.locator(".sg")).not_to_have_count(0)
    page.goto(f"{asgi_server}/gallery/")
    press(page, card)
    expect(page.get_by_text(name)).to_be_visible()
    press(page, page.get_by_role("radio").first, "Space")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the scheduler’s choice")).to_be_visible()
    press(page, page.get_by_role("link", name="Next question"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Where will")


def tab_to(page, locator, key="Tab"):
    """Press Tab until the element has the focus, as a user without a mouse does."""
    for _ in range(60):
        if locator.evaluate("e => e === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{locator} is not reached by {key}")


def test_a_replay_is_walked_played_and_branched_off(page, asgi_server, transactional_db, work, complaints):
    cluster = made_by_hand(work)
    last = cluster.next_cycle - 1
    request_moment(cluster=cluster, cycle=1)
    work()
    page.goto(f"{asgi_server}/c/{cluster.public_id}/replay/?cycle=1")
    shown, following = page.locator("#cyc-shown"), page.locator("#cycle-next")
    tab_to(page, following)
    for number in range(2, last + 1):
        page.keyboard.press("Enter")
        expect(shown).to_have_text(str(number))
        expect(page.locator("#status")).to_contain_text(f"Cycle {number}: ")
        # The last one has none after it: the focus waits where it was.
        assert focus(page) == "cycle-next"
    tab_to(page, page.locator("#cyc"))
    page.keyboard.press("Home")
    expect(page.locator("#hbo")).to_have_text("Nodes after cycle 1")
    assert focus(page) == "cyc" and page.url.endswith("?cycle=1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#hbo")).to_have_text("Nodes after cycle 2")
    expect(page.locator("#cyc")).to_have_attribute("aria-valuetext", re.compile("^Cycle 2, "))
    tab_to(page, page.locator("#speed"), "Shift+Tab")
    page.keyboard.type("fast")
    expect(page.locator("#speed")).to_have_value("60")
    tab_to(page, page.locator("#play"), "Shift+Tab")
    page.keyboard.press("Space")
    expect(shown).to_have_text(str(last))
    expect(page.locator("#play")).to_have_text("Play")
    assert focus(page) == "play"
    page.keyboard.press("[")
    expect(shown).to_have_text(str(last - 1))
    page.keyboard.press("p")
    expect(shown).to_have_text(str(last))
    around = page.locator(f"#around-{last}")
    tab_to(page, around)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("default/late")
    tab_to(page, page.get_by_role("link", name="Board as of this cycle"))
    page.keyboard.press("Enter")
    expect(page.locator("#past")).to_be_visible()
    tab_to(page, page.locator("#text"))
    page.keyboard.insert_text(EDIT)
    page.keyboard.type("  # ]p[")  # in a field these are letters
    expect(shown).to_have_text(str(last))
    page.keyboard.press("Tab")
    assert focus(page) == "branch"
    page.keyboard.press("[")
    expect(shown).to_have_text(str(last - 1))
    expect(page.locator("#text")).to_have_value(re.compile("name: extra"))
    page.locator("#branch").press("Enter")
    expect(page.locator("#messages")).to_contain_text("after cycle")
    expect(page).to_have_url(re.compile("/difference/$"))
    made = Cluster.objects.order_by("-pk").first()
    assert made.nodes.filter(name="extra").exists() and not cluster.nodes.filter(name="extra").exists()


def test_a_cluster_is_shared_proved_and_forked(page, asgi_server, transactional_db, work, complaints):
    cluster = made_by_hand(work)
    page.goto(f"{asgi_server}/c/{cluster.public_id}/share/")
    tab_to(page, page.locator("#title"))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Shared by keys")
    tab_to(page, page.get_by_role("checkbox"))
    page.keyboard.press("Space")
    expect(page.get_by_role("checkbox")).to_be_checked()
    tab_to(page, page.locator("#visibility"))
    page.keyboard.press("End")
    tab_to(page, page.get_by_role("button", name="Download .yaml"))
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert "payments-secret" not in download.value.path().read_text()
    tab_to(page, page.get_by_role("button", name="Make a link"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Shared by keys")
    made = Scenario.objects.get()
    assert page.url.endswith(f"/s/{made.public_id}/")
    work()
    expect(page.locator("#cyc-shown")).to_have_text(str(cluster.next_cycle - 1))
    tab_to(page, page.get_by_role("button", name="Prove it again"))
    page.keyboard.press("Enter")
    expect(page.locator("#proof")).to_be_visible()
    work()
    page.reload()
    expect(page.locator("#proof")).to_contain_text("Reproduced 6 of 6")
    fold = page.locator("main details > summary").first
    tab_to(page, fold)
    page.keyboard.press("Space")
    assert fold.evaluate("s => s.parentElement.open")
    tab_to(page, page.get_by_role("button", name="Fork to edit"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/c/"))
    assert Cluster.objects.count() == 2
