"""One form of refusals, names of requests, keys of requests that are sent again, and what is left of a rate."""

import datetime
import json
import re
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from playground.accounts import idempotency
from playground.accounts.models import KeptAnswer, User
from playground.accounts.tokens import create_token
from playground.clusters.models import Cluster, Run
from tests.api.conftest import Api
from tests.tables import table

NEW = {"name": "once"}
KEY = "3f1c-a"


def problem(answer: Any, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), (
        answer.content
    )
    body: dict[str, Any] = answer.json()
    assert body["status"] == status and body["detail"] and body["type"].startswith("/api/v1/problems/")
    assert body["requestId"] == answer["X-Request-Id"]
    return body


@pytest.mark.parametrize(
    ("method", "path", "status", "how"),
    table(__file__, "every_refusal_has_one_form"),
)
def test_every_refusal_has_one_form(
    api: Api, method: str, path: str, status: int, how: dict[str, str]
) -> None:
    problem(api.send(method, path, "{}" if method == "POST" else None, **how), status)


@pytest.mark.parametrize("where", ["playground.api.views.clusters.clusters_overview",
                                   "playground.middleware.ConnectionsMiddleware.__call__"])  # fmt: skip
def test_what_breaks_is_a_problem_with_the_name_of_the_request(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    def broken(*args: Any, **how: Any) -> None:
        raise RuntimeError("broken on purpose")

    api.client.raise_request_exception = False
    if where.endswith("__call__"):
        # Outside of every view: what breaks between the wall and the views.
        where = "playground.middleware.WallMiddleware.__call__"
    monkeypatch.setattr(where, broken)
    body = problem(api.get("/clusters/", X_Request_Id="mine-1"), 500)
    assert body["requestId"] == "mine-1" and "broken on purpose" not in body["detail"]
    assert "broken on purpose" in caplog.text


def test_a_request_has_the_name_it_was_given_or_one_is_drawn(api: Api) -> None:
    assert api.get("/version", X_Request_Id="ci-7.1")["X-Request-Id"] == "ci-7.1"
    for given in ("", "a" * 65, "two words", "é", "<b>"):
        assert re.fullmatch("[0-9a-f]{32}", api.get("/version", X_Request_Id=given)["X-Request-Id"])


@pytest.mark.dialect
def test_the_same_key_and_request_is_answered_as_before(api: Api) -> None:
    first = api.post("/clusters/", NEW, Idempotency_Key=KEY)
    again = api.post("/clusters/", NEW, Idempotency_Key=KEY)
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json() and first["Location"] == again["Location"]
    assert (first.get("Idempotent-Replayed"), again["Idempotent-Replayed"]) == (None, "true")
    assert Cluster.objects.filter(name="once").count() == 1
    assert api.post("/clusters/", NEW).status_code == 201 and Cluster.objects.filter(name="once").count() == 2


def test_asynchronous_work_is_begun_once(api: Api) -> None:
    made = api.post("/clusters/", NEW).json()["id"]
    runs = [api.post(f"/clusters/{made}/run", {"until": "idle"}, Idempotency_Key=KEY) for _ in range(2)]
    assert [run.status_code for run in runs] == [202, 202]
    assert runs[0].json()["id"] == runs[1].json()["id"] and Run.objects.count() == 1


def test_another_request_with_the_key_is_refused(api: Api) -> None:
    made = api.post("/clusters/", NEW, Idempotency_Key=KEY).json()["id"]
    problem(api.post("/clusters/", {"name": "other"}, Idempotency_Key=KEY), 422)
    problem(api.post(f"/clusters/{made}/clone", NEW, Idempotency_Key=KEY), 422)
    assert Cluster.objects.count() == 1
    for bad in ("", "two words", "a" * 256):
        problem(api.post("/clusters/", NEW, Idempotency_Key=bad), 400)


def test_a_refusal_is_repeated_and_a_failure_tried_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [api.post("/clusters/", {"nome": "x"}, Idempotency_Key="a") for _ in range(2)]
    assert [answer.status_code for answer in refused] == [400, 400]
    assert refused[1]["Idempotent-Replayed"] == "true"
    with monkeypatch.context() as broken:
        broken.setattr("playground.clusters.lifecycle.create_cluster", lambda **how: 1 / 0)
        problem(api.post("/clusters/", NEW, Idempotency_Key="b"), 500)
    assert api.post("/clusters/", NEW, Idempotency_Key="b").status_code == 201


@pytest.mark.dialect
def test_a_request_that_is_being_answered_is_not_begun_twice(api: Api) -> None:
    api.post("/clusters/", NEW, Idempotency_Key=KEY)
    KeptAnswer.objects.update(status=0)
    problem(api.post("/clusters/", NEW, Idempotency_Key=KEY), 409)
    KeptAnswer.objects.update(created=timezone.now() - idempotency.ABANDONED - datetime.timedelta(seconds=1))
    assert api.post("/clusters/", NEW, Idempotency_Key=KEY).status_code == 201


@pytest.mark.dialect
def test_keys_end_and_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST", 2)
    for key in ("a", "b", "c"):
        api.post("/clusters/", NEW, Idempotency_Key=key)
    assert sorted(KeptAnswer.objects.values_list("key", flat=True)) == ["b", "c"]
    KeptAnswer.objects.update(created=timezone.now() - idempotency.KEPT)
    assert api.post("/clusters/", {"name": "another"}, Idempotency_Key="b").status_code == 201
    assert list(KeptAnswer.objects.values_list("key", flat=True)) == ["b"]
    assert idempotency.forget_old(now=timezone.now() + idempotency.KEPT) == 1


def test_a_long_answer_is_not_kept_and_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_BODY_BYTES", 10)
    assert api.post("/clusters/", NEW, Idempotency_Key=KEY).status_code == 201
    problem(api.post("/clusters/", NEW, Idempotency_Key=KEY), 409)
    assert Cluster.objects.count() == 1 and not bytes(KeptAnswer.objects.get().body)


@pytest.mark.django_db
@override_settings(EMBEDDED=False, PLAYGROUND_REQUEST_RATE="5/min", PLAYGROUND_WRITE_RATE="3/min")
def test_a_key_is_its_persons_secrets_are_not_kept_and_what_is_left_is_told(
    client: Client, wakes: Any
) -> None:
    people = {name: Api(client) for name in ("ada", "grace")}
    heads = {
        name: {"Authorization": f"Bearer {create_token(user=User.objects.create_user(name), name=name)[1]}"}
        for name in people
    }
    made = [people[name].post("/clusters/", NEW, Idempotency_Key=KEY, **heads[name]) for name in people]
    assert made[0].json()["id"] != made[1].json()["id"]
    token = {"name": "ci", "expiresInDays": 1}
    first = people["ada"].post("/tokens/", token, Idempotency_Key="t", **heads["ada"])
    secret = first.json()["token"]
    problem(people["ada"].post("/tokens/", token, Idempotency_Key="t", **heads["ada"]), 409)
    kept = KeptAnswer.objects.filter(key="t").get()
    assert secret not in json.dumps(kept.headers) and secret.encode() not in bytes(kept.body)
    assert (first["RateLimit-Limit"], first["RateLimit-Remaining"]) == ("3", "1")
    assert 0 < int(first["RateLimit-Reset"]) <= 60
    over = people["ada"].post("/clusters/", NEW, **heads["ada"])
    problem(over, 429)
    assert over["RateLimit-Remaining"] == "0" and int(over["Retry-After"]) == int(over["RateLimit-Reset"])
