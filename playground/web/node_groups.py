"""Which labels nodes are grouped by, and which nodes some words mean."""

from collections.abc import Sequence
from typing import Final

from playground.clusters.selectors.board_nodes import NodeUse

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
"""What clouds call the pool of a node."""
NOT_GROUPED: Final = "none"
NO_LABEL: Final = "no such label"
_FIRST: Final = (TYPE_LABEL, *POOL_LABELS, ZONE_LABEL)
_SAMPLE: Final = 500


def group_labels(uses: Sequence[NodeUse]) -> tuple[str, ...]:
    """Labels worth grouping by, as several nodes share a value: type, pool and zone first.

    Of a large cluster it looks at nodes from all over the list.
    """
    values: dict[str, set[str]] = {}
    sample = uses[:: max(1, len(uses) // _SAMPLE)]
    for use in sample:
        for key, value in use.labels.items():
            values.setdefault(key, set()).add(value)
    few = max(1, len(sample) // 2)
    shared = [key for key, found in values.items() if len(found) <= few or key == ZONE_LABEL]
    return tuple(sorted(shared, key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)))


def usual_label(labels: Sequence[str]) -> str:
    """The label to group by when none was asked for."""
    return next((label for label in (TYPE_LABEL, ZONE_LABEL) if label in labels), NOT_GROUPED)


def matching(uses: Sequence[NodeUse], words: str) -> Sequence[NodeUse]:
    """Nodes all words are found in: their names, labels (``zone=eu-central-1a``), taints and states."""
    wanted = [word for word in words.lower().split() if word]
    if not wanted:
        return uses
    texts = ((use, _text(use)) for use in uses)
    return [use for use, text in texts if all(word in text for word in wanted)]


def _text(use: NodeUse) -> str:
    labels = " ".join(f"{key}={value}" for key, value in use.labels.items())
    taints = " ".join(f"{taint.get('key', '')}={taint.get('value') or ''}" for taint in use.taints)
    return f"{use.name} {labels} {taints} {use.state.replace(' ', '-')}".lower()


def sorted_by(uses: Sequence[NodeUse], sort: str) -> Sequence[NodeUse]:
    """Nodes by a resource's share, their state, or (as they come) their name; ``-`` before it turns it round."""
    column = sort.removeprefix("-")
    turned = sort.startswith("-")
    if column in ("", "name"):
        return uses[::-1] if turned else uses
    if column == "state":
        return sorted(uses, key=lambda use: use.state, reverse=turned)
    return sorted(uses, key=lambda use: _share(use, column), reverse=turned)


def _share(use: NodeUse, resource: str) -> float:
    """What nodes without the resource have is less than nothing."""
    used, has = use.amounts(resource)
    return used / has if has else -1.0
