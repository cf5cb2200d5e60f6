"""Clients that programs are written with, against a real server; the official one checks all answers by its models.

Each does the same: an object of a definition's kind is created, patched, applied server-side, given a status, and
deleted while a finalizer holds it; a watch sees all of it.
"""

import json
from collections.abc import Iterator
from typing import Any

import kr8s
import kr8s.objects
import lightkube
import pytest
from kubernetes import client, dynamic, watch
from lightkube import generic_resource
from lightkube.codecs import load_all_yaml
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.kube_api.kubectls import kubeconfig
from tests.kube_api.test_writing import make_deployment
from tests.manifests import make_object
from tests.tables import table

pytestmark = pytest.mark.any_database

NS, GROUP, HOLD = "default", "workshop.example", "workshop.example/hold"
STORY = ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
DEFINITION: dict[str, Any] = make_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"tools.{GROUP}", spec={
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Tool", "plural": "tools"},
        "versions": table(__file__, "DEFINITION"),
    })  # fmt: skip


def tool(**spec: Any) -> dict[str, Any]:
    meta = {"name": "saw", "namespace": "default", "finalizers": [HOLD]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Tool", "metadata": meta, "spec": spec}


@pytest.fixture
def paused(transactional_db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"))


@pytest.fixture
def server(asgi_server: str, paused: Cluster) -> str:
    return f"{asgi_server}/k8s/{paused.public_id}"


@pytest.fixture
def official(server: str) -> Iterator[client.ApiClient]:
    configuration = client.Configuration()
    configuration.host = server
    connection = client.ApiClient(configuration)
    yield connection
    connection.rest_client.pool_manager.clear()
    connection.close()


@pytest.fixture
def core(official: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(official)


def pod(name: str) -> client.V1Pod:
    container = client.V1Container(
        name="c", image="x", resources=client.V1ResourceRequirements(requests={"cpu": "100m"})
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}),
        spec=client.V1PodSpec(containers=[container]),
    )


def test_creates_patches_binds_and_deletes(core: client.CoreV1Api) -> None:
    assert [node.metadata.name for node in core.list_node().items] == ["n1", "n2"]
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
    with pytest.raises(client.ApiException) as twice:
        core.create_namespaced_pod(NS, pod("p1"))
    assert (twice.value.status, twice.value.reason) == (409, "Conflict")


def test_what_the_engine_writes_fits_the_models_too(
    core: client.CoreV1Api, official: client.ApiClient, paused: Cluster
) -> None:
    apply_documents(cluster=paused, objects=[make_deployment(), make_pod("huge", cpu="99")])
    run(paused, "1m")
    pods = core.list_namespaced_pod(NS).items
    assert {p.status.phase for p in pods} == {"Running", "Pending"}
    assert any(e.reason == "FailedScheduling" for e in core.list_namespaced_event(NS).items)
    apps = client.AppsV1Api(official)
    assert apps.read_namespaced_deployment("web", NS).status.ready_replicas == 2
    assert apps.list_namespaced_replica_set(NS).items[0].metadata.owner_references[0].kind == "Deployment"
    assert apps.read_namespaced_deployment_scale("web", NS).spec.replicas == 2


def test_the_official_client_and_its_dynamic_one(official: client.ApiClient) -> None:
    client.ApiextensionsV1Api(official).create_custom_resource_definition(DEFINITION, _preload_content=False)
    customs = client.CustomObjectsApi(official)
    place = (GROUP, "v1", "default", "tools")
    customs.create_namespaced_custom_object(*place, tool(size=1))
    begin = customs.list_namespaced_custom_object(*place)["items"][0]
    assert begin["spec"] == {"size": 1, "colour": "red"}
    customs.patch_namespaced_custom_object(*place, "saw", {"spec": {"size": 2}})
    tools = dynamic.DynamicClient(official).resources.get(api_version=f"{GROUP}/v1", kind="Tool")
    applied = tools.server_side_apply(
        body={key: value for key, value in tool(size=3).items() if key != "status"},
        name="saw", namespace="default", field_manager="me", force_conflicts=True,
    )  # fmt: skip
    assert applied.spec.size == 3
    assert [each.manager for each in applied.metadata.managedFields].count("me") == 1
    done = customs.patch_namespaced_custom_object_status(*place, "saw", {"status": {"phase": "Sharp"}})
    assert (done["spec"]["size"], done["status"]) == (3, {"phase": "Sharp"})
    assert customs.delete_namespaced_custom_object(*place, "saw")["metadata"]["deletionTimestamp"]
    held = customs.get_namespaced_custom_object(*place, "saw")
    assert held["metadata"]["finalizers"] == [HOLD]
    customs.patch_namespaced_custom_object(*place, "saw", {"metadata": {"finalizers": None}})
    with pytest.raises(client.ApiException, match="not found"):
        customs.get_namespaced_custom_object(*place, "saw")
    since = str(int(begin["metadata"]["resourceVersion"]) - 1)
    seen = watch.Watch().stream(
        customs.list_namespaced_custom_object, *place, resource_version=since, timeout_seconds=1
    )
    assert [event["type"] for event in seen] == STORY


def test_lightkube(server: str) -> None:
    config = KubeConfig.from_dict(kubeconfig(server))
    with lightkube.Client(config=config, namespace="default", field_manager="light") as api:
        for made in load_all_yaml(json.dumps(DEFINITION)):
            api.apply(made)
        kind = generic_resource.create_namespaced_resource(GROUP, "v1", "Tool", "tools")
        begin = api.create(kind.from_dict(tool(size=1)))
        assert begin["spec"] == {"size": 1, "colour": "red"}
        with pytest.raises(ApiError, match="already exists"):
            api.create(kind.from_dict(tool(size=1)))
        api.patch(kind, "saw", {"spec": {"size": 2}}, patch_type=PatchType.MERGE)
        assert api.apply(kind.from_dict(tool(size=3)), force=True)["spec"]["size"] == 3
        done = api.patch(kind.Status, "saw", {"status": {"phase": "Sharp"}}, patch_type=PatchType.MERGE)
        assert (done["spec"]["size"], done["status"]) == (3, {"phase": "Sharp"})
        api.delete(kind, "saw")
        assert api.get(kind, "saw").metadata.deletionTimestamp
        api.patch(kind, "saw", {"metadata": {"finalizers": None}}, patch_type=PatchType.MERGE)
        with pytest.raises(ApiError) as gone:
            api.get(kind, "saw")
        assert gone.value.status.code == 404
        seen = []
        for what, _ in api.watch(kind, resource_version=str(int(begin.metadata.resourceVersion) - 1)):
            seen.append(what)
            if what == "DELETED":
                break
        assert seen == STORY
        # Models of Kubernetes' own kinds, which it checks: typed, listed, scaled, by their metadata.
        template = PodTemplateSpec(
            metadata=ObjectMeta(labels={"app": "x"}), spec=PodSpec(containers=[Container("c", image="x")])
        )
        spec = DeploymentSpec(selector=LabelSelector(matchLabels={"app": "x"}), template=template, replicas=2)
        api.apply(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
        scaled = api.get(Deployment.Scale, "web")
        scaled.spec.replicas = 5
        assert api.replace(scaled).spec.replicas == 5
        assert [node.metadata.name for node in api.list(Node)] == ["n1", "n2"]
        assert [pod.metadata.name for pod in api.list(Pod, namespace="*")] == ["p1"]


def test_kr8s(server: str) -> None:
    api = kr8s.api(url=server, namespace="default")
    made = kr8s.objects.CustomResourceDefinition(DEFINITION, api=api)
    made.create()
    kind = kr8s.objects.new_class("Tool", f"{GROUP}/v1", plural="tools", namespaced=True)
    saw = kind(tool(size=1), api=api)
    saw.create()
    assert saw.spec == {"size": 1, "colour": "red"}
    since = str(int(saw.metadata["resourceVersion"]) - 1)
    saw.patch({"spec": {"size": 2}})
    assert [(one.name, one.spec["size"]) for one in api.get("tools.workshop.example")] == [("saw", 2)]
    saw.patch([{"op": "replace", "path": "/spec/size", "value": 3}], type="json")
    saw.patch({"status": {"phase": "Sharp"}}, subresource="status")
    assert (saw.spec["size"], saw.status) == (3, {"phase": "Sharp"})
    saw.delete()
    saw.refresh()
    assert saw.metadata["deletionTimestamp"] and saw.exists()
    saw.patch({"metadata": {"finalizers": None}})
    assert not saw.exists()
    seen = []
    for what, _ in api.watch("tools.workshop.example", since=since):
        seen.append(what)
        if what == "DELETED":
            break
    assert seen == STORY
    assert [pod.name for pod in api.get("pods")] == ["p1"]
    node = kr8s.objects.Node.get("n1", api=api)
    node.cordon()
    assert node.unschedulable
    node.uncordon()
    assert not node.unschedulable
