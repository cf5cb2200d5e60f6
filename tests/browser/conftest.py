"""Fixtures of the browser tests."""

import pytest
from playwright.sync_api import expect

from tests.browser.waits import PATIENCE_S
from tests.web import factories
from tests.web.conftest import no_broker, readable_traces

__all__ = ["no_broker", "readable_traces"]

expect.set_options(timeout=1000 * PATIENCE_S)


@pytest.fixture
def context(context):
    context.set_default_timeout(1000 * PATIENCE_S)
    return context


@pytest.fixture
def cluster(transactional_db, no_broker):
    return factories.full_cluster()


@pytest.fixture
def complaints(page):
    """What the browser complains about: errors of scripts, refusals of the content policy, failed requests."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on(
        "console",
        lambda message: found.append(message.text) if message.type in ("error", "warning") else None,
    )
    yield found
    # A page that is left while it asks for something gives that up, and htmx says so: nothing is wrong.
    left = any(said.startswith("htmx:sendAbort") for said in found)
    assert not [
        said for said in found if not (left and said.startswith(("htmx:sendAbort", "htmx:afterRequest")))
    ]
