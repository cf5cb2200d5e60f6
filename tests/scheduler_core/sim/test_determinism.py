"""One seed, one course of events, byte for byte: also in another process and with other hash seeds."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from scheduler_core.releases import RELEASES
from scheduler_core.sim.changes import DeleteObject, SetConfiguration, WriteObject
from scheduler_core.sim.controllers.device_driver import DEVICES
from scheduler_core.sim.options import FaultOptions, SimulationOptions
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.sim.builders import (
    PERMIT_CONFIG,
    SECOND_NS,
    START_NS,
    claim,
    make_budget,
    make_node,
    make_pod,
    make_priority_class,
    make_workload,
    set_ready,
    storage_class,
    write,
)
from tests.scheduler_core.stored import prepare

ROOT = Path(__file__).parents[3]
FAULTS = FaultOptions(
    slow_binds_percent=20,
    slow_bind_ms=1_500,
    failed_binds_percent=10,
    lost_events_percent=10,
    relist_ms=9_000,
)


HASH_SEEDS = ("0", "1", "4242", "7", "99", "1001")
between = pytest.mark.nightly("scheduler_core/releases/", "scheduler_core/sim/")


def eventful_cluster(seed: int, release: str = "1.36") -> Simulation:
    """Every controller at work, preemption, volumes, devices, nodes that fail and return, faults on the way."""
    simulation = Simulation(
        PERMIT_CONFIG,
        seed=seed,
        start_ns=START_NS,
        options=SimulationOptions(faults=FAULTS, default_tolerations=True),
        release=RELEASES[release],
    )
    write(simulation, make_priority_class("high", 1000), storage_class("fast"))
    for index in range(8):
        node = make_node(f"node-{index}", labels={"topology.kubernetes.io/zone": f"z{index % 3}"})
        if index % 2:
            node["metadata"]["annotations"] = {DEVICES: "gpu=2,mig=1"}
        write(simulation, node)
    exactly = {"deviceClassName": "gpu.playground.dev"}
    of_gpu = {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    write(simulation, prepare({**head, "metadata": {"name": "gpu"}, "spec": of_gpu}))
    claims = [{"name": "device", "resourceClaimTemplateName": "gpu"}]
    write(simulation, make_workload("Deployment", "train", replicas=5, pod={"resourceClaims": claims}))
    write(simulation, make_budget("web", "web", minAvailable="50%"))
    spread = {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    write(
        simulation,
        make_workload("Deployment", "web", replicas=12, cpu="1", pod={"topologySpreadConstraints": [spread]}),
        make_workload("StatefulSet", "db", replicas=3, cpu="500m"),
        make_workload("DaemonSet", "agent", cpu="100m"),
        make_workload(
            "Job", "sum", completions=6, parallelism=3, annotations={"playground.dev/duration": "7s"}
        ),
        make_workload("ReplicationController", "old", replicas=4, cpu="1"),
    )
    for index in range(4):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{index}"}}
        write(simulation, claim(f"claim-{index}", "fast"), make_pod(f"with-volume-{index}", volumes=[volume]))
    simulation.run_until_idle(max_cycles=400)
    write(
        simulation,
        make_workload("ReplicaSet", "urgent", replicas=9, cpu="2", pod={"priorityClassName": "high"}),
    )
    simulation.run_until_idle(max_cycles=400)
    set_ready(simulation, "node-1", "Unknown")
    set_ready(simulation, "node-2", "False")
    simulation.advance(320 * SECOND_NS, max_cycles=400)
    simulation.submit(DeleteObject("Node", "", "node-3"))
    write(simulation, make_workload("Deployment", "web", replicas=9, cpu="1", image="b"))
    simulation.submit(DeleteObject("ReplicationController", "default", "old"))
    simulation.advance(60 * SECOND_NS, max_cycles=400)
    simulation.submit(SetConfiguration(None))
    set_ready(simulation, "node-1", "True")
    simulation.submit(WriteObject(make_node("node-3", cpu="8")))
    simulation.run_until_idle(max_cycles=400)
    return simulation


def course(simulation: Simulation) -> dict[str, str]:
    """Digests of everything that came out of a simulation."""
    cycles = simulation.drain_cycles()
    parts = {
        "state": json.dumps(simulation.checkpoint()).encode(),
        "outcomes": json.dumps([asdict(outcome) for outcome in simulation.drain_outcomes()]).encode(),
        "cycles": b"".join(trace.to_bytes() for trace in cycles),
        "moves": repr(simulation.drain_moves()).encode(),
        "queue": json.dumps(simulation.queue_view()).encode(),
    }
    return {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}


def test_the_course_of_events_holds_what_it_is_to_be_proof_of() -> None:
    simulation = eventful_cluster(5)
    kinds = {outcome.reason for outcome in simulation.drain_outcomes() if hasattr(outcome, "reason")}
    assert {
        "bound",
        "preempted",
        "started",
        "finished",
        "terminated",
        "taint eviction",
        "claim bound",
    } <= kinds
    outcomes = [trace.outcome for trace in simulation.drain_cycles()]
    assert {"bound", "preempting", "unschedulable", "error"} <= set(outcomes)


@pytest.mark.parametrize(
    ("hash_seed", "release"),
    [
        pytest.param(hash_seed, release, id=release, marks=between if place < len(RELEASES) - 1 else ())
        for place, (hash_seed, release) in enumerate(zip(HASH_SEEDS, RELEASES, strict=True))
    ],
)
def test_another_process_with_another_hash_seed_goes_the_same_course(hash_seed: str, release: str) -> None:
    script = (
        "import json; from tests.scheduler_core.sim.test_determinism import course, eventful_cluster; "
        f"print(json.dumps(course(eventful_cluster(5, {release!r}))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == course(eventful_cluster(5, release))


def test_another_seed_goes_another_course() -> None:
    assert course(eventful_cluster(5))["state"] != course(eventful_cluster(6))["state"]
