"""Old traces go and come back; inputs stay, and superseded outcomes go where that is asked for."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import Conflict
from playground.clusters.history.redecide import recompute_trace
from playground.clusters.log import housekeeping
from playground.clusters.log.housekeeping import check_past_is_there, tidy
from playground.clusters.models import Checkpoint, Cluster, Cycle, Event, ExtenderCall, LogEntry, Pod, Run
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_cluster, make_node, make_pod, run

pytestmark = pytest.mark.django_db


@pytest.mark.dialect
def test_old_traces_are_dropped_and_made_again_and_the_log_is_never_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(housekeeping, "KEPT_CYCLES", 2)
    cluster = make_cluster(make_node("n1", "8"), *(make_pod(f"p{number}") for number in range(6)))
    run(cluster)
    traces = dict(Cycle.objects.values_list("number", "trace"))
    entries = LogEntry.objects.count()
    ExtenderCall.objects.create(cluster=cluster, verb="filter", url="http://x", request=b"x", answer=b"y")

    assert tidy() == {"traces": 0, "logEntries": 0, "liveEntries": 0, "extenderBodies": 0, "runs": 0}
    later = timezone.now() + timedelta(days=15)
    assert tidy(now=later) == {"traces": 4, "logEntries": 0, "liveEntries": 0, "extenderBodies": 1, "runs": 1}
    assert tidy(now=later)["traces"] == 0
    assert set(Cycle.objects.filter(trace=None).values_list("number", flat=True)) == {1, 2, 3, 4}
    assert (LogEntry.objects.count(), Run.objects.count(), ExtenderCall.objects.count()) == (entries, 0, 1)

    assert recompute_trace(cluster_id=cluster.pk, number=2)
    again = Cycle.objects.get(number=2).trace
    assert again is not None and bytes(again) == bytes(traces[2])


def test_without_a_checkpoint_nothing_is_dropped() -> None:
    cluster = make_cluster(make_node(), make_pod())
    run(cluster)
    Checkpoint.objects.all().delete()
    assert tidy(now=timezone.now() + timedelta(days=99))["traces"] == 0


@pytest.mark.dialect
def test_superseded_outcomes_leave_the_log_and_every_cycle_is_decided_again_as_it_was(
    settings: Any, client: Client
) -> None:
    cluster = make_cluster(make_node("n1", "8"), *(make_pod(f"p{number}") for number in range(4)))
    request_run(cluster=cluster)
    memory = EngineMemory()
    advance(cluster_id=cluster.pk, memory=memory)
    inputs = list(LogEntry.objects.filter(source="api").values_list("seq", "payload"))
    pods = list(Pod.objects.order_by("name").values_list("name", "manifest"))
    before = Cluster.objects.get(pk=cluster.pk)
    later = timezone.now() + timedelta(days=31)
    assert tidy(now=later)["logEntries"] == 0

    settings.PLAYGROUND_KEEP_LOG_DAYS = 30
    assert tidy(now=timezone.now() + timedelta(days=29))["logEntries"] == 0
    assert Event.objects.count() == 4
    # That each pod was bound, with the Event that says so, which is no entry.
    assert tidy(now=later)["logEntries"] == 4
    assert Event.objects.count() == 0
    assert tidy(now=later)["logEntries"] == 0

    cluster.refresh_from_db()
    assert cluster.compacted_seq == cluster.compacting_seq == before.engine_seq
    assert list(LogEntry.objects.filter(source="api").values_list("seq", "payload")) == inputs
    assert list(Pod.objects.order_by("name").values_list("name", "manifest")) == pods
    last = LogEntry.objects.filter(object_kind="Pod", object_name="p1").order_by("-seq").first()
    assert last is not None and last.payload["manifest"] == dict(pods)["p1"]
    Cycle.objects.update(trace=None)
    for number in (1, 4):
        assert recompute_trace(cluster_id=cluster.pk, number=number)
    memory.clear()
    apply_documents(cluster=cluster, objects=[make_pod("late")])
    request_run(cluster=cluster)
    advance(cluster_id=cluster.pk, memory=memory)
    assert Pod.objects.get(name="late").node_name == "n1"
    with pytest.raises(Conflict, match="were dropped from the log"):
        check_past_is_there(cluster, cluster.compacted_seq)
    check_past_is_there(cluster, cluster.compacted_seq + 1)
    page = client.get(reverse("web:settings", args=[cluster.public_id])).content.decode()
    assert f"up to entry {cluster.compacted_seq:,}" in page and "30 days" in page
