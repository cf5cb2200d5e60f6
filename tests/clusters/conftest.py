"""Every cluster that a test of this folder leaves behind is looked at: what always holds holds."""

from collections.abc import Generator
from typing import Any

import pytest

from playground.clusters.models import Cluster
from tests.clusters.invariants import validate


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Where the test's database is still there, and the test itself is content."""
    result = yield
    if item.get_closest_marker("django_db") and not item.get_closest_marker("broken_rows"):
        for cluster in Cluster.objects.all():
            assert validate(cluster) == [], f"{cluster} after {item.name}"
    return result
