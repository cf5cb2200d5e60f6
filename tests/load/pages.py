"""How long pages and questions take at 5,000 nodes and 60,000 pods: ``python -m tests.load.pages DIR``.

The first call makes the cluster in DIR (a few minutes); later ones measure again. Each page is asked for three
times by a process of its own, which has done what the server does when it starts: cold is its first request,
changed the next one after a change of the cluster, same another one. Questions: `tests.load.questions`. Times are
the process's own seconds of CPU; a busy machine still makes them longer, by half or so.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.load import questions
from tests.manifests import node, pod, priority_class

ZONES = ("zone-a", "zone-b", "zone-c", "zone-d")
BATCH = 5000
N_LATE = 300
"""Pods scheduled after all the others: about 1,000 entries of log that no checkpoint spares."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=60_000)
    parser.add_argument("--page", help="measure this one page in this process, and print JSON")
    parser.add_argument("--question", help="measure this one question in this process, and print JSON")
    parser.add_argument("--only", choices=("pages", "questions"), help="measure no more than these")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "playground.settings"
    os.environ["PLAYGROUND_DATA"] = str(options.directory)
    fresh = not (options.directory / "playground.sqlite3").exists()
    options.directory.mkdir(parents=True, exist_ok=True)
    import django

    django.setup()
    from django.core.management import call_command

    if options.page or options.question:
        found = measure(options.page) if options.page else questions.measure(options.question)
        print(json.dumps(found))
        return 0
    call_command("migrate", verbosity=0)
    if fresh:
        seed(options.nodes, options.pods)
    if options.only != "questions":
        keep_past()
        print(f"{'page':<20}{'cold ms':>10}{'changed ms':>12}{'same ms':>10}{'queries':>9}{'gzip kB':>9}")
        for name, path in paths().items():
            found = _in_a_process(options.directory, "--page", path)
            print(
                f"{name:<20}{found['cold_ms']:>10.0f}{found['changed_ms']:>12.0f}{found['same_ms']:>10.0f}"
                f"{found['queries']:>9}{found['gzip_kb']:>9.0f}"
            )
    if options.only != "pages":
        print(f"{'question':<20}{'cold ms':>10}{'warm ms':>12}")
        for name in questions.names():
            found = _in_a_process(options.directory, "--question", name)
            print(f"{name:<20}{found['cold_ms']:>10.0f}{found['warm_ms']:>12.0f}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


def _in_a_process(directory: Path, option: str, what: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.load.pages", str(directory), option, what]
    found: dict[str, float] = json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    )
    return found


def seed(n_nodes: int, n_pods: int) -> None:
    """The cluster: most pods run, some wait, one cycle of each kind was decided, and then some hundreds more."""
    from playground.clusters.drive.advance import advance
    from playground.clusters.drive.memory import EngineMemory
    from playground.clusters.drive.runs import request_run
    from playground.clusters.lifecycle import create_cluster
    from playground.clusters.objects.apply import apply_documents

    cluster = create_cluster(name="large", seed=7)
    objects: list[dict[str, Any]] = [priority_class("critical", 100_000), priority_class("batch", 100)]
    objects += [_node(i) for i in range(n_nodes)]
    objects += [_pod(i, f"node-{i % n_nodes}") for i in range(n_pods)]
    began = time.monotonic()
    for start in range(0, len(objects), BATCH):
        apply_documents(cluster=cluster, objects=objects[start : start + BATCH])
    waiting = [
        _pod(n_pods, "", cpu="500m", name="fits"),
        _pod(n_pods + 1, "", cpu="14", name="vip", priorityClassName="critical"),
        _pod(n_pods + 2, "", cpu="14", name="wide", priorityClassName="batch"),
        *(_pod(n_pods + 3 + i, "", cpu="400", name=f"giant-{i}") for i in range(30)),
    ]
    apply_documents(cluster=cluster, objects=waiting)
    memory = EngineMemory()

    def run(until: str) -> None:
        request_run(cluster=cluster, until=until)
        while not _nothing_open(cluster):
            advance(cluster_id=cluster.pk, memory=memory)

    for _ in range(8):
        run("cycle")
    late = [_pod(n_pods + 100 + i, "", cpu="100m", name=f"late-{i}") for i in range(N_LATE)]
    apply_documents(cluster=cluster, objects=late)
    run("idle")
    print(f"made in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _nothing_open(cluster: Any) -> bool:
    from playground.clusters.models import Run

    return not Run.objects.filter(cluster=cluster, state__in=Run.OPEN).exists()


def keep_past() -> None:
    """Have the moment decided that a page of the past draws."""
    from playground.clusters.models import Cluster, Cycle
    from playground.scenarios.services import moments

    cluster = Cluster.objects.get()
    bound = Cycle.objects.filter(cluster=cluster, outcome="bound").order_by("number").first()
    assert bound
    moments.compute_moments(cycle=bound.number, cluster_id=cluster.pk, generation=cluster.generation)


def paths() -> dict[str, str]:
    """Name and path of each measured page."""
    from playground.clusters.models import Cluster, Cycle

    cluster = Cluster.objects.get()
    base = f"/c/{cluster.public_id}/"
    cycles = {
        outcome: Cycle.objects.filter(cluster=cluster, outcome=outcome).order_by("number").first()
        for outcome in ("bound", "preempting", "unschedulable")
    }
    bound, preempting, unschedulable = cycles["bound"], cycles["preempting"], cycles["unschedulable"]
    assert bound and preempting and unschedulable
    return {
        "home": "/",
        "board": base,
        "node": f"{base}?node=node-7",
        "table": f"{base}?view=table",
        "live": f"{base}live/",
        "cycles": f"{base}cycles/",
        "cycle": f"{base}cycles/{bound.number}/",
        "unschedulable": f"{base}cycles/{unschedulable.number}/",
        "preemption": f"{base}cycles/{preempting.number}/",
        "weights": f"{base}cycles/{bound.number}/weights/",
        "story": f"{base}pods/default/{unschedulable.pod_name}/",
        "explain": f"{base}pods/default/{unschedulable.pod_name}/fix/",
        "pods": f"{base}pods/",
        "queue": f"{base}pods/?lane=unschedulable",
        "form": f"{base}pods/new/",
        "config": f"{base}config/",
        "settings": f"{base}cluster/",
        "replay": f"{base}replay/?cycle={bound.number}",
    }


def measure(path: str) -> dict[str, float]:
    """One page in this process: cold, after a change, and again."""
    from django.db import connection
    from django.db.models import F
    from django.test import Client

    from playground.clusters.models import Cluster
    from playground.web.site import warm

    warm()
    client = Client(SERVER_NAME="127.0.0.1")
    client.handler.load_middleware()  # as a server does when it starts
    headers = {"HTTP_HX_REQUEST": "true"} if "/live/" in path else {}

    def ask() -> tuple[float, Any]:
        began = time.process_time()
        response = client.get(path, **headers)
        took_ms = 1000 * (time.process_time() - began)
        assert response.status_code == 200, response.status_code
        return took_ms, response

    cold_ms, _ = ask()
    Cluster.objects.update(version=F("version") + 1)
    queries: list[str] = []

    def count(execute: Any, sql: str, *more: Any) -> Any:
        queries.append(sql)
        return execute(sql, *more)

    with connection.execute_wrapper(count):
        changed_ms, response = ask()
    same_ms, _ = ask()
    return {
        "cold_ms": cold_ms,
        "changed_ms": changed_ms,
        "same_ms": same_ms,
        "queries": len(queries),
        "gzip_kb": len(gzip.compress(response.content)) / 1000,
    }


def _node(index: int) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": ZONES[index % len(ZONES)], "disk": "ssd" if index % 3 else "hdd"}
    taints = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}]
    made = node(
        f"node-{index}", "16", "64Gi", labels=labels, **({"taints": taints} if index % 25 == 0 else {})
    )
    made["status"] |= {
        "capacity": made["status"]["allocatable"],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return made


def _pod(index: int, on: str, *, cpu: str = "", name: str = "", **spec: Any) -> dict[str, Any]:
    made = pod(
        name or f"p{index}", cpu or f"{300 + 100 * (index % 7)}m", labels={"app": f"a{index % 200}"}, **spec
    )
    made["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    made["spec"] |= {"nodeName": on, "priorityClassName": "batch"} if on else {}
    return made | {"status": {"phase": "Running" if on else "Pending"}}


if __name__ == "__main__":
    sys.exit(main())
