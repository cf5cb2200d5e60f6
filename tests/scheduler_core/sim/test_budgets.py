"""PodDisruptionBudgets are computed from pods, unless their manifest says otherwise."""

from __future__ import annotations

import pytest

from tests.scheduler_core.sim.builders import (
    make_budget,
    make_cluster,
    make_pod,
    make_workload,
    pods_of,
    set_ready,
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


def test_a_budget_follows_pods_and_owners() -> None:
    simulation = make_cluster(
        1, make_workload("StatefulSet", "db", replicas=3), make_budget("db", "db", maxUnavailable=1)
    )
    simulation.run_until_idle()
    set_ready(simulation, "node-0", "False")
    assert status_of(simulation, "PodDisruptionBudget", "db")["disruptionsAllowed"] == 0
    set_ready(simulation, "node-0", "True")
    write(simulation, make_workload("StatefulSet", "db", replicas=1))
    simulation.run_until_idle()
    assert status_of(simulation, "PodDisruptionBudget", "db")["expectedPods"] == 1


def test_a_status_in_the_manifest_stands() -> None:
    budget = {**make_budget("web", "web", minAvailable=1), "status": {"disruptionsAllowed": 7}}
    simulation = make_cluster(1, budget, make_pod("web", labels={"app": "web"}))
    simulation.run_until_idle()
    assert status_of(simulation, "PodDisruptionBudget", "web") == {"disruptionsAllowed": 7}


def test_a_status_of_our_own_is_known_again_wherever_it_goes() -> None:
    simulation = make_cluster(1, make_budget("web", "web", minAvailable=1))
    stored = simulation.world.get("PodDisruptionBudget", "default", "web")
    assert stored is not None and stored.manifest["status"]["disruptionsAllowed"] == 0
    other = make_cluster(1, stored.manifest, *(make_pod(name, labels={"app": "web"}) for name in ("a", "b")))
    other.run_until_idle()
    assert status_of(other, "PodDisruptionBudget", "web")["disruptionsAllowed"] == 1


def test_percentages_of_pods_without_a_controller_allow_nothing() -> None:
    simulation = make_cluster(
        1, make_budget("web", "web", maxUnavailable="50%"), make_pod("a", labels={"app": "web"})
    )
    simulation.run_until_idle()
    assert status_of(simulation, "PodDisruptionBudget", "web")["disruptionsAllowed"] == 0


def test_preemption_spares_what_a_budget_covers() -> None:
    simulation = make_cluster(
        1,
        make_workload("ReplicaSet", "kept", replicas=1, cpu="2"),
        make_workload("ReplicaSet", "spare", replicas=1, cpu="2"),
        make_budget("kept", "kept", minAvailable=1),
    )
    simulation.run_until_idle()
    write(simulation, make_pod("urgent", cpu="2", priority=1000))
    simulation.run_until_idle()
    assert [bool(pod.node_name) for pod in pods_of(simulation, "kept")] == [True]
    assert [bool(pod.node_name) for pod in pods_of(simulation, "spare")] == [False]
