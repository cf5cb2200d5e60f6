"""An operator made with kopf, against a real server: it creates, follows changes, and cleans up behind a finalizer."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kopf
import pytest
import requests

from playground.clusters.custom_kinds import table_of
from playground.clusters.models import Cluster, ForeignDecision, Pod
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.queries import get_object, list_objects
from playground.clusters.objects.write import create_object, delete_object, patch_object
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import eventually
from tests.manifests import deployment, make_object
from tests.tables import table
from tests.web.test_schedulers_page import copied

pytestmark = pytest.mark.any_database

GROUP = "gardens.example"
DEFINITION: dict[str, Any] = table(__file__, "DEFINITION")
FINALIZER = "gardens.example/compost"


def gardener(server: str, composted: list[str]) -> kopf.OperatorRegistry:
    """An operator that keeps a Deployment for each Bed, as large as the bed's plants."""
    import kubernetes

    registry = kopf.OperatorRegistry()
    configuration = kubernetes.client.Configuration()
    configuration.host = server

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=server)

    @kopf.on.startup(registry=registry)
    def startup(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.persistence.finalizer = FINALIZER
        settings.networking.error_backoffs = [0.1]

    def apps() -> Any:
        return kubernetes.client.AppsV1Api(kubernetes.client.ApiClient(configuration))

    @kopf.on.create(GROUP, "v1", "beds", registry=registry, id="create")
    def create(body: kopf.Body, spec: kopf.Spec, name: str, **_: Any) -> dict[str, Any]:
        child = deployment(name, spec["plants"])
        kopf.adopt(child, owner=body)
        apps().create_namespaced_deployment("default", child, _preload_content=False)
        kopf.info(body, reason="Planted", message=f"{spec['plants']} of them")
        return {"planted": spec["plants"]}

    @kopf.on.field(GROUP, "v1", "beds", field="spec.plants", registry=registry)
    def replant(old: Any, new: Any, name: str, **_: Any) -> None:
        if old is not None:
            apps().patch_namespaced_deployment_scale(name, "default", {"spec": {"replicas": new}})

    @kopf.on.delete(GROUP, "v1", "beds", registry=registry)
    def compost(name: str, **_: Any) -> None:
        composted.append(name)

    return registry


@pytest.fixture
def composted(asgi_server: str, live_cluster: Cluster) -> Iterator[list[str]]:
    """The operator at work; the names of the beds it cleaned up after."""
    apply_documents(cluster=live_cluster, objects=[DEFINITION])
    done: list[str] = []
    registry = gardener(f"{asgi_server}/k8s/{live_cluster.public_id}", done)
    stop, ready = threading.Event(), threading.Event()

    def work() -> None:
        operator = kopf.operator(
            registry=registry, standalone=True, namespaces=["default"], stop_flag=stop, ready_flag=ready
        )
        asyncio.run(operator)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(30), "the operator did not start"
    yield done
    stop.set()
    thread.join(30)
    assert not thread.is_alive(), "the operator did not end"


@pytest.mark.slow
@pytest.mark.nightly("playground/kube_api/", "playground/clusters/custom_kinds.py")
def test_an_operator_keeps_what_its_objects_ask_for(live_cluster: Cluster, composted: list[str]) -> None:
    beds = table_of(live_cluster).by_key(f"{GROUP}/v1", "Bed")
    assert beds is not None

    def bed() -> dict[str, Any]:
        assert beds is not None
        return get_object(live_cluster, beds, "default", "herbs")

    def running() -> int:
        return Pod.objects.filter(cluster=live_cluster, labels__app="herbs", phase="Running").count()

    manifest = make_object(f"{GROUP}/v1", "Bed", "herbs", spec={"plants": 2})
    create_object(cluster=live_cluster, manifest=manifest, namespace="default")
    eventually(lambda: running() == 2)
    eventually(lambda: (bed().get("status") or {}).get("create") == {"planted": 2})
    assert bed()["metadata"]["finalizers"] == [FINALIZER]
    patch_object(
        cluster=live_cluster, kind=beds, namespace="default", name="herbs", patch={"spec": {"plants": 3}}
    )
    eventually(lambda: running() == 3)
    assert composted == []
    delete_object(cluster=live_cluster, kind=beds, namespace="default", name="herbs")
    # The operator takes its finalizer off, the bed goes, and what it owned goes with it.
    eventually(lambda: composted == ["herbs"])
    eventually(lambda: running() == 0)
    assert not list_objects(live_cluster, beds).exists()
    events = table_of(live_cluster).by_key("v1", "Event")
    assert events is not None
    told = [row.manifest for row in list_objects(live_cluster, events)]
    assert [each["message"] for each in told if each["reason"] == "Planted"] == ["2 of them"]


# ---- The program that the page gives to begin with, as it stands there, against a real server


def test_the_program_of_the_page_schedules_and_is_seen(
    asgi_server: str, wakes: list[Any], tmp_path: Path
) -> None:
    wanted = (("mine", "my-scheduler"), ("other", "default-scheduler"))
    cluster = make_cluster(make_node("n1"), *(make_pod(name, schedulerName=by) for name, by in wanted))
    page = requests.get(f"{asgi_server}/c/{cluster.public_id}/schedulers/", timeout=30).text
    (tmp_path / "kubeconfig.yaml").write_text(copied(page, "kubeconfig"))
    (tmp_path / "scheduler.py").write_text(copied(page, "starter"))
    rest = f"{asgi_server}/api/v1/clusters/{cluster.public_id}/schedulers/"
    with subprocess.Popen([sys.executable, "scheduler.py"], cwd=tmp_path, stderr=subprocess.PIPE) as running:
        try:
            eventually(lambda: running.poll() is not None or ForeignDecision.objects.exists())
        finally:
            running.terminate()
        assert running.stderr is not None
        assert "Error" not in running.stderr.read().decode()
    assert [(row.pod_name, row.node) for row in ForeignDecision.objects.all()] == [("mine", "n1")]
    [program] = requests.get(rest, timeout=30).json()["programs"]
    assert (program["author"], program["schedulerNames"], program["binds"]) == (
        "my-scheduler/v1",
        ["my-scheduler"],
        1,
    )
