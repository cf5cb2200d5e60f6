"""Server-sent events of clusters and runs: at first, at every change, never twice the same, bounded."""

import json
import urllib.error
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.request import Request, urlopen

import pytest

from playground.api.views import events
from playground.clusters.drive.advance import advance
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import delete_cluster
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db(transaction=True)


def opened(address: str, last: str = "") -> Any:
    return urlopen(Request(address, headers={"Last-Event-ID": last} if last else {}), timeout=60)


def told(stream: Any) -> Iterator[dict[str, Any]]:
    """Events as they come."""
    event: dict[str, Any] = {}
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "data":
            event["data"] = json.loads(value)
        elif name in ("id", "event"):
            event[name] = value
        elif not line.strip() and "event" in event:
            yield event
            event = {}


def test_a_cluster_is_followed_and_comes_back_where_it_was(asgi_server: str, wakes: list[Any]) -> None:
    cluster = make_cluster(make_node("n1"))
    address = f"{asgi_server}/api/v1/clusters/{cluster.public_id}/events"
    with closing(opened(address)) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream" and stream.headers["X-Request-Id"]
        following = told(stream)
        first = next(following)
        assert (first["event"], first["data"]["nodes"]) == ("change", 1)
        apply_documents(cluster=cluster, objects=[make_node("n2")])
        second = next(following)
        assert second["data"]["nodes"] == 2 and second["id"] != first["id"]
    with closing(opened(address, second["id"])) as stream:
        following = told(stream)
        apply_documents(cluster=cluster, objects=[make_node("n3")])
        # What was seen is not told again.
        assert next(following)["data"]["nodes"] == 3
        delete_cluster(cluster=cluster)
        assert [event["event"] for event in following] == ["end"]


def test_a_run_is_followed_to_its_end(asgi_server: str, wakes: list[Any]) -> None:
    cluster = make_cluster(make_node("n1"), make_pod("p1"))
    run = request_run(cluster=cluster, until="idle")
    address = f"{asgi_server}/api/v1/clusters/{cluster.public_id}/runs/{run.public_id}/events"
    with closing(opened(address)) as stream:
        following = told(stream)
        assert next(following)["data"]["state"] == "queued"
        advance(cluster_id=cluster.pk)
        *_, last = following
    assert (last["event"], last["data"]["state"], last["data"]["podsBound"]) == ("end", "done", 1)


def test_streams_are_bounded_in_number_and_time(
    asgi_server: str, wakes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster()
    address = f"{asgi_server}/api/v1/clusters/{cluster.public_id}/events"
    monkeypatch.setattr(events, "MOST_STREAMS", 1)
    with closing(opened(address)) as stream:
        next(told(stream))
        with pytest.raises(urllib.error.HTTPError) as refused:
            opened(address)
        with refused.value as answer:
            assert (answer.code, answer.headers["Retry-After"]) == (429, "5")
            assert json.load(answer)["reason"] == "TooManyRequests"
    monkeypatch.setattr(events, "MOST_STREAMS", 100)
    monkeypatch.setattr(events, "LONGEST_S", 2.5)  # a busy machine needs one for the first event
    with closing(opened(address)) as stream:
        assert len(list(told(stream))) == 1


def test_without_asgi_a_stream_tells_the_present_and_ends(api: Api, cluster: Cluster) -> None:
    path = f"/clusters/{cluster.public_id}/events"
    (event,) = told(iter(b"".join(api.get(path).streaming_content).splitlines(keepends=True)))
    assert event["data"]["id"] == cluster.public_id
    again = b"".join(api.get(path, Last_Event_ID=event["id"]).streaming_content)
    assert again == b"retry: 2000\n\n"
    assert api.get("/clusters/unheardof1/events").status_code == 404
