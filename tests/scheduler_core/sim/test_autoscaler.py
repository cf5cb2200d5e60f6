"""Autoscalers that follow a drawn load."""

from typing import Any

import pytest

from scheduler_core.sim.load import LoadError, load_from
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.acting import advance, cluster, deployment, events, manifest, status
from tests.scheduler_core.sim.builders import reborn, state, write
from tests.tables import table

LOAD = "playground.dev/load"
CPU = "cpu resource utilization (percentage of request)"


def autoscaler(
    most: int = 10, least: int = 1, metric: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 80}
    cpu = metric or {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": scaled, "minReplicas": least, "maxReplicas": most, "metrics": [cpu]}
    return manifest("HorizontalPodAutoscaler", "hpa", "autoscaling/v2", {**whole, **spec})


def scaled(load: str, *, replicas: int = 1, seconds: int = 600, **how: Any) -> Simulation:
    made = cluster()
    write(made, deployment("web", replicas, annotations={LOAD: load}), autoscaler(**how))
    advance(made, seconds)
    return made


def sizes(made: Simulation) -> list[tuple[str, str]]:
    return [
        (at, said)
        for at, reason, said in events(made, "HorizontalPodAutoscaler")
        if reason == "SuccessfulRescale"
    ]


def replicas(made: Simulation) -> int:
    return int(made.world.get("Deployment", "default", "web").manifest["spec"]["replicas"])  # type: ignore[union-attr]


def conditions(made: Simulation) -> dict[str, tuple[str, str]]:
    return {
        item["type"]: (item["status"], item["reason"])
        for item in status(made, "HorizontalPodAutoscaler", "hpa")["conditions"]
    }


def test_it_follows_the_load_up_and_after_five_minutes_down() -> None:
    made = scaled("0s cpu=400m; 2m cpu=400m; 2m cpu=2; 6m cpu=2; 6m cpu=400m", seconds=200)
    # 500m a pod, 80%: two cpus are five pods; no more than four at a time of one.
    assert sizes(made) == [
        ("00:02:30", f"New size: 4; reason: {CPU} above target"),
        ("00:02:45", f"New size: 5; reason: {CPU} above target"),
    ]
    said = status(made, "HorizontalPodAutoscaler", "hpa")
    assert (said["currentReplicas"], said["desiredReplicas"]) == (5, 5)
    assert said["currentMetrics"][0]["resource"]["current"] == {
        "averageUtilization": 80,
        "averageValue": "400m",
    }
    assert conditions(made)["ScalingActive"] == ("True", "ValidMetricFound")
    advance(made, 400)
    # The load went at 00:06:30; the highest of five minutes counts.
    assert sizes(made) == []
    assert conditions(made)["AbleToScale"] == ("True", "ScaleDownStabilized")
    advance(made, 120)
    assert [said for _, said in sizes(made)] == ["New size: 1; reason: All metrics below target"]
    assert replicas(made) == 1


def test_a_tenth_is_tolerated() -> None:
    assert sizes(scaled("0s cpu=439m")) == []
    assert sizes(scaled("0s cpu=445m"))[0][1].startswith("New size: 2")
    # Nine tenths of ten pods are nine: 72 per cent of 80.
    assert sizes(scaled("0s cpu=3640m", replicas=10)) == []


def test_the_bounds_hold_and_the_conditions_tell_which() -> None:
    made = scaled("0s cpu=100", most=3)
    assert replicas(made) == 3 and conditions(made)["ScalingLimited"] == ("True", "TooManyReplicas")
    made = scaled("0s cpu=0", replicas=2, least=2)
    assert replicas(made) == 2 and conditions(made)["ScalingLimited"] == ("True", "TooFewReplicas")
    made = scaled("0s cpu=0", replicas=12, seconds=0)
    assert sizes(made)[0][1] == "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"
    made = scaled("0s cpu=0", replicas=1, least=4, seconds=0)
    assert sizes(made)[0][1] == "New size: 4; reason: Current number of replicas below Spec.MinReplicas"


def test_policies_say_how_fast() -> None:
    slowly = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}
    made = scaled("0s cpu=4", behavior=slowly, seconds=240)
    assert [at for at, _ in sizes(made)] == ["00:00:45", "00:01:45", "00:02:45", "00:03:45"]
    assert conditions(made)["ScalingLimited"] == ("True", "ScaleUpLimit")
    never = {"scaleDown": {"selectPolicy": "Disabled"}}
    assert replicas(scaled("0s cpu=0", replicas=5, behavior=never)) == 5
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    assert replicas(scaled("0s cpu=0", replicas=5, behavior=at_once, seconds=30)) == 1
    later = {"scaleUp": {"stabilizationWindowSeconds": 300}}
    assert replicas(scaled("0s cpu=400m; 1m cpu=400m; 1m cpu=4", behavior=later, seconds=180)) == 1
    assert replicas(scaled("0s cpu=400m; 1m cpu=400m; 1m cpu=4", seconds=180)) > 1


def test_amounts_and_containers_are_targets_too() -> None:
    amount = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
    }
    assert replicas(scaled("0s memory=350Mi", metric=amount)) == 4
    target = {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}
    made = scaled("0s c/cpu=1", metric={"type": "ContainerResource", "containerResource": target})
    assert replicas(made) == 4
    assert "cpu container resource utilization (percentage of request)" in sizes(made)[0][1]


def test_what_has_no_metrics_is_told() -> None:
    made = cluster()
    write(made, autoscaler())
    advance(made, 0)
    assert events(made, "HorizontalPodAutoscaler") == [
        ("00:00:30", "FailedGetScale", 'deployments.apps "web" not found')
    ]
    write(made, deployment("web", cpu=None))
    advance(made, 60)
    said = events(made, "HorizontalPodAutoscaler")
    assert ("FailedGetResourceMetric") in [item[1] for item in said]
    assert any(
        item[2].startswith(
            "failed to get cpu utilization: missing request for cpu in container c of Pod web-"
        )
        for item in said
    )
    metric = {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
    }
    made = scaled("0s cpu=1", metric=metric, seconds=30)
    assert conditions(made)["ScalingActive"] == ("False", "FailedGetExternalMetric")
    made = scaled("0s cpu=1", replicas=0)
    assert conditions(made)["ScalingActive"] == ("False", "ScalingDisabled") and replicas(made) == 0


def test_a_cluster_that_stopped_in_between_goes_on_as_if_it_had_not() -> None:
    # Twenty seconds after the load went: what was recommended within five minutes still counts.
    made = scaled("0s cpu=100m; 18m cpu=4; 18m cpu=0", seconds=1100)
    other = reborn(made)
    for one in (made, other):
        one.drain_outcomes()
        advance(one, 1200)
    assert made.drain_outcomes() == other.drain_outcomes() and state(made) == state(other)


def test_a_curve_is_straight_between_its_points_and_may_begin_anew() -> None:
    load = load_from(
        "from 2026-01-01T00:00:00Z\nevery 1h\neach\n10m cpu=1 memory=1Gi\n20m cpu=2\n20m web/cpu=500m"
    )
    start = load.start_ns or 0

    def cpu(minutes: float) -> float:
        return load.at(start + int(minutes * 60e9), 0)["", "cpu"] / 1e9

    assert [cpu(at) for at in (0, 10, 15, 20, 40, 75)] == [1, 1, 1.5, 2, 2, 1.5]
    assert load.each and load.at(start, 0)["web", "cpu"] == 500_000_000


@pytest.mark.parametrize(("text", "said"), table(__file__, "a_curve_that_cannot_be_read_says_where"))
def test_a_curve_that_cannot_be_read_says_where(text: str, said: str) -> None:
    with pytest.raises(LoadError) as error:
        load_from(text)
    assert str(error.value) == said
