"""What a node pool makes, counted for the preview."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class PoolPreview:
    """How many nodes a pool makes in each zone, the first names, and one whole manifest."""

    n_nodes: int
    zones: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    sample: Mapping[str, Any]


def preview(nodes: Sequence[Mapping[str, Any]]) -> PoolPreview:
    """Count Node manifests (at least one)."""
    zones = Counter(node["metadata"]["labels"].get(ZONE_LABEL, "no zone") for node in nodes)
    return PoolPreview(
        n_nodes=len(nodes),
        zones=tuple(sorted(zones.items())),
        names=tuple(node["metadata"]["name"] for node in nodes[:5]),
        sample=nodes[0],
    )
