"""The Kubernetes client from PyPI against a real server: it checks every answer against its models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, watch

from playground.clusters.drive.advance import advance
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.any_database

NS = "default"


@pytest.fixture
def paused(transactional_db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"))


@pytest.fixture
def connection(asgi_server: str, paused: Cluster) -> Iterator[client.ApiClient]:
    configuration = client.Configuration()
    configuration.host = f"{asgi_server}/k8s/{paused.public_id}"
    connection = client.ApiClient(configuration)
    yield connection
    connection.rest_client.pool_manager.clear()
    connection.close()


@pytest.fixture
def core(connection: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(connection)


def pod(name: str) -> client.V1Pod:
    container = client.V1Container(
        name="c", image="x", resources=client.V1ResourceRequirements(requests={"cpu": "100m"})
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}),
        spec=client.V1PodSpec(containers=[container]),
    )


def test_lists_and_reads(core: client.CoreV1Api, connection: client.ApiClient) -> None:
    assert [node.metadata.name for node in core.list_node().items] == ["n1", "n2"]
    assert core.read_namespaced_pod("p1", NS).spec.containers[0].name == "c"
    assert client.VersionApi(connection).get_code().git_version == "v1.34.1"
    assert client.AppsV1Api(connection).list_deployment_for_all_namespaces().items == []
    assert {c.metadata.name for c in client.SchedulingV1Api(connection).list_priority_class().items} == {
        "system-cluster-critical",
        "system-node-critical",
    }


def test_creates_patches_binds_and_deletes(core: client.CoreV1Api) -> None:
    created = core.create_namespaced_pod(NS, pod("made"))
    assert created.metadata.uid
    assert [p.metadata.name for p in core.list_namespaced_pod(NS, label_selector="app=x").items] == ["made"]
    patched = core.patch_namespaced_pod("made", NS, {"metadata": {"labels": {"more": "1"}}})
    assert patched.metadata.labels == {"app": "x", "more": "1"}
    core.patch_node("n1", {"spec": {"unschedulable": True}})
    assert core.read_node("n1").spec.unschedulable
    target = client.V1ObjectReference(api_version="v1", kind="Node", name="n2")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="made"), target=target)
    core.create_namespaced_binding(NS, binding, _preload_content=False)
    assert core.read_namespaced_pod("made", NS).spec.node_name == "n2"
    core.delete_namespaced_pod("made", NS, grace_period_seconds=0)
    with pytest.raises(client.ApiException) as gone:
        core.read_namespaced_pod("made", NS)
    assert gone.value.status == 404


def test_watches(core: client.CoreV1Api, paused: Cluster) -> None:
    create_object(cluster=paused, manifest=make_pod("p2"))
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in watch.Watch().stream(core.list_namespaced_pod, NS, timeout_seconds=1)
    ]
    assert seen == [("ADDED", "p1"), ("ADDED", "p2")]


def test_refusals_are_api_exceptions(core: client.CoreV1Api) -> None:
    with pytest.raises(client.ApiException) as twice:
        core.create_namespaced_pod(NS, pod("p1"))
    assert (twice.value.status, twice.value.reason) == (409, "Conflict")


def test_what_the_engine_writes_fits_the_models_too(
    core: client.CoreV1Api, connection: client.ApiClient, paused: Cluster
) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "x"}]},
            },
        },
    }
    apply_documents(cluster=paused, objects=[deployment, make_pod("huge", cpu="99")])
    request_run(cluster=paused, until="1m")
    advance(cluster_id=paused.pk)
    pods = core.list_namespaced_pod(NS).items
    assert {p.status.phase for p in pods} == {"Running", "Pending"}
    assert any(e.reason == "FailedScheduling" for e in core.list_namespaced_event(NS).items)
    apps = client.AppsV1Api(connection)
    assert apps.read_namespaced_deployment("web", NS).status.ready_replicas == 2
    assert apps.list_namespaced_replica_set(NS).items[0].metadata.owner_references[0].kind == "Deployment"
    assert apps.read_namespaced_deployment_scale("web", NS).spec.replicas == 2
