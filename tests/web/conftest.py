"""Fixtures of the page tests."""

import importlib
import json
import zlib

import pytest
from django.core.cache import cache

from tests.web import factories


@pytest.fixture(autouse=True)
def readable_traces(monkeypatch):
    """Cycles made by the factories carry their explanation as JSON; those of the engine its own format."""
    # The package's own name `cycles` is the function.
    module = importlib.import_module("playground.clusters.history.cycles")
    engine = module.explain_trace

    def explain(trace: bytes, *, full: bool = False):
        try:
            return json.loads(zlib.decompress(trace))
        except ValueError:
            return engine(trace, full=full)

    monkeypatch.setattr(module, "explain_trace", explain)
    cache.clear()


@pytest.fixture
def cluster(db, wakes):
    return factories.full_cluster()
