"""A JSON client of the REST API, and clusters to use it on."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from playground.clusters.drive.advance import Visit, advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster
from playground.engine.batch import Budget
from tests.api import told
from tests.clusters.builders import make_cluster, make_node, make_pod


class Api:
    """Speaks JSON with the site in this process; every answer is held against the OpenAPI document."""

    def __init__(self, client: Client, prefix: str = "/api/v1") -> None:
        self.client = client
        self.prefix = prefix

    def send(self, method: str, path: str, body: Any = None, *, media: str = "", **headers: str) -> Any:
        data = body if isinstance(body, str | bytes) else b"" if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        media = media or ("" if body is None else "application/json")
        answer = self.client.generic(method, self.prefix + path, data, content_type=media, headers=named)
        told.check(method, self.prefix + path, answer)
        return answer

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **how: str) -> Any:
        return self.send("POST", path, body, **how)

    def yaml(self, path: str, text: str | bytes) -> Any:
        return self.send("POST", path, text, media="application/yaml")


@pytest.fixture
def api(client: Client, db: None, wakes: list[Any]) -> Api:
    client.raise_request_exception = True
    return Api(client)


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"))


@pytest.fixture
def visit(django_capture_on_commit_callbacks: Any) -> Iterator[Callable[[Cluster], None]]:
    """A worker's visit to a cluster, in this thread."""
    memory = EngineMemory()

    def look(cluster: Cluster) -> None:
        report = advance(
            cluster_id=cluster.pk,
            memory=memory,
            visit=Visit(wall_s=60, batch=Budget(wall_s=60, max_cycles=1000)),
        )
        cluster.refresh_from_db()
        assert report.state in ("driven", "idle"), cluster.last_error

    yield look
