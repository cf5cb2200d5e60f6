"""The amounts behind a rejection are told of exactly the nodes the plugin rejects, with the numbers that are there."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cli.conformance_cycles import CaseCluster, decision_body, explain
from scheduler_core.framework.amounts import Amount, Comparison, packed, unpacked
from tests.scheduler_core.random_clusters import RandomCluster
from tests.tables import table

pytestmark = pytest.mark.usefixtures("every_threshold")


def test_each_node_that_fails_is_told_its_own_numbers() -> None:
    fails = np.array([True, False, True])
    labels = Amount(np.array([1, 0, -1]), ["a", "b"], "nowhere")
    comparisons = [
        Comparison(fails, ("cpu: ", Amount(np.array([1500, 7, 250]), "cpu"), " in ", labels)),
        Comparison(np.array([False, False, True]), ("no more",)),
        Comparison(np.zeros(3, np.bool_), ("never said",)),
    ]
    sentences, lines = packed(comparisons, np.array([2, 1, 0]), 3)
    assert sentences[0][-1] == [["b", "nowhere"]]
    assert unpacked(sentences, np.stack(lines), ["n0", "n1", "n2"]) == {
        "n0": ["cpu: 0.25 in nowhere", "no more"],
        "n2": ["cpu: 1.5 in b"],
    }


@given(st.randoms(use_true_random=False))
def test_amounts_are_known_of_exactly_the_rejected_nodes(random: Random) -> None:
    random_cluster = RandomCluster(random)
    body = decision_body(random_cluster.cluster.schedule(random_cluster.pod()))
    for plugin in ("TaintToleration", "NodePorts", "NodeResourcesFit"):
        fails = body["filterByPlugin"].get(plugin, {}).get("fails", {})
        assert sorted(body["amounts"].get(plugin, {})) == sorted(fails), plugin


def _node(name: str, zone: str | None, **spec: Any) -> dict[str, Any]:
    labels = {} if zone is None else {"zone": zone}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "2"}},
    }


def _pod(name: str, node: str = "", app: str = "web", **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i", **spec.pop("container", {})}
    where = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}},
        "spec": {"containers": [container], **where, **spec},
        "status": {"phase": "Running" if node else "Pending"},
    }


_WEB = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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
    there = _pod("there", "n1", container={
        "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80, "hostPort": 80}],
    })  # fmt: skip
    nodes = [_node("n1", "a"), _node("n2", "b"), _node("n3", None, taints=taints)]
    cluster = CaseCluster([*nodes, there], None)
    body = explain(cluster, cluster.pending_pod(_pod("new", **spec)))
    told = body["amounts"].get(plugin, {})
    assert (told.get("n1"), told.get("n3")) == (n1, n3)


def test_a_full_node_and_pods_that_keep_others_away_are_counted() -> None:
    away = {"podAntiAffinity": {_REQUIRED: [_WEB]}}
    pods = [_pod(f"p{i}", "n1", app="db", affinity=away) for i in range(2)]
    cluster = CaseCluster([_node("n1", "a"), _node("n2", "b"), *pods], None)
    body = explain(cluster, cluster.pending_pod(_pod("new")))
    assert body["amounts"] == {
        "NodeResourcesFit": {"n1": ["pods: 2 there, 2 allowed"]},
        "InterPodAffinity": {"n1": ["kept away by the anti-affinity of pods with zone=a: 2"]},
    }


def test_a_node_that_only_nominated_pods_fill_is_told_as_such() -> None:
    requests = {"resources": {"requests": {"cpu": "3"}}}
    important = _pod("important", container=requests, priority=100)
    important["status"]["nominatedNodeName"] = "n1"
    cluster = CaseCluster([_node("n1", "a"), _node("n2", "b"), important], None)
    body = explain(cluster, cluster.pending_pod(_pod("new", container=requests)))
    assert body["filter"]["n1"]["plugin"] == "NodeResourcesFit"
    assert body["amounts"] == {
        "NodeResourcesFit": {"n1": ["passes by itself, not beside the pods nominated there"]}
    }


def test_the_node_that_lacks_least_of_what_is_wanted_comes_first() -> None:
    pods = [
        _pod(f"p{i}", f"n{i}", container={"resources": {"requests": {"cpu": cpu}}})
        for i, cpu in ((1, "3"), (2, "1"), (3, "2"))
    ]
    cluster = CaseCluster([*(_node(f"n{i}", "a") for i in (1, 2, 3)), *pods], None)
    wanted = {"resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}
    body = explain(cluster, cluster.pending_pod(_pod("new", container=wanted)))
    assert list(body["amounts"]["NodeResourcesFit"]) == ["n2", "n3", "n1"]


def test_volumes_beyond_a_drivers_limit_are_counted() -> None:
    def claim(name: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                     "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Pending"},
        }  # fmt: skip

    def using(*claims: str) -> dict[str, Any]:
        return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}

    def limit(node: str, count: int) -> dict[str, Any]:
        driver = {"name": "csi.example.com", "nodeID": node, "allocatable": {"count": count}}
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node},
            "spec": {"drivers": [driver]},
        }

    fast = table(__file__, "volumes_beyond_a_drivers_limit_are_counted")
    cluster = CaseCluster(
        [
            *(_node(f"n{i}", "a") for i in (1, 2, 3, 4)),
            *(limit(node, count) for node, count in (("n1", 1), ("n2", 2), ("n3", 3))),
            fast,
            *map(claim, ("a", "b", "c", "d")),
            _pod("there", "n1", **using("a")),
            _pod("too", "n2", **using("d")),
        ],
        None,
    )
    body = explain(cluster, cluster.pending_pod(_pod("new", **using("a", "b", "c"))))
    assert body["amounts"]["NodeVolumeLimits"] == {
        "n1": ["csi.example.com volumes: wants 2, 0 free of 1, 2 short"],
        "n2": ["csi.example.com volumes: wants 3, 1 free of 2, 2 short"],
    }
    assert list(body["amounts"]["NodeVolumeLimits"]) == ["n2", "n1"]
