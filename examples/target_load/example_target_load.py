"""TargetLoad: packs nodes up to a target of measured load, and spreads beyond it.

After sigs.k8s.io/scheduler-plugins pkg/trimaran TargetLoadPacking. A scheduler here asks nothing of the outside: the
measured load is data, an annotation on the node that an operator or a scenario writes (`example.com/load`, percent).
"""

from dataclasses import dataclass

import numpy as np

from scheduler_core.config.args import PluginArgs, invalid
from scheduler_core.framework.interface import ScorePlugin
from scheduler_core.framework.per_node import per_node

LOAD = "example.com/load"


@dataclass(frozen=True)
class TargetLoadArgs(PluginArgs):
    target_percent: int = 40

    def problems(self, path):
        if not 1 <= self.target_percent <= 100:
            yield invalid(f"{path}.targetPercent", self.target_percent, "not in valid range [1, 100]")


def points(load, target):
    """100 at the target, falling to the target at no load, and from there to 0 at full load."""
    if load <= target:
        return round((100 - target) * load / target + target)
    return round(target * (100 - min(load, 100)) / (100 - target)) if target < 100 else 0


class TargetLoad(ScorePlugin[None]):
    """Scores one node at a time: the first draft of a plugin, and slow."""

    name = "TargetLoad"
    Args = TargetLoadArgs

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.target = args.target_percent

    @per_node
    def score(self, state, pod, node):
        annotations = node.object.manifest["metadata"].get("annotations") or {}
        text = str(annotations.get(LOAD, ""))
        if not text.isdecimal():
            return 0
        asked = 100 * pod.requests.get("cpu", 0) / max(node.allocatable("cpu"), 1)
        return int(np.clip(points(int(text) + asked, self.target), 0, 100))
