"""Manifests as large as Argo CD's, applied whole by real kubectls, twice, pruned, compared and deleted."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.models import Cluster, LogEntry, Pod
from tests.clusters.builders import make_cluster, make_node
from tests.kube_api import argo_sized
from tests.kube_api.conftest import eventually
from tests.kube_api.kubectls import Kubectl, extremes

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]


@pytest.fixture
def objects() -> list[dict[str, Any]]:
    return argo_sized.manifest()


@pytest.fixture
def paused(transactional_db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(make_node("n1"))


def written(path: Path, objects: list[dict[str, Any]]) -> str:
    path.write_text(yaml.dump_all(objects, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
    return str(path)


def test_the_manifest_is_of_the_size_it_is_said_to_be(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    kinds = Counter(each["kind"] for each in objects)
    assert (sum(kinds.values()), len(kinds)) == (argo_sized.N_OBJECTS, 12)
    assert objects == argo_sized.manifest()
    size = Path(written(tmp_path / "all.yaml", objects)).stat().st_size
    assert 300_000 < size < 3_000_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "side"),
    [
        (extremes()[-1], "client"),
        pytest.param(extremes()[-1], "server", marks=pytest.mark.nightly("playground/kube_api/")),
        pytest.param(extremes()[0], "client", marks=pytest.mark.nightly("playground/kube_api/")),
    ],
    ids=lambda value: Path(value).name,
)
def test_seventy_objects_of_twelve_kinds(
    program: str, side: str, asgi_server: str, paused: Cluster, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{paused.public_id}", tmp_path)
    kubectl("create", "namespace", "argo")
    how = ["-n", "argo", *(["--server-side"] if side == "server" else [])]
    whole = written(tmp_path / "all.yaml", objects)
    first = kubectl("apply", *how, "-f", whole).splitlines()
    assert len(first) == argo_sized.N_OBJECTS
    assert {line.split()[-1] for line in first} == {"created" if side == "client" else "serverside-applied"}
    # Nothing changes a second time: no object gets another resourceVersion, and there is no difference to show.
    entries = LogEntry.objects.filter(cluster=paused).count()
    again = kubectl("apply", *how, "-f", whole).splitlines()
    assert {line.split()[-1] for line in again} == {"unchanged" if side == "client" else "serverside-applied"}
    assert kubectl("diff", *how, "-f", whole) == ""
    assert LogEntry.objects.filter(cluster=paused).count() == entries
    if side == "client":
        assert kubectl("get", "applications.argo.example", "-n", "argo") == ""
    gone = [line.split()[0] for line in kubectl("delete", "-n", "argo", "-f", whole).splitlines()]
    assert len(gone) == argo_sized.N_OBJECTS
    left = kubectl("get", "all,cm,secret,sa,role,rolebinding,networkpolicy", "-n", "argo", "-o", "name")
    # As each namespace has.
    assert left.split() == ["configmap/kube-root-ca.crt", "serviceaccount/default"]


def test_a_file_without_an_object_prunes_it(
    asgi_server: str, paused: Cluster, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    # A kubectl asks for the versions that its own release knows, so that only a new one can prune here, or at 1.34.
    kubectl = Kubectl(extremes()[-1], f"{asgi_server}/k8s/{paused.public_id}", tmp_path)
    kubectl("create", "namespace", "argo")
    small = [each for each in objects if each["kind"] not in ("CustomResourceDefinition", "StatefulSet")]
    kubectl("apply", "-n", "argo", "-f", written(tmp_path / "all.yaml", small))
    pruned = {("ConfigMap", "hosts"), ("Service", "metrics"), ("Deployment", "web")}
    less = [each for each in small if (each["kind"], each["metadata"]["name"]) not in pruned]
    said = kubectl(
        "apply", "-n", "argo", "--prune", "-l", argo_sized.LABEL, "-f", written(tmp_path / "less.yaml", less)
    )
    assert set(re.findall(r"^(\S+) pruned$", said, re.M)) == {
        "configmap/hosts", "service/metrics", "deployment.apps/web"
    }  # fmt: skip


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
