"""Clusters of today for the tests of what acts in them."""

from typing import Any

from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.releases import OLDEST
from scheduler_core.sim.changes import EventRecorded, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.whatif.random_clusters import node

NOW = OLDEST
START = "2026-01-01T00:00:30Z"
SECOND_NS = 10**9


def cluster(n_nodes: int = 1, start: str = START) -> Simulation:
    made = Simulation(None, seed=1, release=NOW, start_ns=parse_time_ns(start))
    for number in range(n_nodes):
        made.submit(WriteObject(prepare(node(f"n{number + 1}", cpu="64", memory="64Gi", pods="300"))))
    return made


def manifest(kind: str, name: str, version: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    whole = {"name": name, "namespace": "default", "uid": f"{name}-uid", "creationTimestamp": START, **meta}
    return prepare({"apiVersion": version, "kind": kind, "metadata": whole, "spec": spec})


def template(
    app: str, *, cpu: str | None = "500m", annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    if cpu is not None:
        container["resources"] = {"requests": {"cpu": cpu, "memory": "100Mi"}}
    meta = {"labels": {"app": app}, **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def deployment(name: str, replicas: int = 1, cpu: str | None = "500m", **meta: Any) -> dict[str, Any]:
    pods = {"selector": {"matchLabels": {"app": name}}, "template": template(name, cpu=cpu)}
    return manifest("Deployment", name, "apps/v1", {"replicas": replicas, **pods}, **meta)


def job(
    name: str, annotations: dict[str, str] | None = None, *, on_job: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    made = template(name, annotations=annotations, restartPolicy="Never")
    whole = {"completions": 1, "template": made, **spec}
    return manifest("Job", name, "batch/v1", whole, **({"annotations": on_job} if on_job else {}))


def advance(made: Simulation, seconds: int) -> str:
    return made.advance(seconds * SECOND_NS).message


def status(made: Simulation, kind: str, name: str) -> dict[str, Any]:
    stored = made.world.get(kind, "default", name)
    assert stored is not None
    return dict(stored.manifest.get("status") or {})


def names(made: Simulation, kind: str) -> list[str]:
    return [str(stored.manifest["metadata"]["name"]) for stored in made.world.all(kind)]


def events(made: Simulation, *kinds: str) -> list[tuple[str, str, str]]:
    """(time, reason, message) of the events about objects of some kinds since the last look."""
    told = [item.manifest for item in made.drain_outcomes() if isinstance(item, EventRecorded)]
    return [
        (str(event["lastTimestamp"])[11:19], event["reason"], event["message"])
        for event in told
        if event["involvedObject"]["kind"] in kinds
    ]
