"""From home to a shared verdict without a mouse: a pasted dump, its cluster, a question, its answer, its link."""

import re

from playwright.sync_api import expect

from playground.clusters.models import Cluster, Node
from playground.scenarios.models import Verdict
from tests.browser.looks import BOTH_WIDTHS
from tests.browser.test_first_minutes import working
from tests.browser.test_keyboard import tab_to
from tests.real_dump import as_yaml, real_dump, with_few_waiting

__all__ = ["working"]


@BOTH_WIDTHS
def test_from_home_to_a_shared_verdict_by_keyboard_alone(page, asgi_server, working, complaints, width):
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(asgi_server)
    expect(page.locator("#dump-line")).to_contain_text("deploy,rs,sts,ds,jobs,pdb")
    tab_to(page, page.get_by_text("Or paste it"))
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#door-text"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate(
        "text => navigator.clipboard.writeText(text)", as_yaml(with_few_waiting(real_dump(10, 240)))
    )
    page.keyboard.press("ControlOrMeta+v")
    tab_to(page, page.locator("#door-paste"))
    page.keyboard.press("Enter")
    expect(page.locator("#pending tr", has_text="search/indexer")).to_contain_text("Insufficient cpu")
    assert not Cluster.objects.exists()
    tab_to(page, page.locator("#make-as-is"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/c/\w+/$"))
    page.wait_for_load_state("domcontentloaded")  # before its scripts, nothing hears a key
    # By the palette to the questions about the whole cluster.
    page.keyboard.press("ControlOrMeta+k")
    expect(page.locator("#palette-q")).to_be_focused()
    page.keyboard.type("plan")
    plan = page.locator("#found").get_by_role("link", name=re.compile("^Plan"))
    expect(page.locator("#found a")).to_have_count(1)
    tab_to(page, plan, "ArrowDown")
    page.keyboard.press("Enter")
    # Which nodes leave is a person's to say; what needs no words has been answered meanwhile.
    drained = Node.objects.order_by("pk").first().name
    tab_to(page, page.get_by_role("combobox", name="Nodes to drain"))
    page.keyboard.type(drained)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/plan/\w+/$"))
    said = page.locator("h2#verdict")
    expect(said).to_be_visible()
    words = said.inner_text()
    tab_to(page, page.get_by_role("button", name="Share this answer"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/v/\w+/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(words)
    expect(page.locator("main")).to_contain_text(Verdict.objects.get().digest)
