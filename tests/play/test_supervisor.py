"""Every process of the site is started again, whatever ends or stops it, and none outlives the supervisor."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playground.play.processes import descendants, is_stopped
from playground.play.supervisor import ProcessPlace, Supervisor
from playground.play.watch import ProcessWatch

WAIT_S = 60.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="stopped processes are seen in /proc")


def until(holds, supervisor: Supervisor | None = None) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        if supervisor is not None:
            supervisor.look()
        time.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def supervisor(tmp_path: Path):
    places = [ProcessPlace(name, lambda: signal.pause()) for name in ("one", "two")]
    supervisor = Supervisor(places, tmp_path / "log", lambda sentence: None)
    supervisor.start()
    yield supervisor
    supervisor.stop()


def test_a_killed_process_is_started_again_and_the_others_are_left_alone(supervisor: Supervisor) -> None:
    one, two = supervisor.places
    first, other = one.pid, two.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: one.pid not in (0, first), supervisor)
    assert lives(one.pid) and two.pid == other


@linux
def test_a_stopped_process_is_ended_and_started_again(supervisor: Supervisor) -> None:
    one = supervisor.places[0]
    first = one.pid
    os.kill(first, signal.SIGSTOP)
    until(lambda: one.pid not in (0, first), supervisor)
    assert not lives(first)


def test_it_stops_all_of_them(supervisor: Supervisor) -> None:
    pids = [place.pid for place in supervisor.places]
    supervisor.stop()
    assert not any(lives(pid) for pid in pids)


def test_they_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    program = (
        "import signal, sys, time; from pathlib import Path;"
        "from playground.play.supervisor import ProcessPlace, Supervisor;"
        "s = Supervisor([ProcessPlace('one', lambda: signal.pause())], Path(sys.argv[1]), print); s.start();"
        "print(s.places[0].pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "playground.settings"},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    until(lambda: not lives(child))


@linux
def test_a_worker_ends_what_is_stopped_below_it_even_while_its_rooms_wait_for_a_lock() -> None:
    watch = ProcessWatch([])
    program = "import subprocess; subprocess.run(['sleep', '600'])"
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        until(lambda: descendants(child.pid))
        (grandchild,) = descendants(child.pid)
        now_s = time.monotonic()
        assert watch.end_stopped(now_s) == []
        os.kill(grandchild, signal.SIGSTOP)
        until(lambda: is_stopped(grandchild))
        assert watch.end_stopped(now_s) == []  # a moment is no reason
        os.kill(grandchild, signal.SIGCONT)
        until(lambda: not is_stopped(grandchild))
        assert watch.end_stopped(now_s + 10) == []
        os.kill(grandchild, signal.SIGSTOP)
        until(lambda: is_stopped(grandchild))
        assert watch.end_stopped(now_s + 11) == []
        assert watch.end_stopped(now_s + 12) == [grandchild]
        assert child.wait(WAIT_S) == 0
