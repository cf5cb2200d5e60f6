"""Fixtures of the browser tests."""

import pytest
from playwright.sync_api import expect

from tests.web import factories
from tests.web.conftest import no_broker, readable_traces

__all__ = ["no_broker", "readable_traces"]

# How long a page may take to show what is expected, in ms: a busy machine is slow, a broken page stays broken.
expect.set_options(timeout=20_000)


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
