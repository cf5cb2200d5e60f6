"""What every cluster has without anybody writing it: ServiceAccounts `default`, ComponentStatuses, addresses."""

from __future__ import annotations

from typing import Any

from django.test import Client

from playground.clusters.models import Cluster, Manifest
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import PODS, TABLE, Kube

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ALL_ACCOUNTS = "/api/v1/serviceaccounts"
COMPONENTS = "/api/v1/componentstatuses"


def test_each_namespace_has_its_service_account(kube: Kube, cluster: Cluster) -> None:
    namespaces = [item["metadata"]["name"] for item in kube.get("/api/v1/namespaces").json()["items"]]
    listed = kube.get(ALL_ACCOUNTS).json()["items"]
    assert [item["metadata"]["namespace"] for item in listed] == sorted(namespaces)
    assert {item["metadata"]["name"] for item in listed} == {"default"}
    assert kube.post(ACCOUNTS, {"metadata": {"name": "robot"}}).status_code == 201
    assert kube.post("/api/v1/namespaces", {"metadata": {"name": "a"}}).status_code == 201
    # In pages, each once and in one order.
    seen: list[tuple[str, str]] = []
    more: str | None = ""
    while more is not None:
        page = kube.get(f"{ALL_ACCOUNTS}?limit=1&continue={more}").json()
        seen += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        more = page["metadata"].get("continue")
    assert seen == sorted([*((name, "default") for name in (*namespaces, "a")), ("default", "robot")])
    watched = kube.watch(
        f"{ALL_ACCOUNTS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    )
    assert sorted((one["metadata"]["namespace"], one["metadata"]["name"]) for _, one in watched) == seen
    # It is written down once a client changes it, and not by asking.
    assert Manifest.objects.filter(cluster=cluster, kind="ServiceAccount").count() == 1
    uid = kube.get(f"{ACCOUNTS}/default").json()["metadata"]["uid"]
    change = {"imagePullSecrets": [{"name": "registry"}]}
    assert kube.patch(f"{ACCOUNTS}/default?dryRun=All", change).json()["imagePullSecrets"]
    assert Manifest.objects.filter(cluster=cluster, kind="ServiceAccount").count() == 1
    whole = kube.get(f"{ACCOUNTS}/default").json() | change
    assert kube.put(f"{ACCOUNTS}/default", whole).status_code == 200
    assert kube.get(f"{ACCOUNTS}/default").json()["imagePullSecrets"] == change["imagePullSecrets"]
    assert kube.get(f"{ACCOUNTS}/default").json()["metadata"]["uid"] == uid
    # Deleted, it is there again, as another object.
    for _ in range(2):
        assert kube.delete(f"{ACCOUNTS}/default").json()["details"]["uid"] == uid
        again = kube.get(f"{ACCOUNTS}/default").json()
        assert again["metadata"]["uid"] != uid and "imagePullSecrets" not in again
        uid = again["metadata"]["uid"]
    token = kube.post(f"{ACCOUNTS}/default/token", {"spec": {}}).json()
    assert "ServiceAccounts have no tokens in a playground" in token["message"]
    assert kube.get("/api/v1/namespaces/nowhere/serviceaccounts/default").status_code == 404


def test_the_parts_of_the_control_plane_are_well(kube: Kube) -> None:
    answer = kube.get(COMPONENTS)
    assert answer["Warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == [
        "controller-manager", "etcd-0", "scheduler"
    ]  # fmt: skip
    [condition] = kube.get(f"{COMPONENTS}/scheduler").json()["conditions"]
    assert condition == {"type": "Healthy", "status": "True", "message": "ok"}
    shown = kube.get(COMPONENTS, Accept=TABLE).json()
    assert shown["rows"][0]["cells"] == ["controller-manager", "Healthy", "ok", ""]
    assert kube.get(f"{COMPONENTS}/kubelet").status_code == 404


def test_what_runs_has_addresses_that_stay(client: Client, db: None, wakes: list[Any]) -> None:
    running = {"status": {"phase": "Running"}}
    own = make_pod("own", nodeName="n1") | running
    shared = make_pod("shared", nodeName="n1", hostNetwork=True) | running
    told = make_pod("told", nodeName="n1") | {"status": {"phase": "Running", "podIP": "192.0.2.7"}}
    cluster = make_cluster(make_node("n1"), own, shared, told, make_pod("waits"))
    kube = Kube(client, f"/k8s/{cluster.public_id}")
    pods = {item["metadata"]["name"]: item["status"] for item in kube.get(PODS).json()["items"]}
    addresses = kube.get("/api/v1/nodes/n1").json()["status"]["addresses"]
    assert [item["type"] for item in addresses] == ["InternalIP", "Hostname"]
    assert pods["own"]["hostIP"] == addresses[0]["address"] == pods["shared"]["podIP"]
    assert pods["own"]["podIPs"] == [{"ip": pods["own"]["podIP"]}]
    assert pods["own"]["podIP"] not in (pods["own"]["hostIP"], pods["shared"]["podIP"])
    assert kube.get(f"{PODS}/own").json()["status"] == pods["own"]
    assert pods["told"]["podIP"] == "192.0.2.7" and "hostIP" not in pods["told"]
    assert "podIP" not in pods["waits"] and "hostIP" not in pods["waits"]
