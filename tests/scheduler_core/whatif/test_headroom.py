"""How many more fit: as recorded, as one at a time, and leaving the copy as it was."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance import read_cases, run_case
from scheduler_core.fork import Fork
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.pod import pod_from
from scheduler_core.sim.changes import WriteObject
from scheduler_core.whatif import headroom as module
from scheduler_core.whatif.headroom import headroom
from tests.scheduler_core.whatif.clusters import cluster_of, node, pod, state_of

DATA = Path(__file__).parent / "data"
RECORDED = DATA / "replicas.jsonl.gz"
CLOUDS = list(read_cases(DATA / "clouds.jsonl.gz"))
"""Clusters with a cloud provider's names, and what kubernetes-sigs/cluster-capacity v1.34.1 recorded of them."""
OBJECTS = {tuple(row["cloud"]): row["objects"] for row in CLOUDS if "objects" in row}


@pytest.mark.parametrize("case", list(read_cases(RECORDED)), ids=lambda case: case["name"])
def test_as_many_fit_as_the_capacity_tool_recorded_and_the_same_stops_the_next(
    case: Mapping[str, Any],
) -> None:
    assert run_case(case) == []


@pytest.mark.parametrize("case", CLOUDS, ids=lambda case: case["name"])
def test_as_many_fit_on_clouds_as_the_capacity_tool_found(case: Mapping[str, Any]) -> None:
    assert run_case({**case, "objects": OBJECTS[tuple(case["cloud"])]}) == []


def _random_cluster(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    nodes = [
        node(f"n{index}", cpu=str(draw.randint(1, 6)), pods=str(draw.randint(2, 9)), zone=draw.choice("ab"))
        for index in range(draw.randint(1, 7))
    ]
    pods: list[dict[str, Any]] = []
    taken: set[str] = set()
    for index in range(draw.randint(0, 10)):
        cpu, name = f"{draw.randint(1, 12)}00m", draw.choice(nodes)["metadata"]["name"]
        # One pod of a node has the port: when its kubelet refuses a second, the scheduler forgets that of the first.
        port = 0 if name in taken else draw.choice([0, 0, 80])
        taken |= {name} if port else set()
        pods.append(pod(f"p{index}", cpu=cpu, on=name, port=port))
    return nodes + pods


@pytest.mark.parametrize("seed", range(25))
def test_nodes_filled_at_once_hold_what_they_hold_one_copy_at_a_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = pod_from(prepare(pod("web", cpu="700m", port=80 if seed % 3 == 0 else 0)))
    at_once = headroom(Fork(cluster_of(_random_cluster(seed)).scheduler), template)
    monkeypatch.setattr(module, "_fill", lambda *_: True)
    one_by_one = headroom(Fork(cluster_of(_random_cluster(seed)).scheduler), template)
    assert replace(at_once, n_decisions=0) == replace(one_by_one, n_decisions=0)


@pytest.mark.parametrize("seed", range(25))
def test_a_scheduler_of_its_own_takes_as_many_and_refuses_the_next_in_the_same_words(seed: int) -> None:
    objects = _random_cluster(seed)
    for manifest in objects:
        manifest.get("spec", {}).pop("priority", None)
    template = pod("web", cpu="700m", port=80 if seed % 3 == 0 else 0)
    template["spec"].pop("priority")
    simulation = cluster_of(objects)
    # Kubelets first refuse the pods that are on nodes without room for them.
    simulation.run_until_idle()
    answer = headroom(Fork(simulation.scheduler), pod_from(prepare(template)))
    for number in range(answer.replicas + 1):
        meta = {**template["metadata"], "name": f"copy-{number}"}
        simulation.submit(WriteObject(prepare({**template, "metadata": meta})))
        simulation.run_until_idle(max_cycles=1)
    traces = [trace for trace in simulation.drain_cycles() if "/copy-" in trace.pod]
    assert [bool(trace.node) for trace in traces[: answer.replicas + 1]] == [True] * answer.replicas + [False]
    assert answer.stop and answer.stop in (traces[answer.replicas].message or "")


def test_a_count_that_meets_its_limit_says_so_and_leaves_the_copy_as_it_was() -> None:
    fork = Fork(cluster_of([node("a", cpu="8")]).scheduler)
    before = state_of(fork)
    answer = headroom(fork, pod_from(prepare(pod("web", cpu="100m"))), max_copies=20)
    assert (answer.replicas, answer.limit, answer.stop) == (20, 20, "")
    assert state_of(fork) == before
