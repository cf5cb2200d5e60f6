"""A production-sized scenario that needs no download: a look-alike of the openb trace.

It draws nodes and pods from a table of shapes as they occur in a GPU cluster of that size: mostly
machines of eight or two GPUs, pods that mostly ask for one, a fifth of them for a certain model. Same seed, same
scenario.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler_core.randomness import Randomness, Stream
from scheduler_core.scenario.types import (
    Bounds,
    Expectation,
    Manifest,
    PathStop,
    Run,
    Scenario,
    Step,
)

GPU = "nvidia.com/gpu"
N_NODES, N_PODS = 1_523, 8_152

_NODE_SHAPES: tuple[tuple[int, int, int, int, str], ...] = (
    (36, 96, 384, 8, "G2"),
    (25, 104, 512, 2, "T4"),
    (13, 32, 256, 0, ""),
    (8, 16, 120, 2, "P100"),
    (6, 96, 512, 0, ""),
    (3, 128, 768, 8, "G3"),
    (3, 32, 128, 4, "V100M16"),
    (2, 64, 512, 0, ""),
    (2, 96, 768, 8, "V100M32"),
    (1, 8, 32, 1, "V100M16"),
    (1, 96, 384, 4, "T4"),
)
"""(weight, cores, GiB, GPUs, model)"""

_POD_SHAPES: tuple[tuple[int, int, int, int], ...] = (
    (20, 3_152, 5_600, 1),
    (11, 11_300, 49_152, 1),
    (10, 11_908, 47_104, 1),
    (13, 8_000, 30_517, 1),
    (8, 4_000, 22_888, 1),
    (7, 12_000, 24_576, 1),
    (6, 18_708, 64_512, 1),
    (5, 16_000, 32_768, 1),
    (5, 12_500, 57_344, 0),
    (4, 32_000, 49_152, 0),
    (4, 8_000, 30_517, 0),
    (1, 15_400, 51_200, 0),
    (1, 64_000, 262_144, 8),
    (1, 24_000, 98_304, 4),
)
"""(weight, millicores, MiB, GPUs)"""

_MODELS: tuple[tuple[int, str], ...] = (
    (62, ""), (20, "T4"), (6, "G2"), (5, "P100"), (4, "V100M16|V100M32"), (2, "P100|V100M16|V100M32"), (1, "G3"),
)  # fmt: skip


_LESSON = (
    "A cluster as large as a production one, and made up like it: machines of eight or two GPUs, pods that mostly ask"
    " for one GPU, a fifth of them for a certain model. All pods come at once, and the GPUs run out. By default pods of"
    " one GPU are spread over all machines, so most pods that want a whole machine of eight wait. Pack by GPU"
    " (MostAllocated over nvidia.com/gpu with a high weight) and most of those run, at the price of pods that want a"
    " certain model: fork it, and compare."
)


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
    return dataclasses.replace(scenario, group="at-scale", lesson=_LESSON, path=path)


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


def _drawn(stream: Stream, weights: Sequence[int]) -> int:
    left = stream.below(sum(weights))
    for index, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return index
    raise AssertionError("a draw is below the sum of the weights")


def _node(index: int, stream: Stream) -> dict[str, Any]:
    _, cores, memory_gib, gpus, model = _NODE_SHAPES[_drawn(stream, [shape[0] for shape in _NODE_SHAPES])]
    name = f"node-{index:04}"
    labels = {"kubernetes.io/hostname": name}
    allocatable = {"cpu": str(cores), "memory": f"{memory_gib}Gi", "pods": "110"}
    if gpus:
        allocatable[GPU] = str(gpus)
        labels["gpu-model"] = model
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable},
    }


def _pod(index: int, stream: Stream) -> dict[str, Any]:
    _, cpu_milli, memory_mib, gpus = _POD_SHAPES[_drawn(stream, [shape[0] for shape in _POD_SHAPES])]
    model = _MODELS[_drawn(stream, [weight for weight, _ in _MODELS])][1]
    resources: dict[str, Any] = {"requests": {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": resources}]}
    if gpus and model:
        expression = {"key": "gpu-model", "operator": "In", "values": model.split("|")}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{index:04}"}, "spec": spec}
