"""How long one pod's way is: calls of our functions, and their files, of a POST and of a worker's visit."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.test import Client

from playground.clusters import questions
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Pod
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db

BOUNDS = (450, 49), (1_300, 85)
"""Calls and files of a POST, and of a visit that decides one cycle."""
DRAIN_BOUNDS = (1_150, 78)
ROOTS = tuple(str(Path(__file__).parents[2] / name) for name in ("playground", "scheduler_core"))


def way(do: Callable[[], Any]) -> Counter[str]:
    """File of ours -> calls of its functions."""
    calls: Counter[str] = Counter()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := frame.f_code.co_filename).startswith(ROOTS):
            calls[file] += 1

    sys.setprofile(look)
    try:
        do()
    finally:
        sys.setprofile(None)
    return calls


def test_the_way_of_one_pod_is_short(client: Client) -> None:
    cluster = make_cluster(make_node("n1"))
    path = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"

    def post(name: str) -> None:
        answer = client.post(path, json.dumps(make_pod(name)), content_type="application/json")
        assert answer.status_code == 201

    def visit() -> None:
        assert advance(cluster_id=cluster.pk).cycles == 1

    ways = []
    for name in ("first", "second"):  # the second time nothing is loaded or made ready any more
        posted = way(lambda name=name: post(name))  # type: ignore[misc]
        request_run(cluster=cluster)
        ways = [posted, way(visit)]
    assert Pod.objects.filter(node_name="n1").count() == 2
    found = [(calls.total(), len(calls)) for calls in ways]
    for (n_calls, n_files), (most_calls, most_files) in zip(found, BOUNDS, strict=True):
        assert n_calls <= most_calls and n_files <= most_files, found


def test_the_way_of_a_drain_is_short(client: Client) -> None:
    cluster, memory = make_cluster(make_node("n1"), make_node("n2")), EngineMemory()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    made = make_pod("web-1")
    made["metadata"]["ownerReferences"] = [owner]
    path = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    assert client.post(path, json.dumps(made), content_type="application/json").status_code == 201
    request_run(cluster=cluster)
    advance(cluster_id=cluster.pk, memory=memory)
    [node] = Pod.objects.values_list("node_name", flat=True)
    for nodes in (["n1", "n2"], [node]):  # the second time nothing is loaded or made ready any more
        cluster.refresh_from_db()
        row = questions.ask(cluster=cluster, kind="plan", params={"ask": "drain", "nodes": nodes})
        calls = way(lambda pk=row.pk: questions.answer(question_id=pk, memory=memory))  # type: ignore[misc]
        row.refresh_from_db()
    assert row.answer["verdict"] == "Its one pod finds another node."
    most_calls, most_files = DRAIN_BOUNDS
    assert calls.total() <= most_calls and len(calls) <= most_files, (calls.total(), len(calls))
