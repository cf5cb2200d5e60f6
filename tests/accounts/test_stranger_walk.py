"""Every URL that names a cluster, as a stranger, as nobody, as a viewer and as an editor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from playground.accounts import teams
from playground.accounts.models import Role, User
from playground.clusters import services
from playground.clusters.models import Cluster
from tests.api.conftest import wakes
from tests.clusters.builders import make_node, make_pod

__all__ = ["wakes"]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NAMES = {
    "namespace": "default",
    "name": "p1",
    "pod": "p1",
    "kind": "pod",
    "number": "1",
    "deed": "rename",
    "path": "api/v1/namespaces/default/pods/p1",
}
# Beginning a run, or a question about it, is an editor's; these only read, though they are posted.
READING_POSTS = (
    "why-not",
    "weights",
    "seeds",
    "try",
    "what-would-it-take",
    "preview",
    "clone",
    "questions",
    "compare",
)


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        text = str(pattern.pattern)
        here = prefix + text.lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, here)
        else:
            yield here


def path_of(route: str, cluster_id: str) -> str | None:
    """A real path of a route that names a cluster, or None."""
    if "cluster_id" not in route:
        return None
    route = route.removesuffix("$").removesuffix(r"\Z")
    names = NAMES | {"cluster_id": cluster_id}
    route = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", route)
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: names.get(match[1], "nope"), route)


# The stream of ticks says 501 to everybody here: the test client is no ASGI server (tests/web asks it for real).
PATHS = sorted(
    {
        path
        for route in routes(get_resolver().url_patterns)
        if (path := path_of(route, "CLUSTER")) and not path.endswith("/ticks/")
    }
)


@pytest.fixture(autouse=True)
def team_mode(settings: Any, db: None, wakes: list[Any]) -> None:
    settings.EMBEDDED = False
    settings.PLAYGROUND_WRITE_RATE = settings.PLAYGROUND_REQUEST_RATE = "100000/day"


@pytest.fixture
def cluster(team_mode: None) -> Cluster:
    ada = User.objects.create_user("ada")
    team = teams.create_team(name="platform", owner=ada)
    for name, role in (("vic", Role.VIEWER), ("ed", Role.EDITOR)):
        User.objects.create_user(name)
        teams.set_member(team=team, username=name, role=role)
    User.objects.create_user("eve")
    cluster = services.create_cluster(name="xyzzy", team=team)
    services.apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1")])
    return cluster


def client_of(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def asked(client: Client, method: str, path: str) -> Any:
    return client.generic(method, path, b"{}" if method != "GET" else b"", content_type="application/json")


def test_the_walk_knows_the_surfaces() -> None:
    assert len(PATHS) > 40
    assert any(path.startswith("/k8s/") for path in PATHS)
    assert any(path.startswith("/api/v1/clusters/") for path in PATHS)
    assert any(path.startswith("/c/") for path in PATHS)


@pytest.mark.slow
def test_a_stranger_finds_nothing(cluster: Cluster) -> None:
    eve = client_of("eve")
    for path in PATHS:
        for method in METHODS:
            answer = asked(eve, method, path.replace("CLUSTER", cluster.public_id))
            # A path that never has the method says so to everybody alike; 286 stops a poll of what is gone.
            assert answer.status_code in (404, 405, 286), (method, path, answer.status_code)
            assert cluster.name not in answer.content.decode()
        nobody = asked(eve, "GET", path.replace("CLUSTER", "nosuchcluster"))
        assert nobody.status_code == asked(eve, "GET", path.replace("CLUSTER", cluster.public_id)).status_code


def test_nobody_is_asked_to_log_in(cluster: Cluster) -> None:
    for path in PATHS:
        for method in METHODS:
            answer = asked(Client(), method, path.replace("CLUSTER", cluster.public_id))
            wanted = 401 if path.startswith(("/api/", "/k8s/")) else 302
            assert answer.status_code == wanted, (method, path, answer.status_code)


@pytest.mark.slow
def test_a_viewer_looks_and_changes_nothing(cluster: Cluster) -> None:
    vic = client_of("vic")
    before = Cluster.objects.get(pk=cluster.pk).next_seq
    for path in PATHS:
        here = path.replace("CLUSTER", cluster.public_id)
        read = asked(vic, "GET", here)
        assert read.status_code != 403, (path, read.status_code)
        assert read.status_code < 500, (path, read.status_code)
        for method in METHODS[1:]:
            answer = asked(vic, method, here)
            if any(word in path for word in READING_POSTS):
                assert answer.status_code < 500, (method, path)
            else:
                assert answer.status_code in (403, 405, 404), (method, path, answer.status_code)
    row = Cluster.objects.get(pk=cluster.pk)
    assert (row.next_seq, row.name, row.clock_mode) == (before, "xyzzy", "paused")


def test_an_editor_changes_and_only_an_owner_deletes(cluster: Cluster) -> None:
    ed, ada = client_of("ed"), client_of("ada")
    here = f"/api/v1/clusters/{cluster.public_id}/"
    body = {"name": "renamed"}
    assert ed.patch(here, body, content_type="application/json").status_code == 200
    pods = f"/k8s/{cluster.public_id}/api/v1/namespaces/default/pods"
    assert ed.post(pods, make_pod("new"), content_type="application/json").status_code == 201
    assert ed.delete(here).status_code == 403
    assert ed.post(f"/c/{cluster.public_id}/cluster/delete/", {"sure": "yes"}).status_code == 403
    assert ada.delete(here).status_code == 204
