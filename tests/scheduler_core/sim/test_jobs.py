"""Jobs that end by themselves, and all that ends them earlier."""

from typing import Any

import pytest

from scheduler_core.objects.defaults import prepare
from scheduler_core.sim.simulation import Simulation
from tests.manifests import make_object
from tests.scheduler_core.sim.acting import advance, cluster, events, job, names, status
from tests.scheduler_core.sim.builders import reborn, state, write
from tests.tables import table

DURATION = "playground.dev/duration"


def namespace(name: str, lasts: str) -> dict[str, Any]:
    return prepare(make_object("v1", "Namespace", name, annotations={DURATION: lasts}))


def ended(made: Simulation, name: str) -> dict[str, str]:
    """The true conditions of a Job, with their reasons."""
    said = status(made, "Job", name).get("conditions") or ()
    return {item["type"]: item["reason"] for item in said if item["status"] == "True"}


@pytest.mark.parametrize(
    ("template", "own", "of_namespace", "of_cluster", "lasts"), table(__file__, "what_says_how_long")
)
def test_what_says_how_long(
    template: str | None, own: str | None, of_namespace: str | None, of_cluster: str | None, lasts: str
) -> None:
    made = cluster()
    for name, said in (("default", of_namespace), ("kube-system", of_cluster)):
        if said:
            write(made, namespace(name, said))
    write(made, job("once", template and {DURATION: template}, on_job=own and {DURATION: own}))  # type: ignore[arg-type]
    assert made.world.all("Pod")[0].manifest["metadata"]["annotations"][DURATION] == lasts


def test_one_that_never_ends_does_not_and_a_pod_without_an_owner_neither() -> None:
    made = cluster()
    write(made, job("once", on_job={DURATION: "never"}))
    advance(made, 86400)
    assert status(made, "Job", "once")["active"] == 1


def test_failures_are_tried_again_after_ever_longer_waits() -> None:
    made = cluster()
    write(made, job("bad", on_job={DURATION: "5s", "playground.dev/ends-as": "Failed"}, backoffLimit=2))
    made.run_until_idle()
    told = events(made, "Job")
    assert [(at, reason) for at, reason, _ in told] == [
        ("00:00:30", "SuccessfulCreate"),
        ("00:00:45", "SuccessfulCreate"),  # it failed after 5 s, and 10 s went by
        ("00:01:10", "SuccessfulCreate"),  # and 20 s
        ("00:01:15", "BackoffLimitExceeded"),
    ]
    assert ended(made, "bad") == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(made, "Job", "bad")["failed"] == 3


def test_a_pod_may_be_active_for_so_long_only() -> None:
    made = cluster()
    wanted = job("late", backoffLimit=0)
    wanted["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 7
    write(made, wanted)
    made.run_until_idle()
    [pod] = made.world.all("Pod")
    assert (pod.manifest["status"]["phase"], pod.manifest["status"]["reason"]) == (
        "Failed",
        "DeadlineExceeded",
    )
    assert ended(made, "late")["Failed"] == "BackoffLimitExceeded"


def test_a_suspended_job_has_no_pods_and_no_start() -> None:
    made = cluster()
    write(made, job("held", suspend=True))
    made.run_until_idle()
    assert ended(made, "held") == {"Suspended": "JobSuspended"} and "startTime" not in status(
        made, "Job", "held"
    )
    assert [item[1:] for item in events(made, "Job")] == [("Suspended", "Job suspended")]
    write(made, {**job("held"), "status": status(made, "Job", "held")})
    assert names(made, "Pod") and status(made, "Job", "held")["startTime"] == "2026-01-01T00:00:30Z"
    assert ("Resumed", "Job resumed") in [item[1:] for item in events(made, "Job")]


def test_an_indexed_job_says_which_indexes_are_done() -> None:
    made = cluster()
    write(made, job("many", completions=5, parallelism=3, completionMode="Indexed"))
    advance(made, 60)
    assert status(made, "Job", "many")["completedIndexes"] == "0-2"
    made.run_until_idle()
    assert status(made, "Job", "many")["completedIndexes"] == "0-4"


def test_a_cluster_that_stopped_in_between_goes_on_as_if_it_had_not() -> None:
    made = cluster()
    write(made, job("bad", on_job={DURATION: "5s", "playground.dev/ends-as": "Failed"}))
    write(made, job("late", activeDeadlineSeconds=200, completions=9, ttlSecondsAfterFinished=50))
    advance(made, 40)
    other = reborn(made)
    for one in (made, other):
        one.drain_outcomes()
        one.run_until_idle()
    assert made.drain_outcomes() == other.drain_outcomes() and state(made) == state(other)
