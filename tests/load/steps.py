"""How long one step of a large cluster takes, from the request to the committed cycle: ``python -m tests.load step``.

On SQLite and in one process, without the way of the message to a worker. Warm is a worker that has the cluster's
engine in memory, cold one that has to load it: the newest checkpoint and the log after it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import statistics
import time
from pathlib import Path
from typing import Any

N_COLD = 3
BATCH = 5000


def step_large(options: argparse.Namespace, folder: Path, stops: contextlib.ExitStack) -> dict[str, Any]:
    """Make the cluster and step it; times in milliseconds, wall and this process's CPU."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "playground.settings", "PLAYGROUND_DATA": str(folder)}
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        os.environ.pop(name, None)
    import django

    django.setup()
    from django.core.management import call_command

    from playground.clusters import services, wake
    from playground.clusters.services.memory import EngineMemory
    from tests.load.__main__ import nodes, pods

    wake.send = lambda *args, **kwargs: True  # type: ignore[assignment]
    logging.disable(logging.INFO)
    call_command("migrate", verbosity=0)
    cluster = services.create_cluster(name="large", seed=7)
    objects = [*nodes(options.nodes), *pods(options.pods + N_COLD + options.steps)]
    for index, pod in enumerate(objects[options.nodes : options.nodes + options.pods]):
        pod["spec"]["nodeName"] = f"n{index % options.nodes}"
        pod["status"] = {"phase": "Running"}
    began = time.monotonic()
    for start in range(0, len(objects), BATCH):
        services.apply_documents(cluster=cluster, objects=objects[start : start + BATCH])
    services.take_turn(memory=EngineMemory())
    made_s = time.monotonic() - began

    def step(memory: EngineMemory) -> tuple[float, float]:
        wall, cpu = time.monotonic(), time.process_time()
        run = services.request_run(cluster=cluster, until="cycle")
        services.take_turn(memory=memory)
        took = 1000 * (time.monotonic() - wall), 1000 * (time.process_time() - cpu)
        run.refresh_from_db()
        if (run.state, run.pods_bound) != (run.State.DONE, 1):
            raise SystemExit(f"the step bound no pod: {run.state}, {run.message}")
        return took

    def summary(times: list[tuple[float, float]]) -> dict[str, float]:
        wall, cpu = zip(*times, strict=True)
        return {
            "p50_ms": round(statistics.median(wall)),
            "longest_ms": round(max(wall)),
            "cpu_p50_ms": round(statistics.median(cpu)),
            "cpu_longest_ms": round(max(cpu)),
        }

    cold, memory = [], EngineMemory()
    for _ in range(N_COLD):
        memory.clear()
        gc.collect()  # what is left of the last engine is no part of a step
        cold.append(step(memory))
    warm = [step(memory) for _ in range(options.steps)]
    return {
        "nodes": options.nodes,
        "pods": options.pods,
        "made_s": round(made_s, 1),
        "cold": summary(cold),
        "warm": summary(warm),
        "load": os.getloadavg()[0],
    }
