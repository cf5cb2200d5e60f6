"""A search made once for nodes that are alike decides what searches on every node decide."""

import random
from typing import Any

import pytest

from scheduler_core.dynamic_resources.pools import SliceIndex
from scheduler_core.releases import RELEASES
from scheduler_core.sim.changes import DeleteObject
from scheduler_core.sim.simulation import Simulation
from tests.changes import one_in
from tests.scheduler_core.sim.builders import make_cluster, state, write
from tests.scheduler_core.sim.test_resource_claims import claiming, node_with, template

KINDS = ("gpu=2", "gpu=3:A100-40GB", "gpu=2,nic=1", "nic=2")
LARGE = 'device.capacity["gpu.playground.dev"].memory.compareTo(quantity("80Gi")) >= 0'


def life(seed: int, release: str, *, parts: bool) -> tuple[Any, ...]:
    """A cluster through a random life: pods with claims come and go, nodes change what they have."""
    chance = random.Random(seed)
    nodes = [node_with(chance.choice(KINDS), f"n{index}") for index in range(6)]
    nodes += [node_with("mig=1", "parts")] if parts else []
    pair = template("pair", count=2)
    pair["spec"]["spec"]["devices"]["constraints"] = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    large = template("large", selectors=[{"cel": {"expression": LARGE}}])
    every = template("every", allocationMode="All")
    del every["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"]
    templates = {"one": template("one"), "pair": pair, "large": large, "every": every}
    cluster = make_cluster(0, *nodes, *templates.values(), release=RELEASES[release])
    there: list[str] = []
    for number in range(12):
        if there and chance.random() < 0.3:
            gone = there.pop(chance.randrange(len(there)))
            cluster.submit(DeleteObject("Pod", "default", gone, 0))
        elif chance.random() < 0.15:
            write(cluster, node_with(chance.choice(KINDS), f"n{chance.randrange(6)}"))
        else:
            there.append(f"p{number}")
            write(cluster, claiming(there[-1], of=chance.choice(list(templates))))
        cluster.run_until_idle()
    return told(cluster)


def told(cluster: Simulation) -> tuple[Any, ...]:
    cycles = [trace.explain() for trace in cluster.drain_cycles()]
    return state(cluster), [(item["sentence"], item.get("filter"), item.get("message")) for item in cycles]


@pytest.mark.parametrize("release", one_in(3, RELEASES, "scheduler_core/dynamic_resources/"))
@pytest.mark.parametrize("parts", [False, True])
def test_nodes_that_are_alike_share_a_search_and_nothing_else_changes(
    release: str, parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = [life(seed, release, parts=parts) for seed in range(4)]
    monkeypatch.setattr(SliceIndex, "kind_of", lambda self, name: -1)
    assert [life(seed, release, parts=parts) for seed in range(4)] == shared


def test_a_likeness_tells_apart_what_a_search_could_tell_apart() -> None:
    index = SliceIndex()
    nodes = [
        node_with(kind, name) for name, kind in (("a", "gpu=2"), ("b", "gpu=2"), ("c", "gpu=2:A100-40GB"))
    ]
    cluster = make_cluster(0, *nodes, release=RELEASES["1.36"])
    cluster.run_until_idle()
    index.update(cluster.scheduler.cache.listers)
    assert index.kind_of("a") == index.kind_of("b") != index.kind_of("c")
    write(cluster, node_with("gpu=3", "b"))
    cluster.run_until_idle()
    index.update(cluster.scheduler.cache.listers)
    assert index.kind_of("a") != index.kind_of("b")
