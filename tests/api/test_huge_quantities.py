"""A quantity no computer adds up is refused on every surface."""

from __future__ import annotations

from playground.clusters.models import Cluster, LogEntry
from tests.api.conftest import Api
from tests.clusters.builders import make_node, make_pod
from tests.scenarios.documents import small_text
from tests.tables import table

HUGE = "1e999999999"
YAML = table(__file__, "YAML")


def test_no_surface_takes_it(api: Api, cluster: Cluster) -> None:
    here, kube = f"/clusters/{cluster.public_id}", f"/k8s/{cluster.public_id}/api/v1"
    before = LogEntry.objects.count()
    share = small_text().replace("cpu: '1'", f"cpu: '{HUGE}'", 1)
    assert HUGE in share
    client = api.client
    answers = {
        "apply": api.yaml(f"{here}/apply", YAML),
        "pods": api.post(f"{here}/pods/", make_pod("huge", cpu=HUGE)),
        "nodes": api.post(f"{here}/nodes/", make_node("huge", cpu=HUGE)),
        "try": api.yaml(f"{here}/try", YAML),
        "share": api.yaml("/scenarios/", share),
        "kubectl": client.post(
            f"{kube}/namespaces/default/pods", make_pod("huge", cpu=HUGE), content_type="application/json"
        ),
        "kubectl patch": client.patch(
            f"{kube}/nodes/n1/status",
            {"status": {"allocatable": {"cpu": HUGE}}},
            content_type="application/merge-patch+json",
        ),
        "pod page": client.post(
            f"/c/{cluster.public_id}/pods/new/", {"action": "yaml", "yaml": YAML, "then": "queue"}
        ),
        "import page": client.post(f"/c/{cluster.public_id}/import/", {"action": "import", "text": YAML}),
        "share page": client.post("/s/new/", {"text": share}),
    }
    told = {name: (answer.status_code, HUGE in answer.content.decode()) for name, answer in answers.items()}
    assert all(status in (400, 422) and named for status, named in told.values()), told
    assert LogEntry.objects.count() == before
