"""NodeResourcesBalancedAllocation says of a node alone what it says of it among others."""

from __future__ import annotations

from random import Random
from typing import Any

from scheduler_core.framework.example import scores
from scheduler_core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation


def random_node(random: Random) -> dict[str, Any]:
    allocatable = {
        "cpu": f"{random.choice([0, 1, 997, 4000, 15_870])}m",
        "memory": str(random.choice([0, 1, 123_456_789, 2**33, 15_999_999_999])),
        "pods": "9",
    }
    return {
        "status": {"allocatable": allocatable},
        "pods": [random_pod(random) for _ in range(random.randrange(4))],
    }


def random_pod(random: Random) -> dict[str, Any]:
    asked = {"cpu": f"{random.randrange(3000)}m", "memory": str(random.randrange(2**32))}
    return {"containers": [{"name": "c", "resources": {"requests": asked}}]}


def test_a_node_asked_about_alone_scores_as_it_does_among_others() -> None:
    random = Random(7)
    nodes = {f"n{number}": random_node(random) for number in range(150)}
    pod = random_pod(random)
    together = scores(NodeResourcesBalancedAllocation, pod, **nodes)
    alone = {
        name: scores(NodeResourcesBalancedAllocation, pod, **{name: node})[name]
        for name, node in nodes.items()
    }
    assert alone == together
    assert len(set(together.values())) > 20
