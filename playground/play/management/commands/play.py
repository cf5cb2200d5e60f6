"""``manage.py play``: the whole playground in one command."""

from __future__ import annotations

import argparse
import datetime
import errno
import fcntl
import gc
import http.client
import os
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import IO, Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from playground.celery import app
from playground.clusters import demo, jobs, lanes
from playground.clusters.models import Cluster
from playground.play.supervisor import LOOK_EVERY_S, ProcessPlace, Supervisor
from playground.play.watch import WebWatch

GRACEFUL_SHUTDOWN_S = 1
READY_TIMEOUT_S = 60.0


class Command(BaseCommand):
    help = "Start the playground: a web server and supervised workers, with a demo cluster to begin with."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on; anything but loopback needs --team"
        )
        parser.add_argument("--workers", type=int, default=2, help="processes that decide (default 2)")
        parser.add_argument(
            "--team",
            action="store_true",
            help="team mode: PLAYGROUND_SECRET_KEY and PLAYGROUND_HOSTS must be set",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["team"] and settings.EMBEDDED:
            # The settings were read in embedded mode before this option was known.
            os.environ["PLAYGROUND_MODE"] = "team"
            os.execv(sys.executable, [sys.executable, *sys.argv])
        if settings.EMBEDDED and options["host"] not in ("127.0.0.1", "localhost", "::1"):
            raise CommandError(f'--host: "{options["host"]}" is not loopback, and embedded mode has no login')
        try:
            self._only_one = lock_data_folder(settings.DATA_DIR)  # held until this process ends
        except DataFolderInUse as error:
            raise CommandError(str(error)) from error
        listener = _listen(options["host"], options["port"])
        own_url = os.environ.setdefault("PLAYGROUND_OWN_URL", _own_url(listener))  # inherited by the worker
        # The site is served by this process, which read its settings before the port was known.
        settings.PLAYGROUND_OWN_URL = own_url
        call_command("migrate", interactive=False, verbosity=0)
        demo_path = _demo_path()
        supervisor = Supervisor(
            _places(listener, max(1, options["workers"])),
            settings.DATA_DIR / "worker.log",
            self._say,
            self._only_one.close,
        )
        stopping: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: stopping.append(number))
        _load_everything()
        started_at = timezone.now()
        supervisor.start()
        try:
            self._announce_when_ready(listener, started_at, demo_path, supervisor, stopping)
            while not stopping:
                supervisor.look()
                time.sleep(LOOK_EVERY_S)
        finally:
            supervisor.stop()
        self._say("Playground stopped.")

    def _announce_when_ready(
        self,
        listener: socket.socket,
        started_at: datetime.datetime,
        demo_path: str,
        supervisor: Supervisor,
        stopping: list[int],
    ) -> None:
        """Say where the playground is as soon as pages are served and wake-ups go through."""
        host, port = listener.getsockname()[:2]
        until_s = time.monotonic() + READY_TIMEOUT_S
        while not stopping and time.monotonic() < until_s:
            supervisor.look()
            if is_ready(listener.getsockname(), settings.PLAYGROUND_OWN_HOST):
                name = f"[{host}]" if ":" in host else host
                where = f"  Demo cluster: http://{name}:{port}{demo_path}" if demo_path else ""
                self._say(f"Playground ready: http://{name}:{port}/{where}  Stop with Ctrl-C.")
                return
            time.sleep(LOOK_EVERY_S / 2)
        if not stopping:
            self._say(f"The playground does not come up. See {settings.DATA_DIR / 'worker.log'}")

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named: only then does asyncio set TCP_NODELAY, without which a client that keeps its connection
    # gets each body 40 ms after the headers.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Port {port} on {host} is taken. Stop what uses it, or choose another: "
                f"{started_by()} --port {port + 1}"
            ) from error
        raise CommandError(f"Cannot listen on {host}, port {port}: {error}") from error
    return listener


def _own_url(listener: socket.socket) -> str:
    """How the worker reaches us: on loopback, unless we listen on one other address only."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _demo_path() -> str:
    """Path of the demo cluster's page; the cluster is made when there is none at all, and then only.

    A user who deleted the demo and kept others does not want it back. Team mode has no demo: a cluster
    there belongs to a user or a team.
    """
    if not settings.EMBEDDED:
        return ""
    cluster = Cluster.objects.filter(name=demo.NAME).order_by("pk").first()
    if cluster is None:
        if Cluster.objects.exists():
            return ""
        cluster = demo.ensure_demo()
    return reverse("web:board", args=[cluster.public_id])


def _places(listener: socket.socket, n_deciding: int) -> list[ProcessPlace]:
    """The processes of the site: one that serves, those that decide, and one that has questions and shares done."""

    def serve() -> None:
        _serve(listener)

    deciding = [f"decide-{number}" for number in range(1, n_deciding + 1)]
    return [
        ProcessPlace("web", serve),
        *(ProcessPlace(name, partial(be_worker, name, lanes.DECIDE)) for name in deciding),
        ProcessPlace("work", partial(be_worker, "work", lanes.ASK, lanes.MAKE)),
    ]


def _load_everything() -> None:
    """Import what the processes need, so that they share it; then let go of all that no fork may inherit."""
    import playground.asgi  # noqa: F401

    jobs.load()
    connections.close_all()
    gc.collect()
    gc.freeze()


def _serve(listener: socket.socket) -> None:
    """Be the web server, in a process that was just forked."""
    watch = WebWatch()
    config = uvicorn.Config(
        "playground.asgi:application",
        log_level="warning",
        lifespan="off",
        proxy_headers=not settings.EMBEDDED,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
        callback_notify=watch.sign,
        timeout_notify=1,
    )
    watch.start()
    uvicorn.Server(config).run(sockets=[listener])


def is_ready(address: Any, host_name: str = "") -> bool:
    """Whether `/readyz` answers 200.

    Parameters
    ----------
    address
        Where the site listens.
    host_name
        The name it answers to, where that is not the address.
    """
    host, port = address[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/readyz", headers={"Host": host_name} if host_name else {})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


ARGUMENTS = (
    "worker",
    "--pool=solo",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
    "--loglevel=info",
)


def be_worker(name: str, *lanes: str) -> None:
    """Take messages of these lanes until stopped; for a process that was just forked."""
    app._after_fork()
    app.worker_main([*ARGUMENTS, f"--hostname={name}@%h", f"--queues={','.join(lanes)}"])


class DataFolderInUse(Exception):
    """Another playground runs on the folder; the message is for the person who starts this one."""


def lock_data_folder(folder: Path) -> IO[str]:
    """Lock the folder for this process; the lock is held for as long as what is returned is open.

    It belongs to this process alone: children forked by it hold none of it, so a worker that outlives its parent for
    a moment keeps no new playground away.

    Raises
    ------
    DataFolderInUse
    """
    path = folder / "play.lock"
    # Not emptied before the lock is had: it names the one that has it.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        holder = file.read().strip()
        file.close()
        process = f" (process {holder})" if holder else ""
        raise DataFolderInUse(
            f"A playground{process} runs on {folder} already. Stop it, or give this one another data folder: "
            f"PLAYGROUND_DATA=... {started_by()}"
        ) from None
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def started_by() -> str:
    """`manage.py play`, or the installed command without arguments."""
    program = Path(sys.argv[0]).name
    return program if program.startswith("kube-scheduler-playground") else "manage.py play"
