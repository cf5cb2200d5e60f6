"""The clock at 1x, paced by an injected wall clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive import turns
from playground.clusters.drive.advance import AdvanceReport, Visit, advance
from playground.clusters.drive.config import set_clock
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.drive.turns import take_turn
from playground.clusters.kinds import named
from playground.clusters.models import Cluster, Event, Pod, PodDisruptionBudget
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object, delete_object
from playground.engine.batch import Budget
from tests.clusters.builders import START_NS, make_cluster, make_node, make_pod
from tests.tables import table

pytestmark = pytest.mark.django_db


class Wall:
    """A wall clock that goes where it is told, and the worker that lives by it."""

    def __init__(self) -> None:
        self.at = datetime(2027, 1, 1, tzinfo=UTC)
        self.memory = EngineMemory()

    def now(self) -> datetime:
        return self.at

    def passes(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    def turn(self) -> AdvanceReport:
        return take_turn(memory=self.memory, now=self.now)

    def work(self, cluster: Cluster) -> str:
        report = advance(cluster_id=cluster.pk, memory=self.memory, now=self.now)
        cluster.refresh_from_db()
        assert report.state in ("driven", "idle"), cluster.last_error
        return report.state


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    wall = Wall()
    monkeypatch.setattr("playground.clusters.clock.wall_now", wall.now)
    monkeypatch.setattr("playground.clusters.wake.send", lambda task, **how: True)
    return wall


def elapsed_s(cluster: Cluster, wall: Wall) -> float:
    return (virtual_now_ns(cluster, wall.at) - START_NS) / 1e9


def delete(cluster: Cluster, name: str, grace_s: int) -> None:
    kind = named("Pod")
    delete_object(cluster=cluster, kind=kind, namespace="default", name=name, grace_s=grace_s)


def paced(wall: Wall, *pods: dict[str, Any], rate: float = 1) -> Cluster:
    cluster = make_cluster(make_node(), *pods)
    set_clock(cluster=cluster, mode="realtime", rate=rate)
    wall.work(cluster)
    return cluster


def test_virtual_time_follows_the_wall_clock_at_its_rate(wall: Wall) -> None:
    cluster = paced(wall, rate=10)
    wall.passes(3)
    assert elapsed_s(cluster, wall) == 30
    set_clock(cluster=cluster, mode="realtime", rate=1)
    wall.passes(3)
    assert elapsed_s(cluster, wall) == 33
    set_clock(cluster=cluster, mode="paused")
    wall.work(cluster)
    wall.passes(1000)
    assert elapsed_s(cluster, wall) == 33


def test_due_timers_fire_in_order_and_a_worker_pauses_until_the_next(wall: Wall) -> None:
    cluster = paced(wall, *(make_pod(name, "1", nodeName="n1") for name in "abc"))
    for name, grace_s in (("a", 20), ("b", 10), ("c", 50)):
        delete(cluster, name, grace_s)
    wall.work(cluster)
    wall.passes(9.6)
    assert (wall.turn().state, wall.turn().pause_s) == ("idle", pytest.approx(0.4))
    wall.passes(15.4)
    assert wall.turn().state == "driven"
    assert list(Pod.objects.values_list("name", flat=True)) == ["c"]
    assert (wall.turn().state, wall.turn().pause_s) == (
        "idle",
        turns.LOOK_EVERY_S,
    )  # looked at again before it is due


def test_after_a_gap_of_over_a_minute_the_clock_is_anchored_anew_and_says_so(wall: Wall) -> None:
    cluster = paced(wall, make_pod("a", "1", nodeName="n1"))
    delete(cluster, "a", 10)
    wall.work(cluster)
    wall.passes(8 * 3600)
    assert wall.work(cluster) == "driven"
    assert not Pod.objects.exists()
    assert elapsed_s(cluster, wall) == 10
    assert cluster.clock_note == "The clock stood still for 28790 s while no worker was there."
    wall.passes(5)
    assert elapsed_s(cluster, wall) == 15


def test_a_short_gap_is_caught_up_with(wall: Wall) -> None:
    cluster = paced(wall, make_pod("a", "1", nodeName="n1"))
    delete(cluster, "a", 10)
    wall.work(cluster)
    wall.passes(65)
    wall.work(cluster)
    assert (elapsed_s(cluster, wall), cluster.clock_note) == (65, "")


def test_a_quiet_cluster_has_no_gap(wall: Wall) -> None:
    cluster = paced(wall)
    wall.passes(3600)
    apply_documents(cluster=cluster, objects=[make_pod("late")])
    wall.work(cluster)
    assert (elapsed_s(cluster, wall), cluster.clock_note) == (3600, "")
    assert Pod.objects.get().manifest["metadata"]["creationTimestamp"] == "2027-01-15T09:00:00Z"


def test_a_wall_clock_that_goes_back_never_moves_virtual_time_and_does_not_stop_it(wall: Wall) -> None:
    cluster = paced(wall, make_pod("a", "1", nodeName="n1"))
    wall.passes(100)
    delete(cluster, "a", 30)
    wall.work(cluster)
    seen = [elapsed_s(cluster, wall)]
    wall.passes(-7200)
    seen.append(elapsed_s(cluster, wall))
    assert wall.turn().state == "driven"
    cluster.refresh_from_db()
    assert cluster.clock_note.startswith("The wall clock went back by 7200 s")
    for seconds in (10, 19, 2):
        wall.passes(seconds)
        wall.work(cluster)
        seen.append(elapsed_s(cluster, wall))
    assert seen == [100, 100, 110, 129, 131]
    assert not Pod.objects.exists()


def test_clocks_of_two_machines_may_differ_a_little(wall: Wall) -> None:
    cluster = paced(wall)
    wall.passes(100)
    apply_documents(cluster=cluster, objects=[make_pod()])
    wall.work(cluster)
    wall.passes(-3)
    assert wall.work(cluster) == "idle"
    assert (elapsed_s(cluster, wall), cluster.clock_note) == (100, "")


def test_a_run_until_idle_may_jump_ahead_of_the_wall_clock_and_the_clock_goes_on_from_there(
    wall: Wall,
) -> None:
    cluster = paced(wall, make_pod("a", "1", nodeName="n1"))
    delete(cluster, "a", 600)
    request_run(cluster=cluster, until="30m")
    wall.work(cluster)
    assert elapsed_s(cluster, wall) == 1800
    wall.passes(7)
    assert elapsed_s(cluster, wall) == 1807


def test_at_1x_a_visit_that_is_over_before_the_pods_are_leaves_work_for_the_next(wall: Wall) -> None:
    cluster = paced(wall)
    apply_documents(cluster=cluster, objects=[make_pod(f"p{number}", "100m") for number in range(9)])
    wall.passes(1)
    visit = Visit(wall_s=0, batch=Budget(wall_s=60, max_cycles=2))
    visits = 0
    while advance(cluster_id=cluster.pk, memory=wall.memory, now=wall.now, visit=visit).more:
        visits += 1
    assert visits >= 4
    assert Pod.objects.filter(node_name="n1").count() == 9


def test_at_1x_pods_that_a_step_left_are_tried_without_another_step(wall: Wall) -> None:
    cluster = make_cluster(make_node(), make_pod("a"), make_pod("b"))
    set_clock(cluster=cluster, mode="realtime")
    request_run(cluster=cluster, until="cycle")
    while advance(cluster_id=cluster.pk, memory=wall.memory, now=wall.now).more:
        pass
    assert Pod.objects.filter(node_name="n1").count() == 2


def test_what_was_deleted_right_after_the_engine_wrote_it_stays_deleted(wall: Wall) -> None:
    # One visit reads a creation and a deletion a moment later; what the engine did in between comes too late.
    cluster = paced(wall)
    create_object(cluster=cluster, manifest=make_pod("brief"))
    wall.passes(0.1)
    delete(cluster, "brief", 0)
    wall.passes(0.1)
    wall.work(cluster)
    assert not Pod.objects.filter(cluster=cluster).exists()


def test_a_budget_deleted_after_its_pod_is_not_written_again(wall: Wall) -> None:
    budget = table(__file__, "a_budget_deleted_after_its_pod_is_not_written_again")
    cluster = paced(wall, make_pod("a"), budget)
    kind = named("PodDisruptionBudget")
    delete(cluster, "a", 0)
    wall.passes(0.1)
    delete_object(cluster=cluster, kind=kind, namespace="default", name="b")
    wall.passes(0.1)
    wall.work(cluster)
    assert not PodDisruptionBudget.objects.filter(cluster=cluster).exists()


def test_what_people_change_before_the_engine_looks_holds_together_with_what_it_did_in_between(
    wall: Wall,
) -> None:
    cluster = make_cluster(make_node("n1"), make_node("n2"))
    set_clock(cluster=cluster, mode="realtime")
    wall.work(cluster)
    wall.passes(1)
    apply_documents(cluster=cluster, objects=[make_pod("labelled"), make_pod("ends")])
    wall.passes(1)
    changed = make_pod("labelled")
    changed["metadata"]["labels"] = {"tier": "web"}
    apply_documents(cluster=cluster, objects=[changed])
    delete(cluster, "ends", grace_s=0)
    wall.passes(1)
    wall.work(cluster)
    # It is bound at the time at which it was created, once, and the label that came later is kept.
    labelled = Pod.objects.get(name="labelled")
    assert labelled.manifest["metadata"]["labels"] == {"tier": "web"}
    assert (bool(labelled.node_name), labelled.phase) == (True, "Running")
    told = Event.objects.filter(cluster=cluster, reason="Scheduled", involved_name="labelled")
    assert told.count() == 1
    assert f"to {labelled.node_name}" in told.get().manifest["message"]
    assert not Pod.objects.filter(name="ends").exists()


def test_what_the_cluster_removed_in_between_does_not_come_back_by_a_late_change(wall: Wall) -> None:
    cluster = make_cluster(make_node("n1"), make_pod("going"))
    set_clock(cluster=cluster, mode="realtime")
    wall.passes(1)
    wall.work(cluster)
    delete(cluster, "going", grace_s=5)
    wall.passes(10)
    changed = make_pod("going")
    changed["metadata"]["labels"] = {"tier": "web"}
    apply_documents(cluster=cluster, objects=[changed])
    wall.passes(1)
    wall.work(cluster)
    assert not Pod.objects.filter(name="going").exists()
    request_run(cluster=cluster, until="idle")
    wall.work(cluster)
    assert not Pod.objects.filter(name="going").exists()
