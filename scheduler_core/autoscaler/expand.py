"""Which of the groups that could grow does: the expanders, one after the other, until one option is left.

Source: cluster-autoscaler/expander, k8s 1.36
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from scheduler_core.autoscaler.cluster import ProgramEvent
from scheduler_core.autoscaler.estimate import Packing
from scheduler_core.autoscaler.snapshot import GroupTemplate
from scheduler_core.autoscaler.templates import amounts_of, has_gpu
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.resources import CPU, MEMORY

PRIORITIES: Final = "kube-system/cluster-autoscaler-priority-expander"
EXPANDERS: Final = ("least-waste", "most-pods", "least-nodes", "price", "priority")
_PREFERRED: Final = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Up to so many nodes, the cores of the node that the price expander prefers; 32 above."""
_GPU_UNFITNESS: Final = 1000.0


@dataclass
class Expansion:
    """A group that could grow."""

    group: str
    n_nodes: int
    packing: Packing
    similar: list[str] = field(default_factory=list)

    @property
    def pods(self) -> list[Pod]:
        return self.packing.pods


@dataclass
class Choice:
    """How an option was chosen."""

    chosen: Expansion
    filters: list[tuple[str, list[str]]]
    """Name of an expander, groups that it left."""
    random_among: list[str] | None
    """Groups among which the real program draws; the first by name is taken here."""


class Expander:
    """The expanders of one loop.

    Parameters
    ----------
    names : sequence of str
        In order.
    prices : mapping of str to float
        Value of the label `price-class` -> price of a node-hour.
    config : str or None
        The priority expander's priorities, YAML.
    """

    def __init__(
        self,
        names: Sequence[str],
        templates: Mapping[str, GroupTemplate],
        prices: Mapping[str, float],
        n_nodes: int,
        config: str | None,
    ) -> None:
        self._names = [name for name in names if name != "random"]
        self._templates = templates
        self._prices = prices
        self._n_nodes = n_nodes
        self._config = config
        self.events: list[ProgramEvent] = []

    def choose(self, options: Sequence[Expansion]) -> Choice:
        left, filters = list(options), []
        for name in self._names:
            left = self._best(name, left)
            filters.append((name, sorted(option.group for option in left)))
            if len(left) == 1:
                return Choice(left[0], filters, None)
        left.sort(key=lambda option: option.group)
        return Choice(left[0], filters, [option.group for option in left])

    def by_each(self, options: Sequence[Expansion]) -> dict[str, str]:
        """What each expander, alone, would choose: the first by name where it leaves several."""
        each = {}
        for name in EXPANDERS:
            alone = Expander([name], self._templates, self._prices, self._n_nodes, self._config)
            if name != "priority" or priorities_of(self._config) is not None:
                each[name] = alone.choose(options).chosen.group
        return each

    def left_over(self, option: Expansion) -> float | None:
        """The share of the capacity in cpu and memory that an option's pods leave, 0 to 1; None where it has none."""
        wastes = [one for one in self._wastes(option) if one != -math.inf]
        return round(sum(wastes) / len(wastes), 4) if wastes else None

    def priority_of(self, group: str) -> int | None:
        """The highest priority of a group; None where it has none."""
        found = priorities_of(self._config) or {}
        return max((at for at, some in found.items() if any(one.search(group) for one in some)), default=None)

    def _best(self, name: str, options: list[Expansion]) -> list[Expansion]:
        if name == "priority":
            return self._by_priority(options)
        values: dict[str, Callable[[Expansion], float]] = {
            "least-waste": lambda option: sum(self._wastes(option)),
            "most-pods": lambda option: -len(option.pods),
            "least-nodes": lambda option: option.n_nodes,
            "price": self._price,
        }
        scored = [(values[name](option), option) for option in options]
        least = min(value for value, _ in scored)
        return [option for value, option in scored if value == least]

    def _wastes(self, option: Expansion) -> Iterator[float]:
        """Of cpu and memory the share that is not asked for; -inf where a node has none."""
        capacity = amounts_of(self._templates[option.group].node)
        for name in (CPU, MEMORY):
            available = capacity.get(name, 0) * option.n_nodes
            asked = sum(pod.requests.get(name, 0) for pod in option.pods)
            yield (available - asked) / available if available else -math.inf

    def _price(self, option: Expansion) -> float:
        node = self._templates[option.group].node
        stable = _pod_price(0.5, 500 / 1024)
        pods = sum(
            _pod_price(pod.requests.get(CPU, 0) / 1000, pod.requests.get(MEMORY, 0) / 2**30)
            for pod in option.pods
        )
        nodes = self._prices.get(node.labels.get("price-class", ""), 0.0) * option.n_nodes
        wanted = next((cores for most, cores in _PREFERRED if self._n_nodes <= most), 32) * 1000
        has = amounts_of(node).get(CPU, 0)
        unfitness = max(wanted / has, has / wanted) if has else math.inf
        calmed = (unfitness - 1.0) * (1.0 - math.tanh((option.n_nodes - 1) / 15.0)) + 1.0
        if has_gpu(node):
            calmed = _GPU_UNFITNESS
        return calmed * ((nodes + stable) / (pods + stable))

    def _by_priority(self, options: list[Expansion]) -> list[Expansion]:
        if self._config is None:
            return options
        try:
            priorities = _read_priorities(self._config)
        except ValueError as error:
            words = f"Wrong configuration for priority expander: {error}. Ignoring update."
            self._warn("PriorityConfigMapInvalid", words)
            return options
        highest, best = -1, list[Expansion]()
        for option in options:
            found = False
            for priority, patterns in priorities.items():
                if not any(pattern.search(option.group) for pattern in patterns):
                    continue
                found = True
                if priority > highest:
                    highest, best = priority, []
                if priority == highest:
                    best.append(option)
            if not found:
                self._warn(
                    "PriorityConfigMapNotMatchedGroup",
                    f"Priority expander: node group {option.group} not found in priority expander configuration. "
                    "The group won't be used.",
                )
        if not best:
            self._warn(
                "PriorityConfigMapNoGroupMatched",
                "Priority expander: no priorities info found for any of the expansion options. "
                "No options filtered.",
            )
            return options
        return best

    def _warn(self, reason: str, words: str) -> None:
        self.events.append(ProgramEvent("ConfigMap", PRIORITIES, "Warning", reason, words))


def priorities_of(text: str | None) -> dict[int, list[re.Pattern[str]]] | None:
    """Patterns of groups by priority; None where there is none, or what cannot be used."""
    try:
        return None if text is None else _read_priorities(text)
    except ValueError:
        return None


def _read_priorities(text: str) -> dict[int, list[re.Pattern[str]]]:
    if not text:
        name = PRIORITIES.partition("/")[2]
        raise ValueError(
            f"priority configuration in {name} configmap is empty; please provide valid configuration"
        )
    try:
        found = yaml.safe_load(text) or {}
        if not all(isinstance(some, list | None) for some in found.values()):
            raise TypeError("each priority has a list of regular expressions")
        rules = [(int(priority), str(rule)) for priority, some in found.items() for rule in some or ()]
    except (AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"Can't parse YAML with priorities in the configmap: {said}") from None
    priorities: dict[int, list[re.Pattern[str]]] = {}
    for priority, rule in rules:
        try:
            priorities.setdefault(priority, []).append(re.compile(rule))
        except re.error as error:
            said = f"Can't compile regexp rule for priority {priority} and rule {rule}: {error}"
            raise ValueError(said) from None
    return priorities


def _pod_price(cores: float, gib: float) -> float:
    return 0.03 * cores + 0.004 * gib


def describe(choice: Choice, options: Sequence[Expansion]) -> dict[str, Any]:
    """A choice as a document."""
    told: dict[str, Any] = {
        "options": [
            {
                "group": option.group,
                "nodeCount": option.n_nodes,
                "pods": [pod.key for pod in option.pods],
                "similar": sorted(option.similar),
            }
            for option in options
        ],
        "filters": [{"name": name, "left": left} for name, left in choice.filters],
        "chosen": choice.chosen.group,
    }
    if choice.random_among is not None:
        told["randomAmong"] = choice.random_among
    return told
