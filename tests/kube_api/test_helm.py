"""Helm's own library against a real server: three charts are installed, upgraded, rolled back and uninstalled.

`helm-python-sdk` is Helm 4's Go code as a shared library, so every request is one that `helm` sends: discovery, the
schema for what it validates, server-side apply with `fieldValidation=Strict`, releases as Secrets, watches while it
waits.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import pytest
from helm_python.errors import HelmError

from playground.clusters.custom_kinds import table_of
from playground.clusters.models import Cluster, Pod
from playground.clusters.objects.queries import get_object, list_objects
from tests.kube_api.kubectls import kubeconfig

pytestmark = [pytest.mark.any_database, pytest.mark.slow]
nightly = pytest.mark.nightly("playground/kube_api/")

CHARTS = Path(__file__).parent / "data" / "charts"
TIMEOUT_S = 90


class Helm:
    """One cluster as Helm sees it."""

    def __init__(self, server: str, cluster: Cluster) -> None:
        self.cluster = cluster
        config = json.dumps(kubeconfig(f"{server}/k8s/{cluster.public_id}"))
        self.config = helm_python.Config(kubeconfig_content=config, namespace="default")

    def install(self, chart: Path, name: str, wait: str = "watcher", **values: Any) -> Any:
        return self.config.install(chart, name, values or None, wait=wait, timeout=TIMEOUT_S)

    def upgrade(self, chart: Path, name: str, wait: str = "watcher", **values: Any) -> Any:
        return self.config.upgrade(chart, name, values or None, wait=wait, timeout=TIMEOUT_S)

    def history(self, name: str) -> list[tuple[int, str]]:
        return [(one["revision"], one["status"]) for one in self.config.history(name)]

    def there(self) -> set[str]:
        """Every object of the cluster that a chart may have made, as ``Kind name``."""
        self.cluster.refresh_from_db()
        return {
            f"{kind.kind} {manifest['metadata']['name']}"
            for kind in table_of(self.cluster).kinds
            if kind.kind not in ("Event", "Node", "Namespace", "PriorityClass", "Lease")
            for manifest in list_objects(self.cluster, kind).values_list("manifest", flat=True)
            if not manifest["metadata"].get("ownerReferences")
        }

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """One object as stored."""
        self.cluster.refresh_from_db()
        found = next(each for each in table_of(self.cluster).kinds if each.kind == kind)
        namespace = "default" if found.namespaced else ""
        return get_object(self.cluster, found, namespace, name)


@pytest.fixture
def helm(asgi_server: str, live_cluster: Cluster) -> Iterator[Helm]:
    helm = Helm(asgi_server, live_cluster)
    yield helm
    helm.config.close()


@nightly
@pytest.mark.parametrize("wait", ["watcher", "legacy"])
def test_the_chart_that_helm_create_makes(helm: Helm, tmp_path: Path, wait: str) -> None:
    helm_python.Chart.create("web", tmp_path)
    before, chart = helm.there(), tmp_path / "web"
    assert helm.install(chart, "site", wait)["status"] == "deployed"
    assert helm.there() - before == {
        "Deployment site-web", "Service site-web", "ServiceAccount site-web", "Secret sh.helm.release.v1.site.v1",
    }  # fmt: skip
    assert Pod.objects.get(cluster=helm.cluster).phase == "Running"
    more = {
        "autoscaling": {"enabled": True, "minReplicas": 2},
        "ingress": {"enabled": True},
        "replicaCount": 2,
    }
    assert helm.upgrade(chart, "site", wait, **more)["revision"] == 2
    assert {"HorizontalPodAutoscaler site-web", "Ingress site-web"} <= helm.there()
    helm.config.rollback("site", version=1, wait=wait, timeout=TIMEOUT_S)
    assert not {"HorizontalPodAutoscaler site-web", "Ingress site-web"} & helm.there()
    assert helm.history("site") == [(1, "superseded"), (2, "superseded"), (3, "deployed")]
    helm.config.uninstall("site", wait=wait, timeout=TIMEOUT_S)
    assert helm.there() == before


@nightly
def test_an_operator_with_its_definitions_roles_webhooks_and_hooks(helm: Helm) -> None:
    before, chart = helm.there(), CHARTS / "operator"
    assert helm.install(chart, "op")["status"] == "deployed"
    made = helm.there() - before
    assert made == {
        "ClusterRole default-op", "ClusterRoleBinding default-op", "CustomResourceDefinition databases.store.example",
        "Database op", "Deployment op", "Role op-leader", "RoleBinding op-leader",
        "Secret sh.helm.release.v1.op.v1", "Service op-webhook", "ServiceAccount op", "ServiceAccount op-prepare",
        "ValidatingWebhookConfiguration default-op",
    }  # fmt: skip
    assert helm.read("Database", "op")["spec"] == {"size": 3, "engine": "postgres"}
    helm.upgrade(chart, "op", size=5, webhook=False, replicas=1)
    assert helm.read("Database", "op")["spec"]["size"] == 5
    assert "ValidatingWebhookConfiguration default-op" not in helm.there()
    helm.config.rollback("op", version=1, wait="watcher", timeout=TIMEOUT_S)
    assert helm.read("Database", "op")["spec"]["size"] == 3
    assert helm.read("Deployment", "op")["status"]["readyReplicas"] == 2
    helm.config.uninstall("op", wait="watcher", timeout=TIMEOUT_S)
    # Helm leaves definitions and what hooks without a policy made.
    assert helm.there() - before == {
        "CustomResourceDefinition databases.store.example", "ServiceAccount op-prepare",
    }  # fmt: skip


@nightly
def test_a_database_with_volumes_hooks_and_a_password_that_stays(helm: Helm) -> None:
    before, chart = helm.there(), CHARTS / "store"
    helm.install(chart, "db")
    password = helm.read("Secret", "db")["data"]["password"]
    assert len(base64.b64decode(password)) == 12
    assert helm.read("Service", "db")["spec"]["clusterIP"] == "None"
    ports = [port["nodePort"] for port in helm.read("Service", "db-read")["spec"]["ports"]]
    assert len({*ports}) == 2 and all(30000 <= port < 32768 for port in ports)
    address = helm.read("Service", "db-read")["spec"]["clusterIP"]
    assert helm.read("StatefulSet", "db")["status"]["readyReplicas"] == 3
    assert helm.config.test("db", timeout=TIMEOUT_S)["release"]["status"] == "deployed"
    helm.upgrade(chart, "db", ingress=True, autoscaling=True, replicas=2)
    assert {"Ingress db", "HorizontalPodAutoscaler db"} <= helm.there()
    assert helm.read("Secret", "db")["data"]["password"] == password
    kept = helm.read("Service", "db-read")["spec"]
    assert (kept["clusterIP"], [port["nodePort"] for port in kept["ports"]]) == (address, ports)
    helm.config.rollback("db", version=1, wait="watcher", timeout=TIMEOUT_S)
    assert helm.read("StatefulSet", "db")["spec"]["replicas"] == 3
    assert "Ingress db" not in helm.there()
    helm.config.uninstall("db", wait="watcher", timeout=TIMEOUT_S)
    # Claims stay with a StatefulSet's end, and their volumes; and what the last test ran.
    left = {line.split()[0] for line in helm.there() - before}
    assert left <= {"PersistentVolumeClaim", "PersistentVolume", "Pod"}


def test_what_cannot_be_applied_is_a_failed_release_that_says_why(helm: Helm, tmp_path: Path) -> None:
    helm_python.Chart.create("web", tmp_path)
    template = tmp_path / "web" / "templates" / "deployment.yaml"
    template.write_text(template.read_text().replace("replicas:", "replicaz:"))
    with pytest.raises(HelmError, match=r"spec\.replicaz"):
        helm.install(tmp_path / "web", "bad")
    assert helm.history("bad") == [(1, "failed")]
    assert "Deployment bad-web" not in helm.there()


@nightly
def test_a_release_is_kept_as_helm_reads_it(helm: Helm) -> None:
    helm.install(CHARTS / "operator", "op")
    secret = helm.read("Secret", "sh.helm.release.v1.op.v1")
    assert secret["type"] == "helm.sh/release.v1"
    assert secret["metadata"]["labels"]["owner"] == "helm"
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    release = json.loads(gzip.decompress(packed))
    assert (release["name"], release["info"]["status"]) == ("op", "deployed")
    assert [(one["name"], one["revision"]) for one in helm.config.list()] == [("op", 1)]
