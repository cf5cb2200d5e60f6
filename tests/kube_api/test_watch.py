"""Watches: bounded under WSGI (the test client), streams under ASGI."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from django.test import RequestFactory

from playground.clusters.drive.config import set_clock
from playground.clusters.kinds import by_kind
from playground.clusters.lifecycle import delete_cluster, reset_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import bind_pod, create_object, delete_object
from playground.kube_api.requests import Target
from playground.kube_api.watch import watch_of
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import PODS, TABLE, Kube

POD, NODE = by_kind("Pod"), by_kind("Node")
assert POD and NODE


def labelled(name: str, **labels: str) -> dict[str, Any]:
    pod = make_pod(name)
    pod["metadata"]["labels"] = labels
    return pod


def relabel(cluster: Cluster, name: str, **labels: str) -> None:
    apply_documents(cluster=cluster, objects=[labelled(name, **labels)])


def seen(events: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(what, found["metadata"].get("name", "")) for what, found in events]


def test_a_watch_without_a_version_begins_with_what_is_there(kube: Kube) -> None:
    assert seen(kube.watch(f"{PODS}?watch=true")) == [("ADDED", "p1")]
    assert seen(kube.watch(f"{PODS}?watch=1&resourceVersion=0")) == [("ADDED", "p1")]


@pytest.mark.dialect
def test_a_watch_resumes_from_a_version(kube: Kube, cluster: Cluster) -> None:
    version = kube.get(PODS).json()["metadata"]["resourceVersion"]
    create_object(cluster=cluster, manifest=make_pod("p2"))
    relabel(cluster, "p2", a="1")
    delete_object(cluster=cluster, kind=POD, namespace="default", name="p2")
    events = kube.watch(f"{PODS}?watch=true&resourceVersion={version}")
    assert seen(events) == [("ADDED", "p2"), ("MODIFIED", "p2"), ("DELETED", "p2")]
    versions = [int(found["metadata"]["resourceVersion"]) for _, found in events]
    assert versions == sorted(set(versions))
    assert seen(kube.watch(f"{PODS}?watch=true&resourceVersion={versions[0]}")) == seen(events)[1:]
    assert kube.watch(f"{PODS}?watch=true&resourceVersion={versions[-1]}") == []


def test_other_kinds_namespaces_and_names_are_left_out(kube: Kube, cluster: Cluster) -> None:
    version = cluster.last_seq
    apply_documents(
        cluster=cluster, objects=[make_node("n9"), make_pod("x", namespace="other"), make_pod("y")]
    )
    assert seen(kube.watch(f"{PODS}?watch=true&resourceVersion={version}")) == [("ADDED", "y")]
    assert seen(kube.watch(f"/api/v1/pods?watch=true&resourceVersion={version}")) == [
        ("ADDED", "x"),
        ("ADDED", "y"),
    ]
    one = f"{PODS}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Dx"
    assert kube.watch(one) == []
    assert seen(kube.watch(f"{PODS}/y?watch=true&resourceVersion={version}")) == [("ADDED", "y")]


def test_an_object_that_comes_to_match_is_added_and_one_that_ceases_deleted(
    kube: Kube, cluster: Cluster
) -> None:
    version = cluster.last_seq
    relabel(cluster, "p1", app="web")
    relabel(cluster, "p1", app="web", more="1")
    relabel(cluster, "p1", app="db")
    delete_object(cluster=cluster, kind=POD, namespace="default", name="p1")
    events = kube.watch(f"{PODS}?watch=true&resourceVersion={version}&labelSelector=app%3Dweb")
    assert seen(events) == [("ADDED", "p1"), ("MODIFIED", "p1"), ("DELETED", "p1")]
    # As it was while it matched, in the version of its leaving.
    meta = events[-1][1]["metadata"]
    assert (meta["labels"], meta["resourceVersion"]) == ({"app": "web", "more": "1"}, str(version + 3))


def test_a_pod_that_terminates_is_modified_before_it_is_deleted(kube: Kube, cluster: Cluster) -> None:
    bind_pod(cluster=cluster, namespace="default", name="p1", node="n1")
    version = cluster.last_seq
    delete_object(cluster=cluster, kind=POD, namespace="default", name="p1")
    assert seen(kube.watch(f"{PODS}?watch=true&resourceVersion={version}")) == [("MODIFIED", "p1")]


def test_bookmarks_say_how_far_a_watch_has_seen(kube: Kube, cluster: Cluster) -> None:
    events = kube.watch(f"{PODS}?watch=true&allowWatchBookmarks=true")
    assert seen(events) == [("ADDED", "p1"), ("BOOKMARK", "")]
    assert events[-1][1]["metadata"]["resourceVersion"] == str(cluster.last_seq)
    streamed = kube.watch(
        f"{PODS}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    )
    assert streamed[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_tables_are_watched_too_with_columns_only_once(kube: Kube, cluster: Cluster) -> None:
    create_object(cluster=cluster, manifest=make_pod("p2"))
    answer = kube.get(f"{PODS}?watch=true", accept=TABLE)
    tables = [json.loads(line)["object"] for line in answer.content.splitlines()]
    assert [table["rows"][0]["cells"][0] for table in tables] == ["p1", "p2"]
    assert tables[0]["columnDefinitions"]
    assert tables[1]["columnDefinitions"] is None


def test_not_even_the_last_version_before_a_reset_is_watched_on(kube: Kube, cluster: Cluster) -> None:
    version = kube.get(PODS).json()["metadata"]["resourceVersion"]
    assert kube.get(f"{PODS}?watch=true&resourceVersion={version}").status_code == 200
    reset_cluster(cluster=cluster)
    # Who saw that one holds objects that are gone, and no event would ever say so.
    assert kube.get(f"{PODS}?watch=true&resourceVersion={version}").status_code == 410
    now = kube.get(PODS).json()["metadata"]["resourceVersion"]
    assert kube.get(f"{PODS}?watch=true&resourceVersion={now}").status_code == 200


def test_a_paused_cluster_warns_of_what_waits_for_the_clock(kube: Kube, cluster: Cluster) -> None:
    assert "paused" in kube.get(f"{PODS}?watch=true")["Warning"]
    assert "paused" in kube.post(PODS, make_pod("p2"))["Warning"]
    assert "paused" in kube.delete(f"{PODS}/p2")["Warning"]
    maps = "/api/v1/namespaces/default/configmaps"
    for answer in (
        kube.get(f"{maps}?watch=true"),
        kube.post(maps, {"metadata": {"name": "a"}}),
        kube.post("/api/v1/namespaces", {"metadata": {"name": "team"}}),
        kube.post(f"{PODS}?dryRun=All", make_pod("p3")),
        kube.patch(f"{PODS}/p1/status", {"status": {"nominatedNodeName": "n1"}}),
        kube.post(f"{PODS}/p1/binding", {"target": {"kind": "Node", "name": "n1"}}),
    ):
        assert answer.status_code < 300
        assert "Warning" not in answer.headers
    set_clock(cluster=cluster, mode="realtime")
    assert "Warning" not in kube.post(PODS, make_pod("p4"))


@pytest.mark.dialect
def test_streams_that_read_up_to_one_number_tell_of_a_commit_together(cluster: Cluster) -> None:
    watches = [watch_of(RequestFactory().get("/", {"resourceVersion": cluster.last_seq}), cluster, Target(kind))
               for kind in (POD, NODE)]  # fmt: skip
    before = cluster.last_seq
    apply_documents(cluster=cluster, objects=[make_node("late"), make_pod("late")])
    # As the pulse told them before the commit, and after it.
    assert [watch.read(before) for watch in watches] == [[], []]
    cluster.refresh_from_db()
    told = [[json.loads(line)["object"] for line in watch.read(cluster.last_seq)] for watch in watches]
    assert [[each["metadata"]["name"] for each in lines] for lines in told] == [["late"], ["late"]]


Stream = Iterator[dict[str, Any]]
"""Events of an open watch, as they come."""


@pytest.fixture
def live(asgi_server: str, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"), make_pod("p1"))


@pytest.fixture
def watching(asgi_server: str, live: Cluster) -> Iterator[Callable[[str], Stream]]:
    """Opens watches of the live cluster's pods; all are closed in the end."""
    with contextlib.ExitStack() as ends:

        def open_one(query: str) -> Stream:
            address = f"{asgi_server}/k8s/{live.public_id}{PODS}?watch=true{query}"
            answer = ends.enter_context(requests.get(address, stream=True, timeout=30))
            assert answer.status_code == 200, answer.content
            return map(json.loads, answer.iter_lines())

        yield open_one


def test_a_stream_sends_changes_as_they_come(live: Cluster, watching: Callable[[str], Stream]) -> None:
    events = watching("")
    assert next(events)["object"]["metadata"]["name"] == "p1"
    for name in ("a", "b"):
        create_object(cluster=live, manifest=make_pod(name))
        event = next(events)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
    delete_object(cluster=live, kind=POD, namespace="default", name="a")
    assert next(events)["type"] == "DELETED"


def test_a_stream_ends_after_its_time_with_a_bookmark(watching: Callable[[str], Stream]) -> None:
    events = watching("&timeoutSeconds=1&allowWatchBookmarks=true")
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]


def test_a_stream_ends_when_the_cluster_is_reset_or_gone(
    live: Cluster, watching: Callable[[str], Stream]
) -> None:
    first = watching("")
    next(first)
    reset_cluster(cluster=live)
    ended = list(first)
    assert (ended[-1]["type"], ended[-1]["object"]["code"]) == ("ERROR", 410)
    second = watching("")
    next(second)
    delete_cluster(cluster=live)
    assert list(second) == []


def test_many_streams_of_one_cluster_see_the_same(live: Cluster, watching: Callable[[str], Stream]) -> None:
    streams = [watching(f"&resourceVersion={live.last_seq}") for _ in range(10)]
    create_object(cluster=live, manifest=make_pod("all"))
    for stream in streams:
        assert next(stream)["object"]["metadata"]["name"] == "all"
