"""Node groups of a cluster, as they are given or guessed from its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler_core.autoscaler.cluster_state import MachineGroup
from scheduler_core.autoscaler.pasted import Given, GroupGiven
from scheduler_core.autoscaler.templates import lasting_taints
from scheduler_core.errors import InvalidObject
from scheduler_core.fork import INSTANCE_TYPE, group_of, is_control_plane
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME, Node
from scheduler_core.objects.prices import PriceList

Document = Mapping[str, Any]
PRICE_CLASS: Final = "price-class"
"""The label by which the price expander knows what a node costs: here its instance type."""
_GUESSED_LEAST: Final = 10


@dataclass(slots=True)
class Groups:
    """Node groups of a cluster: as given, else one for each pool and instance type.

    Attributes
    ----------
    group_of : dict of str to str
        Node -> group.
    """

    machines: list[MachineGroup]
    group_of: dict[str, str]
    guessed: bool

    def adopt(self, nodes: Iterable[Node]) -> None:
        """Take in nodes of a group's pool that others have added: the group is so much larger."""
        for node in nodes:
            if node.name in self.group_of or is_control_plane(node):
                continue
            pool = group_of(node.meta.labels)
            names = (f"{pool.name}-{pool.shape}", pool.name)
            found = next((one for name in names for one in self.machines if one.name == name), None)
            if found is not None:
                self.group_of[node.name] = found.name
                found.target_size += 1


def groups_of(nodes: Sequence[Node], given: Given, prices: PriceList) -> Groups:
    """Find the groups and their nodes; of the control plane none is in a group.

    Raises
    ------
    InvalidObject
        Nothing says what a node of a given group is like.
    """
    workers = [node for node in nodes if not is_control_plane(node)]
    shapes: dict[str, set[str]] = {}
    for node in workers:
        pool = group_of(node.meta.labels)
        shapes.setdefault(pool.name, set()).add(pool.shape)
    pools: dict[str, list[Node]] = {}
    for node in workers:
        pool = group_of(node.meta.labels)
        name = pool.name if len(shapes[pool.name]) == 1 else f"{pool.name}-{pool.shape}"
        pools.setdefault(name, []).append(node)
    if not given.groups:
        machines = [
            MachineGroup(name, 0, max(2 * len(some), _GUESSED_LEAST), len(some), _like(name, some[0]))
            for name, some in sorted(pools.items())
        ]
        return Groups(machines, {node.name: name for name in pools for node in pools[name]}, guessed=True)
    found = Groups([], {}, guessed=False)
    for place, group in enumerate(given.groups):
        members = pools.get(group.name) or [
            node for node in workers if group_of(node.meta.labels).name == group.name
        ]
        template = priced(template_of(group, f"autoscaler.nodeGroups[{place}].name", members, prices))
        found.machines.append(
            MachineGroup(group.name, group.min_size, group.max_size, len(members), template)
        )
        found.group_of |= {node.name: group.name for node in members}
    return found


def template_of(group: GroupGiven, path: str, members: Sequence[Node], prices: PriceList) -> Document:
    """What a new node of a group is like.

    Raises
    ------
    InvalidObject
        Nothing says it.
    """
    name = f"template-{group.name}"
    if group.template is not None:
        return {**group.template, "metadata": {**(group.template.get("metadata") or {}), "name": name}}
    kind = next((one for one in prices.types if one.name == group.instance_type), None)
    if kind is not None:
        amounts = dict(kind.allocatable)
        return object_of(
            "v1",
            "Node",
            {"name": name, "labels": {**kind.labels, INSTANCE_TYPE: kind.name, "pool": group.name}},
            spec={"taints": [dict(taint) for taint in kind.taints]},
            status={"allocatable": amounts, "capacity": amounts},
        )
    if members:
        return _like(group.name, members[0])
    said = "is of no node of the cluster: give it a template (a Node) or an instanceType of the price list"
    raise InvalidObject(path, group.name, said)


def _like(group: str, node: Node) -> Document:
    """A new, empty node of the kind of another one."""
    labels = {key: value for key, value in node.labels.items() if value != node.name}
    status = {key: value for key, value in (node.manifest.get("status") or {}).items() if key != "images"}
    made = {"name": f"template-{group}", "labels": labels}
    return priced(
        object_of("v1", "Node", made, spec={"taints": lasting_taints(node.manifest)}, status=status)
    )


def priced(node: Document) -> Document:
    """The node with the label by which the price expander knows its price."""
    labels = (node.get("metadata") or {}).get("labels") or {}
    kind = labels.get(INSTANCE_TYPE)
    if not kind:
        return node
    return {**node, "metadata": {**node["metadata"], "labels": {**labels, PRICE_CLASS: kind}}}


def new_node(template: Document, name: str, now: str) -> dict[str, Any]:
    """A machine of a group as it registers, ready.

    Parameters
    ----------
    now : str
        The time, as Kubernetes writes it.
    """
    labels = {**((template.get("metadata") or {}).get("labels") or {}), LABEL_HOSTNAME: name}
    labels.pop(PRICE_CLASS, None)
    status = dict(template.get("status") or {})
    status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
    return {**template, "metadata": {"name": name, "labels": labels}, "status": status}
