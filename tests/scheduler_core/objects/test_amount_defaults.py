"""Amounts as an API server writes them: pod-level requests from containers, and nothing finer than thousandths."""

from typing import Any

import pytest

from scheduler_core.objects.defaults import prepare
from tests.tables import table


@pytest.mark.parametrize(
    ("written", "containers", "expected"), table(__file__, "pod_level_amounts_come_from_the_containers")
)
def test_pod_level_amounts_come_from_the_containers(
    written: dict[str, Any], containers: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    named = [{"name": f"c{index}", "resources": item} for index, item in enumerate(containers)]
    spec: dict[str, Any] = {"containers": named, "resources": written}
    for _ in ("written", "read back"):
        spec = prepare({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec})["spec"]
        assert spec["resources"] == expected
