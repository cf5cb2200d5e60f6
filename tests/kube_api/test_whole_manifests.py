"""Whole files by real kubectls: applied twice, compared, pruned and deleted; and workloads rolled back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.models import Cluster, LogEntry, Pod
from tests.clusters.builders import make_cluster, make_node
from tests.kube_api.conftest import eventually
from tests.kube_api.kubectls import Kubectl, extremes
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


def test_a_file_is_applied_twice_compared_pruned_and_deleted(
    asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Path
) -> None:
    # A kubectl asks for the versions that its own release knows, so that only a new one can prune here, or at 1.34.
    cluster = make_cluster(make_node("n1"))
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    kubectl("create", "namespace", "shop")
    objects = table(__file__, "OBJECTS")

    def done(*words: str, file: list[dict[str, Any]] = objects) -> list[list[str]]:
        text = yaml.safe_dump_all(file)
        return [line.split() for line in kubectl(*words, "-n", "shop", "-f", "-", text=text).splitlines()]

    assert {line[-1] for line in done("apply")} == {"created"}
    entries = LogEntry.objects.filter(cluster=cluster).count()
    assert {line[-1] for line in done("apply")} == {"unchanged"}
    assert done("diff") == [] and LogEntry.objects.filter(cluster=cluster).count() == entries
    pruned = {("ConfigMap", "hosts"), ("Service", "metrics"), ("Deployment", "web")}
    less = [each for each in objects if (each["kind"], each["metadata"]["name"]) not in pruned]
    said = done("apply", "--prune", "-l", "part-of=shop", file=less)
    assert {name for name, what in said if what == "pruned"} == {
        "configmap/hosts", "service/metrics", "deployment.apps/web"
    }  # fmt: skip
    assert len(done("delete", file=less)) == len(less)
    left = kubectl("get", "all,cm,sa", "-n", "shop", "-o", "name")
    # As each namespace has.
    assert left.split() == ["configmap/kube-root-ca.crt", "serviceaccount/default"]


def test_a_deployment_goes_back_to_what_it_was(kubectl: Kubectl, live_cluster: Cluster) -> None:
    kubectl("create", "deployment", "shop", "--image=shop:1")

    def runs(image: str) -> bool:
        pods = Pod.objects.filter(cluster=live_cluster, labels__app="shop", terminating=False)
        found = [(pod.phase, pod.manifest["spec"]["containers"][0]["image"]) for pod in pods]
        return found == [("Running", image)]

    eventually(lambda: runs("shop:1"))
    kubectl("set", "image", "deployment/shop", "shop=shop:2")
    eventually(lambda: runs("shop:2"))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/shop")
    assert re.findall(r"^(\d) ", kubectl("rollout", "history", "deployment/shop"), re.M) == ["1", "2"]
    assert "shop:1" in kubectl("rollout", "history", "deployment/shop", "--revision=1")
    assert "rolled back" in kubectl("rollout", "undo", "deployment/shop")
    eventually(lambda: runs("shop:1"))
    assert re.findall(r"^(\d) ", kubectl("rollout", "history", "deployment/shop"), re.M) == ["2", "3"]
    kubectl("rollout", "undo", "deployment/shop", "--to-revision=2")
    eventually(lambda: runs("shop:2"))
    assert "restarted" in kubectl("rollout", "restart", "deployment/shop")
    kubectl("rollout", "pause", "deployment/shop")
    assert "paused" in kubectl.run("rollout", "undo", "deployment/shop").stderr
    kubectl("rollout", "resume", "deployment/shop")
