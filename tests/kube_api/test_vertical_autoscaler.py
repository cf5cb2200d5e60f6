"""VerticalPodAutoscalers: their definition as their project ships it, cut to what a list shows; applied and listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from playground.clusters.models import Cluster
from playground.clusters.objects.write import replace_object
from tests.clusters.builders import make_cluster, make_node
from tests.kube_api.kubectls import Kubectl, programs
from tests.tables import table

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

DEFINITION = (Path(__file__).parent / "data" / "vertical_autoscaler.yaml").read_text()
OBJECT: dict[str, Any] = table(__file__, "OBJECT")
RECOMMENDED = {
    "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "recommendation": {"containerRecommendations": [
        {"containerName": "c", "target": {"cpu": "250m", "memory": "262144k"}}]},
}  # fmt: skip


@pytest.mark.parametrize("program", programs(), ids=lambda path: path.rpartition("/")[2])
def test_a_vertical_autoscaler_is_applied_listed_and_deleted(
    program: str, asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Any
) -> None:
    cluster: Cluster = make_cluster(make_node("n1"))
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    said = kubectl("apply", "-f", "-", text=DEFINITION)
    assert said.endswith("verticalpodautoscalers.autoscaling.k8s.io created\n")
    assert "created" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    assert "unchanged" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    cluster.refresh_from_db()
    replace_object(cluster=cluster, manifest=OBJECT | {"status": RECOMMENDED}, subresource="status")
    head, row = (line.split() for line in kubectl("get", "vpa").splitlines())
    assert head == ["NAME", "MODE", "CPU", "MEM", "PROVIDED", "AGE"]
    assert row[:-1] == ["web", "Auto", "250m", "262144k", "True"]
    wrong = OBJECT | {"spec": OBJECT["spec"] | {"updatePolicy": {"updateMode": "Sometimes"}}}
    refused = kubectl.run("apply", "-f", "-", text=yaml.safe_dump(wrong))
    assert refused.returncode == 1 and "updateMode" in refused.stderr
    assert kubectl("delete", "vpa", "web").startswith("verticalpodautoscaler.autoscaling.k8s.io")
