"""Fixtures of the browser tests."""

import pytest

from tests.web import factories
from tests.web.conftest import no_broker, readable_traces

__all__ = ["no_broker", "readable_traces"]


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
    assert not found
