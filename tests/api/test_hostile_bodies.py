"""Whatever stands in a body: every write answers 400 in the one error shape, and nothing has changed."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from playground.accounts import teams
from playground.accounts.models import AccessToken, User
from playground.api.documentation import document
from playground.clusters import drafts, questions
from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, LogEntry
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.services import shares
from tests.api.conftest import Api
from tests.api.hostile_bodies import CHARSETS, HOSTILE
from tests.clusters.builders import make_node, make_pod, run
from tests.scenarios.documents import small_text
from tests.tables import table

JSON = "application/json"
BUDGET = table(__file__, "BUDGET")
NAMES = table(__file__, "NAMES")


def writes() -> Iterator[tuple[str, str, str]]:
    """Method, path and media type of every operation that takes a body in JSON."""
    for path, item in document()["paths"].items():
        for method in ("post", "put", "patch", "delete"):
            content = item.get(method, {}).get("requestBody", {}).get("content", {})
            yield from ((method.upper(), path, media) for media in content if "json" in media)


@pytest.fixture
def filled(api: Api, settings: Any) -> dict[str, str]:
    """A name for everything a path may hold; an administrator with a team: tokens, teams and people are there."""
    settings.EMBEDDED = False
    settings.PLAYGROUND_WRITE_RATE = settings.PLAYGROUND_REQUEST_RATE = "100000/day"
    grace = User.objects.create_superuser("grace")
    teams.create_team(name="platform", owner=grace)
    api.client.force_login(grace)
    cluster = create_cluster(name="mine", owner=grace, seed=7)
    apply_documents(cluster=cluster, objects=[make_node("n1"), make_pod("p1"), BUDGET])
    scenario = shares.share(document=small_text(), owner=grace).scenario
    extender = create_mock_extender(cluster=cluster, rules=[{"deny": {"nodes": ["n1"]}}])
    run(cluster)
    question = questions.ask(cluster=cluster, kind="seeds", params={"seeds": 2})
    draft = drafts.start_preview(text=json.dumps(make_node("n2")), owner=grace, keep=True)
    return NAMES | {
        "draft_id": draft.public_id,
        "user_id": str(grace.pk),
        "question_id": question.public_id,
        "cluster_id": cluster.public_id,
        "scenario_id": scenario.public_id,
        "extender_id": extender.public_id,
    }


def refusal(answer: Any) -> str:
    """What is wrong with a refusal; nothing if it is a 400 in the one shape."""
    if (answer.status_code, answer["Content-Type"]) != (400, "application/problem+json"):
        return f"{answer.status_code} {answer['Content-Type']} {answer.content[:200]!r}"
    problem = answer.json()
    well = problem["status"] == 400 and problem["reason"] in ("Invalid", "BadRequest") and problem["detail"]
    return "" if well else str(problem)


def test_the_walk_takes_in_every_kind_of_write() -> None:
    assert len(list(writes())) >= 25
    assert {method for method, _, _ in writes()} >= {"POST", "PUT", "PATCH"}


@pytest.mark.timeout(400)
def test_every_write_refuses_every_one_of_them_in_the_one_shape(api: Api, filled: dict[str, str]) -> None:
    before = (LogEntry.objects.count(), Cluster.objects.count(), AccessToken.objects.count())
    wrong = []
    bodies = list(HOSTILE.items())
    for number, (method, path, media) in enumerate(writes()):
        here = path.removeprefix("/api/v1").format(**filled)
        # One code reads the bodies of all: some each, by turns.
        for name, body in bodies[number % 9 :: 9]:
            if said := refusal(api.send(method, here, body, media=media)):
                wrong.append(f"{method} {path} {media}, {name}: {said}")
    assert wrong == []
    assert (LogEntry.objects.count(), Cluster.objects.count(), AccessToken.objects.count()) == before


@pytest.mark.parametrize("charset", CHARSETS)
def test_whatever_the_content_type_calls_the_encoding_a_request_is_utf_8(
    asgi_server: str, wakes: list[Any], charset: str
) -> None:
    def posted(body: bytes) -> tuple[int, str]:
        request = urllib.request.Request(
            f"{asgi_server}/api/v1/clusters/",
            body,
            {"Content-Type": f"{JSON}; charset={charset}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.headers["Content-Type"]
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers["Content-Type"]

    assert posted(b'{"name": "na\xc3\xafve"}') == (201, JSON)
    assert posted(b"1e400") == (400, "application/problem+json")
    assert Cluster.objects.get().name == "naïve"


def test_a_byte_order_mark_before_an_object_does_no_harm(api: Api) -> None:
    assert api.send("POST", "/clusters/", b'\xef\xbb\xbf{"name": "marked"}', media=JSON).status_code == 201


def test_what_was_written_is_told_in_a_form_that_can_be_sent(api: Api) -> None:
    assert api.send("POST", "/clusters/", b"1e400", media=JSON).json()["value"] == "inf"
    assert api.send("POST", "/clusters/", rb'"\ud800"', media=JSON).json()["value"] == r"\ud800"
    assert api.send("POST", "/clusters/", rb'{"a": {"\ud800": 1}}', media=JSON).json()["field"] == r"a.\ud800"
