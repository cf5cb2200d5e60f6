"""What controllers tell of what they do, in upstream's words, in clusters made since they do."""

from collections import Counter
from typing import Any

from scheduler_core.objects.defaults import prepare
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.changes import EventRecorded, WriteObject
from scheduler_core.sim.controllers.base import MOST_TOLD
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.whatif.random_clusters import node

NOW = OLDEST


def workload(kind: str, replicas: int = 2, image: str = "a", **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        template["metadata"]["annotations"] = {"playground.dev/duration": "5s"}
        version, own = "batch/v1", {"completions": replicas, "parallelism": replicas, "template": template}
    else:
        version = "v1" if kind == "ReplicationController" else "apps/v1"
        selector = labels if version == "v1" else {"matchLabels": labels}
        own = {"selector": selector, "template": template}
        if kind != "DaemonSet":
            own["replicas"] = replicas
    meta = {"name": "web", "namespace": "default", "uid": "web-uid"}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": own | spec}


def simulation(release: Release = NOW) -> Simulation:
    made = Simulation(None, seed=1, release=release)
    for name in ("n1", "n2"):
        made.submit(WriteObject(prepare(node(name, cpu="64", pods="300"))))
    return made


def told(made: Simulation, *changes: Any) -> list[tuple[str, str, str, str]]:
    """(kind, reason, message, component) of the controllers' events."""
    for change in changes:
        made.submit(change)
    made.run_until_idle()
    events = [item.manifest for item in made.drain_outcomes() if isinstance(item, EventRecorded)]
    return [
        (event["involvedObject"]["kind"], event["reason"], event["message"], event["source"]["component"])
        for event in events
        if event["source"]["component"].endswith("-controller")
    ]


def names(made: Simulation) -> list[str]:
    return [stored.typed.name for stored in made.world.all("Pod")]


def test_of_many_pods_so_many_are_told_as_upstreams_filter_lets_through() -> None:
    made = simulation()
    found = told(made, WriteObject(prepare(workload("ReplicaSet", 60))))
    assert Counter(item[1] for item in found) == {"SuccessfulCreate": MOST_TOLD}
    assert len(names(made)) == 60
