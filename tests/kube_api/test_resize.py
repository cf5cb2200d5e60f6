"""The resize subresource of pods, and what their kubelets make of it."""

from typing import Any

import pytest

from playground.clusters.models import Cluster, Pod
from tests.clusters.builders import make_cluster, make_node
from tests.kube_api.conftest import PODS, Kube, Work, idle
from tests.tables import table


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1", cpu="4"))


def pod(name: str, cpu: str, **container: Any) -> dict[str, Any]:
    whole = {
        "name": "c",
        "image": "i",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
        **container,
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [whole]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def started(kube: Kube, cluster: Cluster, visit: Work, *pods: dict[str, Any]) -> None:
    for one in pods:
        assert kube.post(PODS, one).status_code == 201
    idle(cluster, visit)


def resize(kube: Kube, name: str, kind: str = "strategic-merge-patch+json", **resources: Any) -> Any:
    body = {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    return kube.patch(f"{PODS}/{name}/resize", body, kind)


def pending(kube: Kube, name: str) -> tuple[str, str] | None:
    conditions = kube.get(f"{PODS}/{name}").json()["status"]["conditions"]
    found = [item for item in conditions if item["type"] == "PodResizePending"]
    return (found[0]["reason"], found[0]["message"]) if found else None


def test_a_running_pod_gets_what_it_asks_for(kube: Kube, cluster: Cluster, visit: Work) -> None:
    started(kube, cluster, visit, pod("a", "1"))
    answer = resize(kube, "a", requests={"cpu": "2"})
    assert answer.status_code == 200, answer.content
    assert answer.json()["metadata"]["generation"] == 2
    idle(cluster, visit)
    found = kube.get(f"{PODS}/a").json()
    [status] = found["status"]["containerStatuses"]
    assert status["allocatedResources"] == {"cpu": "2", "memory": "64Mi"}
    assert status["resources"] == {"requests": {"cpu": "2", "memory": "64Mi"}} and status["restartCount"] == 0
    assert pending(kube, "a") is None
    assert Pod.objects.get(cluster=cluster, name="a").cpu_milli == 2000
    assert kube.get(f"{PODS}/a/resize").json()["metadata"]["name"] == "a"


def test_the_scheduler_counts_with_what_it_asks_for_and_a_smaller_pod_makes_room(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    started(kube, cluster, visit, pod("a", "3"), pod("b", "2"))
    assert Pod.objects.get(cluster=cluster, name="b").node_name == ""
    resize(kube, "a", requests={"cpu": "1"})
    idle(cluster, visit)
    assert Pod.objects.get(cluster=cluster, name="b").node_name == "n1"


def test_one_that_does_not_fit_waits_or_never_will(kube: Kube, cluster: Cluster, visit: Work) -> None:
    started(kube, cluster, visit, pod("a", "1"), pod("b", "2"))
    resize(kube, "a", requests={"cpu": "3"})
    idle(cluster, visit)
    said = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert pending(kube, "a") == ("Deferred", said)
    [status] = kube.get(f"{PODS}/a").json()["status"]["containerStatuses"]
    assert status["allocatedResources"]["cpu"] == "1"
    kube.delete(f"{PODS}/b")
    idle(cluster, visit)
    assert pending(kube, "a") is None
    resize(kube, "a", requests={"cpu": "9"})
    idle(cluster, visit)
    said = "Node didn't have enough capacity: cpu, requested: 9000, capacity: 4000"
    assert pending(kube, "a") == ("Infeasible", said)
    # What it has counts, not what it cannot have.
    assert Pod.objects.get(cluster=cluster, name="a").cpu_milli == 3000


def test_a_policy_may_have_the_container_started_anew(kube: Kube, cluster: Cluster, visit: Work) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    started(kube, cluster, visit, pod("a", "1", resizePolicy=policy))
    resize(kube, "a", requests={"cpu": "2"})
    idle(cluster, visit)
    assert kube.get(f"{PODS}/a").json()["status"]["containerStatuses"][0]["restartCount"] == 1


@pytest.mark.parametrize(
    ("resources", "said"),
    table(__file__, "what_is_no_resize_is_refused"),
)
def test_what_is_no_resize_is_refused(kube: Kube, resources: Any, said: str) -> None:
    kube.post(PODS, pod("a", "1"))
    manifest = kube.get(f"{PODS}/a").json()
    manifest["spec"]["containers"][0]["resources"] = resources
    answer = kube.put(f"{PODS}/a/resize", manifest)
    assert answer.status_code == 422 and said in answer.json()["message"]


def test_other_fields_are_passed_over_and_the_pod_itself_keeps_its_resources(kube: Kube) -> None:
    kube.post(PODS, pod("a", "1"))
    manifest = kube.get(f"{PODS}/a").json()
    manifest["spec"]["containers"][0]["image"] = "other"
    assert kube.put(f"{PODS}/a/resize", manifest).json()["spec"]["containers"][0]["image"] == "i"
    manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert kube.put(f"{PODS}/a", manifest).status_code == 422
