"""``manage.py play``: the whole playground in one command."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import errno
import logging
import os
import signal
import socket
import sys
import threading
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from playground.clusters import demo
from playground.clusters.models import Cluster
from playground.play.data_lock import DataFolderInUse, lock_data_folder
from playground.play.models import WorkerHeartbeat
from playground.play.supervisor import WorkerSupervisor, worker_command

GRACEFUL_SHUTDOWN_S = 1
READY_TIMEOUT_S = 60.0


class _Server(uvicorn.Server):
    """Lets the worker stop while open pages are being let go."""

    def __init__(self, supervisor: WorkerSupervisor, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._supervisor = supervisor

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._supervisor.begin_stop()
        await super().shutdown(sockets)


def _not_an_ended_stream(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn is anything else than an open page's event stream cut at the end."""
    cut = record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and not record.getMessage().startswith("Cancel ")


class Command(BaseCommand):
    help = "Start the playground: web server and one supervised worker, with a demo cluster to begin with."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on; anything but loopback needs --team"
        )
        parser.add_argument("--workers", type=int, default=2, help="processes that run cycles (default 2)")
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
        supervisor = WorkerSupervisor(
            worker_command(options["workers"]), settings.DATA_DIR / "worker.log", self._say
        )
        server = _Server(
            supervisor,
            uvicorn.Config(
                "playground.asgi:application",
                log_level="warning",
                lifespan="off",
                proxy_headers=not settings.EMBEDDED,
                server_header=False,
                timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
            ),
        )
        logging.getLogger("uvicorn.error").addFilter(_not_an_ended_stream)
        # uvicorn raises the signal that stopped it once more when it is done; stopping is our business.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        started_at = timezone.now()
        supervisor.start()
        threading.Thread(
            target=self._announce, args=(server, listener, started_at, demo_path), daemon=True
        ).start()
        try:
            server.run(sockets=[listener])
        finally:
            supervisor.stop()
        self._say("Playground stopped.")

    def _announce(
        self, server: uvicorn.Server, listener: socket.socket, started_at: datetime.datetime, demo_path: str
    ) -> None:
        """Say where the playground is as soon as pages are served and a worker takes work."""
        waiting = threading.Event()
        host, port = listener.getsockname()[:2]
        waited_s = 0.0
        while not server.should_exit and waited_s < READY_TIMEOUT_S:
            if server.started and _worker_seen_since(started_at):
                name = f"[{host}]" if ":" in host else host
                where = f"  Demo cluster: http://{name}:{port}{demo_path}" if demo_path else ""
                self._say(f"Playground ready: http://{name}:{port}/{where}  Stop with Ctrl-C.")
                return
            waiting.wait(0.1)
            waited_s += 0.1
        if not server.should_exit:
            self._say(f"The worker does not come up. See {settings.DATA_DIR / 'worker.log'}")

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Port {port} on {host} is taken. Stop what uses it, or choose another: "
                f"manage.py play --port {port + 1}"
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

    Somebody who deleted the demo and kept others does not want it back. Team mode has no demo: a cluster
    there belongs to somebody.
    """
    if not settings.EMBEDDED:
        return ""
    cluster = Cluster.objects.filter(name=demo.NAME).order_by("pk").first()
    if cluster is None:
        if Cluster.objects.exists():
            return ""
        cluster = demo.ensure_demo()
    return reverse("web:board", args=[cluster.public_id])


def _worker_seen_since(started_at: datetime.datetime) -> bool:
    try:
        return WorkerHeartbeat.objects.filter(seen_at__gte=started_at).exists()
    finally:
        connections.close_all()
