"""Fixtures of the page tests."""

import importlib
import json
import zlib

import pytest
from django.core.cache import cache

from tests.web import factories


@pytest.fixture(autouse=True)
def readable_traces(monkeypatch):
    """Traces of these tests are explanations as JSON; the engine's own format is tested with the engine."""
    module = importlib.import_module("playground.clusters.selectors.cycles")
    monkeypatch.setattr(module, "explain_trace", lambda trace, full=False: json.loads(zlib.decompress(trace)))
    cache.clear()


@pytest.fixture
def no_broker(monkeypatch):
    """Wake-ups go nowhere: no worker is part of these tests."""
    from playground.clusters import wake

    sent: list[str] = []
    monkeypatch.setattr(wake, "send", lambda task, **_: bool(sent.append(task)) or True)
    return sent


@pytest.fixture
def cluster(db, no_broker):
    return factories.full_cluster()
