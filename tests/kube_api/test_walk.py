"""A walk with real kubectls through all that acts by itself and shapes placement."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from playground.clusters.drive.config import set_clock
from playground.clusters.models import Cluster, Pod
from tests.kube_api.conftest import eventually
from tests.kube_api.kubectls import Kubectl
from tests.manifests import make_object
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture
def fast(live_cluster: Cluster) -> Iterator[Cluster]:
    """A minute a second: schedules and autoscalers take their time."""
    set_clock(cluster=live_cluster, mode="realtime", rate=60.0)
    yield live_cluster


def workload(kind: str, name: str, cpu: str | None = "100m", image: str = "i:1", **spec: Any) -> str:
    container: dict[str, Any] = {"name": "c", "image": image}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
    }
    whole = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole})


def pods(app: str, **more: Any) -> int:
    return Pod.objects.filter(labels__app=app, terminating=False, **more).count()


def test_limits_of_a_namespace(kubectl: Kubectl, fast: Cluster) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "500m"}, "default": {"cpu": "1"}}]
    for kind, name, spec in (
        ("LimitRange", "small", {"limits": limits}),
        ("ResourceQuota", "tight", {"hard": {"requests.cpu": "1"}}),
    ):
        manifest = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        kubectl("apply", "-f", "-", text=json.dumps(manifest))
    kubectl("apply", "-f", "-", text=workload("Deployment", "web", cpu=None, replicas=3))
    eventually(lambda: pods("web", phase="Running") == 2)
    told = eventually(lambda: kubectl("get", "events", "--field-selector", "reason=FailedCreate"))
    assert "is forbidden: exceeded quota: tight, requested: requests.cpu=500m, used: requests.cpu=1" in told
    assert re.search(r"requests\.cpu\s+1\s+1\b", kubectl("describe", "quota", "tight"))
    kubectl("patch", "quota", "tight", "--type=merge", "-p", '{"spec": {"hard": {"requests.cpu": "2"}}}')
    eventually(lambda: pods("web", phase="Running") == 3)


TICK = table(__file__, "TICK")


def test_cron_jobs(kubectl: Kubectl, fast: Cluster) -> None:
    made = kubectl.run("create", "cronjob", "tick", "--image=i", "--schedule=*/2 * * * *", "--", "date")
    if "could not find the requested resource" in made.stderr:
        # As with every server since 1.25: kubectls before 1.21 make, and describe, batch/v1beta1.
        kubectl("apply", "-f", "-", text=json.dumps(TICK))
        assert "tick" in kubectl("get", "cronjobs", "-o", "name")
        return
    assert made.returncode == 0, made.stderr
    assert re.search(
        r"^tick\s+\*/2 \* \* \* \*\s+<none>\s+False\s+0\s+<none>", kubectl("get", "cj"), re.MULTILINE
    )
    assert "job.batch/by-hand created" in kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    assert "condition met" in kubectl("wait", "--for=condition=complete", "job/by-hand", "--timeout=60s")
    assert re.search(r"Schedule:\s+\*/2", kubectl("describe", "cronjob", "tick"))
    one = json.loads(kubectl("get", "job", "by-hand", "-o", "json"))
    assert one["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    kubectl("patch", "cronjob", "tick", "-p", '{"spec": {"suspend": true}}')
    kubectl("delete", "cronjob", "tick")
    eventually(lambda: kubectl("get", "jobs", "-o", "name") == "")


def test_an_autoscaler_follows_a_drawn_load(kubectl: Kubectl, fast: Cluster) -> None:
    kubectl("apply", "-f", "-", text=workload("Deployment", "shop", replicas=1))
    kubectl("annotate", "deployment", "shop", "playground.dev/load=0s cpu=300m memory=64Mi")
    kubectl("autoscale", "deployment", "shop", "--cpu-percent=80", "--max=6", "--min=1")
    # 300m of 100m each, at 80 per cent.
    eventually(lambda: pods("shop", phase="Running") == 4)
    assert re.search(r"^shop-\S+\s+75m\s+16Mi", eventually(lambda: top_pods(kubectl)), re.MULTILINE)
    assert re.search(r"^n1\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%", kubectl("top", "nodes"), re.MULTILINE)
    shown = eventually(
        lambda: match(r"^shop\s+Deployment/shop\s+cpu: 75%/80%\s+1\s+6\s+4", kubectl("get", "hpa"))
    )
    assert shown
    described = kubectl("describe", "hpa", "shop")
    assert "SuccessfulRescale" in described and "above target" in described
    conditions = json.loads(kubectl("get", "hpa", "shop", "-o", "json"))["status"]["conditions"]
    reasons = {one["type"]: one["reason"] for one in conditions}
    assert (
        reasons["ScalingActive"] == "ValidMetricFound" and reasons["ScalingLimited"] == "DesiredWithinRange"
    )


def match(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[0] if found else ""


def top_pods(kubectl: Kubectl) -> str:
    shown = kubectl("top", "pods", "-l", "app=shop")
    return shown if shown.count("75m") == 4 else ""


def test_kubelets_refuse_what_does_not_fit(kubectl: Kubectl, fast: Cluster) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "50"}}}
    spec = {"nodeName": "n1", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"}, "spec": spec}
    kubectl("apply", "-f", "-", text=json.dumps(pod))
    eventually(lambda: match(r"^huge\s+0/1\s+OutOfcpu", kubectl("get", "pods")))
    assert "Node didn't have enough resource: cpu" in kubectl("describe", "pod", "huge")


def test_a_pod_is_resized(kubectl: Kubectl, fast: Cluster) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    pod = make_object("v1", "Pod", "grows", spec={"containers": [container]})
    kubectl("apply", "-f", "-", text=json.dumps(pod))
    eventually(lambda: Pod.objects.get(name="grows").phase == "Running")
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    asked = kubectl.run("patch", "pod", "grows", "--subresource=resize", "-p", json.dumps(patch))
    # Kubectls before 1.24 have no such flag, those before 1.32 not this one.
    if "invalid subresource" in asked.stderr or "unknown flag: --subresource" in asked.stderr:
        return
    assert asked.returncode == 0, asked.stderr
    query = "jsonpath={.status.containerStatuses[0].allocatedResources.cpu}"
    eventually(lambda: kubectl("get", "pod", "grows", "-o", query) == "200m")


def test_finalizers_orphans_and_the_foreground(kubectl: Kubectl, fast: Cluster) -> None:
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["example.com/mine"]},
    }
    kubectl("apply", "-f", "-", text=json.dumps(held))
    kubectl("delete", "configmap", "held", "--wait=false")
    assert "deletionTimestamp" in kubectl("get", "configmap", "held", "-o", "yaml")
    kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert "held" not in kubectl("get", "configmap", "-o", "name")

    kubectl("apply", "-f", "-", text=workload("Deployment", "left", replicas=2))
    eventually(lambda: pods("left", phase="Running") == 2)
    kubectl("delete", "deployment", "left", "--cascade=orphan")
    [alone] = json.loads(kubectl("get", "replicasets", "-l", "app=left", "-o", "json"))["items"]
    assert "ownerReferences" not in alone["metadata"] and pods("left") == 2

    kubectl("apply", "-f", "-", text=workload("Deployment", "first", replicas=2))
    eventually(lambda: pods("first", phase="Running") == 2)
    kubectl("delete", "deployment", "first", "--cascade=foreground", "--wait=false")
    going = json.loads(kubectl("get", "deployment", "first", "-o", "json", "--ignore-not-found") or "{}")
    if going:  # on a fast machine it may have gone by then
        assert going["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: kubectl("get", "deployment", "first", "--ignore-not-found") == "")
    assert Pod.objects.filter(labels__app="first").count() == 0


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_rollouts_are_undone(kubectl: Kubectl, fast: Cluster, kind: str) -> None:
    spec: dict[str, Any] = {} if kind == "DaemonSet" else {"replicas": 2}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    kubectl("apply", "-f", "-", text=workload(kind, "web", **spec))
    place = f"{kind.lower()}/web"
    eventually(lambda: pods("web", phase="Running") == 2)
    kubectl("set", "image", place, "c=i:2")
    kubectl("rollout", "status", place, "--timeout=60s")
    assert images() == {"i:2"}
    assert len(re.findall(r"^[12]\s", kubectl("rollout", "history", place), re.MULTILINE)) == 2
    assert "rolled back" in kubectl("rollout", "undo", place)
    kubectl("rollout", "status", place, "--timeout=60s")
    assert images() == {"i:1"}


def images() -> set[str]:
    found = Pod.objects.filter(labels__app="web", terminating=False).values_list("manifest", flat=True)
    return {manifest["spec"]["containers"][0]["image"] for manifest in found}
