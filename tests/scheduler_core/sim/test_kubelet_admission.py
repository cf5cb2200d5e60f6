"""Kubelets look at pods before they start them, in clusters made since they do."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.objects.defaults import prepare
from scheduler_core.releases import OLDEST
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.whatif.random_clusters import node, pod

NOW = OLDEST


def started(*manifests: dict[str, Any], release: Any = NOW) -> Simulation:
    simulation = Simulation(None, seed=1, release=release)
    for manifest in manifests:
        simulation.submit(WriteObject(prepare(manifest)))
    simulation.run_until_idle()
    return simulation


def status(simulation: Simulation, name: str) -> dict[str, Any]:
    stored = simulation.world.get("Pod", "default", name)
    assert stored is not None
    return dict(stored.manifest["status"])


TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}


@pytest.mark.parametrize(
    ("nodes", "late", "reason", "said"),
    [
        (node("n1", cpu="4"), pod("late", on="n1", requests={"cpu": "50"}), "OutOfcpu",
         "Node didn't have enough resource: cpu, requested: 50000, used: 1000, capacity: 4000"),
        (node("n1", memory="1Gi"), pod("late", on="n1", requests={"memory": "1Gi"}), "OutOfmemory",
         "Node didn't have enough resource: memory, requested: 1073741824, used: 536870912, capacity: 1073741824"),
        (node("n1", pods="1"), pod("late", on="n1"), "OutOfpods",
         "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"),
        (node("n1"), pod("late", on="n1", nodeSelector={"disk": "ssd"}), "NodeAffinity",
         "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"),
        (node("n1"), pod("late", on="n1", ports=[{"containerPort": 1, "hostPort": 80}]), "NodePorts",
         "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"),
        (node("n1", spec=TAINTED), pod("late", on="n1"), "TaintToleration",
         "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"),
    ],
)  # fmt: skip
def test_a_pod_that_does_not_fit_its_node_fails_in_upstreams_words(
    nodes: dict[str, Any], late: dict[str, Any], reason: str, said: str
) -> None:
    early = pod("early", on="n1", requests={"cpu": "1", "memory": "512Mi"},
                ports=[{"containerPort": 1, "hostPort": 80}],
                tolerations=[{"operator": "Exists"}])  # fmt: skip
    late["status"] = {}
    early["status"] = {}
    now = started(nodes, early, late)
    assert status(now, "early")["phase"] == "Running"
    found = status(now, "late")
    assert (found["phase"], found["reason"], found["message"]) == (
        "Failed",
        reason,
        f"Pod was rejected: {said}",
    )
    [event] = [
        item.manifest for item in now.drain_outcomes() if getattr(item, "manifest", {}).get("kind") == "Event"
    ]
    assert (event["reason"], event["message"], event["type"]) == (reason, said, "Warning")


def test_room_that_came_free_is_given_again_and_a_restored_kubelet_knows_what_is_used() -> None:
    small = {**pod("a", on="n1", requests={"cpu": "3"}), "status": {}}
    simulation = started(node("n1", cpu="4"), small)
    again = Simulation.restore(simulation.checkpoint())
    for each in (simulation, again):
        each.submit(WriteObject(prepare({**pod("b", on="n1", requests={"cpu": "2"}), "status": {}})))
        each.run_until_idle()
        assert status(each, "b")["reason"] == "OutOfcpu"
        world = each.world
        world.remove("Pod", "default", "a", "gone")
        each.submit(WriteObject(prepare({**pod("c", on="n1", requests={"cpu": "2"}), "status": {}})))
        each.run_until_idle()
        assert status(each, "c")["phase"] == "Running"


def test_what_our_scheduler_places_always_starts() -> None:
    pods = [pod(f"p{number}", requests={"cpu": "500m"}) for number in range(12)]
    simulation = started(node("n1", cpu="2", pods="9"), node("n2", cpu="3", pods="9"), *pods)
    phases = [status(simulation, f"p{number}")["phase"] for number in range(12)]
    assert phases.count("Running") == 10 and "Failed" not in phases
