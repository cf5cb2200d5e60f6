"""PodTopologySpread: default constraints, and the weight of a topology."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.framework.status import Code
from scheduler_core.objects.labels import EVERYTHING
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.policy import selecting_object_from
from scheduler_core.plugins.pod_topology_spread import HardState, PodTopologySpread, normalizing_weight

pytestmark = pytest.mark.usefixtures("every_threshold")

HANDLE: Any = SimpleNamespace()
LIST_DEFAULTING = SimpleNamespace(
    defaulting_type="List",
    default_constraints=(
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"},
    ),
)


def verdicts(
    plugin: PodTopologySpread, state: HardState, pod: Pod, nodes: NodeColumns, rows: Rows
) -> list[tuple[str, str] | None]:
    found = plugin.filter(state, pod, nodes, rows)
    result: list[tuple[str, str] | None] = []
    for row, number in zip(rows.tolist(), found.codes.tolist(), strict=True):
        code = Code(number)
        result.append(None if not code else (code.name, *plugin.reasons(state, pod, nodes, row, code, 0)))
    return result


@pytest.mark.parametrize("size", [*range(40), 4999, 15000])
def test_the_weight_of_a_topology_is_the_logarithm_to_one_unit_in_the_last_place(size: int) -> None:
    assert math.isclose(normalizing_weight(size), math.log(size + 2), rel_tol=3e-16)


def two_zones() -> Cache:
    cache = Cache()
    for name, zone in (("n1", "a"), ("n2", "b")):
        labels = {"topology.kubernetes.io/zone": zone}
        cache.set_node(node_from({"kind": "Node", "metadata": {"name": name, "labels": labels}}))
    return cache


def web_pod(name: str, **spec: Any) -> Pod:
    metadata = {
        "name": name,
        "uid": name,
        "namespace": "default",
        "labels": {"app": "web", "role": "api"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        ],
    }
    return pod_from({"kind": "Pod", "metadata": metadata, "spec": spec})


def test_default_constraints_of_a_list_filter_by_the_selector_of_service_and_owner() -> None:
    cache = two_zones()
    plugin = PodTopologySpread(LIST_DEFAULTING, HANDLE)
    cache.add_pod(web_pod("p1", nodeName="n1"))
    pod = web_pod("p2")
    assert plugin.pre_filter(pod, cache.snapshot()).status.is_skip
    service = {"kind": "Service", "metadata": {"name": "s", "namespace": "default"}}
    cache.listers.set(
        "Service", "default", "s", selecting_object_from({**service, "spec": {"selector": {"app": "web"}}})
    )
    replica_set = {
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"role": "api"}}},
    }
    cache.listers.set("ReplicaSet", "default", "web", selecting_object_from(replica_set))
    snapshot = cache.snapshot()
    assert str(snapshot.matching.default_selectors.of(pod)) == "app=web,role=api"
    state = plugin.pre_filter(pod, snapshot).state
    assert state is not None
    found = verdicts(plugin, state, pod, snapshot.nodes, snapshot.order)
    assert [None if item is None else item[0] for item in found] == ["Unschedulable", None]


def test_without_services_and_owners_there_is_no_default_selector() -> None:
    cache = two_zones()
    assert cache.matching.default_selectors.of(web_pod("p1")) is EVERYTHING
