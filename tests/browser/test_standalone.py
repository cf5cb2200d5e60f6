"""A standalone file in a browser of its own, from disk and without a network: shown, proved, or refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from scheduler_core.scenario import load_scenario
from scheduler_core.scenario.gallery import gallery_scenario
from scheduler_core.scenario.standalone import standalone
from tests.browser.looks import seen_wrong
from tests.scenarios.documents import node, pod, small

pytestmark = pytest.mark.browser
EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>"


def opened(browser: Browser, path: Path, scheme: str = "light", width: int = 1440) -> tuple[Page, list[str]]:
    """The file in a fresh context that is offline, and what the browser asked for or complained about."""
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    heard: list[str] = []
    page.on("request", lambda request: heard.append(f"request: {request.url[:60]}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("console", lambda message: heard.append(message.text))
    page.goto(path.as_uri())
    return page, heard


def saved(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "replay.html"
    path.write_text(text, "utf-8")
    return path


def test_it_opens_from_disk_without_a_network_and_proves_its_digests(
    browser: Browser, tmp_path: Path
) -> None:
    scenario = gallery_scenario("preemption-budget")
    made = standalone(scenario, note=f"Who pays? {EVIL}", opens_at=1, address="https://playground.example")
    path = saved(tmp_path, made.html)
    page, heard = opened(browser, path)
    expect(page.locator("#proof")).to_contain_text("checked just now, in this file")
    expect(page.locator("#proof")).to_contain_text(made.run.digest[:12])
    expect(page.locator("#shown")).to_have_text("Decision 1 of 2")
    expect(page.locator("#note")).to_have_text(f"Who pays? {EVIL}")
    expect(page.locator("#decision")).to_contain_text("evicts 1 pod from node-b")
    expect(page.locator("#board article")).to_have_count(2)
    expect(page.locator("#filter tbody tr")).to_have_count(1)
    expect(page.locator("#filter")).to_contain_text("Insufficient cpu")
    expect(page.locator("#preemption tbody tr")).to_have_count(2)
    expect(page.locator("#preemption")).to_contain_text("by fewest budget violations")
    expect(page.locator("#story")).to_contain_text("waits for room on node-b")
    lanes = page.locator("#timeline .time")
    expect(lanes).to_have_count(len(made.run.timeline().pods))
    expect(lanes.first.locator("svg")).to_have_attribute("aria-label", "nominated on node-b 30 s")
    expect(page.locator("#timeline .at")).to_have_attribute("x1", "0%")
    page.locator("#every").click()
    expect(page.locator("#filter")).to_contain_text("cpu: wants 2, 0 free of 2, 2 short")
    page.keyboard.press("]")
    expect(page.locator("#shown")).to_have_text("Decision 2 of 2")
    expect(page.locator("#timeline .at")).to_have_attribute("x1", "100%")
    expect(page.locator("#story")).to_contain_text("runs on node-b")
    expect(page.get_by_role("link", name="Open at playground.example")).to_be_visible()
    assert seen_wrong(page, "replay") == []
    assert page.evaluate("window.hit") is None
    assert heard == [f"request: {path.as_uri()[:60]}"]
    page.context.close()


def test_scores_and_a_large_board_are_shown_and_an_address_opens_its_decision(
    browser: Browser, tmp_path: Path
) -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [node(f"node-{i:02}", **{zone: f"zone-{'ab'[i % 2]}"}) for i in range(48)]
    scenario = load_scenario(small(objects=[*nodes, pod("web"), pod("giant", cpu="64")]))
    page, heard = opened(browser, saved(tmp_path, standalone(scenario).html))
    expect(page.locator("#shown")).to_have_text("Decision 2 of 2")
    expect(page.locator("#board svg.map")).to_have_count(2)
    page.get_by_role("button", name="cpu", exact=True).click()
    expect(page.locator("#board svg.map").first).to_have_attribute(
        "aria-label", "zone-a by cpu: 24 nodes, 0 feasible"
    )
    page.locator("#decisions").get_by_role("link", name="#1", exact=True).click()
    expect(page.locator("#shown")).to_have_text("Decision 1 of 2")
    expect(page.locator("#score tbody tr")).to_have_count(48)
    expect(page.locator("#score tr.fits")).to_contain_text("chosen")
    page.get_by_role("button", name="Next decision without a node").click()
    expect(page.locator("#decision")).to_contain_text("default/giant fits no node")
    assert page.url.endswith("#2")
    assert [said for said in heard if not said.startswith("request: file:")] == []
    page.context.close()


@pytest.mark.parametrize(
    "where, said",
    [("scenario", "its digest is"), ("record", "cut or changed|its digest is"), ("top", "at its top")],
)
def test_a_file_that_was_changed_is_refused_and_shows_nothing(
    browser: Browser, tmp_path: Path, where: str, said: str
) -> None:
    import re

    text = standalone(gallery_scenario("preemption-budget"), note="A note").html
    if where == "top":
        place = text.index('id="digest">sha256 ') + len('id="digest">sha256 ')
    elif where == "scenario":
        place = text.index('id="scenario">1.') + len('id="scenario">1.')
    else:
        place = text.index(">", text.index('id="record"')) + 400
    other = "0" if text[place] != "0" else "1"
    page, _ = opened(browser, saved(tmp_path, text[:place] + other + text[place + 1 :]))
    expect(page.locator("#proof")).to_contain_text("Not shown.")
    expect(page.locator("#proof")).to_contain_text(re.compile(said))
    expect(page.locator("main")).to_be_empty()
    page.context.close()


def test_its_sha256_is_sha256(browser: Browser, tmp_path: Path) -> None:
    page, _ = opened(browser, saved(tmp_path, standalone(gallery_scenario("preemption-budget")).html))
    expect(page.locator("#shown")).to_be_visible()
    for size in (0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 70_001):
        data = bytes((7 * i + size) % 251 for i in range(size))
        found = page.evaluate("data => carried.sha256(Uint8Array.from(data))", list(data))
        assert found == hashlib.sha256(data).hexdigest(), size
    page.context.close()


def test_without_script_the_decisions_are_listed(browser: Browser, tmp_path: Path) -> None:
    path = saved(tmp_path, standalone(gallery_scenario("preemption-budget")).html)
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.locator("noscript li, main li").first).to_contain_text("evicts 1 pod from node-b")
    context.close()
