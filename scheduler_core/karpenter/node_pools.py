"""NodePools as they are pasted, and the machines that each may launch: types of a price list in the cluster's zones.

Source: karpenter.sh/v1, pkg/apis/v1/nodepool.go of kubernetes-sigs/karpenter 2266468
Differs: each type has the list's price in every zone; capacity is on demand, or spot at that price where a NodePool
takes spot alone. `minValues`, `replicas`, the policy Balanced, drift and expiry are not modelled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from scheduler_core.descheduler.settings import Schedule, schedule_from
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.documents import pasted_values
from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME, LABEL_INSTANCE_TYPE, LABEL_ZONE, Node, node_from
from scheduler_core.objects.node_selector import NodeSelector, node_selector_from
from scheduler_core.objects.prices import NodeType, PriceList, amount_from, shipped_prices
from scheduler_core.objects.quantity import quantity_milli_value

POOL: Final = "karpenter.sh/nodepool"
CAPACITY: Final = "karpenter.sh/capacity-type"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
ON_DEMAND, SPOT = "on-demand", "spot"
EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
WHEN_EMPTY, WHEN_UNDERUTILIZED = "WhenEmpty", "WhenEmptyOrUnderutilized"
MAX_POOLS: Final = 50
_REASONS: Final = (EMPTY, UNDERUTILIZED, "Drifted")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_NODES: Final = re.compile(r"(\d{1,6})(%?)")
_OF_AWS: Final = re.compile(r"(([a-z]+)(\d+)[a-z-]*)\.(\S+)")
_AWS: Final = "karpenter.k8s.aws/instance-"
_OF_MACHINES: Final = (LABEL_INSTANCE_TYPE, LABEL_ZONE, CAPACITY, "kubernetes.io/", "karpenter.k8s.")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many nodes of a NodePool may go at once, for some reasons (none: all) and while a schedule says so."""

    nodes: str
    reasons: tuple[str, ...] = ()
    schedule: Schedule | None = None
    duration_ns: int = 0

    def allows(self, n_nodes: int, reason: str, now_ns: int) -> int | None:
        """So many of `n_nodes`, a share rounded up; None where it does not count now."""
        if self.reasons and reason not in self.reasons:
            return None
        if self.schedule is not None:
            begun_ns = self.schedule.next_ns(now_ns - self.duration_ns)
            if begun_ns is None or begun_ns > now_ns:
                return None
        if self.nodes.endswith("%"):
            return math.ceil(n_nodes * int(self.nodes[:-1]) / 100)
        return int(self.nodes)


@dataclass(frozen=True, slots=True)
class NodePool:
    """What nodes may be launched, and when they may go.

    Attributes
    ----------
    requirements : NodeSelector or None
    limits : mapping of str to int
        Of all its nodes together, in thousandths.
    consolidate_after_ns : int or None
        None is `Never`.
    """

    name: str
    weight: int
    labels: Mapping[str, str]
    taints: tuple[Document, ...]
    requirements: NodeSelector | None
    zones: tuple[str, ...]
    limits: Mapping[str, int]
    policy: str
    consolidate_after_ns: int | None
    budgets: tuple[DisruptionBudget, ...]

    def may_go(self, n_nodes: int, reason: str, now_ns: int) -> int:
        """How many of its nodes may go at once for a reason."""
        allowed = (budget.allows(n_nodes, reason, now_ns) for budget in self.budgets)
        return min((number for number in allowed if number is not None), default=n_nodes)


@dataclass(frozen=True, slots=True)
class Offering:
    """A machine that a NodePool may launch.

    Attributes
    ----------
    node : Node
        As it would register, under another name.
    price : float
        An hour.
    """

    pool: NodePool
    type: str
    zone: str
    price: float
    node: Node

    @property
    def is_spot(self) -> bool:
        return self.node.labels[CAPACITY] == SPOT

    def manifest(self, name: str) -> dict[str, Any]:
        """A node of it."""
        meta = {"name": name, "labels": {**self.node.labels, LABEL_HOSTNAME: name}}
        return {**self.node.manifest, "metadata": meta}


def read_node_pools(text: str) -> tuple[NodePool, ...]:
    """Read NodePools, one YAML document each, those of the highest weight first; NodeClasses are passed over.

    Raises
    ------
    InvalidObject
        Names the document, the field and its value.
    """
    found: dict[str, NodePool] = {}
    for place, document in enumerate(pasted_values(text, "karpenter")):
        if str(document.get("kind", "")).endswith("NodeClass"):
            continue
        path = f"karpenter[{place}]"
        pool = _node_pool(document, path)
        if pool.name in found:
            raise InvalidObject(f"{path}.metadata.name", pool.name, "is there twice")
        found[pool.name] = pool
    if not 1 <= len(found) <= MAX_POOLS:
        raise InvalidObject("karpenter", None, f"must hold NodePools, one at least and {MAX_POOLS} at most")
    return tuple(sorted(found.values(), key=lambda pool: (-pool.weight, pool.name)))


def _node_pool(document: Document, path: str) -> NodePool:
    if document.get("kind") != "NodePool" or document.get("apiVersion") != "karpenter.sh/v1":
        raise InvalidObject(f"{path}.kind", document.get("kind"), "must be a NodePool of karpenter.sh/v1")
    name = _at(document, path, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise InvalidObject(f"{path}.metadata.name", name, "must be the NodePool's name")
    spec = _at(document, path, "spec")
    path += ".spec"
    if spec.get("replicas") is not None:
        raise InvalidObject(f"{path}.replicas", spec["replicas"], "is not modelled")
    weight = spec.get("weight", 0)
    if not isinstance(weight, int) or not 0 <= weight <= 100:
        raise InvalidObject(f"{path}.weight", weight, "must be a number from 1 to 100")
    template = _at(spec, path, "template")
    own = _at(template, f"{path}.template", "spec")
    asked = _requirements(own.get("requirements") or (), f"{path}.template.spec.requirements")
    labels = dict(_at(template, f"{path}.template", "metadata").get("labels") or {})
    for one in asked:
        # A label that the NodePool makes up; of what a machine has, its requirements choose.
        is_own = not one["key"].startswith(_OF_MACHINES)
        if is_own and one["operator"] == "In" and len(one["values"]) == 1:
            labels.setdefault(one["key"], one["values"][0])
    disruption = _at(spec, path, "disruption")
    policy = disruption.get("consolidationPolicy") or WHEN_UNDERUTILIZED
    if policy not in (WHEN_EMPTY, WHEN_UNDERUTILIZED):
        said = f"must be {WHEN_EMPTY} or {WHEN_UNDERUTILIZED}"
        raise InvalidObject(f"{path}.disruption.consolidationPolicy", policy, said)
    after = str(disruption.get("consolidateAfter") or "0s")
    budgets = disruption.get("budgets")
    return NodePool(
        name,
        weight,
        labels,
        tuple(
            _taint(one, f"{path}.template.spec.taints[{n}]") for n, one in enumerate(own.get("taints") or ())
        ),
        node_selector_from({"nodeSelectorTerms": [{"matchExpressions": asked}]}) if asked else None,
        tuple(
            value
            for one in asked
            if one["key"] == LABEL_ZONE and one["operator"] == "In"
            for value in one["values"]
        ),
        {
            key: quantity_milli_value(amount_from(value, f"{path}.limits.{key}"))
            for key, value in _at(spec, path, "limits").items()
        },
        policy,
        None if after == "Never" else _duration(after, f"{path}.disruption.consolidateAfter"),
        tuple(
            _budget(one, f"{path}.disruption.budgets[{n}]")
            for n, one in enumerate([{"nodes": "10%"}] if budgets is None else budgets)
        ),
    )


def _at(document: Document, path: str, key: str) -> Document:
    found = document.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise InvalidObject(f"{path}.{key}", found, "must be a mapping")
    return found or {}


def _requirements(items: Iterable[Any], path: str) -> list[dict[str, Any]]:
    found = []
    for place, item in enumerate(items):
        where = f"{path}[{place}]"
        if not isinstance(item, Mapping) or not isinstance(item.get("key"), str):
            raise InvalidObject(where, item, "must have key, operator and values")
        if item.get("operator") not in _OPERATORS:
            raise InvalidObject(
                f"{where}.operator", item.get("operator"), f"must be of {', '.join(_OPERATORS)}"
            )
        if item.get("minValues") is not None:
            raise InvalidObject(f"{where}.minValues", item["minValues"], "is not modelled")
        values = [str(value) for value in item.get("values") or ()]
        found.append({"key": item["key"], "operator": item["operator"], "values": values})
    return found


def _taint(item: Any, path: str) -> dict[str, str]:
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    if not isinstance(item, Mapping) or not item.get("key") or item.get("effect") not in effects:
        raise InvalidObject(path, item, f"must have a key and an effect of {', '.join(effects)}")
    return {name: str(item[name]) for name in ("key", "value", "effect") if item.get(name)}


def _duration(text: str, path: str) -> int:
    try:
        found = parse_duration_ns(text)
        if found < 0:
            raise ValueError
    except ValueError:
        raise InvalidObject(path, text, "must be a duration as 30s, or Never") from None
    return found


def _budget(item: Any, path: str) -> DisruptionBudget:
    if not isinstance(item, Mapping) or not _NODES.fullmatch(str(item.get("nodes", "10%"))):
        raise InvalidObject(path, item, "must have nodes, a number or a share as 10%")
    for reason in item.get("reasons") or ():
        if reason not in _REASONS:
            raise InvalidObject(f"{path}.reasons", reason, f"must be of {', '.join(_REASONS)}")
    schedule, duration = item.get("schedule"), item.get("duration")
    if (schedule is None) != (duration is None):
        raise InvalidObject(f"{path}.schedule", schedule, "and duration go together")
    try:
        at = None if schedule is None else schedule_from(str(schedule))
    except ValueError as error:
        raise InvalidObject(f"{path}.schedule", schedule, str(error)) from None
    duration_ns = 0 if duration is None else _duration(str(duration), f"{path}.duration")
    return DisruptionBudget(str(item.get("nodes", "10%")), tuple(item.get("reasons") or ()), at, duration_ns)


def offerings(
    pools: Sequence[NodePool], prices: PriceList, zones: Iterable[str]
) -> dict[str, list[Offering]]:
    """NodePool -> what it may launch, the cheapest first.

    Parameters
    ----------
    zones : iterable of str
        The cluster's; a NodePool's own come to them.
    """
    found: dict[str, list[Offering]] = {}
    there = [*zones]
    for pool in pools:
        places = sorted({*there, *pool.zones}) or [""]
        mine = [one for kind in prices.types for zone in places if (one := _offering(pool, kind, zone))]
        found[pool.name] = sorted(mine, key=lambda one: (one.price, one.type, one.zone))
    return found


def _offering(pool: NodePool, kind: NodeType, zone: str) -> Offering | None:
    taints = [*pool.taints, *kind.taints]
    amounts = dict(kind.allocatable)
    for capacity in (ON_DEMAND, SPOT):
        labels = {
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **_labels_of_type(kind),
            **kind.labels,
            **pool.labels,
            LABEL_INSTANCE_TYPE: kind.name,
            CAPACITY: capacity,
            POOL: pool.name,
            **({LABEL_ZONE: zone} if zone else {}),
        }
        if pool.requirements is None or pool.requirements.match(labels, ""):
            node = object_of(
                "v1",
                "Node",
                {"name": f"{pool.name}-{kind.name}", "labels": labels},
                spec={"taints": taints} if taints else {},
                status={
                    "allocatable": amounts,
                    "capacity": amounts,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            )
            return Offering(pool, kind.name, zone, kind.price, node_from(node))
    return None


@cache
def values_of_machines() -> Mapping[str, frozenset[str]]:
    """Label -> the values that machines of the list that comes with the package have."""
    found: dict[str, set[str]] = {CAPACITY: {ON_DEMAND, SPOT}}
    found |= {"kubernetes.io/os": {"linux"}, "kubernetes.io/arch": {"amd64"}}
    for kind in shipped_prices().types:
        for key, value in {**_labels_of_type(kind), **kind.labels, LABEL_INSTANCE_TYPE: kind.name}.items():
            found.setdefault(key, set()).add(value)
    return {key: frozenset(values) for key, values in found.items()}


def _labels_of_type(kind: NodeType) -> dict[str, str]:
    """What the provider for AWS says of an instance type, as far as its name and size tell it."""
    match = _OF_AWS.fullmatch(kind.name)
    if match is None:
        return {}
    family, category, generation, size = match.groups()
    return {
        f"{_AWS}family": family,
        f"{_AWS}category": category,
        f"{_AWS}generation": generation,
        f"{_AWS}size": size,
        f"{_AWS}cpu": str(quantity_milli_value(kind.allocatable["cpu"]) // 1000),
        f"{_AWS}memory": str(quantity_milli_value(kind.allocatable["memory"]) // 1000 // 2**20),
    }
