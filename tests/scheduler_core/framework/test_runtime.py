"""A profile runs its plugins in order and by upstream's rules, also when one of them misbehaves."""

from typing import Any, ClassVar

import numpy as np
import pytest

from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.errors import PluginDeclarationError
from scheduler_core.framework.interface import FilterPlugin, Handle, Plugin, PreFilterPlugin, PreFilterResult
from scheduler_core.framework.registry import Registry
from scheduler_core.framework.runtime import build_profiles
from scheduler_core.framework.status import Verdicts
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from
from scheduler_core.plugins import REGISTRY, load_configuration
from scheduler_core.randomness import Randomness
from scheduler_core.schedule_one import Algorithm, AlgorithmOptions, Decision
from tests.scheduler_core.stored import prepare

API = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def decide(*plugins: type[Plugin], points: dict[str, tuple[str, ...]], n_nodes: int = 3) -> Decision:
    """Schedule one plain pod with extra plugins enabled."""
    registry = REGISTRY.plus(plugins)
    sets: dict[str, Any] = {}
    for name, at in points.items():
        for point in at:
            sets.setdefault(point, {"enabled": []})["enabled"].append({"name": name})
    loaded = load_configuration(
        {**API, "profiles": [{"schedulerName": "default-scheduler", "plugins": sets}]},
        registry=registry,
    )
    cache, clock = Cache(), Clock(0)
    handle = Handle(cache, Nominator(), WaitingPods(), clock)
    framework = build_profiles(loaded, registry, handle, cache)["default-scheduler"]
    for index in range(n_nodes):
        cache.set_node(
            node_from(
                prepare(
                    {
                        "kind": "Node",
                        "metadata": {"name": f"n{index}"},
                        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
                    }
                )
            )
        )
    pod = pod_from(
        prepare({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    )
    return Algorithm(AlgorithmOptions(), Randomness(0)).schedule(framework, pod, cache.snapshot())


class Raises(FilterPlugin[None]):
    name: ClassVar[str] = "Raises"

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        raise ZeroDivisionError("a bug")


class Narrows(PreFilterPlugin[None], FilterPlugin[None]):
    name: ClassVar[str] = "Narrows"
    names: ClassVar[tuple[str, ...]] = ("n1",)

    def pre_filter(self, pod: Any, snapshot: Any) -> PreFilterResult[None]:
        return PreFilterResult(node_names=self.names)

    def filter(self, state: None, pod: Any, nodes: Any, rows: Any) -> Verdicts:
        return Verdicts(np.zeros(len(rows), np.int8))


class NarrowsElsewhere(Narrows):
    name: ClassVar[str] = "NarrowsElsewhere"
    names: ClassVar[tuple[str, ...]] = ("n2",)


def test_a_plugin_that_raises_fails_the_cycle_under_its_name() -> None:
    decision = decide(Raises, points={"Raises": ("filter",)})
    assert decision.failed_plugin == "Raises"
    assert decision.error == 'running "Raises" filter plugin: ZeroDivisionError: a bug'
    assert decision.node_name is None
    assert decision.post_filter is None


def test_two_plugins_that_agree_on_no_node_reject_the_pod_together() -> None:
    decision = decide(
        Narrows,
        NarrowsElsewhere,
        points={"Narrows": ("preFilter", "filter"), "NarrowsElsewhere": ("preFilter", "filter")},
    )
    assert decision.fit_error == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [Narrows NarrowsElsewhere] simultaneously."
    )


def test_a_name_is_registered_once() -> None:
    registry = Registry([Raises])
    with pytest.raises(PluginDeclarationError, match="a plugin named Raises already exists"):
        registry.plus([Narrows, Raises])
    assert list(registry.plus([Narrows])) == ["Raises", "Narrows"]
    assert list(registry) == ["Raises"]
