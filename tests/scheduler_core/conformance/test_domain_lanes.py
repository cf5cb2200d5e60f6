"""Lanes of topology domains say what kube-scheduler recorded: whom a filter rejects, and the raw score of each node."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance import read_cases
from scheduler_core.cli.conformance_cycles import CaseCluster, explain
from tests import manifests

DATA = Path(__file__).parent / "data"
FAMILIES = {"topology-spread": "PodTopologySpread", "inter-pod-affinity": "InterPodAffinity"}


def lane_at(rule: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any] | None:
    """The lane of a node; None without the label."""
    found = (lane for lane in rule["lanes"] if labels.get(rule["key"]) in lane["names"])
    return next(found, None)


def told_of(case: Mapping[str, Any]) -> tuple[dict[str, Any], Sequence[dict[str, Any]], dict[str, Any]]:
    cluster = CaseCluster.of(case)
    body = explain(cluster, cluster.pending_pod(case["pod"]))
    labels = {
        item["metadata"]["name"]: item["metadata"].get("labels") or {}
        for item in case["objects"]
        if item["kind"] == "Node"
    }
    return body, body.get("domains") or (), labels


@pytest.mark.parametrize("family", FAMILIES)
def test_lanes_agree_with_what_was_recorded(family: str) -> None:
    plugin, n_rejected, n_scored, wrong = FAMILIES[family], 0, 0, []
    for case in read_cases(DATA / f"{family}.jsonl.gz"):
        body, rules, labels = told_of(case)
        rules = [rule for rule in rules if rule["plugin"] == plugin and rule["lanes"]]
        expect, here = case["expect"], [name for name in labels if name in body.get("nodes", ())]
        hard = [rule for rule in rules if "allowed" in rule["lanes"][0]]
        alone = (expect.get("filterByPlugin") or {}).get(plugin)
        for node in here if hard and alone is not None else ():
            lanes = [lane_at(rule, labels[node]) for rule in hard]
            is_out = node in (alone.get("fails") or {})
            is_refused = any(lane is not None and not lane["allowed"] for lane in lanes)
            if is_refused != is_out and not (is_out and None in lanes):
                wrong.append((case["name"], node, lanes))
            n_rejected += is_refused
            said = " ".join(((body["amounts"] or {}).get(plugin) or {}).get(node, ()))
            for lane in lanes:
                if lane is not None and not lane["allowed"] and "skew" in lane:
                    numbers = f"holds {lane['pods']}, ", f"a skew of {lane['skew']}, "
                    assert all(one in said for one in numbers), (case["name"], node)
        soft = [rule for rule in rules if "points" in rule["lanes"][0]]
        raw = (expect.get("rawScores") or {}).get(plugin) or {}
        if plugin == "PodTopologySpread" and (len(soft) > 1 or any(rule["unlabelled"] for rule in soft)):
            # Several constraints are rounded together, and nodes without the label are left out.
            continue
        for node in raw if soft else ():
            points = sum(lane["points"] for rule in soft if (lane := lane_at(rule, labels[node])))
            if points != raw[node]:
                wrong.append((case["name"], node, points, raw[node]))
            n_scored += 1
    assert not wrong
    assert min(n_rejected, n_scored) > 20


def test_many_domains_are_one_lane_for_each_number_of_pods() -> None:
    """200 hosts, of which 3 hold one pod and one holds two."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = {"labels": {"app": "web"}}
    pods = [manifests.pod(f"p{n}", **web, nodeName=f"n{min(n, 3):03}") for n in range(5)]
    cluster = CaseCluster([*(manifests.node(f"n{n:03}") for n in range(200)), *pods], None)
    new = manifests.pod("new", **web, topologySpreadConstraints=[spread])
    [rule] = explain(cluster, cluster.pending_pod(new))["domains"]
    assert (rule["domains"], rule["maxSkew"], rule["minimum"]) == (200, 1, 0)
    assert [
        (lane["domains"], lane["pods"], lane["allowed"], lane["skew"], lane["chosen"])
        for lane in rule["lanes"]
    ] == [(195, 0, True, 1, False), (1, 0, True, 1, True), (3, 1, False, 2, False), (1, 2, False, 3, False)]
    assert rule["lanes"][2]["names"] == ["n000", "n001", "n002"]
