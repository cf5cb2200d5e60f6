"""What a plugin says of a node alone, which it has a short way for, it says of the node among others too."""

from random import Random
from typing import Any

import pytest

from scheduler_core.framework.example import scores, verdicts
from scheduler_core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit


def random_node(random: Random) -> dict[str, Any]:
    allocatable = {
        "cpu": f"{random.choice([0, 1, 997, 4000, 15_870])}m",
        "memory": str(random.choice([0, 1, 123_456_789, 2**33, 15_999_999_999, 2**63 - 1])),
        "pods": random.choice(["3", "9"]),
    }
    if random.randrange(2):
        allocatable["example.com/device"] = str(random.randrange(4))
    return {
        "status": {"allocatable": allocatable},
        "pods": [random_pod(random) for _ in range(random.randrange(4))],
    }


def random_pod(random: Random) -> dict[str, Any]:
    asked = {"cpu": f"{random.randrange(3000)}m", "memory": str(random.randrange(2**32))}
    if not random.randrange(3):
        asked[random.choice(["example.com/device", "example.com/no-node-has-it"])] = "1"
    return {"containers": [{"name": "c", "resources": {"requests": asked}}]}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("say", "plugin"),
    [
        (scores, NodeResourcesBalancedAllocation),
        (scores, NodeResourcesFit),
        (verdicts, NodeResourcesFit),
    ],
)
def test_a_node_asked_about_alone_is_told_what_it_is_among_others(say: Any, plugin: Any, seed: int) -> None:
    random = Random(seed)
    nodes = {f"n{number}": random_node(random) for number in range(100)}
    pod = random_pod(random)
    together = say(plugin, pod, **nodes)
    alone = {name: say(plugin, pod, **{name: node})[name] for name, node in nodes.items()}
    assert alone == together
    few: dict[str, Any] = {}
    for first in range(0, 100, 4):
        few |= say(plugin, pod, **dict(list(nodes.items())[first : first + 4]))
    assert few == together
    assert len(set(together.values())) > (20 if say is scores else 2)
