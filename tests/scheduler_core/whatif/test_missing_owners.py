"""What an edit costs is told truly where a dump has no owners: nothing brings such pods back here."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.whatif.fork import Fork
from scheduler_core.whatif.what_would_it_take import what_would_it_take
from tests.scheduler_core.whatif.clusters import cluster_of, node, pod

OWNER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "ReplicaSet/web"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
}


@pytest.mark.parametrize(
    ("owners", "words"), [([OWNER], "1 pod restarts"), ([], "1 pod goes whose owner is not here")]
)
def test_a_pod_restarts_only_where_its_owner_is_here(owners: list[dict[str, Any]], words: str) -> None:
    runs = pod("web-1", cpu="3", on="a", owner="ReplicaSet/web", labels={"app": "web"})
    simulation = cluster_of([*owners, node("a"), runs, pod("waits", cpu="2")])
    waiting = simulation.world.pod("default", "waits")
    assert waiting is not None
    advice = what_would_it_take(Fork(simulation.scheduler), waiting)
    [deletion] = [item for item in advice.edits if item.edit.kind == "delete-pod"]
    assert deletion.edit.price == words
    assert deletion.displaced[0].owner_is_there is bool(owners)


def test_a_pod_without_an_owner_restarts_in_no_edit() -> None:
    runs = pod("alone", cpu="3", on="a", labels={"app": "web"})
    waits = pod("waits", cpu="3")
    waits["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    nodes = [node("a"), node("b")]
    for each in nodes:
        each["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = each["metadata"]["name"]
    simulation = cluster_of([*nodes, runs, waits])
    waiting = simulation.world.pod("default", "waits")
    assert waiting is not None
    advice = what_would_it_take(Fork(simulation.scheduler), waiting)
    prices = {item.edit.kind: item.edit.price for item in advice.edits}
    assert prices["delete-pod"] == "1 pod lost" and prices["move-pod"] == "1 pod made again by hand"
    assert not [price for price in prices.values() if "restart" in price]
