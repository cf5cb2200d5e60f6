"""Nodes that could be added: the cluster's own groups, the types of a price list, and these types in those groups.

A group's labels are those that all of its nodes share; zones are the cluster's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.advice.node_edits import volume_places
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.node import LABEL_HOSTNAME, Node, node_from
from scheduler_core.objects.pod import Pod
from scheduler_core.plan.node_groups import INSTANCE_TYPE, ZONE, EqualNodes, group_of, nodes_of
from scheduler_core.plan.prices import NodeType, PriceList

REGION = "topology.kubernetes.io/region"
MAX_GROUPS = 12
_OF_PLACE = (
    ZONE,
    REGION,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_OF_TYPE = (INSTANCE_TYPE, "beta.kubernetes.io/instance-type")
_LIFECYCLE = "node.kubernetes.io/"
_GENERIC = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """One kind of node that may be added, in one zone.

    Attributes
    ----------
    name : str
        For people: the type, and its group where it is of one.
    price : float
        An hour.
    """

    name: str
    price: float
    zone: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, str]

    def node(self, name: str) -> Node:
        """A node of it."""
        return node_from(self.manifest(name))

    def manifest(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": f"uid-of-{name}",
                "labels": {**self.labels, LABEL_HOSTNAME: name},
            },
            "spec": spec,
            "status": {
                "allocatable": dict(self.allocatable),
                "capacity": dict(self.allocatable),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def choices_of(
    sandbox: Sandbox, prices: PriceList, pods: Iterable[Pod] = ()
) -> tuple[list[NodeChoice], list[str]]:
    """What may be added, the cheapest first; and names of groups whose type has no price.

    Places are the cluster's own and those that the volumes of `pods` are tied to.
    """
    nodes = nodes_of(sandbox)
    places = _places(nodes)
    for pod in pods:
        for _, options in volume_places(sandbox, pod):
            for option in options:
                zone = next((value for key, value in option.items() if key.endswith("/zone")), None)
                place = {**option, **({ZONE: zone} if zone else {})}
                if LABEL_HOSTNAME not in option and not any(place.items() <= one.items() for one in places):
                    places.append(place)
    groups: dict[EqualNodes, list[Node]] = {}
    for node in nodes:
        groups.setdefault(group_of(node.meta.labels), []).append(node)
    largest = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0].name, item[0].shape))[
        :MAX_GROUPS
    ]
    found: list[NodeChoice] = []
    without_price = []
    for group, members in largest:
        labels, taints = _common(members), _taints(members[0])
        price = prices.price_of(labels)
        if price is None:
            without_price.append(group.name)
        else:
            allocatable = {
                key: str(value) for key, value in (members[0].manifest["status"]["allocatable"]).items()
            }
            found += _in_places(_named(group, group.shape), price, labels, taints, allocatable, places)
        bare = {
            key: value
            for key, value in labels.items()
            if key not in _OF_TYPE and not key.startswith("karpenter.k8s.")
        }
        for kind in prices.types:
            if kind.name != group.shape:
                found += _of_type(
                    kind, places, {**bare, INSTANCE_TYPE: kind.name}, taints, _named(group, kind.name)
                )
    for kind in prices.types:
        found += _of_type(kind, places, {**_GENERIC, INSTANCE_TYPE: kind.name}, (), kind.name)
    unique = {
        (one.price, one.zone, repr(sorted(one.labels.items())), repr(one.taints), repr(one.allocatable)): one
        for one in reversed(found)
    }
    return sorted(unique.values(), key=lambda one: (one.price, one.name, one.zone)), without_price


def _named(group: EqualNodes, shape: str) -> str:
    return shape if group.name in (shape, "nodes", group.shape) else f"{shape} in {group.name}"


def _of_type(
    kind: NodeType,
    places: list[dict[str, str]],
    labels: Mapping[str, str],
    taints: tuple[Mapping[str, str], ...],
    name: str,
) -> Iterable[NodeChoice]:
    return _in_places(
        name, kind.price, {**labels, **kind.labels}, (*taints, *kind.taints), kind.allocatable, places
    )


def _in_places(
    name: str,
    price: float,
    labels: Mapping[str, str],
    taints: tuple[Mapping[str, str], ...],
    allocatable: Mapping[str, str],
    places: list[dict[str, str]],
) -> Iterable[NodeChoice]:
    for place in places:
        zone = labels.get(ZONE) or place.get(ZONE, "")
        yield NodeChoice(name, price, zone, {**place, **labels}, taints, allocatable)


def _places(nodes: Iterable[Node]) -> list[dict[str, str]]:
    """Labels of each zone; one without labels where there are none."""
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        zone = node.meta.labels.get(ZONE, "")
        if zone:
            found.setdefault(
                zone, {key: node.meta.labels[key] for key in _OF_PLACE if key in node.meta.labels}
            )
    return [found[zone] for zone in sorted(found)] or [{}]


def _common(nodes: list[Node]) -> dict[str, str]:
    """Labels that all of them share but those of their place and name."""
    shared = dict(nodes[0].meta.labels)
    for node in nodes[1:]:
        labels = node.meta.labels
        shared = {key: value for key, value in shared.items() if labels.get(key) == value}
    own = nodes[0].name
    return {
        key: value
        for key, value in shared.items()
        if key not in _OF_PLACE and key != LABEL_HOSTNAME and (value != own or len(nodes) > 1)
    }


def _taints(node: Node) -> tuple[Mapping[str, str], ...]:
    spec = node.manifest.get("spec") or {}
    return tuple(item for item in spec.get("taints") or () if not str(item["key"]).startswith(_LIFECYCLE))
