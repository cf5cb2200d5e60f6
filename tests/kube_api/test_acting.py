"""CronJobs (which make no Jobs), autoscalers and metrics over the Kubernetes API: what is refused, what is told."""

from typing import Any

import pytest

from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Event, Pod
from tests.kube_api.conftest import Kube, Work
from tests.kube_api.test_writing import DEPLOYMENTS, make_deployment
from tests.tables import table

CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
METRICS = "/apis/metrics.k8s.io/v1beta1"
LOAD = "playground.dev/load"
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


def cron_job(name: str = "c", **spec: Any) -> dict[str, Any]:
    whole = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": POD}}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": whole}


def autoscaler(**spec: Any) -> dict[str, Any]:
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": scaled, "maxReplicas": 5, **spec}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": {"name": "web"}, "spec": whole}


def pass_time(cluster: Cluster, visit: Work, seconds: int) -> None:
    request_run(cluster=cluster, until=f"{seconds}s")
    visit(cluster)


@pytest.mark.parametrize(
    ("spec", "path", "said"),
    table(__file__, "cron_jobs_that_are_refused"),
)
def test_cron_jobs_that_are_refused(kube: Kube, spec: dict[str, Any], path: str, said: str) -> None:
    answer = kube.post(CRON_JOBS, cron_job(**spec))
    assert answer.status_code == 422, answer.content
    assert answer.json()["details"]["causes"][0]["field"] == path and said in answer.json()["message"]


def test_a_name_that_leaves_no_room_for_its_jobs(kube: Kube) -> None:
    answer = kube.post(CRON_JOBS, cron_job("c" * 53))
    assert answer.status_code == 422 and "must be no more than 52 bytes" in answer.json()["message"]


@pytest.mark.parametrize(
    ("spec", "path"),
    table(__file__, "autoscalers_that_are_refused"),
)
def test_autoscalers_that_are_refused(kube: Kube, spec: dict[str, Any], path: str) -> None:
    answer = kube.post(AUTOSCALERS, autoscaler(**spec))
    assert answer.status_code == 422, answer.content
    assert answer.json()["details"]["causes"][0]["field"] == path


@pytest.mark.parametrize(("name", "value", "said"), table(__file__, "annotations_that_are_refused"))
def test_annotations_that_are_refused(kube: Kube, name: str, value: str, said: str) -> None:
    manifest = make_deployment()
    manifest["metadata"]["annotations"] = {f"playground.dev/{name}": value}
    answer = kube.post(DEPLOYMENTS, manifest)
    assert answer.status_code == 422 and said in answer.json()["message"]
    assert answer.json()["details"]["causes"][0]["field"] == f"metadata.annotations[playground.dev/{name}]"


def test_a_cron_job_is_kept_makes_no_jobs_and_owns_those_made_by_hand(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    made = kube.post(CRON_JOBS, cron_job())
    assert made.status_code == 201 and "CronJobs make no Jobs here" in made.headers["Warning"]
    pass_time(cluster, visit, 150)
    assert kube.get(JOBS).json()["items"] == []
    # As `kubectl create job --from=cronjob/c`.
    uid = kube.get(f"{CRON_JOBS}/c").json()["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": True}
    by_hand = {"metadata": {"name": "by-hand", "ownerReferences": [owner]}, "spec": {"template": POD}}
    assert kube.post(JOBS, by_hand).status_code == 201
    pass_time(cluster, visit, 70)
    [job] = kube.get(JOBS).json()["items"]
    assert job["status"]["conditions"][-1]["type"] == "Complete"
    assert kube.delete(f"{CRON_JOBS}/c").status_code == 200
    pass_time(cluster, visit, 60)
    assert kube.get(JOBS).json()["items"] == []
    assert Pod.objects.filter(cluster=cluster, owner_kind="Job").count() == 0


def test_metrics_follow_the_curve_and_the_autoscaler_them(kube: Kube, cluster: Cluster, visit: Work) -> None:
    manifest = make_deployment()
    manifest["spec"]["replicas"] = 1
    manifest["metadata"]["annotations"] = {LOAD: "0s cpu=500m memory=100Mi"}
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
    assert kube.post(DEPLOYMENTS, manifest).status_code == 201
    assert kube.post(AUTOSCALERS, autoscaler()).status_code == 201
    pass_time(cluster, visit, 10)
    [used] = kube.get(f"{METRICS}/namespaces/default/pods?labelSelector=app%3Dweb").json()["items"]
    assert (
        used["containers"][0]["usage"] == {"cpu": "500000000n", "memory": "102400Ki"}
        and used["window"] == "15s"
    )
    nodes = {
        item["metadata"]["name"]: item["usage"]["cpu"]
        for item in kube.get(f"{METRICS}/nodes").json()["items"]
    }
    assert sorted(nodes) == ["n1", "n2"] and sorted(nodes.values()) == ["0n", "500000000n"]
    name = used["metadata"]["name"]
    assert kube.get(f"{METRICS}/namespaces/default/pods/{name}").json()["kind"] == "PodMetrics"
    assert kube.get(f"{METRICS}/nodes/nowhere").status_code == 404
    pass_time(cluster, visit, 60)
    # 500m of 200m at 80 per cent: four pods (3.1, rounded up).
    assert kube.get(f"{DEPLOYMENTS}/web").json()["spec"]["replicas"] == 4
    assert len(kube.get(f"{METRICS}/pods").json()["items"]) >= 4


def test_what_is_not_measured_is_not_found(kube: Kube) -> None:
    assert kube.get(f"{METRICS}/namespaces/default/pods/p1").status_code == 404
    assert kube.get(METRICS).json()["resources"][0]["kind"] == "NodeMetrics"
    assert kube.get(f"{METRICS}/namespaces/default/nodes").status_code == 404


def test_events_are_forgotten_after_an_hour(kube: Kube, cluster: Cluster, visit: Work) -> None:
    events = "/api/v1/namespaces/default/events"
    request_run(cluster=cluster)
    visit(cluster)
    [first] = [item for item in kube.get(events).json()["items"] if item["reason"] == "Scheduled"]
    name = first["metadata"]["name"]
    pass_time(cluster, visit, 3590)
    assert kube.get(f"{events}/{name}").status_code == 200
    pass_time(cluster, visit, 30)
    assert kube.get(events).json()["items"] == [] and kube.get(f"{events}/{name}").status_code == 404
    assert [what for what, _ in kube.watch(f"{events}?watch=1&timeoutSeconds=0")] == []
    # The pod's page remembers.
    assert "Scheduled" in [event.reason for event in Event.objects.filter(cluster=cluster)]


def test_what_a_job_owned_goes_with_it_when_the_engine_removes_it(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    spec = {"ttlSecondsAfterFinished": 10, "template": POD}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec}
    uid = kube.post(JOBS, job).json()["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "once", "uid": uid}
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "of-it", "ownerReferences": [owner]},
    }
    maps = "/api/v1/namespaces/default/configmaps"
    assert kube.post(maps, held).status_code == 201
    pass_time(cluster, visit, 65)
    assert kube.get(f"{maps}/of-it").status_code == 200
    pass_time(cluster, visit, 10)
    assert kube.get(f"{JOBS}/once").status_code == 404 and kube.get(f"{maps}/of-it").status_code == 404


@pytest.mark.parametrize("finalizer", [(), ("example.com/mine",)])
def test_in_the_foreground_an_object_stays_until_its_pods_are_gone(
    kube: Kube, cluster: Cluster, visit: Work, finalizer: tuple[str, ...]
) -> None:
    manifest = make_deployment()
    manifest["metadata"]["finalizers"] = list(finalizer)
    kube.post(DEPLOYMENTS, manifest)
    pass_time(cluster, visit, 5)
    gone = kube.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Foreground"}).json()
    assert gone["metadata"]["finalizers"] == [*finalizer, "foregroundDeletion"]
    pass_time(cluster, visit, 5)
    there = kube.get(f"{DEPLOYMENTS}/web").json()["metadata"]
    assert there["deletionTimestamp"] and "foregroundDeletion" in there["finalizers"]
    assert Pod.objects.filter(cluster=cluster, terminating=True).exists()
    pass_time(cluster, visit, 60)
    assert not Pod.objects.filter(cluster=cluster, owner_kind="ReplicaSet").exists()
    left = kube.get(f"{DEPLOYMENTS}/web")
    assert left.status_code == (200 if finalizer else 404)
    if finalizer:
        assert left.json()["metadata"]["finalizers"] == ["example.com/mine"]
        kube.patch(f"{DEPLOYMENTS}/web", {"metadata": {"finalizers": None}})
        assert kube.get(f"{DEPLOYMENTS}/web").status_code == 404
