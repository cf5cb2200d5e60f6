"""``python -m tests.faults --rounds 300 --seed 1``: the faults, as many rounds as wanted; 1 on a violation."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests import servers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first round, to see one again")
    parser.add_argument("--log", help="file to keep what workers say")
    parser.add_argument("--on", choices=("embedded", "servers", "rabbitmq"), default="embedded",
                        help="SQLite and the embedded broker; PostgreSQL and Redis, throw-away ones; or "
                        "PostgreSQL and RabbitMQ")  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="only the report, as JSON")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playground-faults-"))
    stops: list[Callable[[], None]] = []
    try:
        return _run(options, folder, stops)
    finally:
        for stop in reversed(stops):
            with contextlib.suppress(Exception):
                stop()
        shutil.rmtree(folder, ignore_errors=True)


def _run(options: argparse.Namespace, folder: Path, stops: list[Callable[[], None]]) -> int:
    os.environ.update(
        {
            "DJANGO_SETTINGS_MODULE": "playground.settings",
            "PLAYGROUND_DATA": str(folder),
            "PLAYGROUND_EXTENDER_HOSTS": "127.0.0.1",
        }
    )
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "PLAYGROUND_MODE"):
        os.environ.pop(name, None)
    where = "SQLite and the embedded broker"
    redis: _Redis | None = None
    if options.on != "embedded":
        database = servers.find_postgresql()
        if database is None:
            print("no PostgreSQL was found", file=sys.stderr)
            return 2
        url, stop = database.start()
        stops.append(stop)
        os.environ["DATABASE_URL"], drop = servers.make_database(url, "faults")
        stops.append(drop)
        where = f"PostgreSQL ({database.where})"
    if options.on == "servers":
        redis = _Redis()
        stops.append(redis.stop)
        os.environ["CELERY_BROKER_URL"] = redis.url
        where += " and Redis"
    if options.on == "rabbitmq":
        rabbitmq = servers.find_rabbitmq()
        if rabbitmq is None:
            print("no RabbitMQ was found", file=sys.stderr)
            return 2
        os.environ["CELERY_BROKER_URL"], stop = rabbitmq.start()
        stops.append(stop)
        where += f" and RabbitMQ ({rabbitmq.where})"

    import django

    django.setup()
    import logging

    from django.core.management import call_command
    from django.db import connection, connections

    from playground.celery import app
    from tests.faults.harness import Harness
    from tests.faults.zygote import Workers

    logging.disable(logging.CRITICAL)
    app.finalize()
    app.loader.import_default_modules()
    workers = Workers(options.log or str(folder / "workers.log"))
    stops.append(workers.stop)
    call_command("migrate", verbosity=0)
    connections.close_all()

    def cut_connections() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def lose_messages() -> None:
        app.control.purge()

    harness = Harness(
        options.seed,
        workers,
        redis.restart if redis else lose_messages,
        cut_connections if options.on != "embedded" else None,
        (lambda line: None) if options.quiet else print,
    )
    report = harness.run(options.rounds, options.first)
    print(json.dumps({"on": where, **vars(report)}, indent=None if options.quiet else 2))
    return 1 if report.violations else 0


class _Redis:
    """A throw-away Redis that keeps nothing when it is restarted, at one address."""

    def __init__(self) -> None:
        self._port = servers.free_port()
        self._stop: Callable[[], None] = lambda: None
        self._start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def _start(self) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise SystemExit("no redis-server was found")
        _, self._stop = servers.start_redis(program, port=self._port)

    def restart(self) -> None:
        self._stop()
        self._start()

    def stop(self) -> None:
        self._stop()


if __name__ == "__main__":
    sys.exit(main())
