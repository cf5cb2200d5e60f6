"""The Kubernetes API of one cluster, spoken to in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from playground.clusters.custom_kinds import built_in_of
from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_clock
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster
from tests.api.conftest import Api, visit
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.kubectls import Kubectl, programs

__all__ = ["cluster", "kube", "visit"]

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
SERVED = built_in_of("1.34")
"""What the clusters of these tests serve."""


class Kube(Api):
    """Speaks with /k8s/{id}."""

    def put(self, path: str, body: Any) -> Any:
        return self.send("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Any:
        return self.send("DELETE", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json") -> Any:
        return self.send("PATCH", path, json.dumps(body), media=f"application/{kind}")

    def apply(self, path: str, body: Any, manager: str = "tester", query: str = "") -> Any:
        return self.patch(f"{path}?fieldManager={manager}{query}", body, "apply-patch+yaml")

    def watch(self, path: str) -> list[tuple[str, Any]]:
        answer = self.get(path)
        assert answer.status_code == 200, answer.content
        lines = [json.loads(line) for line in answer.content.splitlines()]
        return [(line["type"], line["object"]) for line in lines]


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"))


@pytest.fixture
def kube(client: Client, cluster: Cluster) -> Kube:
    return Kube(client, f"/k8s/{cluster.public_id}")


Work = Callable[[Cluster], None]


def idle(cluster: Cluster, visit: Work) -> None:
    request_run(cluster=cluster)
    visit(cluster)


class LiveWorker:
    """A worker in a thread, which looks at one cluster until it is told to stop."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        memory = EngineMemory()
        try:
            while not self.stopped.wait(0.05):
                advance(cluster_id=self.cluster.pk, memory=memory)
        finally:
            connections.close_all()

    def __enter__(self) -> LiveWorker:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join(30)


@pytest.fixture
def live_cluster(transactional_db: None, wakes: list[Any]) -> Iterator[Cluster]:
    """A cluster whose clock runs ten times as fast as ours, with a worker at it."""
    cluster = make_cluster(make_node("n1"), make_node("n2"))
    set_clock(cluster=cluster, mode="realtime", rate=10.0)
    with LiveWorker(cluster):
        yield cluster


def eventually(look: Callable[[], Any], *, timeout_s: float = 30.0) -> Any:
    """The first true answer; fails when none came in time."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        threading.Event().wait(0.05)
    raise AssertionError(f"nothing came of {look} within {timeout_s} s")


@pytest.fixture(params=programs(), ids=lambda program: Path(program).name)
def kubectl(
    request: pytest.FixtureRequest, asgi_server: str, live_cluster: Cluster, tmp_path: Path
) -> Iterator[Kubectl]:
    yield Kubectl(request.param, f"{asgi_server}/k8s/{live_cluster.public_id}", tmp_path)
