"""A stock kube-scheduler meets what it would meet at a real API server, request by request."""

from __future__ import annotations

from typing import Any

import pytest

from playground.clusters.models import LogEntry
from playground.clusters.objects.apply import apply_documents
from tests.kube_api.conftest import Kube
from tests.kube_api.foreign_schedulers import RUNS, Replay, recording


@pytest.mark.parametrize("run", RUNS)
def test_every_request_is_answered_with_its_recorded_status(kube: Kube, cluster: Any, run: str) -> None:
    recorded = recording(run)
    apply_documents(cluster=cluster, objects=recorded["objects"])
    replay = Replay(kube)
    wrong = []
    for line in recorded["requests"]:
        if line["by"] == "server":
            continue
        answer = replay.send(line)
        told = b"" if answer.streaming else answer.content[:200]
        if answer.status_code != line["status"] or not answer["Content-Type"].startswith("application/json"):
            wrong.append((line["n"], line["method"], line["path"], line["status"], answer.status_code, told))
    assert wrong == []
    check_after(replay, recorded["after"])
    in_log = LogEntry.objects.filter(cluster=cluster, object_kind__in=("Event", "Lease"))
    assert not in_log.exclude(source=LogEntry.Source.KEPT).exists()


def check_after(replay: Replay, after: dict[str, Any]) -> None:
    kube = replay.kube
    for name, wanted in after.get("pods", {}).items():
        pod = kube.get(f"/api/v1/namespaces/default/pods/{name}").json()
        assert pod["spec"].get("nodeName") == wanted.get("nodeName"), name
    for event in after.get("events", ()):
        place = f"namespaces/{event['namespace']}/events/{event['name']}"
        new = kube.get(f"/apis/events.k8s.io/v1/{place}").json()
        old = kube.get(f"/api/v1/{place}").json()
        assert (new["note"], new["regarding"]) == (old["message"], old["involvedObject"])
        assert new["note"] == replay.here(event["text"])
        assert new["reportingController"] == old["reportingComponent"] == event["reporter"]
        if "seriesCount" in event:
            assert new["series"]["count"] == event["seriesCount"]
    for lease in after.get("leases", ()):
        place = f"/apis/coordination.k8s.io/v1/namespaces/{lease['namespace']}/leases/{lease['name']}"
        spec = kube.get(place).json()["spec"]
        assert spec.get("holderIdentity", "") == lease.get("holderIdentity", spec.get("holderIdentity", ""))
