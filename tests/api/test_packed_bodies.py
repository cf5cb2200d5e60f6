"""Bodies may be gzip'd, under the limits an uploaded dump has; what is not gzip is refused in words."""

import gzip
import json
from typing import Any

import pytest
from django.test import Client

from playground.api.documentation import document
from playground.api.requests import MAX_BYTES
from playground.clusters import drafts
from playground.clusters.models import Cluster, Draft, Node
from playground.kube_api.requests import MOST_BYTES
from tests.api.conftest import Api
from tests.clusters.builders import make_node, make_pod

TEXT = json.dumps(make_node("packed")).encode()


def send(api: Api, path: str, body: bytes, *, encoding: str = "gzip", media: str = "application/yaml") -> Any:
    return api.send("POST", path, body, media=media, Content_Encoding=encoding)


@pytest.fixture
def limits(settings: Any) -> None:
    settings.PLAYGROUND_MAX_UPLOAD_BYTES, settings.PLAYGROUND_MAX_UNPACKED_BYTES = 2 * 2**20, 16 * 2**20


@pytest.mark.usefixtures("limits")
def test_manifests_are_packed_with_more_in_them_than_a_request_carries(api: Api, cluster: Cluster) -> None:
    text = TEXT + b"\n#" + b"x" * 3 * 2**20
    path = f"/clusters/{cluster.public_id}/apply"
    assert send(api, path, text, encoding="identity").status_code == 413
    answer = send(api, path, gzip.compress(text))
    assert answer.status_code == 202, answer.content
    drafts.work_on(draft_id=Draft.objects.get().pk)
    assert Node.objects.filter(cluster=cluster, name="packed").exists()
    assert send(api, "/drafts/", gzip.compress(text)).status_code == 202
    pod = json.dumps(make_pod("tried")).encode()
    path = f"/clusters/{cluster.public_id}/try"
    assert send(api, path, gzip.compress(pod)).status_code == 202
    assert send(api, path, gzip.compress(pod + b" " * 3 * 2**20)).status_code == 413


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("body", "encoding", "status", "words"),
    [
        (gzip.compress(b"#" * (16 * 2**20 + 1)), "gzip", 413, "unpacked the body has more than 16 MB"),
        (gzip.compress(b"#" * 2**20) * 17, "gzip", 413, "unpacked the body has more than 16 MB"),
        (gzip.compress(TEXT)[:-9], "gzip", 400, "ends too early"),
        (TEXT, "gzip", 400, "Content-Encoding says gzip, and the body is not"),
        (TEXT, "br", 415, "Content-Encoding: br is not read here; gzip is"),
        (gzip.compress(gzip.compress(TEXT)), "gzip, gzip", 415, "Content-Encoding: gzip, gzip is not read"),
    ],
    ids=["a bomb", "a bomb in parts", "cut", "not packed", "another way", "twice"],
)
def test_a_body_that_is_too_large_unpacked_or_cannot_be_is_refused_and_keeps_nothing(
    api: Api, cluster: Cluster, body: bytes, encoding: str, status: int, words: str
) -> None:
    for path in (f"/clusters/{cluster.public_id}/apply", "/drafts/"):
        answer = send(api, path, body, encoding=encoding)
        assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    assert not Node.objects.filter(name="packed").exists()


def test_settings_and_scenarios_have_their_own_limit_packed_or_not(api: Api, settings: Any) -> None:
    settings.PLAYGROUND_MAX_SCENARIO_BYTES = 1000
    new = json.dumps({"name": "packed"}).encode()
    made = send(api, "/clusters/", gzip.compress(new), media="application/json")
    assert made.status_code == 201 and made.json()["name"] == "packed"
    bomb = gzip.compress(new + b" " * MAX_BYTES)
    assert send(api, "/clusters/", bomb, media="application/json").status_code == 413
    assert send(api, "/scenarios/", gzip.compress(b"#" * 1001)).status_code == 413


def test_the_kubernetes_api_reads_them_too(client: Client, cluster: Cluster) -> None:
    def create(body: bytes, encoding: str = "gzip") -> Any:
        path = f"/k8s/{cluster.public_id}/api/v1/nodes"
        headers = {"Content-Encoding": encoding}
        return client.generic("POST", path, body, content_type="application/json", headers=headers)

    assert create(gzip.compress(TEXT)).status_code == 201
    bomb = gzip.compress(TEXT + b" " * MOST_BYTES)
    refused = [
        (create(TEXT), "BadRequest"),
        (create(TEXT, "br"), "UnsupportedMediaType"),
        (create(bomb), "RequestEntityTooLarge"),
    ]
    assert [answer.json()["reason"] for answer, _ in refused] == [reason for _, reason in refused]


def test_every_operation_with_a_body_tells_that_it_may_refuse_its_form() -> None:
    silent = [
        f"{method} {path}"
        for path, item in document()["paths"].items()
        for method, operation in item.items()
        if "requestBody" in operation and not {"413", "415"} <= operation["responses"].keys()
    ]
    assert not silent
