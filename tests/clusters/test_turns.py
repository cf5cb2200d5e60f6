"""Whose turn it is: many clusters, driven by few workers in this thread, which no message tells of any."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from playground.clusters.drive import lease, turns
from playground.clusters.drive.advance import SHORTEST_BATCH_S, Visit, advance, next_budget
from playground.clusters.drive.config import set_clock
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.drive.turns import take_turn
from playground.clusters.models import Cluster, Run
from playground.engine.batch import Budget
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def one_cycle_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.clusters.wake.send", lambda task, **how: True)
    monkeypatch.setattr(turns, "fair_visit", lambda n_busy: Visit(0, Budget(60, max_cycles=1)))


def clusters_with_runs(number: int, n_pods: int = 4) -> list[Cluster]:
    made = []
    for _ in range(number):
        cluster = make_cluster(make_node(cpu="32"), *(make_pod(f"p{index}") for index in range(n_pods)))
        request_run(cluster=cluster)
        made.append(cluster)
    return made


def driven_ago(cluster: Cluster, seconds: float) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(driven_at=timezone.now() - timedelta(seconds=seconds))


def test_the_more_clusters_are_busy_the_shorter_is_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert turns.fair_visit(0).wall_s == turns.fair_visit(1).wall_s == 1
    assert turns.fair_visit(5).wall_s == pytest.approx(0.2)
    assert turns.fair_visit(20).wall_s == turns.SHORTEST_VISIT_S


def test_where_nothing_is_to_be_done_a_worker_pauses() -> None:
    make_cluster(make_node())
    report = take_turn(memory=EngineMemory())
    while report.state == "driven":
        report = take_turn(memory=EngineMemory())
    assert (report.state, report.pause_s) == ("idle", turns.LOOK_EVERY_S)


def test_two_workers_end_all_runs_without_a_message() -> None:
    clusters = clusters_with_runs(3)
    workers = [EngineMemory(), EngineMemory()]
    for number in range(200):
        if not Run.objects.filter(state__in=Run.OPEN).exists():
            break
        assert take_turn(memory=workers[number % 2]).state == "driven"
    assert {run.state for run in Run.objects.all()} == {Run.State.DONE}
    assert {cluster.pods.exclude(node_name="").count() for cluster in clusters} == {4}


@pytest.mark.dialect
def test_the_cluster_that_has_waited_longest_is_next() -> None:
    first, second, third = clusters_with_runs(3)
    for cluster, seconds in ((first, 10), (second, 30), (third, 20)):
        driven_ago(cluster, seconds)
    memory = EngineMemory()
    for expected in (second, third, first, second):
        before = expected.cycles.count()
        assert take_turn(memory=memory).cycles == 1
        assert expected.cycles.count() == before + 1


def test_a_pod_of_another_person_waits_for_one_visit_and_not_for_twenty_clusters() -> None:
    ada, eve = (get_user_model().objects.create_user(name, password="x" * 20) for name in ("ada", "eve"))
    *many, own = clusters_with_runs(6)
    Cluster.objects.update(owner=eve)
    Cluster.objects.filter(pk=own.pk).update(owner=ada)
    memory = EngineMemory()
    for cluster in (own, *many):
        advance(cluster_id=cluster.pk, memory=memory, visit=Visit(0, Budget(60, max_cycles=1)))
    for number in (1, 2):
        before = own.cycles.count()
        take_turn(memory=memory)
        take_turn(memory=memory)
        assert own.cycles.count() == before + 1, number
    assert lease.claim(many[0].pk, holder="elsewhere") is not None  # eve is served by another worker
    take_turn(memory=memory)
    assert own.cycles.count() == 4


@pytest.mark.dialect
def test_one_driven_before_the_databases_clock_went_back_has_waited_longest() -> None:
    first, second = clusters_with_runs(2)
    driven_ago(first, 30)
    driven_ago(second, -3600)
    take_turn(memory=EngineMemory())
    assert (first.cycles.count(), second.cycles.count()) == (0, 1)


def test_a_cluster_waits_a_little_for_the_worker_that_knows_it_and_no_longer() -> None:
    known, other = clusters_with_runs(2)
    at_home = EngineMemory()
    advance(cluster_id=known.pk, memory=at_home, visit=Visit(0, Budget(60, max_cycles=1)))
    driven_ago(known, 10)
    driven_ago(other, 10 + turns.AT_HOME_S / 2)
    take_turn(memory=at_home)
    assert (known.cycles.count(), other.cycles.count()) == (2, 0)
    driven_ago(known, 10)
    driven_ago(other, 10 + turns.AT_HOME_S * 2)
    take_turn(memory=at_home)
    assert (known.cycles.count(), other.cycles.count()) == (2, 1)


@pytest.mark.dialect
def test_a_cluster_another_worker_is_at_or_that_failed_just_now_is_not_the_next() -> None:
    held, failing, waiting = clusters_with_runs(3)
    assert lease.claim(held.pk, holder="elsewhere") is not None
    Cluster.objects.filter(pk=failing.pk).update(failures=1)
    driven_ago(failing, 0.0)
    driven_ago(waiting, 0.0)
    memory = EngineMemory()
    assert take_turn(memory=memory).cycles == 1
    assert waiting.cycles.count() == 1
    driven_ago(failing, 2 * turns.FAILED_S)
    assert take_turn(memory=memory).cycles == 1
    assert failing.cycles.count() == 1 and not held.cycles.exists()
    Cluster.objects.exclude(pk=held.pk).delete()
    report = take_turn(memory=memory)
    assert (report.state, report.pause_s) == ("idle", turns.CONTENDED_S)
    Cluster.objects.update(lease_expires=timezone.now() - timedelta(seconds=1))  # its worker was killed
    assert take_turn(memory=memory).cycles == 1


@pytest.mark.dialect
def test_clusters_at_1x_with_pods_to_try_take_turns_too() -> None:
    cluster = make_cluster(make_node(cpu="32"), *(make_pod(f"p{index}") for index in range(3)))
    set_clock(cluster=cluster, mode="realtime")
    memory = EngineMemory()
    for _ in range(6):
        take_turn(memory=memory)
    assert cluster.cycles.count() == 3


def test_a_batch_that_took_too_long_is_followed_by_a_shorter_one() -> None:
    usual = Budget(wall_s=0.4, max_cycles=4096)
    assert next_budget(usual, usual, 0.6) == usual
    short = next_budget(usual, usual, 3.2)
    assert short == Budget(wall_s=pytest.approx(0.1), max_cycles=4096)
    assert next_budget(short, usual, 90.0).wall_s == SHORTEST_BATCH_S
    assert next_budget(short, usual, 0.2).wall_s == pytest.approx(0.2)  # longer by no more than twice
    # A batch that only read shows no progress: what it took is gone from the time of the next.
    assert next_budget(usual, usual, 0.6, decided=False).wall_s == pytest.approx(0.1)
    assert next_budget(usual, usual, 3.2, decided=False).wall_s == SHORTEST_BATCH_S
    raced = Budget(wall_s=0.4, max_cycles=8)
    assert next_budget(raced, usual, 0.1) == raced  # what was said about cycles stands
