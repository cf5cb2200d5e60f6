"""A cluster whose scheduler has plugins from outside the tree, and some such plugins."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework import interface
from scheduler_core.framework.cluster_event import (
    NODE,
    QUEUE,
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
)
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.sim.simulation import Simulation
from tests.manifests import scheduler_config
from tests.scheduler_core.sim.builders import START_NS, make_node, write


def config(*names: str, args: dict[str, Any] | None = None, sort: str = "") -> dict[str, Any]:
    multi: dict[str, Any] = {"enabled": [{"name": name} for name in names]}
    if sort:
        multi["disabled"] = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]
        multi["enabled"].append({"name": "DefaultBinder"})
    profile: dict[str, Any] = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": multi}}
    if args is not None:
        profile["pluginConfig"] = [{"name": names[0], "args": args}]
    return scheduler_config(profiles=[profile])


def cluster(*plugins: type[interface.Plugin], n_nodes: int = 3, **options: Any) -> Simulation:
    options.setdefault("config", config(*(plugin.name for plugin in plugins)))
    simulation = Simulation(options.pop("config"), seed=1, start_ns=START_NS, plugins=plugins, **options)
    write(simulation, *(make_node(f"node-{index}") for index in range(n_nodes)))
    return simulation


@dataclass(frozen=True)
class LikesArgs(PluginArgs):
    node: str = "node-1"
    points: int = 100

    def problems(self, path: str) -> Iterator[Any]:
        if not 0 <= self.points <= 100:
            yield invalid(f"{path}.points", self.points, "not in valid range [0, 100]")


class Likes(interface.ScorePlugin[None]):
    name: ClassVar[str] = "Likes"
    Args = LikesArgs

    def __init__(self, args: LikesArgs, handle: interface.Handle) -> None:
        super().__init__(args, handle)
        self.args = args

    def score(self, state: None, pod: Any, nodes: Any, rows: Any) -> Any:
        liked = nodes.is_named(self.args.node, rows)
        return np.where(liked, self.args.points, 0).astype(np.int64)


class Picky(interface.FilterPlugin[None]):
    """Rejects nodes without the label `vip`; says nothing about events."""

    name: ClassVar[str] = "Picky"

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        return Verdicts.where(nodes.label_column("vip")[rows] < 0, Code.Unschedulable)


_JOINED = QUEUE.because("a VIP came")
_IGNORED = SKIP.because("no VIP")


class PickyWithHints(Picky):
    name: ClassVar[str] = "PickyWithHints"

    def events(self) -> list[ClusterEventWithHint]:
        def hint(pod: Any, old: Any, new: Any) -> Any:
            return _JOINED if "vip" in new.labels else _IGNORED

        return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD), hint)]


def attempts(simulation: Simulation) -> int:
    return len(simulation.drain_cycles())
