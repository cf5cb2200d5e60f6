from __future__ import annotations

import datetime

import pytest
from django.test import Client
from django.utils import timezone

from playground.play import health
from playground.play.beat import say_alive
from playground.play.models import WorkerHeartbeat


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_healthz_asks_nothing_of_the_database(client: Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readyz_says_that_no_worker_was_seen(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"] == {
        "database": "ok",
        "broker": "ok",
        "worker": "no worker was seen in the last 30 s",
    }


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/readyz", "/readyz/"])
def test_readyz_is_200_once_a_worker_was_seen(client: Client, path: str) -> None:
    say_alive("worker@here")
    response = client.get(path)
    assert response.status_code == 200
    assert response.json() == {"ready": True, "checks": {"database": "ok", "broker": "ok", "worker": "ok"}}


@pytest.mark.django_db
def test_a_worker_of_yesterday_is_forgotten() -> None:
    WorkerHeartbeat.objects.create(worker="old", seen_at=timezone.now() - datetime.timedelta(days=2))
    say_alive("new")
    assert [row.worker for row in WorkerHeartbeat.objects.all()] == ["new"]


@pytest.mark.django_db
def test_readyz_names_what_does_not_answer_and_only_the_log_says_where_it_is(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from playground.celery import app

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionRefusedError("10.1.2.3:6379 refused the user hidden")

    monkeypatch.setattr(app, "connection_for_write", refuse)
    monkeypatch.setattr(health.connection, "cursor", refuse)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"] | {"worker": ""} == {
        "database": "does not answer",
        "broker": "does not answer",
        "worker": "",
    }
    assert "10.1.2.3" not in response.content.decode()
    assert "10.1.2.3:6379 refused the user hidden" in caplog.text
