"""A child process does the work: held to its limits, ended when it is not wanted, replaced when it dies."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from playground.clusters import jobs, lanes, wake
from playground.clusters.jobs import Signs, Subject, SubjectKind
from playground.clusters.lanes import LaneLimits
from playground.clusters.models import Job, Turn
from playground.play import rooms
from playground.play.rooms import Room
from playground.play.watch import ProcessWatch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
linux = pytest.mark.skipif(sys.platform != "linux", reason="stopped processes are seen in /proc")
ENOUGH = LaneLimits(processor_s=60, wall_s=300, memory_bytes=2**30)


def spin(*, test_id: int) -> None:
    while True:
        pass


def eat(*, test_id: int) -> None:
    kept = []
    while True:
        kept.append(bytearray(16 * 2**20))


def sleep(*, test_id: int) -> None:
    time.sleep(600)


def part(*, test_id: int) -> bool:
    return True


def whole(*, test_id: int) -> None:
    return None


def write(*, test_id: int) -> None:
    Turn.objects.create(lane="written", at=timezone.now())


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is told of the subject; `open` says whether its work is wanted."""
    told: dict[str, Any] = {"open": True}
    kind = SubjectKind(lambda pk: Subject("", told["open"]), lambda pk, why: told.update(why=why))
    monkeypatch.setitem(jobs.KINDS, "test_id", kind)
    for work in (spin, eat, sleep, part, whole, write):
        task = jobs.Task(lanes.MAKE, (f"{__name__}:{work.__name__}",), goes_on=work is part)
        monkeypatch.setitem(jobs.TASKS, work.__name__, task)
    monkeypatch.setattr(wake, "look", lambda lane: None)
    return told


@pytest.fixture
def room(said: dict[str, Any]) -> Iterator[Room]:
    room = Room(lanes.MAKE, ENOUGH)
    yield room
    room.close()


def put(task: str) -> None:
    wake.send(task, test_id=1)
    assert Job.objects.count() == 1


def when(holds: Any, then: Any) -> threading.Thread:
    """Do something as soon as something holds, while this thread works."""

    def wait() -> None:
        deadline_s = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_work_is_done_and_the_same_child_does_the_next(room: Room) -> None:
    put("whole")
    assert room.work_once() and not Job.objects.exists()
    assert room.child is not None
    first = room.child.pid
    put("whole")
    assert room.work_once() and room.child.pid == first
    assert not room.work_once()


def test_work_that_is_not_at_its_end_waits_for_its_next_turn(room: Room) -> None:
    put("part")
    assert room.work_once()
    job = Job.objects.get()
    assert (job.holder, job.deaths) == ("", 0) and job.turn_at is not None


def test_processor_time_is_limited_and_the_limit_is_named(room: Room, said: dict[str, Any]) -> None:
    room.limits = LaneLimits(processor_s=1, wall_s=300, memory_bytes=2**30)
    put("spin")
    assert room.work_once() and not Job.objects.exists()
    assert said["why"] == (
        "The work was ended: it used up the 1 s of processor time that one piece of work may use."
    )


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not keep to limits of memory")
def test_memory_is_limited_and_the_limit_is_named(room: Room, said: dict[str, Any]) -> None:
    room.limits = LaneLimits(processor_s=60, wall_s=300, memory_bytes=128 * 2**20)
    put("eat")
    assert room.work_once() and not Job.objects.exists()
    assert "it needed more than the 128 MB of memory" in said["why"]


def test_wall_time_is_limited_and_the_limit_is_named(room: Room, said: dict[str, Any]) -> None:
    room.limits = LaneLimits(processor_s=60, wall_s=1, memory_bytes=2**30)
    put("sleep")
    assert room.work_once() and room.child is None
    assert "it was ended after 1 s, the most that one piece of work may take" in said["why"]


def test_cancelled_work_stops_soon_and_says_nothing_else(room: Room, said: dict[str, Any]) -> None:
    put("sleep")
    cancelling = when(lambda: room.child is not None, lambda: said.update(open=False))
    assert room.work_once() and room.child is None
    cancelling.join(60)
    assert "why" not in said and not Job.objects.exists()


@pytest.mark.parametrize("after_looks", range(1, 8))
def test_whether_work_is_still_wanted_is_asked_each_half_second(
    monkeypatch: pytest.MonkeyPatch, after_looks: int
) -> None:
    """However long the child says nothing: between two questions of a plan at 5,000 nodes lie ten seconds."""
    clock = {"s": 1000.0}
    asked: list[float] = []

    def wait(*lists: Any) -> tuple[list[Any], list[Any], list[Any]]:
        # A little less than was asked for, as clocks have it.
        clock["s"] += lists[3] - 0.001
        return [], [], []

    def look(job: Any) -> bool:
        asked.append(clock["s"])
        return len(asked) < after_looks

    monkeypatch.setattr(rooms.select, "select", wait)
    monkeypatch.setattr(rooms.time, "monotonic", lambda: clock["s"])
    monkeypatch.setattr(rooms, "is_stopped", lambda pid: False)
    for name in ("is_wanted", "renew"):
        monkeypatch.setattr(jobs, name, look)
    room = object.__new__(Room)
    room.limits, room._stopping, room.signs = ENOUGH, threading.Event(), Signs(lanes.MAKE, "")
    child: Any = SimpleNamespace(tells=0, pid=0)
    assert room._look_on(Job(), child, clock["s"]) == {"state": "unwanted"}
    assert max(after - before for before, after in zip([1000.0, *asked], asked, strict=False)) <= 0.5
    assert len(asked) == after_looks


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=linux)])
def test_work_whose_process_dies_is_tried_again_and_given_up_in_the_end(
    room: Room, said: dict[str, Any], how: signal.Signals
) -> None:
    put("sleep")
    for deaths in range(1, lanes.MOST_DEATHS + 1):
        hit = when(lambda: room.child is not None, lambda: os.kill(room.child.pid, how))  # type: ignore[union-attr]
        assert room.work_once()
        hit.join(60)
        if deaths < lanes.MOST_DEATHS:
            assert Job.objects.get().deaths == deaths
    assert not Job.objects.exists()
    assert said["why"] == "The work was ended: its process died 3 times."


def test_a_child_knows_nothing_of_what_the_worker_was_at(room: Room) -> None:
    """SQLite's locks are a process's: the child of one that is writing would find the database locked for ever."""
    began, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            Turn.objects.create(lane="none", at=timezone.now())
            began.set()
            may_end.wait(60)
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    assert began.wait(60)
    room._child()
    may_end.set()
    writer.join(60)
    put("write")
    assert room.work_once() and not Job.objects.exists()
    assert Turn.objects.filter(lane="written").exists()


def test_without_the_process_that_forks_a_worker_begins_anew(room: Room) -> None:
    put("sleep")
    os.kill(room._forks.pid, signal.SIGKILL)
    room.start()
    deadline_s = time.monotonic() + 60
    while room.alive:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert "lane make" in ProcessWatch([room]).why_stuck(time.monotonic())
    assert Job.objects.get().deaths == 0
