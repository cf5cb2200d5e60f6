"""PodDisruptionBudgets are computed from pods, unless their manifest says otherwise.

Preemption beside the scheduling cycle: who is held meanwhile, and what a slow or refusing API server brings.
"""

import pytest

from scheduler_core.releases import RELEASES, Release
from scheduler_core.sim.changes import EventRecorded
from scheduler_core.sim.options import FaultOptions
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    make_budget,
    make_cluster,
    make_node,
    make_pod,
    make_workload,
    pod_named,
    reborn,
    state,
    status_of,
    write,
)
from tests.tables import table


@pytest.mark.parametrize(("rule", "desired", "allowed"), table(__file__, "a_budget_counts_its_pods"))
def test_a_budget_counts_its_pods(rule: dict[str, object], desired: int, allowed: int) -> None:
    simulation = make_cluster(
        2, make_workload("Deployment", "web", replicas=4), make_budget("web", "web", **rule)
    )
    simulation.run_until_idle()
    status = status_of(simulation, "PodDisruptionBudget", "web")
    assert status == {
        "currentHealthy": 4,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": 4,
        "observedGeneration": 1,
    }


def test_a_budget_without_a_rule_expects_and_allows_nothing() -> None:
    simulation = make_cluster(1, make_workload("Deployment", "web", replicas=2), make_budget("web", "web"))
    simulation.run_until_idle()
    status = status_of(simulation, "PodDisruptionBudget", "web")
    assert (status["expectedPods"], status["currentHealthy"], status["disruptionsAllowed"]) == (0, 2, 0)


def test_a_status_in_the_manifest_stands() -> None:
    budget = {**make_budget("web", "web", minAvailable=1), "status": {"disruptionsAllowed": 7}}
    simulation = make_cluster(1, budget, make_pod("web", labels={"app": "web"}))
    simulation.run_until_idle()
    assert status_of(simulation, "PodDisruptionBudget", "web") == {"disruptionsAllowed": 7}


def test_percentages_of_pods_without_a_controller_allow_nothing() -> None:
    simulation = make_cluster(
        1, make_budget("web", "web", maxUnavailable="50%"), make_pod("a", labels={"app": "web"})
    )
    simulation.run_until_idle()
    assert status_of(simulation, "PodDisruptionBudget", "web")["disruptionsAllowed"] == 0


HELD = "waiting for the preemption for this pod to be finished"
ALL = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)


def full_cluster(release: Release, **faults: int) -> Simulation:
    """One node that two lesser pods fill, and a pod for which both have to go."""
    low = [make_pod(f"low-{place}", cpu="2", terminationGracePeriodSeconds=1) for place in range(2)]
    cluster = make_cluster(1, *low, release=release, faults=FaultOptions(**faults))
    cluster.run_until_idle()
    cluster.drain_outcomes()
    write(cluster, make_pod("high", cpu="4", priority=1000))
    return cluster


def reasons(cluster: Simulation) -> list[str]:
    return [item.manifest["reason"] for item in cluster.drain_outcomes() if isinstance(item, EventRecorded)]


@ALL
def test_a_preemptor_is_held_until_its_evictions_are_asked_for(release: Release) -> None:
    cluster = full_cluster(release, slow_evictions_percent=100, slow_eviction_ms=20_000)
    cluster.step()
    assert reasons(cluster) == ["FailedScheduling"]
    # Something that would make it worth a try: the gate still holds it.
    write(cluster, make_node("node-1", cpu="4"))
    [held] = cluster.queue_view()["gated"]
    assert (held["pod"], held["reason"]) == ("default/high", HELD)
    again = reborn(cluster)
    assert state(again) == state(cluster)
    for it in (cluster, again):
        it.run_until_idle()
        assert it.now_ns >= cluster.clock.now_ns
        high = pod_named(it, "high")
        assert high is not None and high.node_name == "node-0"
        assert pod_named(it, "low-0") is None
    assert state(again) == state(cluster)


def test_a_preemptor_whose_evictions_are_refused_is_tried_again_at_once() -> None:
    cluster = full_cluster(
        RELEASES["1.36"],
        slow_evictions_percent=100,
        slow_eviction_ms=500,
        failed_evictions_percent=100,
    )
    cluster.step()
    report = cluster.step()
    assert report.cycles == 1
    assert pod_named(cluster, "low-0") is not None
    assert [trace.pod for trace in cluster.drain_cycles()][-1] == "default/high"


@ALL
@pytest.mark.parametrize("beside", [True, False])
def test_a_cycle_takes_nominations_back_as_its_record_says(release: Release, beside: bool) -> None:
    """With every victim leaving already nothing is done beside the cycle, so others keep their nomination."""
    release = release.with_gates({"SchedulerAsyncPreemption": beside})
    low = make_pod("low", cpu="4", terminationGracePeriodSeconds=60)
    cluster = make_cluster(1, low, release=release)
    cluster.run_until_idle()
    write(cluster, make_pod("middle", cpu="4", priority=100))
    cluster.step()
    middle = pod_named(cluster, "middle")
    assert middle is not None and middle.nominated_node_name == "node-0"
    cluster.drain_cycles()
    write(cluster, make_pod("high", cpu="4", priority=1000))
    cluster.step()
    [trace] = [trace for trace in cluster.drain_cycles() if trace.pod == "default/high"]
    told = trace.explain()["preemption"]
    assert told["victims"] == ["default/low"]
    middle = pod_named(cluster, "middle")
    assert middle is not None
    assert told["clearedNominations"] == ([] if beside else ["default/middle"])
    assert middle.nominated_node_name == ("node-0" if beside else "")
