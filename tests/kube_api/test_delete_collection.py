"""DELETE of a collection is one write: all of it, or nothing."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from playground.clusters.models import Cluster, LogEntry, Pod
from tests.clusters.builders import make_cluster, make_pod
from tests.kube_api.conftest import PODS, Kube
from tests.manifests import make_object

N_PODS = 60


@pytest.fixture
def cluster(db: None) -> Cluster:
    pods = [make_pod(f"web-{index:02}") for index in range(N_PODS)]
    for index, each in enumerate(pods):
        each["metadata"]["labels"] = {"half": str(index % 2)}
    return make_cluster(*pods)


def test_many_pods_go_in_one_write(kube: Kube, cluster: Cluster) -> None:
    """Twenty clusters of 300 pods emptied at once took a minute when each pod was a transaction."""
    with CaptureQueriesContext(connection) as asked:
        answer = kube.delete(f"{PODS}?labelSelector=half%3D1")
    assert answer.status_code == 200
    gone = [f"web-{index:02}" for index in range(1, N_PODS, 2)]
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == gone
    assert set(Pod.objects.values_list("name", flat=True)) == {
        f"web-{index:02}" for index in range(0, N_PODS, 2)
    }
    assert len(asked) < N_PODS // 2, "each pod asked the database alone"
    entries = LogEntry.objects.filter(cluster=cluster, kind=LogEntry.Kind.DELETE).order_by("seq")
    assert [entry.payload["name"] for entry in entries] == gone


def test_one_that_may_not_go_keeps_all(kube: Kube, cluster: Cluster) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = make_object("scheduling.k8s.io/v1", "PriorityClass", "a-first", value=1)
    assert kube.post(classes, body).status_code == 201
    assert kube.delete(classes).status_code == 403
    assert kube.get(f"{classes}/a-first").status_code == 200
