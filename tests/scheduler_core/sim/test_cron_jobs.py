"""CronJobs on the cluster's own clock."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.acting import (
    advance,
    cluster,
    events,
    manifest,
    names,
    same,
    status,
    template,
    twin,
    write,
)


def cron_job(lasts: str = "10s", *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    pods = template("c", annotations={"playground.dev/duration": lasts}, restartPolicy="Never")
    whole = {
        "schedule": "* * * * *",
        "jobTemplate": {"metadata": {"labels": {"of": "c"}}, "spec": {"template": pods}},
    }
    return manifest("CronJob", "c", "batch/v1", {**whole, **spec}, **(meta or {}))


def run(*, lasts: str = "10s", seconds: int = 200, **spec: Any) -> Simulation:
    made = cluster()
    write(made, cron_job(lasts, **spec))
    advance(made, seconds)
    return made


def test_a_job_a_minute_and_three_of_the_past() -> None:
    made = run(seconds=90)
    assert events(made, "CronJob") == [
        ("00:01:00", "SuccessfulCreate", "Created job c-29453761"),
        ("00:01:10", "SawCompletedJob", "Saw completed job: c-29453761, condition: Complete"),
        ("00:02:00", "SuccessfulCreate", "Created job c-29453762"),
    ]
    [job, _] = [stored.manifest for stored in made.world.all("Job")]
    assert job["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z"
    }
    assert job["metadata"]["labels"] == {"of": "c"}
    assert job["metadata"]["ownerReferences"][0] | {"uid": ""} == {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    said = status(made, "CronJob", "c")
    assert [item["name"] for item in said["active"]] == ["c-29453762"]
    assert said["lastScheduleTime"] == "2026-01-01T00:02:00Z"
    assert said["lastSuccessfulTime"] == "2026-01-01T00:01:10Z"
    advance(made, 240)
    assert names(made, "Job") == [f"c-{29453761 + number}" for number in (2, 3, 4, 5)]
    assert ("00:04:10", "SuccessfulDelete", "Deleted job c-29453761") in events(made, "CronJob")
    # Its pods went with it.
    assert not any(name.startswith("c-29453761") for name in names(made, "Pod"))


@pytest.mark.parametrize(
    ("policy", "jobs", "said"),
    [
        ("Allow", ["c-29453761", "c-29453762", "c-29453763"], []),
        (
            "Forbid",
            # What was due at 00:02 is made up for at 00:02:30.
            ["c-29453761", "c-29453762"],
            ["Not starting job because prior execution is running and concurrency policy is Forbid"] * 2,
        ),
        ("Replace", ["c-29453763"], ["Deleted job c-29453761", "Deleted job c-29453762"]),
    ],
)
def test_jobs_that_last_longer_than_a_minute(policy: str, jobs: list[str], said: list[str]) -> None:
    made = run(lasts="90s", concurrencyPolicy=policy)
    told = [
        item[2] for item in events(made, "CronJob") if item[1] in ("JobAlreadyActive", "SuccessfulDelete")
    ]
    assert (names(made, "Job"), told) == (jobs, said)


def test_suspended_it_does_nothing_and_catches_up_with_the_last_time_alone() -> None:
    made = run(suspend=True, seconds=3 * 3600)
    assert names(made, "Job") == [] and events(made, "CronJob") == []
    write(made, cron_job())
    [(_, many, said), (_, created, name)] = events(made, "CronJob")
    assert (many, created) == ("TooManyMissedTimes", "SuccessfulCreate")
    assert said.startswith("too many missed start times. Set or decrease .spec.startingDeadlineSeconds")
    # 03:00:30 - the last time was 03:00.
    assert name == f"Created job c-{29453760 + 180}"


def test_after_its_starting_deadline_a_time_is_missed() -> None:
    made = run(suspend=True, seconds=3600)
    write(made, cron_job(startingDeadlineSeconds=10))
    # Nothing was due within the last 10 s, so nothing is told either.
    assert names(made, "Job") == []
    advance(made, 40)
    assert len(names(made, "Job")) == 1


def test_zones_and_schedules_that_are_none_are_told() -> None:
    made = run(timeZone="Mars/Phobos")
    assert events(made, "CronJob")[0][1:] == (
        "UnknownTimeZone",
        'invalid timeZone: "Mars/Phobos": unknown time zone Mars/Phobos',
    )
    made = run(schedule="61 * * * *")
    said = 'unparseable schedule: "61 * * * *" : end of range (61) above maximum (59): 61'
    assert events(made, "CronJob")[0][1:] == ("UnparseableSchedule", said)
    made = run(schedule="0 0 30 2 *")
    assert events(made, "CronJob")[0][1] == "InvalidSchedule"


def test_the_wall_clock_of_its_zone_counts() -> None:
    made = run(schedule="30 5 * * *", timeZone="Asia/Kolkata", seconds=24 * 3600)
    [(at, _, _)] = [item for item in events(made, "CronJob") if item[1] == "SuccessfulCreate"]
    assert at == "00:00:00"
    job = made.world.all("Job")[0].manifest
    when = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert when == "2026-01-02T05:30:00+05:30"


def test_nothing_is_idle_that_waits_for_a_schedule() -> None:
    made = cluster()
    write(made, cron_job("5m", concurrencyPolicy="Allow"))
    assert made.run_until_idle().message == "idle after 0 cycles; next: cron job default/c is due in 30.0 s"
    advance(made, 45)
    # What the schedule began is not waited for either, but a person's own pods are.
    assert made.run_until_idle().stop == "idle"
    assert made.now_ns % (60 * 10**9) == 15 * 10**9


def test_it_goes_with_its_jobs_and_their_pods() -> None:
    made = run(lasts="5m")
    made.submit(DeleteObject("CronJob", "default", "c"))
    made.run_until_idle()
    advance(made, 60)
    assert (names(made, "Job"), names(made, "Pod")) == ([], [])


def test_a_job_made_by_hand_from_it_is_told_and_seen_complete() -> None:
    made = cluster()
    write(made, cron_job(schedule="0 0 1 1 *"))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "c-uid", "controller": True}
    spec = made.world.get("CronJob", "default", "c").manifest["spec"]["jobTemplate"]["spec"]  # type: ignore[union-attr]
    write(made, manifest("Job", "by-hand", "batch/v1", dict(spec), ownerReferences=[owner]))
    advance(made, 30)
    said = "Saw a job that the controller did not create or forgot: by-hand"
    assert ("UnexpectedJob", said) in [item[1:] for item in events(made, "CronJob")]
    assert status(made, "CronJob", "c") == {"lastSuccessfulTime": "2026-01-01T00:00:40Z"}


def test_years_of_a_schedule_end_at_the_bound_of_cycles() -> None:
    made = cluster()
    write(made, cron_job())
    report = made.advance(10 * 365 * 86400 * 10**9, max_cycles=50)
    assert report.message.startswith("bound of cycles reached after 50 cycles")
    assert len(names(made, "Job")) <= 5


def test_a_cluster_that_stopped_in_between_goes_on_as_if_it_had_not() -> None:
    made = run(lasts="90s", seconds=130)
    other = twin(made)
    for one in (made, other):
        one.drain_outcomes()
        advance(one, 400)
    assert made.drain_outcomes() == other.drain_outcomes() and same(made, other)
