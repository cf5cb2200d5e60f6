"""A random sample of the cycles of a long run, opened: ``python -m tests.load cycles``.

On SQLite and in one process. Opened is: the whole trace is there, made again from the nearest checkpoint where only
the summary was kept, and can be read, and its digest is the one that was recorded. Cold is the first time a cycle is
opened, warm the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

BATCH = 5000
ROUNDS_KEPT = 6
"""Pods of earlier rounds are deleted before the next: a cluster holds 100,000 objects at most."""


def add_to(commands: Any) -> None:
    parser = commands.add_parser("cycles", help="a sample of stored cycles opens whole, as recorded")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000, help="of each round")
    parser.add_argument(
        "--minutes", type=float, default=60, help="rounds of pods are run for so long, at least one"
    )
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(measure=open_cycles)


def open_cycles(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Run, then open; times in milliseconds."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "playground.settings", "PLAYGROUND_DATA": str(folder)}
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    import django

    django.setup()
    from django.core.management import call_command

    from playground.clusters import services, wake
    from playground.clusters.models import Cycle
    from playground.clusters.services.memory import EngineMemory
    from tests.load.site import nodes, pods

    wake.send = lambda *args, **kwargs: True  # type: ignore[assignment]
    logging.disable(logging.INFO)
    call_command("migrate", verbosity=0)
    cluster = services.create_cluster(name="long", seed=7)
    services.apply_documents(cluster=cluster, objects=nodes(options.nodes))
    memory = EngineMemory()
    until_s = time.monotonic() + 60 * options.minutes
    rounds = 0
    while rounds == 0 or time.monotonic() < until_s:
        rounds += 1
        objects = pods(options.pods, "mixed" if rounds % 2 == 0 else "replicas", f"r{rounds}-")
        for start in range(0, len(objects), BATCH):
            services.apply_documents(cluster=cluster, objects=objects[start : start + BATCH])
        run = services.request_run(cluster=cluster)
        while run.state in run.OPEN:
            services.take_turn(memory=memory)
            run.refresh_from_db()
        if run.state != run.State.DONE:
            raise SystemExit(f"the run did not end: {run.state}, {run.message}")
        if rounds > ROUNDS_KEPT:
            _delete_pods(cluster, f"r{rounds - ROUNDS_KEPT}-")
    numbers = list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("number", flat=True))
    sample = random.Random(options.seed).sample(numbers, min(options.sample, len(numbers)))
    cold, warm = ([_open(cluster.pk, number) for number in sample] for _ in range(2))
    return {
        "nodes": options.nodes,
        "rounds": rounds,
        "cycles": len(numbers),
        "opened": len(sample),
        "not_as_recorded": [number for number, (holds, _) in zip(sample, cold, strict=True) if not holds],
        "cold": _summary([took_ms for _, took_ms in cold]),
        "warm": _summary([took_ms for _, took_ms in warm]),
        "load": os.getloadavg()[0],
    }


def _delete_pods(cluster: Any, prefix: str) -> None:
    from playground.clusters import kinds
    from playground.clusters.models import Pod
    from playground.clusters.services import deletion
    from playground.clusters.services.writer import writing

    kind = kinds.by_kind("Pod")
    assert kind is not None
    keys = list(Pod.objects.filter(cluster=cluster, name__startswith=prefix).values_list("pk", flat=True))
    for start in range(0, len(keys), BATCH):
        with writing(cluster) as writer:
            for pod in Pod.objects.filter(pk__in=keys[start : start + BATCH]):
                deletion.delete_in(writer, kind, pod.manifest, 0)


def _open(cluster_id: int, number: int) -> tuple[bool, float]:
    """Whether a cycle is there whole, with the digest that was recorded, and how long that took."""
    from playground.clusters import services
    from playground.clusters.models import Cycle
    from scheduler_core.framework.record import CycleTrace

    # In a worker, too, the collector comes to what was read when the trace is written.
    gc.collect()
    gc.disable()
    began = time.perf_counter()
    made = services.recompute_trace(cluster_id=cluster_id, number=number)
    cycle = Cycle.objects.get(cluster_id=cluster_id, number=number)
    trace = None if cycle.trace is None else CycleTrace.from_bytes(bytes(cycle.trace))
    took_ms = 1000 * (time.perf_counter() - began)
    gc.enable()
    return made and trace is not None and trace.is_full and trace.digest == cycle.digest, took_ms


def _summary(took_ms: list[float]) -> dict[str, int]:
    p95 = sorted(took_ms)[int(0.95 * len(took_ms))]
    return {
        "p50_ms": round(statistics.median(took_ms)),
        "p95_ms": round(p95),
        "longest_ms": round(max(took_ms)),
    }
