"""Nodes fail, come back, are cordoned and go; pods follow."""

import json
import re
from typing import Any

import pytest

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.controllers.node_lifecycle import CRASHES
from scheduler_core.sim.kubelet import ready_status
from scheduler_core.sim.load import LOAD
from scheduler_core.sim.simulation import Simulation
from scheduler_core.validation.kinds import validate
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
    simulation.advance(29 * SECOND_NS)
    assert pod_named(simulation, "usual") is not None
    simulation.advance(SECOND_NS)
    assert pod_named(simulation, "usual") is None and pod_named(simulation, "slow") is not None
    simulation.run_until_idle()
    assert pod_named(simulation, "slow") is None and simulation.now_ns == START_NS + 90 * SECOND_NS
    write(simulation, make_pod("for-ever", terminationGracePeriodSeconds=2**62))
    simulation.run_until_idle()
    simulation.submit(DeleteObject("Pod", "default", "for-ever"))
    assert pod_named(simulation, "for-ever") is not None


def crashing(text: str = "cpu=90% for 7m") -> dict[str, Any]:
    node = make_node("node-0")
    node["metadata"]["annotations"] = {CRASHES: text}
    return node


def test_a_node_crashes_when_its_pods_use_too_much_and_comes_back() -> None:
    """It is silent for as long as it says; its pods wait there, and one that tolerates less is evicted."""
    node = crashing()
    cpu = quantity_from(node["status"]["allocatable"]["cpu"]).milli_value()
    pods = [make_pod(name, annotations={LOAD: f"0s cpu={cpu * 45 // 100}m"}) for name in ("stays", "other")]
    simulation = make_cluster(0, node, *pods)
    simulation.advance(15 * SECOND_NS)
    assert ready_status(simulation.world.node("node-0")) == "Unknown"
    assert "node.kubernetes.io/unreachable:NoExecute" in taints_of(simulation, "node-0")
    again = Simulation.restore(json.loads(json.dumps(simulation.checkpoint())))
    for one in (simulation, again):
        one.submit(DeleteObject("Pod", "default", "other", 0))
        one.advance(7 * 60 * SECOND_NS)
        assert ready_status(one.world.node("node-0")) == "True" and taints_of(one, "node-0") == []
        one.advance(60 * SECOND_NS)
        assert ready_status(one.world.node("node-0")) == "True", "45 % is less than 90 %"
    assert again.checkpoint() == simulation.checkpoint()


def test_a_node_that_crashes_for_ever_lets_a_run_come_to_rest() -> None:
    pod = make_pod("hungry", annotations={LOAD: "0s cpu=1000"})
    simulation = make_cluster(0, crashing("cpu=1%"), pod)
    assert simulation.run_until_idle().stop == "idle"
    simulation.advance(3600 * SECOND_NS)
    assert simulation.run_until_idle().stop in ("idle", "acting")


@pytest.mark.parametrize("text", ["", "cpu=0%", "memory=90%", "cpu=98% for ever", "cpu=98% for 0s"])
def test_an_annotation_that_says_nothing_of_crashes_is_refused(text: str) -> None:
    with pytest.raises(InvalidObject, match=re.escape(f"annotations[{CRASHES}]")):
        validate(crashing(text))
