"""A production-sized scenario that needs no download: a look-alike of the openb trace.

It draws nodes and pods from a table of shapes as they occur in a GPU cluster of that size: mostly
machines of eight or two GPUs, pods that mostly ask for one, a fifth of them for a certain model. Same seed, same
scenario.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler_core.objects.meta import object_of
from scheduler_core.randomness import Randomness, Stream
from scheduler_core.scenario.types import Bounds, Expectation, Manifest, PathStop, Run, Scenario, Step
from scheduler_core.schema.tables import table_beside

GPU = "nvidia.com/gpu"
N_NODES, N_PODS = 1_523, 8_152

_TABLE = table_beside(__package__, "openb.yaml")


def lookalike(seed: int = 1, *, n_nodes: int = N_NODES, n_pods: int = N_PODS) -> Scenario:
    """A cluster of the trace's size and make-up, drawn from the seed."""
    randomness = Randomness(seed)
    nodes, pods = randomness.stream("lookalike/nodes"), randomness.stream("lookalike/pods")
    items = [_node(index, nodes) for index in range(n_nodes)]
    items += [_pod(index, pods) for index in range(n_pods)]
    title = f"A GPU cluster of {n_nodes:,} nodes and {n_pods:,} pods, drawn from seed {seed}"
    scenario = trace_scenario(items, name="openb-lookalike", title=title, seed=seed)
    path = (
        PathStop(1, "score", "An empty cluster: every node is looked at, and many are equally good."),
        PathStop(
            n_pods,
            "filter",
            "The last pod finds no node: see what each of them lacks.",
        ),
    )
    return dataclasses.replace(scenario, group="at-scale", lesson=_TABLE["lesson"], path=path)


def trace_scenario(items: Iterable[Manifest], *, name: str, title: str, seed: int = 1) -> Scenario:
    """All nodes, all pods pending at once, one run."""
    objects = tuple(items)
    n_pods = sum(manifest["kind"] == "Pod" for manifest in objects)
    return Scenario(
        name=name,
        title=title,
        seed=seed,
        objects=objects,
        steps=(Step(run=Run()),),
        expect=(Expectation(cycles=Bounds(at_least=n_pods)), Expectation(budgets="respected")),
    )


def _drawn(stream: Stream, what: str) -> Sequence[Any]:
    rows: list[Sequence[Any]] = _TABLE[what]
    left = stream.below(sum(row[0] for row in rows))
    for row in rows:
        left -= row[0]
        if left < 0:
            return row
    raise AssertionError("a draw is below the sum of the weights")


def _node(index: int, stream: Stream) -> dict[str, Any]:
    _, cores, memory_gib, gpus, model = _drawn(stream, "nodes")
    name = f"node-{index:04}"
    labels = {"kubernetes.io/hostname": name}
    allocatable = {"cpu": str(cores), "memory": f"{memory_gib}Gi", "pods": "110"}
    if gpus:
        allocatable[GPU] = str(gpus)
        labels["gpu-model"] = model
    return object_of("v1", "Node", {"name": name, "labels": labels}, status={"allocatable": allocatable})


def _pod(index: int, stream: Stream) -> dict[str, Any]:
    _, cpu_milli, memory_mib, gpus = _drawn(stream, "pods")
    _, model = _drawn(stream, "models")
    resources: dict[str, Any] = {"requests": {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": resources}]}
    if gpus and model:
        expression = {"key": "gpu-model", "operator": "In", "values": model.split("|")}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{index:04}"}, "spec": spec}
