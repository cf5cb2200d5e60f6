"""Mock extenders by REST: made, read, given other rules, deleted, and asked by the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.models import Cluster, MockExtender
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster
from tests.tables import table

DENY = {"rules": [{"deny": {"nodes": ["n1"], "reason": "no licence"}}], "name": "licences"}


@pytest.fixture
def here(cluster: Cluster) -> str:
    return f"/clusters/{cluster.public_id}/mock-extenders/"


def test_a_mock_extender_lives_and_dies(api: Api, here: str) -> None:
    made = api.post(here, DENY)
    body = made.json()
    assert made.status_code == 201
    assert (body["name"], body["rules"], body["calls"]) == ("licences", DENY["rules"], {})
    assert made["Location"] == body["url"]
    one = body["url"].removeprefix("/api/v1")
    assert api.get(here).json() == {"items": [body]}
    # It answers as extenders do.
    asked = api.client.post(
        body["urlPrefix"].removeprefix("http://127.0.0.1:8000") + "/filter",
        {"pod": {"metadata": {"name": "p"}}, "nodenames": ["n1", "n2"]},
        content_type="application/json",
    )
    assert asked.json()["FailedNodes"] == {"n1": "no licence"}
    assert api.get(one).json()["calls"] == {"filter": 1}
    changed = api.send("PUT", one, {"rules": []})
    assert (changed.status_code, changed.json()["rules"], changed.json()["calls"]) == (200, [], {})
    assert changed.json()["urlPrefix"] == body["urlPrefix"]
    assert api.send("DELETE", one).status_code == 204
    assert api.get(one).status_code == 404
    assert api.get(here).json() == {"items": []}


@pytest.mark.parametrize(
    ("body", "field"),
    table(__file__, "rules_that_mean_nothing_are_refused_with_their_path"),
)
def test_rules_that_mean_nothing_are_refused_with_their_path(
    api: Api, here: str, body: dict[str, Any], field: str
) -> None:
    kept = api.post(here, DENY).json()["url"].removeprefix("/api/v1")
    for answer in (api.post(here, body), api.send("PUT", kept, body)):
        assert (answer.status_code, answer.json()["reason"]) == (400, "Invalid")
        assert answer.json()["field"] == field
    assert MockExtender.objects.count() == 1
    assert api.get(kept).json()["rules"] == DENY["rules"]


def test_a_cluster_has_twenty_at_most(api: Api, here: str) -> None:
    for _ in range(20):
        assert api.post(here, {"rules": []}).status_code == 201
    refused = api.post(here, {"rules": []})
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert "at most 20" in refused.json()["detail"]


def test_another_clusters_mock_extender_is_not_there(api: Api, here: str) -> None:
    theirs = create_mock_extender(cluster=make_cluster(), rules=[])
    for method in ("GET", "PUT", "DELETE"):
        body = {"rules": []} if method == "PUT" else None
        assert api.send(method, f"{here}{theirs.public_id}/", body).status_code == 404
    assert MockExtender.objects.count() == 1
