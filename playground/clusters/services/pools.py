"""Node pools: a form of a few fields becomes Node manifests."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from playground.clusters.errors import InvalidInput
from playground.engine.words import amount_problem

MAX_NODES: Final = 10_000
_NUMBER: Final = re.compile(r"\{n(?::0(\d))?\}")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def expand_pool(
    *,
    name: str,
    count: int,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    extended: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str | Mapping[str, str]] = (),
    zones: Sequence[str] = (),
    region: str = "",
    first: int = 1,
) -> list[dict[str, Any]]:
    """The Node manifests of a pool.

    Parameters
    ----------
    name
        Name pattern: ``{n}`` is the number, ``{n:02}`` padded, ``{zone}`` the zone; without ``{n}`` the
        number is appended (``gpu`` -> ``gpu-1``).
    count
        Nodes in all, 1 to 10,000; dealt to the zones in turn.
    cpu, memory
        Quantities of one node.
    pods
        Pods a node takes.
    extended
        Extended resources, e.g. ``{"nvidia.com/gpu": 4}``.
    labels
        Of each node; hostname, zone and region labels are added.
    taints
        ``key=value:Effect`` or ``key:Effect``, or mappings.
    zones
        Zone names; empty = no zone label.
    region
        Region label; empty = none.
    first
        First number.

    Raises
    ------
    InvalidInput
        Naming the field.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_NODES:
        raise InvalidInput(f"a pool has 1 to {MAX_NODES:,} nodes", field="count", value=str(count))
    pattern = name.strip()
    if not pattern:
        raise InvalidInput("a pool needs a name", field="name", value=name)
    if not _NUMBER.search(pattern):
        pattern += "-{n}"
    amounts: dict[str, str] = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods)}
    amounts |= {resource: str(amount) for resource, amount in (extended or {}).items()}
    for resource, amount in amounts.items():
        field = resource if resource in ("cpu", "memory", "pods") else "extended"
        if said := amount_problem(amount):
            raise InvalidInput(f"{resource}: {said}", field=field, value=amount)
    parsed = [parse_taint(taint) for taint in taints]
    nodes = []
    for position in range(count):
        zone = zones[position % len(zones)] if zones else ""
        node_name = _NUMBER.sub(partial(_padded, first + position), pattern)
        node_name = node_name.replace("{zone}", zone)
        nodes.append(_node(node_name, zone, region, labels or {}, parsed, amounts))
    return nodes


def _padded(number: int, match: re.Match[str]) -> str:
    return str(number).zfill(int(match.group(1) or 0))


def parse_taint(taint: str | Mapping[str, str]) -> dict[str, str]:
    """A taint from ``key=value:Effect``.

    Raises
    ------
    InvalidInput
    """
    if not isinstance(taint, str):
        return dict(taint)
    head, colon, effect = taint.strip().rpartition(":")
    key, _, value = head.partition("=")
    if not colon or not key or effect not in _EFFECTS:
        raise InvalidInput(
            f'"{taint}" is not a taint: write key=value:Effect or key:Effect,'
            f" Effect one of {', '.join(_EFFECTS)}",
            field="taints",
            value=taint,
        )
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _node(
    name: str,
    zone: str,
    region: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    amounts: Mapping[str, str],
) -> dict[str, Any]:
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone:
        all_labels["topology.kubernetes.io/zone"] = zone
    if region:
        all_labels["topology.kubernetes.io/region"] = region
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels | dict(labels)},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
