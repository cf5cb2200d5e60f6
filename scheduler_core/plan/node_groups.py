"""Nodes that are alike to people: pools of a cloud provider, instance types, zones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.node import Node
from scheduler_core.objects.resources import CPU

ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "doks.digitalocean.com/node-pool",
    "node.kubernetes.io/pool",
    "pool",
)
"""Labels by which providers and people name a pool, the first that a node has counts."""


@dataclass(frozen=True, slots=True)
class EqualNodes:
    """What a node is shown under: its pool, else its instance type, else nothing; and its instance type."""

    name: str
    shape: str


def group_of(labels: Mapping[str, str]) -> EqualNodes:
    """The group of a node with these labels."""
    shape = labels.get(INSTANCE_TYPE, "")
    pool = next((labels[key] for key in POOL_LABELS if labels.get(key)), "")
    return EqualNodes(pool or shape or "nodes", shape)


def nodes_of(sandbox: Sandbox) -> list[Node]:
    """In evaluation order."""
    cache = sandbox.scheduler.cache
    return [node for name in sandbox.nodes_in_order() if (node := cache.node(name)) is not None]


def cpu_share(sandbox: Sandbox, name: str) -> int:
    """Requested cpu of a node in whole percent of what it has."""
    row = sandbox.scheduler.cache.nodes.row_of[name]
    have = sandbox.allocatable(CPU, row)
    return 0 if have <= 0 else round(100 * (have - sandbox.free(CPU, row)) / have)
