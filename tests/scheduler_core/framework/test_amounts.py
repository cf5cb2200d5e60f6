"""The amounts behind a rejection are told of exactly the nodes the plugin rejects, with the numbers that are there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import CaseCluster, decision_body, explain
from tests.manifests import node, pod
from tests.scheduler_core.recorded_clusters import RecordedCluster
from tests.tables import table

pytestmark = pytest.mark.usefixtures("every_threshold")


@given(st.integers(0, 2**32))
def test_amounts_are_known_of_exactly_the_rejected_nodes(seed: int) -> None:
    made = RecordedCluster("resources", seed)
    body = decision_body(made.cluster.schedule(made.incoming()))
    for plugin in ("TaintToleration", "NodePorts", "NodeResourcesFit"):
        fails = body["filterByPlugin"].get(plugin, {}).get("fails", {})
        assert sorted(body["amounts"].get(plugin, {})) == sorted(fails), plugin


def _pod(name: str, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **(container or {})}]
    return pod(name, labels={"app": "web"}, containers=containers, **spec)


@pytest.mark.parametrize(
    ("plugin", "spec", "n1", "n3"),
    table(__file__, "the_numbers_are_those_of_the_cluster"),
)  # fmt: skip
def test_the_numbers_are_those_of_the_cluster(
    plugin: str, spec: dict[str, Any], n1: list[str] | None, n3: list[str] | None
) -> None:
    taints = [
        {"key": "gpu", "effect": "NoSchedule"},
        {"key": "spot", "value": "yes", "effect": "NoSchedule"},
        {"key": "old", "effect": "NoExecute"},
    ]
    ports = [{"containerPort": 80, "hostPort": 80}]
    busy = {"resources": {"requests": {"cpu": "1"}}, "ports": ports}
    there = _pod("there", busy, nodeName="n1")
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}), node("n3", taints=taints)]
    cluster = CaseCluster([*nodes, there], None)
    body = explain(cluster, cluster.pending_pod(_pod("new", **spec)))
    told = body["amounts"].get(plugin, {})
    assert (told.get("n1"), told.get("n3")) == (n1, n3)
