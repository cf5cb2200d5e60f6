"""``python -m tests.faults``: rounds of faults on a whole site, or with ``--mutants`` on broken ones; 1 on a violation.

With ``--mutants`` it is 1 when a mutant was not found.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests import servers
from tests.faults import mutants
from tests.site import ROOT, TEAM


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rounds", type=int, default=20, help="how many; with --mutants how many at most for each"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first round, to see one again")
    parser.add_argument(
        "--on",
        choices=("embedded", "servers"),
        default="embedded",
        help="`manage.py play` on SQLite and the embedded broker; or a team's site on PostgreSQL and Redis, "
        "throw-away ones",
    )
    parser.add_argument("--mutants", action="store_true", help="find every mutant (tests/faults/mutants.py)")
    parser.add_argument("--only", default="", help="comma-separated names of mutants")
    parser.add_argument("--mutant", default="", help="live with this mutant until it is found")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at the same time")
    parser.add_argument("--data", help="folder to begin with a copy of (embedded)")
    parser.add_argument("--log", help="file to keep what the site says")
    parser.add_argument(
        "--keep", help="folder to copy the data folder to (embedded), to look at what went wrong"
    )
    parser.add_argument("--quiet", action="store_true", help="only the report, as JSON")
    options = parser.parse_args()
    if options.mutants:
        return _find_mutants(options)
    folder = Path(tempfile.mkdtemp(prefix="playground-faults-"))
    with contextlib.ExitStack() as ends:
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        return _live(options, folder, ends)


def _live(options: argparse.Namespace, folder: Path, ends: contextlib.ExitStack) -> int:
    tree = mutants.mutated(options.mutant, ROOT, folder / "tree") if options.mutant else ROOT
    shutil.copytree(options.data, folder / "data") if options.data else (folder / "data").mkdir()
    for name in [name for name in os.environ if name.startswith("PLAYGROUND_")]:
        del os.environ[name]
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "playground.settings",
        "PLAYGROUND_DATA": str(folder / "data"),
        "PLAYGROUND_EXTENDER_HOSTS": "127.0.0.1",
    }
    restart: Callable[[], None] | None = None
    where = "SQLite and the embedded broker"
    if options.on == "servers":
        where, restart = _servers(ends)

    import django

    django.setup()
    import logging

    from django.core.management import call_command
    from django.db import connections

    logging.disable(logging.CRITICAL)
    call_command("migrate", verbosity=0)
    token = _token() if options.on == "servers" else ""
    connections.close_all()

    from tests.faults.chaos import Means
    from tests.faults.rounds import Harness
    from tests.faults.site import Site

    site = Site(tree, dict(os.environ), folder, servers.free_port(), token)
    if options.log:
        ends.callback(lambda: shutil.copy(site.log, options.log))
    if options.keep:
        ends.callback(lambda: shutil.copytree(folder / "data", options.keep, dirs_exist_ok=True))
    ends.callback(connections.close_all)
    ends.callback(site.stop)
    site.wait_until_ready()
    means = Means(
        restart or (lambda: _empty_broker(folder / "data" / "messages")),
        _lose_messages,
        _cut_connections if options.on == "servers" else None,
    )
    say: Callable[[str], None] = (
        (lambda line: None)
        if options.quiet
        else (lambda line: print(f"{time.strftime('%H:%M:%S')} {line}", flush=True))
    )
    harness = Harness(options.seed, site, means, say)
    report = harness.run(options.rounds, options.first, until_found=bool(options.mutant))
    words = {"on": where, "mutant": options.mutant or None, **vars(report)}
    print(json.dumps(words, indent=None if options.quiet else 2), flush=True)
    return 1 if report.violations else 0


def _servers(ends: contextlib.ExitStack) -> tuple[str, Callable[[], None]]:
    """Throw-away servers, named in the environment; what they are, and what restarts the broker."""
    database = servers.find_postgresql()
    if database is None:
        raise SystemExit("no PostgreSQL was found")
    url, stop = database.start()
    ends.callback(stop)
    os.environ["DATABASE_URL"], drop = servers.make_database(url, "faults")
    ends.callback(drop)
    redis = servers.Redis()
    ends.callback(redis.end)
    os.environ |= {**TEAM, "CELERY_BROKER_URL": redis.url}

    def restart() -> None:
        redis.end()
        redis.begin()

    return f"PostgreSQL ({database.where}) and Redis", restart


def _token() -> str:
    from playground.accounts.models import User
    from playground.accounts.tokens import create_token

    return create_token(user=User.objects.create_user("someone"), name="faults")[1]


def _cut_connections() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _empty_broker(folder: Path) -> None:
    """The embedded broker cannot be reached for a second, and has lost everything then."""
    away = folder.with_name("messages-away")
    folder.mkdir(exist_ok=True)  # it comes with the first message
    folder.rename(away)
    folder.write_text("")
    time.sleep(1.0)
    folder.unlink()
    shutil.rmtree(away)


def _lose_messages() -> None:
    from playground.celery import app

    app.control.purge()


def _find_mutants(options: argparse.Namespace) -> int:
    names = [name for name in options.only.split(",") if name] or list(mutants.MUTANTS)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        data = _migrated(Path(folder, "data")) if options.on == "embedded" else None
        results = list(pool.map(lambda name: _find(name, options, data), names))
    missed = [result["mutant"] for result in results if result["found_in"] is None]
    print(json.dumps({"mutants": results, "not found": missed, "seconds": round(time.monotonic() - began_s)}))
    return 1 if missed else 0


def _migrated(data: Path) -> Path:
    """A data folder whose database is there; making it anew for each mutant would be most of what they cost."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLAYGROUND_")}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env=environment | {"PLAYGROUND_DATA": str(data)},
        check=True,
    )
    return data


def _find(name: str, options: argparse.Namespace, data: Path | None) -> dict[str, Any]:
    """Live with a mutant in a process of its own; where it was found, and by what."""
    command = [sys.executable, "-m", "tests.faults", "--quiet", "--mutant", name, "--on", options.on]
    for option in ("rounds", "seed", "first"):
        command += [f"--{option}", str(getattr(options, option))]
    command += ["--data", str(data)] if data else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if not lines:
        raise SystemExit(f"mutant {name}: {done.stderr[-3000:]}")
    report = json.loads(lines[-1])
    result = {
        "mutant": name,
        "found_in": report["found_in"],
        "by": report["violations"][:1],
        "rounds": report["rounds"],
        "seconds": report["seconds"],
    }
    if not options.quiet:
        print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
