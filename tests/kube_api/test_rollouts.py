"""Histories of StatefulSets and DaemonSets as `kubectl rollout history` and `undo` read and use them."""

import json
from typing import Any

import pytest

from playground.clusters.models import Cluster, Pod
from tests.kube_api.conftest import Kube, Work, idle
from tests.manifests import deployment

APPS = "/apis/apps/v1/namespaces/default"


def workload(kind: str, image: str, **spec: Any) -> dict[str, Any]:
    made = deployment("db", 1, containers=[{"name": "c", "image": image}])
    own = {"StatefulSet": {"serviceName": "db"}, "DaemonSet": {"replicas": None}}
    return made | {"kind": kind, "spec": made["spec"] | own.get(kind, {}) | spec}


def history(kube: Kube) -> list[dict[str, Any]]:
    """As kubectl asks: by the workload's labels, oldest first."""
    items = kube.get(f"{APPS}/controllerrevisions?labelSelector=app%3Ddb").json()["items"]
    return sorted(items, key=lambda item: int(item["revision"]))


def image_of(revision: dict[str, Any]) -> str:
    return str(revision["data"]["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_template_is_recorded_and_can_be_gone_back_to(
    kube: Kube, cluster: Cluster, visit: Work, kind: str
) -> None:
    path = f"{APPS}/{kind.lower()}s"
    annotations = {"kubernetes.io/change-cause": "first"}
    first = workload(kind, "db:1")
    first["metadata"]["annotations"] = annotations
    assert kube.post(path, first).status_code == 201
    idle(cluster, visit)
    [only] = history(kube)
    assert (only["revision"], image_of(only), only["metadata"]["annotations"]) == (1, "db:1", annotations)
    [owner] = only["metadata"]["ownerReferences"]
    assert owner["kind"] == kind and owner["controller"]
    assert kube.patch(f"{path}/db", {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "db:2"}]}}}}).status_code == 200  # fmt: skip
    idle(cluster, visit)
    assert [(item["revision"], image_of(item)) for item in history(kube)] == [(1, "db:1"), (2, "db:2")]
    undone = kube.send("PATCH", f"{path}/db", json.dumps(history(kube)[0]["data"]),
                       media="application/strategic-merge-patch+json")  # fmt: skip
    assert undone.status_code == 200, undone.content
    idle(cluster, visit)
    assert [(item["revision"], image_of(item)) for item in history(kube)] == [(2, "db:2"), (3, "db:1")]
    pods = Pod.objects.filter(cluster=cluster, owner_kind=kind)
    assert {row.manifest["spec"]["containers"][0]["image"] for row in pods} == {"db:1"}
    assert kube.delete(f"{path}/db").status_code == 200
    idle(cluster, visit)
    assert history(kube) == []


def test_a_history_is_as_long_as_it_may_be(kube: Kube, cluster: Cluster, visit: Work) -> None:
    kube.post(f"{APPS}/statefulsets", workload("StatefulSet", "db:1", revisionHistoryLimit=1))
    for number in range(2, 6):
        template = {"spec": {"containers": [{"name": "c", "image": f"db:{number}"}]}}
        assert kube.patch(f"{APPS}/statefulsets/db", {"spec": {"template": template}}).status_code == 200
        idle(cluster, visit)
    found = [image_of(item) for item in history(kube)]
    assert found[-1] == "db:5" and len(found) <= 3 and "db:1" not in found


def test_a_template_that_comes_back_with_its_defaults_is_the_same(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    path = f"{APPS}/deployments/db"
    assert kube.post(f"{APPS}/deployments", workload("Deployment", "db:1")).status_code == 201
    idle(cluster, visit)
    read = kube.get(path).json()
    assert read["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    assert kube.put(path, read).json()["metadata"]["generation"] == 1
    kube.patch(path, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "db:2"}]}}}})
    idle(cluster, visit)
    assert numbers(kube) == {"db:1": ("1", None), "db:2": ("2", None)}
    # As `kubectl rollout undo` sends it: the template of the ReplicaSet as it was read, without its hash.
    operations = [{"op": "replace", "path": "/spec/template", "value": read["spec"]["template"]},
                  {"op": "replace", "path": "/metadata/annotations", "value": {}}]  # fmt: skip
    assert kube.patch(path, operations, "json-patch+json").status_code == 200
    idle(cluster, visit)
    assert numbers(kube) == {"db:1": ("3", "1"), "db:2": ("2", None)}
    assert kube.get(path).json()["metadata"]["annotations"][f"{DEPLOYMENT}/revision"] == "3"


DEPLOYMENT = "deployment.kubernetes.io"


def numbers(kube: Kube) -> dict[str, tuple[str, str | None]]:
    """Image -> revision and earlier ones, of the ReplicaSets."""
    found = {}
    for item in kube.get(f"{APPS}/replicasets").json()["items"]:
        notes = item["metadata"]["annotations"]
        image = item["spec"]["template"]["spec"]["containers"][0]["image"]
        found[image] = (notes[f"{DEPLOYMENT}/revision"], notes.get(f"{DEPLOYMENT}/revision-history"))
    return found
