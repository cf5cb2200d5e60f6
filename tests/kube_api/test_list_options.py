"""What a list or a watch may ask of versions and pages, in a real API server's words, and how answers are packed."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client

from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_node, make_pod
from tests.kube_api.conftest import PODS, Kube
from tests.tables import table

FORBIDDEN = "Forbidden: resourceVersionMatch is forbidden"


@pytest.mark.parametrize(
    ("query", "said"),
    table(__file__, "a_match_of_versions_is_validated_as_upstream"),
)
def test_a_match_of_versions_is_validated_as_upstream(kube: Kube, query: str, said: str) -> None:
    refused = kube.get(f"{PODS}?{query}")
    assert refused.status_code == 422
    body = refused.json()
    assert body["reason"] == "Invalid"
    assert body["message"] == f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {said}'
    assert body["details"]["causes"][0]["field"] == "resourceVersionMatch"


def test_initial_events_are_of_watches_and_several_faults_are_said_together(kube: Kube) -> None:
    said = kube.get(f"{PODS}?sendInitialEvents=true").json()["message"]
    assert said.endswith("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")
    said = kube.get(f"{PODS}?resourceVersionMatch=x").json()["message"]
    assert "is invalid: [resourceVersionMatch: Forbidden" in said and said.endswith('"NotOlderThan", ""]')
    watched = f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert kube.get(watched).status_code == 200
    version = kube.get(PODS).json()["metadata"]["resourceVersion"]
    for match in ("Exact", "NotOlderThan"):
        assert kube.get(f"{PODS}?resourceVersionMatch={match}&resourceVersion={version}").status_code == 200


def test_a_page_says_how_many_remain_unless_a_selector_counts(kube: Kube, cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[make_pod(f"p{number}") for number in range(5)])
    n_pods = len(kube.get(PODS).json()["items"])
    left, token, seen = n_pods, "", 0
    while True:
        metadata = (page := kube.get(f"{PODS}?limit=2&continue={token}").json())["metadata"]
        seen += len(page["items"])
        left = n_pods - seen
        assert metadata.get("remainingItemCount") == (left or None)
        token = metadata.get("continue", "")
        if not token:
            break
    assert seen == n_pods
    for selector in ("labelSelector=!nothing", "fieldSelector=status.phase!=Failed"):
        metadata = kube.get(f"{PODS}?limit=2&{selector}").json()["metadata"]
        assert metadata["continue"] and "remainingItemCount" not in metadata


def test_answers_are_packed_for_who_takes_that_and_streams_are_not(client: Client, cluster: Cluster) -> None:
    apply_documents(cluster=cluster, objects=[make_node(f"n{number}") for number in range(30)])
    takes: dict[str, Any] = {"HTTP_ACCEPT_ENCODING": "gzip"}
    for path in (
        f"/k8s/{cluster.public_id}/api/v1/nodes",
        f"/api/v1/clusters/{cluster.public_id}/nodes/",
        f"/c/{cluster.public_id}/",
    ):
        plain, packed = client.get(path), client.get(path, **takes)
        assert "Content-Encoding" not in plain and packed["Content-Encoding"] == "gzip", path
        assert len(packed.content) < len(plain.content) / 2
        assert "Accept-Encoding" in packed["Vary"]
        if path.startswith("/k8s/"):
            assert gzip.decompress(packed.content) == plain.content
        elif "ETag" in packed:
            again = client.get(path, HTTP_IF_NONE_MATCH=packed["ETag"], **takes)
            assert again.status_code == 304
    streamed = client.get(f"/api/v1/clusters/{cluster.public_id}/events", **takes)
    assert streamed.streaming and "Content-Encoding" not in streamed
    here = f"/api/v1/clusters/{cluster.public_id}/"
    tag = client.get(here)["ETag"]
    body = {"name": "renamed"}
    weak = client.patch(
        here, body, content_type="application/json", HTTP_IF_MATCH=f"W/{tag.removeprefix('W/')}"
    )
    assert weak.status_code == 200


def test_a_wrong_word_in_rest_lists_the_right_ones(client: Client, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.public_id}/clock/"
    refused = client.put(path, {"mode": "2x"}, content_type="application/json")
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith('mode: "2x" is none of paused, ')
