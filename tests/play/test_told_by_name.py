"""Real processes, real faults: each is told by its name, and all goes on when it is over, with nothing half-kept."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from playground.clusters import lanes, trouble
from tests.play.started import NODE, Site, pod, until
from tests.servers import free_port, make_database

PODS = "/api/v1/namespaces/default/pods"
ROOM = "size=64m"
ELSEWHERE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")


def _may_mount() -> bool:
    if sys.platform != "linux":
        return False
    return subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode == 0


class People:
    """What is asked of a site, and what it says: on `/readyz`, the board's page, REST and `/k8s`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        site.wait_until_ready()
        self.live = self._cluster("live")
        site.send("PUT", f"/api/v1/clusters/{self.live}/clock/", {"mode": "1x"})
        self.paused = self._cluster("paused")
        self.taken: list[str] = []

    def _cluster(self, name: str) -> str:
        cluster: str = self.site.send("POST", "/api/v1/clusters/", {"name": name})["id"]
        self.site.send("POST", f"/api/v1/clusters/{cluster}/apply", NODE)
        return cluster

    def bind(self, name: str) -> None:
        """A pod is taken and bound: all is well."""
        self.site.bind_one(self.live, name)
        self.taken.append(name)

    def check(self, name: str) -> str:
        """What `/readyz` says of one of its checks."""
        said: str = json.loads(self.site.ask("GET", "/readyz")[1])["checks"][name]
        return said

    def board(self, cluster: str = "") -> str:
        return self.site.ask("GET", f"/c/{cluster or self.live}/")[1]

    def run(self) -> str:
        """Path of a run that is asked for; it has something to decide."""
        self.site.send("POST", f"/k8s/{self.paused}{PODS}", pod(f"p{time.monotonic_ns()}"))
        path: str = self.site.send("POST", f"/api/v1/clusters/{self.paused}/run", {"until": "idle"})["url"]
        return path

    def check_refusals(self, cause: str) -> None:
        """Every surface names the cause when something is to be kept, and keeps nothing of it."""
        posts = (
            (f"/k8s/{self.live}{PODS}", pod("refused")),
            (f"/api/v1/clusters/{self.live}/pods/", pod("refused")),
            (f"/api/v1/clusters/{self.live}/apply", pod("refused")),
            ("/api/v1/clusters/", {"name": "refused"}),
        )
        for path, body in posts:
            status, said = self.site.ask("POST", path, body)
            assert (status, cause.rstrip(".").lower() in said.lower()) == (503, True), (path, status, said)

    def check_kept(self) -> None:
        """All that was taken is there, and nothing that was refused."""
        pods = self.site.send("GET", f"/k8s/{self.live}{PODS}")["items"]
        assert sorted(item["metadata"]["name"] for item in pods) == sorted(self.taken)
        names = [item["name"] for item in self.site.send("GET", "/api/v1/clusters/")["items"]]
        assert "refused" not in names


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


by_night = pytest.mark.nightly("playground/play/", "playground/broker.py", "playground/clusters/trouble.py")


@by_night
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not _may_mount(), reason="a small disk is a mount, which this machine does not allow")
def test_a_full_disk_a_corrupt_broker_and_stuck_and_missing_workers_are_told_and_got_over(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    mounted = (*ELSEWHERE, f'mount -t tmpfs -o {ROOM} tmpfs "{data}" && exec "$@"', "sh")
    site = Site(data, free_port(), within=mounted)
    try:
        people = People(site)
        people.bind("before")
        folder = Path(f"/proc/{site.process.pid}/root{data}")

        filler = (folder / "filler").open("wb", buffering=0)
        with filler, suppress(OSError):
            while True:
                filler.write(bytes(65536))
        assert people.check("disk") == trouble.DISK_FULL
        people.check_refusals(trouble.DISK_FULL)
        until(lambda: trouble.DISK_FULL in people.board())
        (folder / "filler").unlink()
        until(lambda: people.check("disk") == "ok")
        people.bind("after-full-disk")
        people.check_kept()
        with sqlite3.connect(folder / "playground.sqlite3") as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

        for lane in lanes.LANES:
            (folder / "messages" / lane).write_bytes(b"not a message! ")
        people.bind("after-corrupt-broker")
        until(lambda: not any(path.name in lanes.LANES for path in (folder / "messages").iterdir()))
        assert people.check("broker") == "ok"

        names = {pid: name for pid, name in site.processes().items() if name.startswith("decide")}
        deciding = list(names)
        assert sum(name == "decide-child" for name in names.values()) == 2
        with stopped(site.process.pid, *deciding):
            run = people.run()
            said = until(lambda: site.send("GET", run)["message"])
            assert said.startswith(
                "The workers of the lane decide are stuck, or at one thing: they gave no sign for "
            ), said
            assert "The workers of the lane decide are stuck" in people.check("decide")
            for cluster in (people.paused, people.live):
                until(lambda cluster=cluster: "workers of the lane decide are stuck" in people.board(cluster))
            for pid in deciding:
                os.kill(pid, signal.SIGKILL)
            until(lambda: "No worker serves the lane decide" in people.check("decide"))
            assert "No worker serves the lane decide: the last one ended" in site.send("GET", run)["message"]
            until(lambda: "No worker serves the lane decide" in people.board(people.paused))
        until(lambda: site.send("GET", run)["state"] == "done")
        people.bind("after-dead-workers")
        until(lambda: site.ask("GET", "/readyz")[0] == 200)
        people.check_kept()
    finally:
        site.stop()


class Gate:
    """A way to a server that can be closed: who comes is refused, and who is through is cut off."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.port = free_port()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._through: list[socket.socket] = []
        self.open()

    def open(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._take, args=[listener], daemon=True).start()

    def close(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
            through, self._through = self._through, []
        for one in (*through, *([listener] if listener else [])):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _take(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(self.address)
            with self._lock:
                self._through += [near, far]
                is_open = self._listener is listener
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=[source, sink], daemon=True).start()
            if not is_open:
                self.close()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                sink.sendall(part)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def behind_a_gate(url: str) -> tuple[str, Gate]:
    """The same address through a gate."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    person, at, host = place.rpartition("@")
    name, _, port = host.partition(":")
    gate = Gate((name, int(port or {"redis": 6379}.get(scheme, 5432))))
    return f"{scheme}://{person}{at}127.0.0.1:{gate.port}{slash}{path}", gate


@by_night
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.postgres
@pytest.mark.redis
def test_a_database_and_a_broker_that_are_gone_are_told_and_got_over(
    tmp_path: Path, postgresql_url: str, redis_url: str
) -> None:
    database_url, drop = make_database(postgresql_url, "told")
    base, _, number = redis_url.rpartition("/")
    database, to_database = behind_a_gate(database_url)
    broker, to_broker = behind_a_gate(f"{base}/{(int(number or 0) + 7) % 16}")
    site = Site(
        tmp_path / "data", free_port(), variables={"DATABASE_URL": database, "CELERY_BROKER_URL": broker}
    )
    try:
        people = People(site)
        people.bind("before")

        to_database.close()
        until(lambda: people.check("database") == trouble.DATABASE_GONE)
        people.check_refusals(trouble.DATABASE_GONE)
        assert trouble.DATABASE_GONE in people.board()
        to_database.open()
        until(lambda: people.check("database") == "ok")
        people.bind("after-database")
        people.check_kept()

        to_broker.close()
        until(lambda: people.check("broker") == trouble.BROKER_GONE)
        # Nothing waits for it: workers look by themselves.
        run = people.run()
        site.send("POST", f"/k8s/{people.live}{PODS}", pod("meanwhile"))
        until(lambda: site.send("GET", run)["state"] == "done")
        path = f"/k8s/{people.live}{PODS}/meanwhile"
        until(lambda: site.send("GET", path)["spec"].get("nodeName"))
        assert people.check("broker") == trouble.BROKER_GONE
        to_broker.open()
        people.taken.append("meanwhile")
        people.bind("after-broker")
        until(lambda: site.ask("GET", "/readyz")[0] == 200)
        people.check_kept()
    finally:
        site.stop()
        to_database.close()
        to_broker.close()
        drop()
