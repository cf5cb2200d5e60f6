"""Old traces go and come back; log entries stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from playground.clusters import services
from playground.clusters.models import Checkpoint, Cycle, ExtenderCall, LogEntry, Run
from playground.clusters.services import housekeeping
from playground.clusters.services.memory import EngineMemory
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db


def test_old_traces_are_dropped_and_made_again_and_the_log_is_never_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(housekeeping, "KEPT_CYCLES", 2)
    cluster = make_cluster(make_node("n1", "8"), *(make_pod(f"p{number}") for number in range(6)))
    services.request_run(cluster=cluster)
    services.advance(cluster_id=cluster.pk, memory=EngineMemory())
    traces = dict(Cycle.objects.values_list("number", "trace"))
    entries = LogEntry.objects.count()
    ExtenderCall.objects.create(cluster=cluster, verb="filter", url="http://x", request=b"x", answer=b"y")

    assert services.tidy() == {"traces": 0, "extenderBodies": 0, "runs": 0}
    later = timezone.now() + timedelta(days=15)
    assert services.tidy(now=later) == {"traces": 4, "extenderBodies": 1, "runs": 1}
    assert services.tidy(now=later)["traces"] == 0
    assert list(Cycle.objects.filter(trace=None).values_list("number", flat=True)) == [1, 2, 3, 4]
    assert (LogEntry.objects.count(), Run.objects.count(), ExtenderCall.objects.count()) == (entries, 0, 1)

    assert services.recompute_trace(cluster_id=cluster.pk, number=2)
    again = Cycle.objects.get(number=2).trace
    assert again is not None and bytes(again) == bytes(traces[2])


def test_without_a_checkpoint_nothing_is_dropped() -> None:
    cluster = make_cluster(make_node(), make_pod())
    services.request_run(cluster=cluster)
    services.advance(cluster_id=cluster.pk, memory=EngineMemory())
    Checkpoint.objects.all().delete()
    assert services.tidy(now=timezone.now() + timedelta(days=99))["traces"] == 0
