"""Rollouts of StatefulSets and DaemonSets, undone by real kubectls."""

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

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture
def fast(live_cluster: Cluster) -> Iterator[Cluster]:
    """A minute a second: rollouts take their time."""
    set_clock(cluster=live_cluster, mode="realtime", rate=60.0)
    yield live_cluster


def workload(kind: str, **spec: Any) -> str:
    container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
    }
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return json.dumps(make_object("apps/v1", kind, "web", spec=whole))


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_rollouts_are_undone(kubectl: Kubectl, fast: Cluster, kind: str) -> None:
    spec: dict[str, Any] = {} if kind == "DaemonSet" else {"replicas": 2}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    kubectl("apply", "-f", "-", text=workload(kind, **spec))
    place = f"{kind.lower()}/web"
    eventually(lambda: Pod.objects.filter(labels__app="web", phase="Running", terminating=False).count() == 2)
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
