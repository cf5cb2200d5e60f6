"""Moves in the scheduling queue are kept for the stories of pods, within bounds."""

import pytest

from playground.clusters.drive import moves
from playground.clusters.drive.moves import keep_moves
from playground.clusters.history.story import pod_traces
from playground.clusters.lifecycle import create_cluster, reset_cluster
from playground.clusters.models import QueueMove as StoredMove
from playground.clusters.objects.apply import apply_documents
from scheduler_core.queue.moves import Lane, QueueMove
from tests.clusters.builders import run
from tests.tables import table

pytestmark = pytest.mark.django_db

NODE = table(__file__, "NODE")
POD = table(__file__, "POD")


@pytest.fixture
def cluster(monkeypatch):
    from playground.clusters import wake

    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    return create_cluster(name="moves", seed=1)


def record(name="p", source="", target="activeQ", event="PodAdd"):
    return QueueMove(0, f"default/{name}", name, Lane(source), Lane(target), event)


def test_the_event_and_hint_that_moved_a_pod_are_kept(cluster):
    apply_documents(cluster=cluster, text=NODE % ("small", "1"))
    apply_documents(cluster=cluster, text=POD)
    run(cluster)
    apply_documents(cluster=cluster, text=NODE % ("large", "8"))
    run(cluster)
    told = [
        (m.source, m.target, m.event, m.plugin, m.hint) for m in pod_traces(cluster, "default", "big").moves
    ]
    assert told[0][:2] == ("", "activeQ")
    assert ("inFlight", "unschedulable") in [move[:2] for move in told]
    assert told[-1] == ("unschedulable", "activeQ", "NodeAdd", "NodeResourcesFit", "Queue") or told[-1] == (
        "unschedulable",
        "backoffQ",
        "NodeAdd",
        "NodeResourcesFit",
        "Queue",
    )


def test_a_reset_forgets_them(cluster):
    keep_moves(cluster, [record()])
    reset_cluster(cluster=cluster)
    assert not StoredMove.objects.exists()


def test_a_batch_keeps_what_tells_most(cluster, monkeypatch):
    monkeypatch.setattr(moves, "MOST_OF_A_BATCH", 3)
    moved = [record("m", "unschedulable", "activeQ", "NodeAdd")] * 2
    left = [record("l", "unschedulable", "unschedulable", "NodeAdd")] * 5
    new = [record(f"n{i}") for i in range(5)]
    popped = [record("m", "activeQ", "inFlight", "Pop")]
    keep_moves(cluster, [*new, *left, *popped, *moved])
    kept = [(m.pod_name, m.target) for m in StoredMove.objects.order_by("id")]
    assert kept == [("n0", "activeQ"), ("m", "activeQ"), ("m", "activeQ")]


@pytest.mark.dialect
def test_the_oldest_of_a_cluster_go_first(cluster, monkeypatch):
    monkeypatch.setattr(moves, "MOST_OF_A_CLUSTER", 4)
    monkeypatch.setattr(moves, "TRIM_EVERY", 1)
    for i in range(10):
        keep_moves(cluster, [record(f"p{i}")])
    assert [m.pod_name for m in StoredMove.objects.order_by("id")] == ["p6", "p7", "p8", "p9"]
