"""Whose turn it is: wake-ups of many clusters, answered by few workers in this thread."""

from collections import deque
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from playground.clusters import services, wake
from playground.clusters.models import Cluster, Run
from playground.clusters.services import lease, turns
from playground.clusters.services.advance import SHORTEST_BATCH_S, next_budget
from playground.clusters.services.memory import EngineMemory
from playground.clusters.waiting import busy
from playground.engine import Budget
from tests.clusters.builders import make_cluster, make_node, make_pod

pytestmark = pytest.mark.django_db(transaction=True)

Wakes = deque[dict[str, Any]]


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> Wakes:
    """The broker: wake-ups in the order they were sent, those with a countdown left out."""
    queue: Wakes = deque()

    def send(task: str, *, countdown_s: float | None = None, **kwargs: Any) -> bool:
        if countdown_s is None:
            queue.append(kwargs)
        return True

    monkeypatch.setattr(wake, "send", send)
    monkeypatch.setattr(turns, "fair_visit", lambda n_busy: services.Visit(0, Budget(60, max_cycles=1)))
    return queue


def clusters_with_runs(number: int, n_pods: int = 4) -> list[Cluster]:
    made = []
    for _ in range(number):
        cluster = make_cluster(make_node(cpu="32"), *(make_pod(f"p{index}") for index in range(n_pods)))
        services.request_run(cluster=cluster)
        made.append(cluster)
    return made


def answer(wakes: Wakes, memory: EngineMemory) -> services.AdvanceReport:
    return services.take_turn(**wakes.popleft(), memory=memory)


def driven_ago(cluster: Cluster, seconds: float) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(driven_at=timezone.now() - timedelta(seconds=seconds))


def test_the_more_clusters_are_busy_the_shorter_is_a_visit() -> None:
    assert turns.fair_visit(0).wall_s == turns.fair_visit(1).wall_s == 1
    assert turns.fair_visit(20).wall_s == pytest.approx(0.05)


def test_of_doubled_wake_ups_one_leads_to_a_visit_and_the_others_come_late(wakes: Wakes) -> None:
    (cluster,) = clusters_with_runs(1)
    for _ in range(3):
        services.sweep()
    memory = EngineMemory()
    assert len(wakes) == 5  # written, run asked for, swept three times
    assert [answer(wakes, memory).state for _ in range(5)] == ["driven", *["late"] * 4]
    assert len(wakes) == 1
    services.apply_documents(cluster=cluster, objects=[make_pod("later")])
    assert [answer(wakes, memory).state for _ in range(2)] == ["driven", "late"]
    assert len(wakes) == 1


def test_the_sweeper_leaves_alone_what_was_driven_just_now(wakes: Wakes) -> None:
    (cluster,) = clusters_with_runs(1)
    answer(wakes, EngineMemory())
    assert services.sweep() == 0
    driven_ago(cluster, 3)
    assert services.sweep() == 1
    driven_ago(cluster, -3600)  # the database's clock went back
    assert services.sweep() == 1
    assert busy().get().waits_since is None


def test_every_wake_up_that_is_answered_leaves_one_while_there_is_work(wakes: Wakes) -> None:
    clusters = clusters_with_runs(3)
    workers = [EngineMemory(), EngineMemory()]
    for number in range(1000):
        open_runs = set(Run.objects.filter(state__in=Run.OPEN).values_list("cluster_id", flat=True))
        if not open_runs:
            break
        tokens = dict(Cluster.objects.values_list("pk", "lease_token"))
        live = [mail["cluster_id"] for mail in wakes if mail["seen_token"] == tokens[mail["cluster_id"]]]
        assert open_runs <= set(live)
        answer(wakes, workers[number % 2])
    assert {run.state for run in Run.objects.all()} == {Run.State.DONE}
    assert {cluster.pods.exclude(node_name="").count() for cluster in clusters} == {4}


def test_the_cluster_that_has_waited_longest_is_next_whichever_the_wake_up_names(wakes: Wakes) -> None:
    first, second, third = clusters_with_runs(3)
    for cluster, seconds in ((first, 10), (second, 30), (third, 20)):
        driven_ago(cluster, seconds)
    wakes.clear()
    assert services.take_turn(cluster_id=first.pk, memory=EngineMemory()).cycles == 1
    assert not first.cycles.exists() and not third.cycles.exists() and second.cycles.count() == 1
    first.refresh_from_db()
    # The one named is woken again, and no other caller has to think of it.
    assert wakes[0] == {"cluster_id": first.pk, "seen_token": first.lease_token}


def test_a_cluster_waits_a_little_for_the_worker_that_knows_it_and_no_longer(wakes: Wakes) -> None:
    known, other = clusters_with_runs(2)
    at_home = EngineMemory()
    services.advance(cluster_id=known.pk, memory=at_home, visit=services.Visit(0, Budget(60, max_cycles=1)))
    wakes.clear()
    driven_ago(known, 10)
    driven_ago(other, 10 + turns.AT_HOME_S / 2)
    services.take_turn(cluster_id=other.pk, memory=at_home)
    assert (known.cycles.count(), other.cycles.count()) == (2, 0)
    driven_ago(known, 10)
    driven_ago(other, 10 + turns.AT_HOME_S * 2)
    services.take_turn(cluster_id=known.pk, memory=at_home)
    assert (known.cycles.count(), other.cycles.count()) == (2, 1)


def test_a_cluster_another_worker_is_at_or_that_failed_is_not_the_next(wakes: Wakes) -> None:
    held, failing, waiting = clusters_with_runs(3)
    assert lease.claim(held.pk, holder="elsewhere") is not None
    Cluster.objects.filter(pk=failing.pk).update(failures=1)
    driven_ago(waiting, 1)
    memory = EngineMemory()
    assert services.take_turn(cluster_id=waiting.pk, memory=memory).cycles == 1
    assert services.take_turn(cluster_id=held.pk, memory=memory).state == "held"
    # Its own wake-up, which is a delayed one, is answered with a visit to it.
    assert services.take_turn(cluster_id=failing.pk, memory=memory).cycles == 1
    assert failing.cycles.count() == 1


def test_a_killed_workers_wake_up_that_comes_again_is_not_late(wakes: Wakes) -> None:
    (cluster,) = clusters_with_runs(1)
    mail = wakes.popleft()
    assert lease.claim(cluster.pk, holder="killed") is not None
    Cluster.objects.update(lease_expires=timezone.now() - timedelta(seconds=1))
    assert services.take_turn(**mail, memory=EngineMemory()).state == "driven"


def test_clusters_at_1x_with_pods_to_try_take_turns_too(wakes: Wakes) -> None:
    cluster = make_cluster(make_node(cpu="32"), *(make_pod(f"p{index}") for index in range(3)))
    services.set_clock(cluster=cluster, mode="realtime")
    memory = EngineMemory()
    services.take_turn(cluster_id=cluster.pk, memory=memory)
    assert [found.pk for found in busy()] == [cluster.pk]
    for _ in range(5):
        services.take_turn(cluster_id=cluster.pk, memory=memory)
    assert not busy()
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
