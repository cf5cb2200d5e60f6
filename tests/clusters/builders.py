"""Builders for clusters, nodes and pods, and a worker that runs in the test's own thread."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from playground.clusters.drive.advance import AdvanceReport, Visit, advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, Manifest, Node, Pod, PodDisruptionBudget, PriorityClass, Run
from playground.clusters.objects.apply import apply_documents
from playground.engine.batch import Budget, Engine
from tests.manifests import make_object

START_NS = 1_800_000_000_000_000_000


Labels = dict[str, str] | None


def make_node(name: str = "n1", cpu: str = "4", labels: Labels = None, **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return make_object("v1", "Node", name, labels=labels, spec=spec, status=status)


def make_pod(
    name: str = "p1", cpu: str = "1", namespace: str = "default", labels: Labels = None, **spec: Any
) -> dict[str, Any]:
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container]} | spec
    return make_object("v1", "Pod", name, namespace=namespace, labels=labels, spec=spec)


def make_cluster(*objects: dict[str, Any], name: str = "test") -> Cluster:
    cluster = create_cluster(name=name, seed=7, start_ns=START_NS, kubernetes_release="1.34")
    if objects:
        apply_documents(cluster=cluster, objects=objects)
    return cluster


def work(cluster: Cluster, memory: EngineMemory | None = None, max_cycles: int = 7) -> str:
    """One visit of a worker in this thread, in batches of so many cycles; the state it reports."""
    visit = Visit(wall_s=60, batch=Budget(wall_s=60, max_cycles=max_cycles))
    report = advance(cluster_id=cluster.pk, memory=memory or EngineMemory(), visit=visit)
    cluster.refresh_from_db()
    assert report.state in ("driven", "idle"), cluster.last_error
    return report.state


def run(cluster: Cluster, until: str = "idle", **how: Any) -> Run:
    """Ask for a run and work it off."""
    asked = request_run(cluster=cluster, until=until)
    work(cluster, **how)
    asked.refresh_from_db()
    assert asked.state == "done", asked.message
    return asked


class Worker:
    """One worker process: its own memory, no broker; `fail` makes a batch raise, `during` is called within one."""

    def __init__(self, holder: str = "worker-1") -> None:
        self.holder = holder
        self.fail = ""
        self.during: Callable[[], Any] | None = None
        self.memory = EngineMemory()
        self.visit = Visit(wall_s=60, batch=Budget(wall_s=60, max_cycles=4))

    def advance(self, cluster: Cluster, **changed: Any) -> AdvanceReport:
        with self._meddled():
            report = advance(
                cluster_id=cluster.pk,
                holder=self.holder,
                memory=self.memory,
                **({"visit": self.visit} | changed),
            )
        if Cluster.objects.filter(pk=cluster.pk).exists():
            cluster.refresh_from_db()
        return report

    @contextmanager
    def _meddled(self) -> Iterator[None]:
        drive = Engine.drive

        def meddled(engine: Engine, *args: Any, **named: Any) -> Any:
            if self.fail:
                raise RuntimeError(self.fail)
            result = drive(engine, *args, **named)
            if self.during is not None and result.cycles:
                during, self.during = self.during, None
                during()
            return result

        if not (self.fail or self.during):
            yield
            return
        with mock.patch.object(Engine, "drive", meddled):
            yield


def stored(cluster: Cluster) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The objects the rows hold, but for Events, which are no entries."""
    models: Iterable[Any] = (Node, Pod, PriorityClass, PodDisruptionBudget, Manifest)
    rows = [row for model in models for row in model.objects.filter(cluster=cluster)]
    assert all(str(row.resource_version) == row.manifest["metadata"]["resourceVersion"] for row in rows)
    return {(row.manifest["kind"], getattr(row, "namespace", ""), row.name): row.manifest for row in rows}


def same_objects(left: Any, right: Any) -> bool:
    """Equality as JSON, so that nothing hides in types."""

    def text(objects: Any) -> str:
        return json.dumps({"/".join(key): value for key, value in objects.items()}, sort_keys=True)

    return text(left) == text(right)


def with_programs(*objects: dict[str, Any]) -> Cluster:
    """Two nodes of a group that may have one to three; its autoscaler wants one a minute after it is idle."""
    autoscaler = {
        "options": {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "30s"},
        "nodeGroups": [{"name": "web", "minSize": 1, "maxSize": 3}],
    }
    annotations = {"playground.dev/cluster-autoscaler": json.dumps(autoscaler)}
    system = {"name": "kube-system", "annotations": annotations}
    nodes = [make_node(name) for name in ("n1", "n2")]
    for node in nodes:
        node["metadata"]["labels"] = {"pool": "web"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": system}
    return make_cluster(*nodes, namespace, *objects, name="programs")
