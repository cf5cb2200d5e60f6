"""How long clusters and pages wait while workers are busy: a JSON report of what was measured.

``clusters``: real workers on a throw-away PostgreSQL and Redis drive many clusters at once; how long each waits
for its next batch. ``burst``: `manage.py play` is given many pods at once; when the last is decided, and how far
the board's ticks and fragments are behind the database. ``step``: how long one step of a large cluster takes.
``kills``: processes of `manage.py play` are killed and stopped at random; how long a pod waits for its node then.
``crowd``: while seeds, shares and a search fill the other lanes, how long a pod of another cluster waits.
``site``: pods a second through REST and run, at several sizes. ``plans``: questions about a large cluster.
``cycles``: a sample of the cycles of a long run, opened whole. ``mcp``: how long an agent waits for a tool.
``team``: many clusters, event streams and outages of the broker on a team's site; 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import servers
from tests.load import cycles, mcp, plans, site, team
from tests.load.crowd import be_crowded, kill_processes
from tests.load.steps import step_large

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    clusters = commands.add_parser("clusters", help="many clusters on few workers")
    clusters.add_argument("--clusters", type=int, default=20)
    clusters.add_argument("--workers", type=int, default=2)
    clusters.add_argument("--nodes", type=int, default=100)
    clusters.add_argument("--pods", type=int, default=1000)
    clusters.set_defaults(measure=drive_clusters)
    burst = commands.add_parser("burst", help="many pods at once on the embedded default")
    burst.add_argument("--nodes", type=int, default=100)
    burst.add_argument("--pods", type=int, default=1000)
    burst.set_defaults(measure=post_burst)
    step = commands.add_parser("step", help="one step of a large cluster")
    step.add_argument("--nodes", type=int, default=5000)
    step.add_argument("--pods", type=int, default=60_000)
    step.add_argument("--steps", type=int, default=20)
    step.set_defaults(measure=step_large)
    hit = commands.add_parser("kills", help="random kills of the processes of manage.py play")
    hit.add_argument("--kills", type=int, default=100)
    hit.add_argument("--seed", type=int, default=1)
    hit.add_argument("--port", type=int, default=0)
    hit.set_defaults(measure=kill_processes)
    crowd = commands.add_parser("crowd", help="seeds, shares and an optimum beside another cluster's pods")
    crowd.add_argument("--nodes", type=int, default=50)
    crowd.add_argument("--pods", type=int, default=1000)
    crowd.add_argument("--seconds", type=int, default=90)
    crowd.add_argument("--port", type=int, default=0)
    crowd.set_defaults(measure=be_crowded)
    site.add_to(commands)
    plans.add_to(commands)
    cycles.add_to(commands)
    mcp.add_to(commands)
    team.add_to(commands)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playground-load-"))
    with contextlib.ExitStack() as stops:
        stops.callback(shutil.rmtree, folder, ignore_errors=True)
        report = options.measure(options, folder, stops)
    print(json.dumps(report, indent=2))
    return 1 if report.get("violations") else 0


def nodes(number: int) -> list[dict[str, Any]]:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{index}", "labels": {"topology.kubernetes.io/zone": f"z{index % 3}"}},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        for index in range(number)
    ]


def pods(number: int) -> list[dict[str, Any]]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{index}", "namespace": "default"},
            "spec": {"containers": [container]},
        }
        for index in range(number)
    ]


# ---- many clusters on few workers


def drive_clusters(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    found, redis = servers.find_postgresql(), servers.find_redis()
    if found is None or redis is None:
        raise SystemExit("PostgreSQL and Redis are needed")
    url, stop = found.start()
    stops.callback(stop)
    database, drop = servers.make_database(url, "load")
    stops.callback(drop)
    broker, stop = redis.start()
    stops.callback(stop)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "playground.settings",
        "PLAYGROUND_DATA": str(folder),
        "DATABASE_URL": database,
        "CELERY_BROKER_URL": broker,
    }
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from playground.clusters import services
    from playground.clusters.models import Cluster, Run

    call_command("migrate", verbosity=0)
    stops.callback(connections.close_all)
    for index in range(options.clusters):
        cluster = services.create_cluster(name=f"load-{index}", seed=index)
        services.apply_documents(cluster=cluster, objects=[*nodes(options.nodes), *pods(options.pods)])
    for index in range(options.workers):
        _start(
            [
                sys.executable,
                "-m",
                "celery",
                "-A",
                "playground.celery",
                "worker",
                "-c",
                "1",
                "-n",
                f"load{index}",
            ],
            folder / f"worker{index}.log",
            stops,
        )
    _until(lambda: not Cluster.objects.filter(engine_seq=0).exists(), 120, "the workers read nothing")
    waiting_since: dict[int, float] = {}
    seqs: dict[int, int] = {}
    for cluster in Cluster.objects.order_by("pk"):
        seqs[cluster.pk] = cluster.engine_seq
        services.request_run(cluster=cluster)
        waiting_since[cluster.pk] = time.monotonic()
    began = time.monotonic()
    waits: list[float] = []
    while waiting_since:
        still_open = set(Run.objects.filter(state__in=Run.OPEN).values_list("cluster_id", flat=True))
        now = time.monotonic()
        for pk, seq in Cluster.objects.values_list("pk", "engine_seq"):
            if pk in waiting_since and (seq != seqs[pk] or pk not in still_open):
                waits.append(now - waiting_since[pk])
                seqs[pk], waiting_since[pk] = seq, now
            if pk not in still_open:
                waiting_since.pop(pk, None)
        time.sleep(0.02)
    took_s = time.monotonic() - began
    runs = list(Run.objects.values_list("state", "cycles_done"))
    return {
        "clusters": options.clusters,
        "workers": options.workers,
        "states": sorted({state for state, _ in runs}),
        "cycles": sum(cycles for _, cycles in runs),
        "took_s": round(took_s, 2),
        "wait_s": {
            "p50": round(statistics.median(waits), 3),
            "p99": round(sorted(waits)[int(len(waits) * 0.99)], 3),
            "longest": round(max(waits), 3),
        },
        "load": os.getloadavg()[0],
    }


# ---- many pods at once on the embedded default


def post_burst(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    port = servers.free_port()
    os.environ["PLAYGROUND_DATA"] = str(folder)
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    address = f"http://127.0.0.1:{port}"
    _start([sys.executable, "manage.py", "play", "--port", str(port)], folder / "play.log", stops)
    _until(lambda: _answers(f"{address}/readyz"), 120, "play does not get ready")
    made = _send(f"{address}/api/v1/clusters/", {"name": "burst"})
    cluster = f"{address}/api/v1/clusters/{made['id']}"
    _send(f"{cluster}/apply", {"apiVersion": "v1", "kind": "List", "items": nodes(options.nodes)})
    _send(f"{cluster}/clock/", {"mode": "1x"}, method="PUT")
    database = sqlite3.connect(
        f"file:{folder / 'playground.sqlite3'}?mode=ro", uri=True, check_same_thread=False
    )
    stops.callback(database.close)
    where = "WHERE public_id = ?", (made["id"],)
    changed_at: dict[int, float] = {}
    seen: list[tuple[int, float]] = []
    over = threading.Event()

    def watch_database() -> None:
        while not over.is_set():
            (version,) = database.execute(
                f"SELECT version FROM clusters_cluster {where[0]}", where[1]
            ).fetchone()
            changed_at.setdefault(version, time.monotonic())
            time.sleep(0.01)

    def watch_page() -> None:
        board = f"{address}/c/{made['id']}/"
        with urllib.request.urlopen(f"{board}ticks/") as stream:
            for line in stream:
                if over.is_set():
                    return
                tick = re.match(rb"data: \d+\.(\d+)", line)
                if tick:
                    # A page without JavaScript's digests: everything is drawn, which is the dearest answer.
                    with urllib.request.urlopen(f"{board}live/") as page:
                        page.read()
                    seen.append((int(tick[1]), time.monotonic()))

    threads = [threading.Thread(target=watch, daemon=True) for watch in (watch_database, watch_page)]
    for thread in threads:
        thread.start()
    _until(lambda: bool(seen), 20, "the page's stream says nothing")
    began = time.monotonic()
    _send(f"{cluster}/apply", {"apiVersion": "v1", "kind": "List", "items": pods(options.pods)})
    posted_s = time.monotonic() - began

    _until(lambda: _n_cycles(database, made["id"]) >= options.pods, 300, "not all are decided")
    decided_s = time.monotonic() - began
    last = max(changed_at)
    _until(lambda: seen[-1][0] >= last, 60, "the page never caught up")
    over.set()
    lags = []
    for version, at in changed_at.items():
        shown = next((moment for seen_version, moment in seen if seen_version >= version), None)
        if at >= began and shown is not None:
            lags.append(shown - at)
    return {
        "pods": options.pods,
        "nodes": options.nodes,
        "posted_s": round(posted_s, 2),
        "decided_s": round(decided_s, 2),
        "page_behind_s": {"p50": round(statistics.median(lags), 3), "longest": round(max(lags), 3)},
        "load": os.getloadavg()[0],
    }


def _n_cycles(database: sqlite3.Connection, cluster: str) -> int:
    row = database.execute(
        "SELECT COUNT(*) FROM clusters_cycle JOIN clusters_cluster ON clusters_cluster.id = cluster_id "
        "WHERE public_id = ?",
        (cluster,),
    ).fetchone()
    return int(row[0])


# ---- helpers


def _start(command: list[str], log: Path, stops: contextlib.ExitStack) -> None:
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)

    def end() -> None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stops.callback(end)


def _until(holds: Callable[[], bool], at_most_s: float, otherwise: str) -> None:
    until = time.monotonic() + at_most_s
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(otherwise)
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _send(url: str, body: Any, method: str = "POST") -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
