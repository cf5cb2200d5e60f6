"""How long clusters and pages wait while workers are busy: a JSON report of what was measured.

``clusters``: real workers on a throw-away PostgreSQL and Redis drive many clusters at once; how long each waits
for its next batch. ``kills``: processes of `manage.py play` are killed and stopped at random; how long a pod waits for
its node then. ``site``: pods a second through REST and run, at several sizes.
``team``: many clusters, event streams and outages of the broker on a team's site; 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import servers
from tests.load import site, team
from tests.play import kills

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
    hit = commands.add_parser("kills", help="random kills of the processes of manage.py play")
    hit.add_argument("--kills", type=int, default=100)
    hit.add_argument("--seed", type=int, default=1)
    hit.add_argument("--port", type=int, default=0)
    hit.set_defaults(measure=kill_processes)
    site.add_to(commands)
    team.add_to(commands)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="playground-load-"))
    with contextlib.ExitStack() as stops:
        stops.callback(shutil.rmtree, folder, ignore_errors=True)
        report = options.measure(options, folder, stops)
    print(json.dumps(report, indent=2))
    return 1 if report.get("violations") else 0


def kill_processes(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Random kills and stops; after each a pod must be bound within ten seconds."""
    port = options.port or servers.free_port()
    return kills.run(folder / "data", port, n_kills=options.kills, seed=options.seed)


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

    from playground.clusters.drive.runs import request_run
    from playground.clusters.lifecycle import create_cluster
    from playground.clusters.models import Cluster, Run
    from playground.clusters.objects.apply import apply_documents

    call_command("migrate", verbosity=0)
    stops.callback(connections.close_all)
    for index in range(options.clusters):
        cluster = create_cluster(name=f"load-{index}", seed=index)
        apply_documents(cluster=cluster, objects=[*nodes(options.nodes), *pods(options.pods)])
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
        request_run(cluster=cluster)
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
