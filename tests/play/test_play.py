"""`manage.py play`, started for real."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from playground.play.management.commands.play import _listen, lock_data_folder
from tests.play import started
from tests.play.started import until
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[2]


class Playground(started.Site):
    """A running playground with a data folder of its own."""

    def __init__(self, data: Path) -> None:
        super().__init__(data, free_port())

    def wait_until_it_says(self, words: str) -> str:
        return str(until(lambda: next((line for line in self.said() if words in line), "")))

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    def own(self) -> list[int]:
        """The site's own processes, by id."""
        listed = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in listed for pid in children.read_text().split()]


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[Playground]:
    playground = Playground(tmp_path / "data")
    yield playground
    if playground.process.poll() is None:
        playground.process.kill()
    playground.process.wait()


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stop_signal",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly("playground/play/"))],
)
def test_play_serves_says_where_and_stops_cleanly_also_while_a_live_page_is_open(
    playground: Playground, stop_signal: int
) -> None:
    line = playground.wait_until_it_says("Playground ready")
    assert line.startswith(f"Playground ready: http://127.0.0.1:{playground.port}/")
    assert "Ctrl-C" in line
    demo = re.search(r"Demo cluster: http://127\.0\.0\.1:\d+(/\S+/) ", line)
    assert playground.ask("GET", demo[1])[0] == 200
    assert playground.ask("GET", "/")[0] == 200
    assert playground.ask("GET", "/healthz") == (200, "ok\n")
    status, body = playground.ask("GET", "/readyz")
    assert (status, json.loads(body)["ready"]) == (200, True)
    workers = playground.own()
    assert len(workers) == 4  # web, two that decide, one that works
    with urllib.request.urlopen(f"http://127.0.0.1:{playground.port}{demo[1]}ticks/") as stream:
        assert b"retry" in stream.readline()
        started_s = time.monotonic()
        playground.process.send_signal(stop_signal)
        assert playground.process.wait(10) == 0
        assert time.monotonic() - started_s < 6
    assert gone(workers)
    assert "Traceback" not in playground.log.read_text()


@pytest.mark.nightly("playground/play/", "playground/clusters/drive/", "scheduler_core/group_cycle.py")
@pytest.mark.slow
def test_a_gang_at_permit_a_veto_and_a_preemption_run_live_and_all_ends_with_a_killed_parent(
    playground: Playground,
) -> None:
    playground.wait_until_it_says("Playground ready")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    address = playground.address
    with browser.open(f"{address}/gallery/") as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())[1]
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode()
    with browser.open(f"{address}/gallery/gang-evicts-around-a-veto/open/", form) as board:
        cluster = board.url.rstrip("/").rpartition("/")[2]
    api = f"/api/v1/clusters/{cluster}"
    playground.send("PUT", f"{api}/clock/", {"mode": "1x"})

    def read(path: str) -> dict:
        status, body = playground.ask("GET", path)
        return json.loads(body) if status == 200 else {}

    def waiting() -> list[str]:
        return sorted(item["pod"] for item in read(f"{api}/queue/").get("permit", []))

    assert until(lambda: len(waiting()) == 2 and waiting()) == ["default/train-1", "default/train-2"]
    third = until(lambda: read(f"{api}/cycles/3/"))
    assert (third["pod"], third["outcome"]) == ("default/train-3", "preempting")
    assert "no licence on this node" in playground.ask("GET", f"/c/{cluster}/cycles/1/")[1]

    def pods() -> dict[str, str]:
        items = read(f"/k8s/{cluster}/api/v1/namespaces/default/pods").get("items", [])
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}

    assert set(pods()) == {"batch", "train-1", "train-2", "train-3"}
    bound = until(lambda: "batch" not in pods() and all(pods().values()) and pods())
    assert bound["train-3"] == "node-c"
    assert {bound["train-1"], bound["train-2"]} == {"node-a", "node-b"}
    processes = playground.own()
    playground.process.kill()
    playground.process.wait()
    until(lambda: gone(processes))


def test_a_taken_port_is_said_clearly(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        result = subprocess.run(
            [sys.executable, "manage.py", "play", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "PLAYGROUND_DATA": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode != 0
    assert result.stderr.strip() == (
        f"CommandError: Port {port} on 127.0.0.1 is taken. Stop what uses it, or choose another: "
        f"manage.py play --port {port + 1}"
    )


def test_a_second_playground_on_one_data_folder_says_so_until_the_first_has_died(tmp_path: Path) -> None:
    hold = (
        "import os, sys, pathlib, django; django.setup();"
        " from playground.play.management.commands.play import lock_data_folder;"
        " lock = lock_data_folder(pathlib.Path(sys.argv[1])); os.fork() and print('held', flush=True);"
        " sys.stdin.read()"  # the child outlives its parent, and holds nothing
    )
    first = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout and first.stdout.readline() == "held\n"
        second = subprocess.run(
            [sys.executable, "manage.py", "play", "--port", str(free_port())],
            cwd=ROOT,
            env={**os.environ, "PLAYGROUND_DATA": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        first.kill()
    assert second.returncode != 0
    assert second.stderr.strip() == (
        f"CommandError: A playground (process {first.pid}) runs on {tmp_path} already. Stop it, or give this one"
        " another data folder: PLAYGROUND_DATA=... manage.py play"
    )
    with lock_data_folder(tmp_path):
        assert (tmp_path / "play.lock").read_text() == f"{os.getpid()}\n"


def test_embedded_mode_listens_on_loopback_only() -> None:
    from django.core.management import CommandError, call_command

    with pytest.raises(CommandError, match="not loopback"):
        call_command("play", "--host", "0.0.0.0")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_is_written_to_a_client_is_sent_at_once(host: str) -> None:
    """A body that waits until the headers are acknowledged comes 40 ms late to a client that keeps its connection."""
    with contextlib.closing(_listen(host, 0)) as listener, contextlib.ExitStack() as clients:

        async def accept() -> int:
            made: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                client = writer.get_extra_info("socket")
                made.set_result(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                writer.close()

            async with await asyncio.start_server(connected, sock=listener):
                clients.enter_context(socket.create_connection(listener.getsockname()[:2]))
                return await made

        # In a thread: a browser that another test started keeps a loop running in this one.
        with ThreadPoolExecutor(max_workers=1) as thread:
            assert thread.submit(asyncio.run, accept()).result(timeout=30) == 1
