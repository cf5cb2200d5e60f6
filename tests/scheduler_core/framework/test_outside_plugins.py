"""Plugins from outside the tree: the whole contract."""

import json
from typing import Any, ClassVar

import numpy as np
import pytest

from scheduler_core.errors import ConstructionError, PluginDeclarationError
from scheduler_core.framework import interface
from scheduler_core.framework.interface import PreFilterResult, Reads
from scheduler_core.framework.per_node import NodeView, per_node
from scheduler_core.framework.registry import declared
from scheduler_core.framework.status import Code, Status
from scheduler_core.plugins import REGISTRY
from scheduler_core.sim.changes import EventRecorded, PermitDecision
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.framework.outside import Picky, PickyWithHints, attempts, cluster, config
from tests.scheduler_core.sim.builders import make_node, make_pod, pod_named, write


def test_a_rejected_pod_wakes_by_its_plugins_hints_or_by_every_event() -> None:
    every, hinted = cluster(Picky), cluster(PickyWithHints)
    for simulation in (every, hinted):
        write(simulation, make_pod("a"))
        simulation.run_until_idle()
        assert attempts(simulation)
        write(simulation, make_node("node-9"))
        simulation.run_until_idle()
    assert (bool(attempts(every)), attempts(hinted)) == (True, 0)
    for simulation in (every, hinted):
        write(simulation, make_node("vip-1", labels={"vip": "yes"}))
        simulation.run_until_idle()
        pod = pod_named(simulation, "a")
        assert pod is not None and pod.node_name == "vip-1"


class Reverse(interface.QueueSortPlugin):
    """Latest name first."""

    name: ClassVar[str] = "Reverse"

    def less(self, first: Any, second: Any) -> bool:
        return bool(first.pod.name > second.pod.name)


def order_of(simulation: Simulation) -> list[str]:
    write(simulation, *(make_pod(name) for name in "bacd"))
    simulation.run_until_idle()
    return [trace.pod.partition("/")[2] for trace in simulation.drain_cycles()]


def test_queue_sort_orders_the_queue() -> None:
    assert order_of(cluster()) == ["b", "a", "c", "d"]
    assert order_of(cluster(Reverse, config=config("Reverse", sort="Reverse"))) == ["d", "c", "b", "a"]


def test_a_queue_that_cannot_compare_pods_goes_on_with_the_others_first() -> None:
    class Mixed(interface.QueueSortPlugin):
        name: ClassVar[str] = "Mixed"

        def sort_key(self, queued: Any) -> Any:
            return None if queued.pod.name == "a" else queued.pod.name

    simulation = cluster(Mixed, config=config("Mixed", sort="Mixed"))
    order = order_of(simulation)
    assert sorted(dict.fromkeys(order)) == ["a", "b", "c", "d"]


class Writer(interface.PreFilterPlugin[None], interface.PermitPlugin):
    name: ClassVar[str] = "Writer"

    def pre_filter(self, pod: Any, snapshot: Any) -> PreFilterResult[None]:
        self.handle.cycle_state.write("seen", {"pod": pod.name, "nodes": len(snapshot.order)})
        self.handle.cycle_state.write("object", object())
        return PreFilterResult()

    def permit(self, pod: Any, node_name: str) -> tuple[Status, int]:
        assert isinstance(self.handle.cycle_state.read("object"), object)
        return Status(Code.Wait), 60 * 10**9


class Reader(interface.ScorePlugin[None], interface.PostBindPlugin):
    name: ClassVar[str] = "Reader"
    told: ClassVar[list[Any]] = []

    def score(self, state: None, pod: Any, nodes: Any, rows: Any) -> Any:
        assert self.handle.cycle_state.read("seen")["pod"] == pod.name
        return np.zeros(len(rows), np.int64)

    def post_bind(self, pod: Any, node_name: str) -> None:
        state = self.handle.cycle_state
        self.told.append((pod.name, state.read("seen")["pod"], state.get("object")))
        self.handle.record_event(pod, "Normal", "Noted", "Binding", f"drew {self.random.below(1)}")


def test_plugins_of_one_cycle_share_its_state_through_a_wait_and_a_checkpoint() -> None:
    Reader.told.clear()
    simulation = cluster(Writer, Reader)
    write(simulation, make_pod("a"), make_pod("b"))
    simulation.run_until_idle()
    again = Simulation.restore(json.loads(json.dumps(simulation.checkpoint())), plugins=[Writer, Reader])
    assert again.checkpoint() == simulation.checkpoint()
    for waiting in list(again.scheduler.waiting_pods):
        assert waiting is again.scheduler.waiting_pods.get(waiting.pod.uid)
        again.submit(PermitDecision("default", waiting.pod.name, True))
    again.run_until_idle()
    assert Reader.told == [("a", "a", None), ("b", "b", None)]
    events = [
        out
        for out in again.drain_outcomes()
        if isinstance(out, EventRecorded) and out.manifest["reason"] == "Noted"
    ]
    assert len(events) == 2


class Roomy(interface.FilterPlugin[None], interface.ScorePlugin[None]):
    name: ClassVar[str] = "Roomy"

    @per_node
    def filter(self, state: None, pod: Any, node: NodeView) -> Status | None:
        if len(node.pods) >= 1:
            return Status(Code.Unschedulable, (f"node has {len(node.pods)} pods",))
        return None

    @per_node
    def score(self, state: None, pod: Any, node: NodeView) -> int:
        return 100 if node.name == "node-2" else node.free("cpu") // 1000


def test_a_scalar_plugin_is_asked_about_one_node_at_a_time_in_preemption_too() -> None:
    simulation = cluster(Roomy)
    write(simulation, *(make_pod(name) for name in "abc"))
    simulation.run_until_idle()
    assert pod_named(simulation, "a").node_name == "node-2"  # type: ignore[union-attr]
    write(simulation, make_pod("d"))
    simulation.run_until_idle()
    trace = simulation.drain_cycles()[-1]
    assert "3 node has 1 pods" in (trace.message or "")
    write(simulation, make_pod("e", priority=1000))
    simulation.run_until_idle()
    assert pod_named(simulation, "e").node_name  # type: ignore[union-attr]


class Narrows(interface.PreFilterPlugin[None]):
    name: ClassVar[str] = "Narrows"
    names: ClassVar[tuple[str, ...]] = ("node-1",)

    def pre_filter(self, pod: Any, snapshot: Any) -> PreFilterResult[None]:
        return PreFilterResult(node_names=self.names)


class NarrowsElsewhere(Narrows):
    name: ClassVar[str] = "NarrowsElsewhere"
    names: ClassVar[tuple[str, ...]] = ("node-2",)


def test_two_plugins_that_agree_on_no_node_reject_the_pod_together() -> None:
    simulation = cluster(Narrows, NarrowsElsewhere)
    write(simulation, make_pod("a"))
    simulation.run_until_idle()
    (trace, *_) = simulation.drain_cycles()
    assert (trace.message or "").startswith(
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [Narrows NarrowsElsewhere] simultaneously."
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int, "it does not inherit Plugin"),
        (type("Nameless", (interface.FilterPlugin,), {}), "`name` is None"),
        (type("Pointless", (interface.Plugin,), {"name": "Pointless"}), "no extension point"),
        (
            type("Silent", (interface.FilterPlugin,), {"name": "Silent"}),
            "it extends filter, but has no `filter`",
        ),
        (type("Kept", (Picky,), {"filter_reads": Reads.SPEC}), "no `sign` says for which pods"),
        (type("BadArgs", (Picky,), {"Args": dict}), "`Args` does not inherit PluginArgs"),
    ],
)
def test_a_class_that_does_not_declare_itself_is_refused(kind: Any, words: str) -> None:
    with pytest.raises(PluginDeclarationError, match=words.replace("(", r"\(")):
        declared(kind)


def test_names_are_taken_once_and_a_plugin_that_cannot_be_made_is_refused_before_anything_runs() -> None:
    class Fit(Picky):
        name: ClassVar[str] = "NodeResourcesFit"

    with pytest.raises(PluginDeclarationError, match="NodeResourcesFit already exists"):
        Simulation(plugins=[Fit])
    assert [*REGISTRY.plus([Picky])] == [*REGISTRY, "Picky"]

    class Unmade(Picky):
        name: ClassVar[str] = "Unmade"

        def __init__(self, args: Any, handle: Any) -> None:
            raise KeyError("no license")

    class Deaf(Picky):
        name: ClassVar[str] = "Deaf"

        def events(self) -> Any:
            return ["Pod/Add"]

    for kind in (Unmade, Deaf):
        with pytest.raises(ConstructionError, match=f'initializing plugin "{kind.name}"'):
            cluster(kind)
