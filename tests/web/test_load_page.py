"""The page on which a workload's load is drawn and written."""

import re
from typing import Any

import pytest
from django.test import Client

from playground.clusters import kinds
from playground.clusters.models import Cluster, Manifest
from playground.clusters.objects.write import create_object
from playground.web.objects.present import HEIGHT, WIDTH, anchored, lasting
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.test_writing import make_deployment
from tests.manifests import make_object
from tests.markup import html_of

LOAD = "playground.dev/load"


@pytest.fixture
def cluster(db: None) -> Cluster:
    made = make_cluster(make_node("n1"), make_pod("p1"))
    create_object(cluster=made, manifest=make_deployment(), namespace="default")
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = make_object("autoscaling/v2", "HorizontalPodAutoscaler", "follows")
    create_object(
        cluster=made,
        manifest={**autoscaler, "spec": {"scaleTargetRef": scaled, "maxReplicas": 7}},
        namespace="default",
    )
    return made


def path(cluster: Cluster, kind: str = "Deployment", name: str = "web") -> str:
    return f"/c/{cluster.public_id}/load/{kind}/default/{name}/"


def drawn(cluster: Cluster) -> Any:
    row = Manifest.objects.get(cluster=cluster, kind="Deployment", name="web")
    return (row.manifest["metadata"].get("annotations") or {}).get(LOAD)


def test_points_are_saved_and_drawn(client: Client, cluster: Cluster) -> None:
    before = html_of(client.get(path(cluster)))
    assert "No load is drawn" in before and "1 to 7 replicas" in before and '<svg class="load"' not in before
    text = "0m cpu=500m\n10m cpu=1 memory=1Gi\n20m cpu=2"
    assert client.post(path(cluster), {"text": text}).status_code == 302
    assert drawn(cluster) == text
    after = html_of(client.get(path(cluster)))
    assert "at most 2</span>" in after and "at most 1 Gi</span>" in after
    [cpu, _] = re.findall(r'class="line l1" d="(M[^"]+)"', after)
    # 22 minutes wide (a tenth more than the last point), 2 cores high.
    middle, last = f"{WIDTH / 2.2:.1f} 85.0", f"{WIDTH / 1.1:.1f} 10.0"
    assert cpu == f"M0.0 {HEIGHT - 37.5}L0.0 {HEIGHT - 37.5}L{middle}L{last}L{WIDTH}.0 10.0"
    assert 'class="now" d="M0 0V' in after
    assert client.post(path(cluster), {"text": ""}).status_code == 302 and drawn(cluster) is None


def test_time_0_may_be_now(client: Client, cluster: Cluster) -> None:
    client.post(path(cluster), {"text": "from 2020-01-01T00:00:00Z; 0s cpu=1", "anchor": "on"})
    assert re.fullmatch(r"from 2\d{3}-\S+Z\n *0s cpu=1", drawn(cluster)) and "2020" not in drawn(cluster)
    assert anchored("0s cpu=1", 0) == "from 1970-01-01T00:00:00Z\n0s cpu=1"


def test_what_cannot_be_read_changes_nothing_and_is_told(client: Client, cluster: Cluster) -> None:
    answer = client.post(path(cluster), {"text": "0s cpu=1\nsoon cpu=2"})
    text = html_of(answer)
    assert (
        answer.status_code == 400
        and "line 2 &quot;soon cpu=2&quot;" in text
        and "soon cpu=2</textarea>" in text
    )
    assert drawn(cluster) is None


def test_only_what_has_pods_has_a_load(client: Client, cluster: Cluster) -> None:
    assert client.get(path(cluster, "Pod", "p1")).status_code == 200
    assert client.get(path(cluster, "Deployment", "nothing")).status_code == 404
    assert client.get(path(cluster, "Service", "web")).status_code == 404
    edited = html_of(client.get(f"/c/{cluster.public_id}/objects/Deployment/default/web/"))
    assert path(cluster) in edited
    assert all(kinds.by_kind(kind) for kind in ("Deployment", "Pod"))


def test_how_long_jobs_last_is_said_by_the_cluster(client: Client, cluster: Cluster) -> None:
    page = f"/c/{cluster.public_id}/cluster/"
    assert 'name="duration" value="1m"' in html_of(client.get(page))
    assert client.post(f"{page}jobs/", {"duration": "5m"}).status_code == 302
    said = Manifest.objects.get(cluster=cluster, kind="Namespace", name="kube-system").manifest["metadata"]
    assert said["annotations"]["playground.dev/duration"] == "5m"
    refused = html_of(client.post(f"{page}jobs/", {"duration": "soon"}, follow=True))
    assert "is not a duration like 30s, 5m or 1h30m, or never" in refused and 'value="5m"' in refused


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0"), (90, "90s"), (900, "15m"), (3600, "1h"), (216000, "2.5d")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert lasting(seconds) == words
