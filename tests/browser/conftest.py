"""Fixtures of the browser tests."""

import pytest
from playwright.sync_api import expect

from tests.browser.waits import PATIENCE_S
from tests.web import factories
from tests.web.conftest import readable_traces

__all__ = ["readable_traces"]

expect.set_options(timeout=1000 * PATIENCE_S)


@pytest.fixture
def context(context):
    context.set_default_timeout(1000 * PATIENCE_S)
    return context


@pytest.fixture(scope="session")
def pages_left(browser):
    """The page of the tests before, for the next one: a new one is a new process, half a second of a processor."""
    kept = []
    yield kept
    for page in kept:
        page.context.close()


FORGET = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* of no site */ } }"


@pytest.fixture
def page(request, browser, browser_context_args, pages_left):
    """A page as a new one: nothing is left of the tests before but what the browser keeps of scripts and styles."""
    if "asgi_server" in request.fixturenames:
        request.getfixturevalue("asgi_server")  # is asked by the page until that is left
    page = pages_left.pop() if pages_left else browser.new_context(**browser_context_args).new_page()
    page.context.set_default_timeout(1000 * PATIENCE_S)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(media="null", color_scheme="null", reduced_motion="reduce")
    page.scheme = None
    yield page
    if page.is_closed():
        return
    page.unroute_all(behavior="ignoreErrors")
    page.context.clear_cookies()
    page.context.clear_permissions()
    page.evaluate(FORGET)
    page.goto("about:blank")
    pages_left.append(page)


@pytest.fixture
def clock(page):
    """The clock of the page, to be put forward; a page that had one serves no other test."""
    page.clock.install()
    yield page.clock
    page.context.close()


@pytest.fixture
def cluster(transactional_db, wakes):
    return factories.full_cluster()


@pytest.fixture
def complaints(page):
    """What the browser complains about: errors of scripts, refusals of the content policy, failed requests."""
    found: list[str] = []

    def broke(error):
        found.append(f"error: {error}")

    def said(message):
        if message.type in ("error", "warning"):
            found.append(message.text)

    page.on("pageerror", broke)
    page.on("console", said)
    yield found
    page.remove_listener("pageerror", broke)
    page.remove_listener("console", said)
    # A page that is left while it asks for something gives that up, and htmx says so: nothing is wrong.
    left = any(one.startswith("htmx:sendAbort") for one in found)
    assert not [
        one for one in found if not (left and one.startswith(("htmx:sendAbort", "htmx:afterRequest")))
    ]
