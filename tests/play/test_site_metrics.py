"""Every metric that is alerted on moves when the fault it tells of is made; every alert asks for metrics there are."""

import datetime
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from celery import current_app
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from playground.clusters import lanes
from playground.clusters.drive.advance import advance
from playground.clusters.drive.lease import claim, park_if_failing, release
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.jobs import Signs
from playground.clusters.models import Cluster, Job, LanePulse, Run
from playground.play import health, rooms
from playground.scenarios.services import storage
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db
RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/alerts.yaml"
AGE = "playground_oldest_wakeup_age_seconds"


@pytest.fixture(autouse=True)
def quiet(wakes: list[Any]) -> None:
    """No worker is part of these tests."""


def read(client: Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    lines = answer.content.decode().splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in samples.items()}


def ago(seconds: float) -> datetime.datetime:
    return timezone.now() - datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize("lane", lanes.LANES)
def test_a_lane_without_a_worker_shows(client: Client, lane: str) -> None:
    name = f'playground_workers{{lane="{lane}"}}'
    assert read(client)[name] == 0
    Signs(lane, "w@h").sign()
    assert read(client)[name] == 1
    LanePulse.objects.update(passed_at=ago(lanes.SILENT_S + 1))  # stuck
    assert read(client)[name] == 0
    Signs(lane, "w@h").sign()
    assert read(client)[name] == 1
    Signs(lane, "w@h").forget()  # stopped
    assert read(client)[name] == 0


@pytest.mark.dialect
def test_a_run_no_worker_takes_grows_old_in_the_deciding_lane(client: Client) -> None:
    name = f'{AGE}{{lane="decide"}}'
    cluster = make_cluster(make_node(), make_pod())
    assert read(client)[name] == 0
    request_run(cluster=cluster)
    Run.objects.update(created=ago(90))
    assert 90 <= read(client)[name] < 600
    lease = claim(cluster.pk)
    assert lease and read(client)[name] == 0
    release(lease)
    advance(cluster_id=cluster.pk, memory=EngineMemory())
    assert read(client)[name] == 0


@pytest.mark.parametrize("lane", ["ask", "make"])
@pytest.mark.dialect
def test_work_no_worker_takes_grows_old_in_its_lane(client: Client, lane: str) -> None:
    name = f'{AGE}{{lane="{lane}"}}'
    assert read(client)[name] == 0
    job = Job.objects.create(lane=lane, task="tidy", key="k")
    Job.objects.update(created=ago(100))
    assert 100 <= read(client)[name] < 600
    Job.objects.update(not_before=timezone.now() + datetime.timedelta(seconds=60))
    assert read(client)[name] == 0
    Job.objects.update(not_before=None, claimed_until=timezone.now() + datetime.timedelta(seconds=60))
    assert read(client)[name] == 0
    Job.objects.update(claimed_until=ago(1))  # its worker died
    assert read(client)[name] >= 100
    job.delete()
    assert read(client)[name] == 0


def test_a_worker_that_died_with_a_lease_shows(client: Client) -> None:
    cluster = make_cluster(make_node())
    assert claim(cluster.pk)
    found = read(client)
    assert (found['playground_leases{state="held"}'], found['playground_leases{state="expired"}']) == (1, 0)
    Cluster.objects.update(lease_expires=ago(5))
    found = read(client)
    assert (found['playground_leases{state="held"}'], found['playground_leases{state="expired"}']) == (0, 1)


def test_a_parked_cluster_shows(client: Client) -> None:
    cluster = make_cluster(make_node())
    name = 'playground_clusters{state="parked"}'
    assert read(client)[name] == 0
    for _ in range(50):
        lease = claim(cluster.pk)
        if lease is None or park_if_failing(lease):
            break
        release(lease, failed="the engine fell over")
    assert read(client)[name] == 1


def test_a_task_that_fails_is_counted_in_whichever_process_it_failed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**kwargs: object) -> None:
        raise ValueError("a bug")

    name = "tidy_shares"
    sample = f'playground_task_failures_total{{task="{name}"}}'
    monkeypatch.setattr(storage, "tidy", fail)
    assert sample not in read(client)
    monkeypatch.setattr(rooms.process_limits, "limit_processor_time", lambda seconds: None)
    said = rooms.do(name, {}, settings.PLAYGROUND_LANE_LIMITS["make"])
    assert "a bug" in said["why"]
    assert read(client)[sample] == 1


def test_a_database_that_is_away_shows_and_so_does_what_needs_none(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(client)["playground_database_up"] == 1

    def refuse(*args: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(connection, "cursor", refuse)
    found = read(client)
    assert (found["playground_database_up"], found["playground_broker_up"]) == (0, 1)
    assert found["playground_disk_free_bytes"] > 0


def test_a_broker_that_is_away_shows(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(client)["playground_broker_up"] == 1

    def refuse() -> None:
        raise ConnectionRefusedError("nothing listens")

    monkeypatch.setattr(current_app._get_current_object(), "connection_for_write", refuse)
    assert read(client)["playground_broker_up"] == 0


def test_a_disk_that_fills_shows(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(client)
    assert 0 < before["playground_disk_free_bytes"] <= before["playground_disk_size_bytes"]
    asked: list[Any] = []

    def nearly_full(path: Any) -> Any:
        asked.append(path)
        return SimpleNamespace(total=1000, free=7)

    monkeypatch.setattr(health, "shutil", SimpleNamespace(disk_usage=nearly_full))
    found = read(client)
    assert (found["playground_disk_free_bytes"], found["playground_disk_size_bytes"]) == (7, 1000)
    assert asked == [settings.DATA_DIR]


def test_every_alert_asks_for_metrics_and_labels_that_are_there_and_says_what_to_do(client: Client) -> None:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    from playground.play.rooms import count_failure

    count_failure("x")
    there = client.get("/metrics").content.decode()
    names = set(re.findall(r"^# TYPE (\S+)", there, re.MULTILINE))
    for rule in group["rules"]:
        asked = re.findall(r"playground_\w+", rule["expr"])
        assert asked and set(asked) <= names, rule["alert"]
        for label, value in re.findall(r'(\w+)="(\w+)"', rule["expr"]):
            assert f'{label}="{value}"' in there, rule["alert"]
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("page", "warn")
    alerted = {name for rule in group["rules"] for name in re.findall(r"playground_\w+", rule["expr"])}
    told = "workers leases clusters task_failures_total database_up broker_up disk_free_bytes"
    assert alerted >= {AGE, *(f"playground_{name}" for name in told.split())}
    if promtool := shutil.which("promtool"):
        done = subprocess.run(
            [promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
