"""`/healthz` and `/readyz` say the truth, and name the cause."""

import datetime
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from playground.clusters import jobs, lanes, trouble
from playground.clusters.jobs import Signs
from playground.clusters.models import LanePulse
from tests.tables import table

WELL = {"database": "ok", "broker": "ok", "disk": "ok", "decide": "ok", "ask": "ok", "make": "ok"}


def all_lanes_pulse(**ago: float) -> None:
    for lane in lanes.LANES:
        Signs(lane, "a@here").sign()
    for lane, seconds in ago.items():
        then = timezone.now() - datetime.timedelta(seconds=seconds)
        LanePulse.objects.filter(lane=lane).update(passed_at=then)


def checks(client: Client, status: int) -> dict[str, str]:
    response = client.get("/readyz")
    assert response.status_code == status, response.content
    body = response.json()
    assert body["ready"] is (status == 200)
    return body["checks"]


@pytest.mark.parametrize("path", ["/healthz", "/healthz/"])
def test_healthz_asks_nothing_of_the_database(client: Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.content) == (200, b"ok\n")


@pytest.mark.django_db
@pytest.mark.dialect
def test_readyz_is_200_once_every_lane_gave_a_sign(client: Client) -> None:
    all_lanes_pulse()
    assert checks(client, 200) == WELL
    assert client.get("/readyz/").status_code == 200


@pytest.mark.django_db
def test_readyz_says_that_a_lane_has_no_worker(client: Client) -> None:
    all_lanes_pulse()
    LanePulse.objects.filter(lane="decide").delete()
    assert checks(client, 503) == WELL | {"decide": "No worker serves the lane decide."}


@pytest.mark.django_db
@pytest.mark.dialect
def test_readyz_tells_a_stuck_worker_from_one_that_ended(client: Client) -> None:
    all_lanes_pulse(decide=60.0, ask=70.0)
    gone = next(pid for pid in range(400_000, 500_000) if not Path(f"/proc/{pid}").exists())
    LanePulse.objects.filter(lane="ask").update(process=f"{socket.gethostname()}:{gone}")
    found = checks(client, 503)
    assert found["decide"] == (
        "The workers of the lane decide are stuck, or at one thing: they gave no sign for 60 s."
    )
    assert found["ask"] == "No worker serves the lane ask: the last one ended 70 s ago."
    assert found["make"] == "ok"


@pytest.mark.django_db
def test_a_worker_that_goes_in_order_leaves_no_sign(client: Client) -> None:
    all_lanes_pulse()
    Signs(lanes.MAKE, "a@here").forget()
    assert checks(client, 503) == WELL | {"make": "No worker serves the lane make."}


@pytest.mark.django_db
def test_readyz_names_a_full_disk(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    all_lanes_pulse()
    monkeypatch.setattr(trouble.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    assert checks(client, 503) == WELL | {"disk": "The disk is full."}


@pytest.mark.django_db
def test_readyz_names_a_broker_that_does_not_answer_and_no_address(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playground.celery import app

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionRefusedError("10.1.2.3:6379 refused")

    monkeypatch.setattr(app, "connection_for_write", refuse)
    all_lanes_pulse()
    assert checks(client, 503)["broker"] == "The broker cannot be reached."


@pytest.mark.parametrize(
    ("said", "state", "cause"), table(__file__, "what_a_database_says_is_told_as_its_cause")
)
def test_what_a_database_says_is_told_as_its_cause(said: str, state: str | None, cause: str) -> None:
    error = OperationalError(said)
    if state:
        error.__cause__ = type("Error", (Exception,), {"sqlstate": state})()
    assert trouble.cause_of(error) == cause


@pytest.mark.django_db
def test_signs_are_written_every_two_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"s": 100.0}
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now["s"])
    signs = Signs("make", "a@here")

    def written() -> bool:
        LanePulse.objects.all().delete()
        signs.sign()
        return LanePulse.objects.exists()

    assert [written(), written()] == [True, False]
    now["s"] += lanes.SIGN_EVERY_S
    assert written()


@pytest.mark.django_db
def test_signs_of_yesterday_are_forgotten() -> None:
    then = timezone.now() - datetime.timedelta(days=2)
    LanePulse.objects.create(lane="make", worker="old", process=f"here:{os.getpid()}", passed_at=then)
    Signs("make", "new").sign()
    assert [row.worker for row in LanePulse.objects.all()] == ["new"]
