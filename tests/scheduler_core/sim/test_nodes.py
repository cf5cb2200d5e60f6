"""Nodes fail, come back, are cordoned and go; pods follow."""

from __future__ import annotations

from scheduler_core.sim.changes import DeleteObject
from tests.scheduler_core.sim.builders import (
    SECOND_NS,
    START_NS,
    make_cluster,
    make_node,
    make_pod,
    pod_named,
    write,
)


def taints_of(simulation, name):  # type: ignore[no-untyped-def]
    return sorted(str(taint) for taint in simulation.world.node(name).taints)


def test_pressure_and_cordon_keep_pods_off_without_evicting_any() -> None:
    node = make_node("node-0", unschedulable=True)
    node["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": "True"},
        {"type": "DiskPressure", "status": "False"},
    ]
    simulation = make_cluster(0, node)
    assert taints_of(simulation, "node-0") == [
        "node.kubernetes.io/memory-pressure:NoSchedule",
        "node.kubernetes.io/unschedulable:NoSchedule",
    ]
    write(simulation, make_node("node-0"))
    assert taints_of(simulation, "node-0") == []


def test_deleting_waits_for_the_grace_period_of_the_pod() -> None:
    simulation = make_cluster(1, make_pod("slow", terminationGracePeriodSeconds=90), make_pod("usual"))
    simulation.run_until_idle()
    for name in ("slow", "usual"):
        simulation.submit(DeleteObject("Pod", "default", name))
    simulation.advance(31 * SECOND_NS)
    assert pod_named(simulation, "usual") is None and pod_named(simulation, "slow") is not None
    simulation.run_until_idle()
    assert pod_named(simulation, "slow") is None and simulation.now_ns == START_NS + 90 * SECOND_NS
