"""What every cluster has without a client writing it: accounts, the Service `kubernetes`, health, addresses."""

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
    # A watch that began before tells of it with its namespace, and once.
    since = kube.get(ALL_ACCOUNTS).json()["metadata"]["resourceVersion"]
    assert kube.post("/api/v1/namespaces", {"metadata": {"name": "b"}}).status_code == 201
    again = kube.post("/api/v1/namespaces/b/serviceaccounts", {"metadata": {"name": "default"}})
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    assert kube.patch("/api/v1/namespaces/b/serviceaccounts/default", change).status_code == 200
    assert kube.delete("/api/v1/namespaces/b").status_code == 200
    assert kube.delete("/api/v1/namespaces/a").status_code == 200
    told = kube.watch(f"{ALL_ACCOUNTS}?watch=true&resourceVersion={since}")
    assert [(what, one["metadata"]["namespace"]) for what, one in told] == [
        ("ADDED", "b"), ("MODIFIED", "b"), ("MODIFIED", "b"), ("DELETED", "b"), ("DELETED", "a")
    ]  # fmt: skip
    only = kube.watch(f"{ACCOUNTS}?watch=true&resourceVersion={since}")
    assert only == []
    token = kube.post(f"{ACCOUNTS}/default/token", {"spec": {}}).json()
    assert "ServiceAccounts have no tokens in a playground" in token["message"]
    assert kube.get("/api/v1/namespaces/nowhere/serviceaccounts/default").status_code == 404


def test_programs_find_the_server_and_its_authorities(kube: Kube, cluster: Cluster) -> None:
    maps = kube.get("/api/v1/configmaps").json()["items"]
    assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in maps] == [
        ("default", "kube-root-ca.crt"), ("kube-node-lease", "kube-root-ca.crt"),
        ("kube-public", "kube-root-ca.crt"), ("kube-system", "extension-apiserver-authentication"),
        ("kube-system", "kube-root-ca.crt"),
    ]  # fmt: skip
    assert maps[0]["data"] == {"ca.crt": ""}
    [service] = kube.get("/api/v1/services").json()["items"]
    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == ("kubernetes", "10.96.0.1")
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    [piece] = kube.get(f"{slices}?labelSelector=kubernetes.io/service-name%3Dkubernetes").json()["items"]
    [subset] = kube.get("/api/v1/namespaces/default/endpoints/kubernetes").json()["subsets"]
    assert piece["endpoints"][0]["addresses"] == [subset["addresses"][0]["ip"]]
    assert kube.get("/api/v1/namespaces/kube-system/services").json()["items"] == []
    rows = kube.get("/api/v1/namespaces/default/services", Accept=TABLE).json()["rows"]
    assert rows[0]["cells"][:5] == ["kubernetes", "ClusterIP", "10.96.0.1", "<none>", "443/TCP"]
    # No client wrote them, so nothing counts, replays or exports them; who deletes one has it back at once.
    before = cluster.last_seq
    assert not Manifest.objects.filter(cluster=cluster, kind__in=["ConfigMap", "Service"]).exists()
    assert (
        kube.delete("/api/v1/namespaces/default/services").json()["items"][0]["metadata"]["uid"]
        == (service["metadata"]["uid"])
    )
    [back] = kube.get("/api/v1/services").json()["items"]
    assert back["metadata"]["uid"] != service["metadata"]["uid"] and back["spec"] == service["spec"]
    told = kube.watch(f"/api/v1/services?watch=true&resourceVersion={before}&labelSelector=component")
    assert [what for what, _ in told] == ["MODIFIED", "DELETED", "ADDED"]
    told = kube.watch(f"/api/v1/configmaps?watch=true&resourceVersion={before}")
    assert told == []


def test_health_is_told_check_by_check(kube: Kube) -> None:
    for path in ("/livez", "/readyz", "/healthz", "/livez/ping", "/readyz/etcd"):
        assert kube.get(path).content == b"ok"
    assert kube.get("/livez?verbose").content == (b"[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n")
    told = kube.get("/readyz?verbose&exclude=etcd&exclude=x").content.decode()
    assert "[+]etcd excluded: ok\n" in told and "[+]informer-sync ok\n" in told
    assert told.endswith(
        'warn: some health checks cannot be excluded: no matches for "x"\nreadyz check passed\n'
    )
    assert kube.get("/livez/nothing").status_code == 404
    assert "/readyz/informer-sync" in kube.get("/").json()["paths"]


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
    known = make_pod("known", nodeName="n2") | running
    addresses = [{"type": "Hostname", "address": "n2"}, {"type": "InternalIP", "address": "192.0.2.2"}]
    dumped = make_node("n2")
    dumped["status"]["addresses"] = addresses
    cluster = make_cluster(make_node("n1"), dumped, own, shared, told, known, make_pod("waits"))
    kube = Kube(client, f"/k8s/{cluster.public_id}")
    pods = {item["metadata"]["name"]: item["status"] for item in kube.get(PODS).json()["items"]}
    addresses = kube.get("/api/v1/nodes/n1").json()["status"]["addresses"]
    assert [item["type"] for item in addresses] == ["InternalIP", "Hostname"]
    assert pods["own"]["hostIP"] == addresses[0]["address"] == pods["shared"]["podIP"]
    assert pods["own"]["podIPs"] == [{"ip": pods["own"]["podIP"]}]
    assert pods["own"]["podIP"] not in (pods["own"]["hostIP"], pods["shared"]["podIP"])
    assert kube.get(f"{PODS}/own").json()["status"] == pods["own"]
    # As the node itself says, where it does.
    assert pods["known"]["hostIP"] == "192.0.2.2" == kube.get(f"{PODS}/known").json()["status"]["hostIP"]
    assert pods["told"]["podIP"] == "192.0.2.7" and "hostIP" not in pods["told"]
    assert "podIP" not in pods["waits"] and "hostIP" not in pods["waits"]
