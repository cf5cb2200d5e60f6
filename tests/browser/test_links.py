"""A link and a file made in one instance are opened in another browser: shown, proved, brought in, or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from playground.scenarios.models import Scenario
from playground.scenarios.services.shares import share
from tests.browser.looks import seen_wrong
from tests.scenarios.documents import small_text

pytestmark = pytest.mark.django_db(transaction=True)
EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>"


def looked_at(page):
    assert seen_wrong(page, page.url[:60]) == []
    assert page.evaluate("window.hit") is None


@pytest.fixture(scope="session")
def taken():
    """What was taken once serves every test: all of it is in the link and the file."""
    return []


@pytest.fixture
def made(request, taken, tmp_path_factory):
    """The link and the file a person takes from a share's page; then the share is gone."""
    if not taken:
        taken[:] = take(*map(request.getfixturevalue, ("page", "asgi_server", "work")), tmp_path_factory)
    return taken


def take(page, asgi_server, work, tmp_path_factory):
    shared = share(
        document=small_text(title=f"Five pods {EVIL}"), note=f"The giant. {EVIL}", opens_at=2
    ).scenario
    work()
    page.goto(f"{asgi_server}/s/{shared.public_id}/")
    expect(page.locator("#clnk")).to_be_visible()
    link = page.locator("#clnk").input_value()
    with page.expect_download(timeout=90_000) as download:
        page.locator("#save-html").click()
    path = tmp_path_factory.mktemp("link") / download.value.suggested_filename
    download.value.save_as(path)
    Scenario.objects.all().delete()
    return link, path, shared.digest


def test_a_link_is_read_in_the_browser_proved_and_brought_in_by_one_button(browser, asgi_server, made, work):
    link, _, digest = made
    context = browser.new_context()
    page = context.new_page()
    asked, failed = [], []
    page.on("request", lambda request: asked.append(request))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(link)
    expect(page.locator("#carried-state")).to_contain_text("Its digest is proved")
    expect(page.locator("#carried-facts")).to_contain_text(f"sha256:{digest}")
    expect(page.locator("#carried-facts")).to_contain_text("3 nodes, 5 pods")
    expect(page.locator("#carried-title")).to_have_text(f"Five pods {EVIL}")
    expect(page.locator("#carried-note blockquote")).to_have_text(f"The giant. {EVIL}")
    looked_at(page)
    payload = link.partition("#")[2]
    # What followed the # was not sent, in no address, header or body.
    for request in asked:
        sent_ = f"{request.url.partition('#')[0]} {request.all_headers()} {request.post_data or ''}"
        assert payload[:100] not in sent_
    page.get_by_role("button", name="Bring it here and run it").click()
    expect(page.locator("#cyc-shown")).to_have_text("2")  # it is run first
    expect(page.locator("#note")).to_contain_text(f"The giant. {EVIL}")
    expect(page.locator(".digest").first).to_have_text(f"sha256:{digest}")
    assert failed == []
    context.close()


def test_the_file_opens_without_that_instance_and_without_a_network(browser, made):
    _, path, digest = made
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(Path(path).as_uri())
    expect(page.locator("#proof")).to_contain_text("checked just now, in this file")
    expect(page.locator("#digest")).to_have_text(f"sha256 {digest}")
    expect(page.locator("#shown")).to_have_text("Decision 2 of 5")
    expect(page.locator("#note")).to_have_text(f"The giant. {EVIL}")
    looked_at(page)
    context.close()


def test_the_file_is_dropped_where_a_scenario_is_shared(browser, asgi_server, made, work):
    _, path, digest = made
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{asgi_server}/s/new/")
    page.locator("#file").set_input_files(path)
    expect(page.locator("#text")).to_have_value(re.compile("standalone 1"))
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.locator("#cyc-shown")).to_have_text("2")  # it is run first
    assert Scenario.objects.get().digest == digest
    context.close()


MANGLED = {
    "cut or changed on its way": lambda line: line[:-30],
    "it was changed": lambda line: line[:2] + "0" * 64 + line[66:],
    "a newer playground reads it": lambda line: "2" + line[1:],
    "no carried scenario": lambda line: "top",
    "Nothing follows the #": lambda line: "",
}


def test_a_mangled_or_foreign_link_is_refused_by_its_cause_and_has_no_button(browser, asgi_server, made):
    link, _, _ = made
    before, _, line = link.partition("#")
    context = browser.new_context()
    for said, change in MANGLED.items():
        page = context.new_page()  # a tab keeps what it was last given
        page.goto(f"{before}#{change(line)}")
        expect(page.locator("#carried-state")).to_contain_text(said)
        expect(page.locator("#bring")).to_be_hidden()
        expect(page.locator("#carried-facts")).to_be_hidden()
        assert page.evaluate("window.hit") is None
        # The whole link in the same tab: only what follows the # changes.
        page.goto(link)
        expect(page.locator("#carried-state")).to_contain_text("Its digest is proved")
        expect(page.locator("#bring")).to_be_visible()
        page.close()
    page = context.new_page()
    page.goto(before)
    looked_at(page)
    context.close()
