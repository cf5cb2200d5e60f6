"""From a request to rows: the log, the lease, batches, races, killed and stalled workers."""

import os
import subprocess
import threading
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from playground.clusters.drive import commit, lease
from playground.clusters.drive.advance import Visit
from playground.clusters.drive.lease import Lease
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import cancel_run, request_run, unpark_cluster
from playground.clusters.drive.turns import take_turn
from playground.clusters.errors import Conflict
from playground.clusters.history.redecide import recompute_trace, request_trace
from playground.clusters.kinds import named
from playground.clusters.lifecycle import delete_cluster, reset_cluster
from playground.clusters.log.housekeeping import tidy
from playground.clusters.models import Checkpoint, Cluster, Cycle, Event, LogEntry, Pod, QueueSnapshot, Run
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import bind_pod, delete_object, patch_object
from playground.engine.batch import Engine
from playground.engine.entries import explain_trace
from tests.clusters.builders import START_NS, Worker, make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db


@pytest.mark.dialect
def test_a_run_until_idle_binds_what_fits_and_the_log_folds_to_the_rows() -> None:
    pods = [make_pod(f"p{number}") for number in range(6)]
    cluster = make_cluster(make_node("n1", "4"), *pods)
    run = request_run(cluster=cluster, until="idle")

    report = Worker().advance(cluster)

    run.refresh_from_db()
    assert (report.state, report.cycles, report.more) == ("driven", 6, False)
    assert (run.state, run.stop, run.cycles_done, run.pods_bound) == ("done", "idle", 6, 4)
    assert Pod.objects.filter(cluster=cluster, node_name="n1").count() == 4
    assert set(Pod.objects.filter(lane="unschedulable").values_list("name", flat=True)) == {"p4", "p5"}
    assert [cycle.number for cycle in Cycle.objects.order_by("number")] == [1, 2, 3, 4, 5, 6]
    seqs = list(LogEntry.objects.filter(cluster=cluster).values_list("seq", flat=True))
    seqs += Event.objects.filter(cluster=cluster).values_list("resource_version", flat=True)
    assert sorted(seqs) == list(range(1, cluster.next_seq))


def test_written_objects_are_read_without_a_run_and_nothing_is_scheduled() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    report = Worker().advance(cluster)
    assert (report.state, report.cycles) == ("driven", 0)
    assert Pod.objects.get().lane == "active"
    assert cluster.cursor_seq == cluster.last_input_seq


def test_late_doubled_and_unneeded_wake_ups_change_nothing() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    request_run(cluster=cluster)
    worker = Worker()
    worker.advance(cluster)
    before = (cluster.version, cluster.next_seq, cluster.lease_token)
    assert [worker.advance(cluster).state for _ in range(3)] == ["idle"] * 3
    assert Worker("worker-2").advance(cluster).state == "idle"
    assert (cluster.version, cluster.next_seq, cluster.lease_token) == before


@pytest.mark.dialect
def test_an_expired_lease_is_taken_over_and_the_stalled_worker_cannot_commit() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    run = request_run(cluster=cluster)
    stalled = Worker("stalled")
    other = Worker("other")

    def stall() -> None:
        Cluster.objects.filter(pk=cluster.pk).update(lease_expires=timezone.now() - timedelta(seconds=1))
        assert other.advance(cluster).state == "driven"

    stalled.during = stall
    report = stalled.advance(cluster)

    assert (report.state, report.batches) == ("fenced", 0)
    run.refresh_from_db()
    assert (run.state, run.cycles_done) == ("done", 1)
    assert Cycle.objects.count() == 1
    # The one that was fenced off comes back with an engine that is behind, and notices.
    apply_documents(cluster=cluster, objects=[make_pod("b")])
    request_run(cluster=cluster)
    assert stalled.advance(cluster).cycles == 1


@pytest.mark.dialect
def test_a_worker_killed_before_its_commit_loses_and_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster(make_node("n1", "8"), *(make_pod(f"p{number}") for number in range(6)))
    request_run(cluster=cluster)

    class Killed(BaseException):
        pass

    def killed(*args: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(commit, "_keep_queue", killed)
        Worker("killed").advance(cluster)
    cluster.refresh_from_db()
    assert (Cycle.objects.count(), cluster.failures) == (0, 1)
    assert Worker("next").advance(cluster).state == "held"
    Cluster.objects.update(lease_expires=timezone.now() - timedelta(seconds=1))
    assert Worker("next").advance(cluster).cycles == 6
    assert (Cycle.objects.count(), cluster.failures) == (6, 0)
    assert Pod.objects.exclude(node_name="").count() == 6


@pytest.mark.dialect
def test_three_failures_park_the_cluster_with_the_reason_and_unparking_lets_it_go_on() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    run = request_run(cluster=cluster)
    worker = Worker()
    worker.fail = "a poisonous pod"
    assert [worker.advance(cluster).state for _ in range(5)] == ["failed"] * 3 + ["parked"] * 2
    run.refresh_from_db()
    assert run.state == "failed"
    assert "failed 3 times in a row: RuntimeError: a poisonous pod" in cluster.parked_reason
    assert run.message == cluster.parked_reason
    with pytest.raises(Conflict, match="parked"):
        request_run(cluster=cluster)
    assert take_turn(memory=EngineMemory()).state == "idle"

    worker.fail = ""
    unpark_cluster(cluster=cluster)
    request_run(cluster=cluster)
    assert worker.advance(cluster).cycles == 1


@pytest.mark.dialect
def test_a_batch_that_lost_a_race_is_decided_again_with_the_newer_object() -> None:
    cluster = make_cluster(make_node("n1", "4"), make_pod("a", "3"), make_pod("b", "3"))
    request_run(cluster=cluster)
    worker = Worker()

    pod = {"kind": named("Pod"), "namespace": "default", "name": "a"}
    worker.during = lambda: delete_object(cluster=Cluster.objects.get(), **pod)
    worker.advance(cluster)

    assert list(Pod.objects.values_list("name", "node_name")) == [("b", "n1")]
    assert Cycle.objects.get().pod == "default/b"


def test_what_is_written_meanwhile_about_other_objects_waits_for_the_next_batch() -> None:
    cluster = make_cluster(make_node("n1", "4"), make_pod("a"))
    request_run(cluster=cluster)
    worker = Worker()

    worker.during = lambda: apply_documents(cluster=Cluster.objects.get(), objects=[make_pod("b")])
    report = worker.advance(cluster)
    assert report.cycles == 1
    assert Pod.objects.get(name="b").lane == "active"
    ran = LogEntry.objects.filter(kind="ran").order_by("seq").first()
    assert ran is not None
    assert ran.payload["read"] < LogEntry.objects.get(object_name="b", source="api").seq < ran.seq
    # Another worker gets to the same state from the log alone, although the input stands before the run it
    # was not part of.
    Checkpoint.objects.all().delete()
    request_run(cluster=cluster)
    assert Worker("other").advance(cluster).cycles == 1
    assert Pod.objects.exclude(node_name="").count() == 2


def test_a_warm_worker_restores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "restore", None)
    cluster = make_cluster(make_node(), make_pod("a"))
    worker = Worker()
    for _ in range(3):
        request_run(cluster=cluster, until="cycle")
        worker.advance(cluster)
    assert Cycle.objects.count() == 1


def test_a_long_run_yields_shows_progress_and_can_be_cancelled() -> None:
    cluster = make_cluster(make_node("n1", "100"), *(make_pod(f"p{number:02}") for number in range(20)))
    run = request_run(cluster=cluster)
    worker = Worker()
    short = Visit(wall_s=0, batch=worker.visit.batch)
    report = worker.advance(cluster, visit=short)
    run.refresh_from_db()
    assert (report.more, run.state, run.cycles_done, run.progress) == (True, "running", 4, 0.2)

    cancel_run(run=run)
    assert (run.state, run.cancel_requested) == ("running", True)
    worker.advance(cluster, visit=short)
    run.refresh_from_db()
    assert (run.state, run.cycles_done, run.message) == ("cancelled", 4, "Cancelled after 4 cycles.")
    assert worker.advance(cluster).state == "idle"
    assert cancel_run(run=run).state == "cancelled"


def test_a_run_stops_at_its_own_bound() -> None:
    cluster = make_cluster(make_node("n1", "100"), *(make_pod(f"p{number}") for number in range(9)))
    run = request_run(cluster=cluster, max_cycles=6)
    Worker().advance(cluster)
    run.refresh_from_db()
    assert (run.state, run.stop, run.cycles_done) == ("done", "budget", 6)


def test_runs_are_served_in_order() -> None:
    cluster = make_cluster(make_node(), make_pod("a"), make_pod("b"))
    first = request_run(cluster=cluster, until="cycle")
    second = request_run(cluster=cluster, until="idle")
    Worker().advance(cluster)
    assert list(Run.objects.order_by("finished").values_list("pk", flat=True)) == [first.pk, second.pk]


@pytest.mark.dialect
def test_a_deleted_or_reset_cluster_fences_its_engine_off() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    request_run(cluster=cluster)
    worker = Worker()

    worker.during = lambda: reset_cluster(cluster=Cluster.objects.get(pk=cluster.pk))
    assert worker.advance(cluster).state == "fenced"
    assert (Cycle.objects.count(), cluster.now_ns) == (0, START_NS)

    request_run(cluster=cluster)
    worker.during = lambda: delete_cluster(cluster=Cluster.objects.get(pk=cluster.pk))
    assert worker.advance(cluster).state == "fenced"
    assert Worker().advance(cluster).state == "gone"


def test_a_reset_cluster_runs_to_the_same_end() -> None:
    cluster = make_cluster(make_node("n1", "3"), *(make_pod(f"p{number}") for number in range(4)))

    def outcomes() -> list[Any]:
        request_run(cluster=cluster)
        Worker().advance(cluster)
        return list(Cycle.objects.order_by("number").values_list("number", "pod_name", "node", "digest"))

    first = outcomes()
    reset_cluster(cluster=cluster)
    assert (Cycle.objects.count(), QueueSnapshot.objects.count()) == (0, 0)
    assert Pod.objects.exclude(node_name="").count() == 0
    assert outcomes() == first


@pytest.mark.parametrize("days", [0, 30])
def test_a_reset_keeps_what_people_changed_and_nothing_that_was_decided(settings: Any, days: int) -> None:
    """A write by a person holds the whole object, with the node the scheduler had given it by then."""
    cluster = make_cluster(make_node("n1", "8"), *(make_pod(name) for name in ("patched", "sent", "left")))
    apply_documents(cluster=cluster, objects=[make_pod("placed", nodeName="n1")])
    bind_pod(cluster=cluster, namespace="default", name="sent", node="n1")
    request_run(cluster=cluster)
    Worker().advance(cluster)
    for name in ("patched", "placed", "sent"):
        for changed in ({"labels": {"tier": name}, "annotations": {"by": "ada"}}, {"annotations": None}):
            pod = {"kind": named("Pod"), "namespace": "default", "name": name}
            patch_object(cluster=cluster, **pod, patch={"metadata": changed})
    settings.PLAYGROUND_KEEP_LOG_DAYS = days
    tidy(now=timezone.now() + timedelta(days=31))
    cluster.refresh_from_db()
    assert (cluster.compacted_seq > 0) == bool(days)
    reset_cluster(cluster=cluster)
    pods = {row.name: row.manifest for row in Pod.objects.all()}
    nodes = {name: pod["spec"].get("nodeName") for name, pod in pods.items()}
    assert nodes == {"patched": None, "sent": None, "left": None, "placed": "n1"}
    assert pods["patched"]["metadata"]["labels"] == {"tier": "patched"}
    assert "annotations" not in pods["patched"]["metadata"]
    assert pods["patched"].get("status") == pods["left"].get("status") == pods["sent"].get("status")
    request_run(cluster=cluster)
    Worker().advance(cluster)
    assert set(Pod.objects.values_list("node_name", flat=True)) == {"n1"}


@pytest.mark.dialect
def test_the_lease_of_a_dead_process_of_this_machine_is_free_at_once() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    finished = subprocess.Popen(["true"])
    finished.wait()
    host = lease.holder_name().rpartition(":")[0]
    assert lease.claim(cluster.pk, holder=f"{host}:{os.getpid()}") is not None
    assert Worker().advance(cluster).state == "held"
    Cluster.objects.update(lease_holder=f"{host}:{finished.pid}")
    assert Worker().advance(cluster).state == "driven"


@pytest.mark.dialect
def test_a_token_that_is_not_the_newest_commits_nothing() -> None:
    cluster = make_cluster()
    old = lease.claim(cluster.pk)
    assert old is not None
    Cluster.objects.update(lease_expires=timezone.now() - timedelta(seconds=1))
    new = lease.claim(cluster.pk)
    assert new is not None and new.token == old.token + 1
    assert lease.renew(old) is False
    assert lease.release(old) is False
    assert lease.renew(new) is True
    assert lease.release(Lease(cluster.pk, new.token)) is True


@pytest.mark.dialect
def test_a_lease_goes_by_the_databases_clock_whatever_a_worker_thinks_the_time_is() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    assert lease.claim(cluster.pk, holder="other") is not None

    far_ahead = timezone.now() + timedelta(hours=2)
    assert Worker().advance(cluster, now=lambda: far_ahead).state == "held"
    Cluster.objects.filter(pk=cluster.pk).update(lease_expires=timezone.now() - timedelta(seconds=1))
    assert Worker().advance(cluster, now=lambda: timezone.now() - timedelta(hours=2)).state == "driven"


@pytest.mark.dialect
def test_a_lease_written_before_the_clock_went_back_keeps_no_worker_waiting() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    assert lease.claim(cluster.pk, holder="other") is not None
    Cluster.objects.filter(pk=cluster.pk).update(lease_expires=timezone.now() + timedelta(hours=1))
    assert Worker().advance(cluster).state == "driven"


@pytest.mark.dialect
def test_an_engine_behind_the_rows_commits_nothing_whatever_its_token() -> None:
    cluster = make_cluster(make_node(), make_pod("a"))
    request_run(cluster=cluster)
    behind = Worker("behind")

    def overtaken() -> None:
        token = Cluster.objects.get(pk=cluster.pk).lease_token
        Cluster.objects.filter(pk=cluster.pk).update(lease_expires=timezone.now() - timedelta(seconds=1))
        assert Worker("other").advance(cluster).state == "driven"
        Cluster.objects.filter(pk=cluster.pk).update(lease_token=token)

    behind.during = overtaken
    assert behind.advance(cluster).state == "fenced"
    assert Cycle.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_no_two_claims_share_a_token_even_where_every_lease_has_run_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = make_cluster()
    claimants, claims = 3, 10
    tokens: list[int] = []
    ready = threading.Barrier(claimants)

    def claim_often() -> None:
        ready.wait()
        for _ in range(claims):
            taken = lease.claim(cluster.pk)
            if taken is not None:
                tokens.append(taken.token)
        connection.close()

    monkeypatch.setattr(lease, "LEASE_S", -1.0)
    threads = [threading.Thread(target=claim_often) for _ in range(claimants)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == len(set(tokens)) > 1


def test_a_bulk_run_keeps_summaries_and_a_trace_comes_back_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("playground.clusters.drive.advance"), "BODY_ROWS", 4)
    cluster = make_cluster(make_node("n1", "6"), *(make_pod(f"p{number}") for number in range(8)))
    request_run(cluster=cluster)
    worker = Worker()
    worker.advance(cluster)
    kept = dict(Cycle.objects.values_list("number", "trace"))
    assert [number for number, trace in kept.items() if trace is None] == [5, 6]
    assert request_trace(cluster=cluster, number=1) is False
    assert request_trace(cluster=cluster, number=6) is True
    assert recompute_trace(cluster_id=cluster.pk, number=6)
    assert explain_trace(bytes(Cycle.objects.get(number=6).trace or b""))["pod"] == "default/p5"

    Cycle.objects.filter(number=5).update(digest="0f" * 32)
    assert not recompute_trace(cluster_id=cluster.pk, number=5)
    assert "differently" in Cycle.objects.get(number=5).trace_note
    assert request_trace(cluster=cluster, number=5) is False
