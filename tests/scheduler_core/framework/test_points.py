"""The strip of extension points agrees with what the engine did, for every way a cycle can end."""

from typing import Any

import pytest

from scheduler_core.framework.record import PIPELINE, CycleTrace, points
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.manifests import node, pod
from tests.scheduler_core.stored import prepare
from tests.tables import table

RECORD: dict[str, Any] = table(__file__, "RECORD")


def decided(*manifests: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The points of the last cycle after running these until idle."""
    simulation = Simulation(seed=1)
    for manifest in manifests:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.run_until_idle(max_cycles=20)
    first = simulation.drain_cycles()[0]
    return told(first.explain()["points"])


def points_of(**fields: Any) -> list[dict[str, str]]:
    """Of a record with these fields."""
    return points(CycleTrace(**{**RECORD, **fields}))


def told(given: list[dict[str, str]]) -> dict[str, tuple[str, str]]:
    assert [point["point"] for point in given] == list(PIPELINE)
    return {point["point"]: (point["state"], point["detail"]) for point in given}


def test_a_rejection_in_pre_filter_reaches_no_filter() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    strip = decided(node("n1", "2"), pod("p", volumes=volumes))
    assert strip["PreFilter"][0] == "failed" and strip["PreFilter"][1]
    assert strip["Filter"] == ("not reached", "")


def test_without_nodes_the_cycle_ends_before_any_filter() -> None:
    strip = decided(pod("p"))
    assert strip["PreFilter"] == ("failed", "no node in the cluster")
    assert strip["PostFilter"][0] == "not reached"


@pytest.mark.parametrize(
    ("changes", "point", "state"), table(__file__, "an_error_marks_the_point_it_happened_at")
)
def test_an_error_marks_the_point_it_happened_at(changes: dict[str, Any], point: str, state: str) -> None:
    strip = told(points_of(outcome="error", **changes))
    assert strip[point][0] == state
    assert sum(one == "failed" for one, _ in strip.values()) == 1
    after = PIPELINE[PIPELINE.index(point) + 1 :]
    assert {strip[name][0] for name in after} <= {"not reached", "skipped"}


def test_a_waiting_pod_has_not_reached_binding() -> None:
    history = [{"plugin": "Gang", "decision": "wait", "timeoutS": 30}]
    strip = told(points_of(outcome="waiting", permit=history))
    assert strip["Permit"] == ("waiting", "Gang, up to 30 s")
    assert strip["Reserve"][0] == "done" and strip["PreBind"][0] == "not reached"
    history.append({"plugin": "Gang", "decision": "allow", "afterS": 1.5})
    strip = told(points_of(permit=history))
    assert strip["Permit"] == ("done", "allow after 1.5 s") and strip["Bind"][0] == "done"


def test_a_rejection_at_permit_is_not_one_of_filter() -> None:
    strip = told(points_of(outcome="unschedulable", failed_point="Permit", failed_plugin="Gang"))
    assert strip["Filter"][0] == "done" and strip["Permit"] == ("failed", "Gang")
    assert strip["PostFilter"] == ("skipped", "not needed")
