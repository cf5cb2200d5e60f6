"""Every plugin of the tree passes the conformance kit, and the kit finds what is broken."""

from typing import Any, ClassVar

import numpy as np
import pytest

from scheduler_core.framework.interface import FilterPlugin, Plugin, Reads, ScorePlugin
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.plugin_kit import check, cost
from scheduler_core.plugins import IN_TREE


@pytest.mark.parametrize(
    "plugin", [plugin for plugin in IN_TREE if not plugin.is_family], ids=lambda plugin: plugin.name
)
def test_a_plugin_of_the_tree_conforms(plugin: type[Plugin]) -> None:
    assert check(plugin) == []


class Moody(FilterPlugin[None]):
    """Answers by how often it was asked."""

    name: ClassVar[str] = "Moody"
    asked: ClassVar[int] = 0

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        Moody.asked += 1
        return Verdicts.where((rows + Moody.asked) % 3 == 0, Code.Unschedulable)


class Crowded(FilterPlugin[None]):
    """Reads how many pods there are, and says it reads the node object alone."""

    name: ClassVar[str] = "Crowded"
    filter_reads: ClassVar[Reads] = Reads.SPEC

    def sign(self, pod: Any) -> Any:
        return ()

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        return Verdicts.where(nodes.n_pods[rows] > 1, Code.Unschedulable)


class Owned(Crowded):
    """Reads whose pod it is, and does not say so either: answers are kept for another owner's."""

    name: ClassVar[str] = "Owned"

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        owner = pod.meta.controller
        return Verdicts.where(
            rows % 3 == (0 if owner is None else "uvw".index(owner.name)), Code.Unschedulable
        )


class Forgetful(ScorePlugin[None]):
    """Keeps something and does not say so to the checkpoint."""

    name: ClassVar[str] = "Forgetful"

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.count = 0

    def score(self, state: None, pod: Any, nodes: Any, rows: Any) -> Any:
        self.count += 1
        return (rows * self.count) % 101


class Neighbours(FilterPlugin[None]):
    """Answers about a row by its place among those it is asked about."""

    name: ClassVar[str] = "Neighbours"

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        return Verdicts.where(np.arange(len(rows)) == 1, Code.Unschedulable)


class Listed(ScorePlugin[None]):
    name: ClassVar[str] = "Listed"

    def score(self, state: None, pod: Any, nodes: Any, rows: Any) -> Any:
        return [0] * len(rows)


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (Moody, "the same seed decides otherwise"),
        (Crowded, "kept answers differ from fresh ones"),
        (Owned, "kept answers differ from fresh ones"),
        (Forgetful, "it goes on otherwise from a checkpoint"),
        (Neighbours, "among all rows"),
        (Listed, "scores as list"),
    ],
)
def test_the_kit_finds_what_is_broken(plugin: type[Plugin], words: str) -> None:
    assert any(words in problem for problem in check(plugin)), check(plugin)


def test_cost_is_measured_where_a_plugin_is_asked_about_nodes() -> None:
    assert [item.point for item in cost(Crowded, n_nodes=50)] == ["filter"]
    assert [item.point for item in cost(Forgetful, n_nodes=50)] == ["score"]
