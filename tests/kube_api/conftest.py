"""The Kubernetes API of one cluster, spoken to in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from playground.clusters.models import Cluster
from tests.api.conftest import Api, wakes, work
from tests.clusters.builders import make_cluster, make_node, make_pod

__all__ = ["cluster", "kube", "wakes", "work"]

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


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
