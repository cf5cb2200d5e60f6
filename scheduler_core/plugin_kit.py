"""The conformance kit: does a plugin keep its side of the contract? For plugins of the tree and from outside alike.

A random cluster is scheduled with the plugin in the profile, every answer of it looked at (`framework.guard`), and

- the same is decided again by the same seed, with every answer asked anew, and from a checkpoint in the middle;
- rows are answered for together as one at a time, in worlds that pods left and came back to, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from scheduler_core.clock import measure_cpu_ns
from scheduler_core.errors import ConfigurationError, PluginDeclarationError
from scheduler_core.framework import interface as fw
from scheduler_core.framework.answers import Answers
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.registry import Registry, declared
from scheduler_core.framework.runtime import Framework
from scheduler_core.objects.defaults import PriorityClasses, prepare, priority_class_from
from scheduler_core.plugins import IN_TREE
from scheduler_core.randomness import Stream
from scheduler_core.releases import OLDEST, RELEASES, Release
from scheduler_core.schema.tables import table_beside
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation

_TABLE = table_beside(__package__, "plugin_kit.yaml")
N_NODES, N_PODS = 7, 16
Manifest = dict[str, Any]


_MEASURED_NS, _MOST_CALLS = 20_000_000, 4**8
"""A call is measured so often in a row that it takes so long, but not more often than that."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time of one call about `n_nodes` nodes, in nanoseconds; the least of several."""

    point: str
    n_nodes: int
    ns: int


def check(
    plugin: type[fw.Plugin],
    *,
    args: Mapping[str, Any] | None = None,
    objects: Sequence[Manifest] = (),
    beside: Sequence[type[fw.Plugin]] = (),
    seed: int = 1,
) -> list[str]:
    """Everything that is wrong with a plugin, a sentence each; empty when it conforms.

    Parameters
    ----------
    args : mapping, optional
        Its arguments as a configuration writes them.
    objects : sequence of mapping
        Manifests that make its points matter, besides the random nodes and pods.
    beside : sequence of plugin classes
        Plugins that it needs in its profile, with their default arguments.
    """
    try:
        declared(plugin)
        run = partial(_cluster, plugin, args, [*_random_objects(seed), *objects], seed, beside=beside)
        first = run()
    except (PluginDeclarationError, ConfigurationError) as error:
        return [str(error)]
    problems = _failures(plugin, first)
    decided = _decisions(first)
    for words, again in (
        ("the same seed decides otherwise", _decisions(run())),
        ("kept answers differ from fresh ones", _decisions(run(_forget_answers))),
        ("it goes on otherwise from a checkpoint", _from_checkpoint(plugin, run, beside)),
    ):
        place = next(
            (place for place, pair in enumerate(zip(decided, again, strict=False)) if pair[0] != pair[1]),
            None,
        )
        if place is None and len(decided) != len(again):
            place = min(len(decided), len(again))
        if place is not None:
            problems.append(f"{plugin.name}: {words}, first in cycle {place + 1}")
    problems += _row_by_row(plugin, first)
    return list(dict.fromkeys(problems))


def cost(
    plugin: type[fw.Plugin], *, args: Mapping[str, Any] | None = None, n_nodes: int = 1000
) -> list[Cost]:
    """What one call of Filter and Score takes."""
    nodes = [_node(index, Stream(1, "node")) for index in range(n_nodes)]
    draw = Stream(1, "pod")
    simulation = _cluster(plugin, args, [*nodes, *_TABLE["classes"], _pod(0, _pod_spec(draw), draw)], 1)
    framework = next(iter(simulation.scheduler.profiles.values()))
    found = []
    attempt, made = _attempt(framework, simulation), framework.plugins[plugin.name]
    nodes_table, rows = attempt.snapshot.nodes, attempt.snapshot.rows
    if isinstance(made, fw.FilterPlugin) and plugin.name not in attempt.skipped_filters:
        state = attempt.filter_states.get(plugin.name)
        found.append(
            Cost("filter", n_nodes, _least(lambda: made.filter(state, attempt.pod, nodes_table, rows)))
        )
    if isinstance(made, fw.ScorePlugin):
        attempt.run_filter()
        attempt.feasible = rows
        attempt.run_pre_score()
        attempt.run_score()
        if plugin.name not in attempt.skipped_scores:
            state = attempt.score_states.get(plugin.name)
            found.append(
                Cost("score", n_nodes, _least(lambda: made.score(state, attempt.pod, nodes_table, rows)))
            )
    return found


def _least(call: Callable[[], object]) -> int:
    """Nanoseconds of one call: enough in a row that the clock's steps, which can be milliseconds, do not matter."""
    times: list[int] = []
    n_calls = 1
    while len(times) < 5:
        began_ns = measure_cpu_ns()
        for _ in range(n_calls):
            call()
        took_ns = measure_cpu_ns() - began_ns
        if took_ns < _MEASURED_NS and n_calls < _MOST_CALLS:
            n_calls, times = n_calls * 4, []
        else:
            times.append(took_ns // n_calls)
    return max(min(times), 1)


# ---- runs


def _registry(plugin: type[fw.Plugin], beside: Sequence[type[fw.Plugin]] = ()) -> Registry:
    """The tree with the plugin and those beside it, its answers looked at even where it is of the tree."""
    outside = {one.name: one for one in (*beside, plugin)}
    others = [other for other in IN_TREE if other.name not in outside]
    return Registry([*others, *outside.values()], outside=frozenset(outside))


def _release(plugin: type[fw.Plugin]) -> Release:
    """The oldest release that has the plugin; the newest one, its gate switched on, where none has it by itself."""
    gate = plugin.feature_gate
    if gate is None:
        return OLDEST
    known = [release for release in RELEASES.values() if gate in release.gates]
    return next((release for release in known if release.gate(gate)), known[-1].with_gates({gate: True}))


def _cluster(
    plugin: type[fw.Plugin],
    args: Mapping[str, Any] | None,
    objects: Sequence[Manifest],
    seed: int,
    before_cycle: Callable[[Simulation], None] | None = None,
    max_cycles: int = 10 * N_PODS,
    beside: Sequence[type[fw.Plugin]] = (),
) -> Simulation:
    multi: dict[str, Any] = {"enabled": [{"name": one.name} for one in (plugin, *beside)], "disabled": []}
    if issubclass(plugin, fw.QueueSortPlugin):
        multi["disabled"].append({"name": "PrioritySort"})
    if issubclass(plugin, fw.BindPlugin):
        multi["disabled"].append({"name": "DefaultBinder"})
        multi["enabled"].append({"name": "DefaultBinder"})
    multi["enabled"] = list({item["name"]: item for item in multi["enabled"]}.values())
    multi["disabled"] = [item for item in multi["disabled"] if item["name"] != plugin.name]
    profile: dict[str, Any] = {"plugins": {"multiPoint": multi}}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin.name, "args": dict(args)}]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    simulation = Simulation(config, seed=seed, plugins=_registry(plugin, beside), release=_release(plugin))
    classes = PriorityClasses(
        priority_class_from(manifest) for manifest in objects if manifest["kind"] == "PriorityClass"
    )
    for manifest in objects:
        simulation.submit(WriteObject(prepare(manifest, classes)))
    cycles = 0
    while cycles < max_cycles and simulation.scheduler.can_schedule():
        if before_cycle is not None:
            before_cycle(simulation)
        simulation.step()
        cycles += 1
    return simulation


def _random_objects(seed: int) -> Iterator[Manifest]:
    draw = Stream(seed, "kit")
    yield from _TABLE["classes"]
    for index in range(N_NODES):
        yield _node(index, draw)
    for index in range(N_PODS):
        # Every third has the spec of the one before it, and metadata of its own: an answer that is kept for a spec may
        # not depend on that.
        if index % 3 != 2:
            spec = _pod_spec(draw)
        yield _pod(index, spec, draw)


def _node(index: int, draw: Stream) -> Manifest:
    labels = {"kubernetes.io/hostname": f"node-{index}", "topology.kubernetes.io/zone": "abc"[draw.below(3)]}
    if draw.below(2):
        labels["disk"] = "ssd"
    spec: dict[str, Any] = {}
    if not draw.below(4):
        effect = ("NoSchedule", "PreferNoSchedule")[draw.below(2)]
        spec["taints"] = [{"key": "team", "value": "a", "effect": effect}]
    allocatable = {"cpu": str(2 + draw.below(7)), "memory": f"{4 + draw.below(9)}Gi", "pods": "6"}
    meta, status = {"name": f"node-{index}", "labels": labels}, {"allocatable": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def _drawn(what: Any, name: str, value: str) -> Any:
    """A part of the table with what was drawn in it."""
    return json.loads(json.dumps(what).replace(name, value))


def _pod_spec(draw: Stream) -> Manifest:
    app = "xyz"[draw.below(3)]
    requests = {"cpu": f"{250 * (1 + draw.below(8))}m", "memory": f"{1 + draw.below(3)}Gi"}
    container: dict[str, Any] = {"name": "c", "image": f"image-{app}", "resources": {"requests": requests}}
    if not draw.below(5):
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    spec: dict[str, Any] = {"containers": [container], "priorityClassName": f"class-{draw.below(3)}"}
    rules = _TABLE["rules"]
    return {**spec, **_drawn(rules[draw.below(len(rules))], "APP", app)}


def _pod(index: int, spec: Manifest, draw: Stream) -> Manifest:
    owner = "uvw"[draw.below(3)]
    meta: dict[str, Any] = {
        "name": f"pod-{index}",
        "namespace": ("default", "other")[draw.below(2)],
        "labels": {"app": "xyz"[draw.below(3)]},
        "annotations": {"team": "ab"[draw.below(2)]},
    }
    if draw.below(4):
        meta["ownerReferences"] = _drawn(_TABLE["owners"], "OWNER", owner)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _forget_answers(simulation: Simulation) -> None:
    for framework in simulation.scheduler.profiles.values():
        framework.answers = Answers(simulation.scheduler.cache.nodes)


def _decisions(simulation: Simulation) -> list[str]:
    return [trace.digest for trace in simulation.drain_cycles()]


def _failures(plugin: type[fw.Plugin], simulation: Simulation) -> list[str]:
    traces = simulation.drain_cycles()
    simulation._traces.extend(traces)
    said = [trace.error for trace in traces if trace.error and trace.failed_plugin == plugin.name]
    return [*said, *simulation.plugin_failures]


def _from_checkpoint(
    plugin: type[fw.Plugin], run: Callable[..., Simulation], beside: Sequence[type[fw.Plugin]]
) -> list[str]:
    """Decisions where every cycle is run by an engine that comes fresh from the checkpoint after the one before."""
    simulation = run(max_cycles=N_PODS // 2)
    digests = _decisions(simulation)
    document = json.loads(json.dumps(simulation.checkpoint()))
    restored = Simulation.restore(document, plugins=_registry(plugin, beside))
    cycles = len(digests)
    while cycles < 10 * N_PODS and restored.scheduler.can_schedule():
        restored.step()
        cycles += 1
    return digests + _decisions(restored)


# ---- rows together and one by one


def _attempt(framework: Framework, simulation: Simulation, pod: Any = None) -> Attempt:
    if pod is None:
        pod = next(iter(simulation.scheduler.pods.values()))
    attempt = Attempt(framework, pod, simulation.scheduler.cache.snapshot())
    attempt.run_pre_filter()
    return attempt


def _row_by_row(plugin: type[fw.Plugin], simulation: Simulation) -> list[str]:
    framework = next(iter(simulation.scheduler.profiles.values()))
    made = framework.plugins[plugin.name]
    problems: list[str] = []
    for pod in list(simulation.scheduler.pods.values())[:N_PODS]:
        try:
            attempt = _attempt(framework, simulation, pod)
            if not attempt.pre_filter_status.is_success:
                continue
            if isinstance(made, fw.FilterPlugin) and plugin.name not in attempt.skipped_filters:
                problems += _lock_step(made, attempt)
            reads = getattr(made, "score_reads", fw.Reads.CLUSTER)
            if isinstance(made, fw.ScorePlugin) and reads is not fw.Reads.CLUSTER:
                problems += _scored_alike(made, attempt)
        except PluginFailure as failure:
            problems.append(str(failure))
    return problems


def _lock_step(plugin: fw.FilterPlugin[Any], attempt: Attempt) -> Iterator[str]:
    """Worlds that pods leave and come back to: all rows in one step, and each by itself."""
    nodes, rows = attempt.snapshot.nodes, attempt.snapshot.rows
    together = attempt.what_if(rows)
    places = np.array([place for place, row in enumerate(rows.tolist()) if nodes.pods_on(row)], np.intp)
    pod_ids = np.array([nodes.pods_on(int(rows[place]))[0] for place in places.tolist()], np.intp)
    alone = [attempt.what_if(rows[place : place + 1]) for place in range(len(rows))]
    for step in ("as it is", "without a pod", "with the pod again"):
        if step != "as it is" and len(places):
            move = "remove_pods" if step == "without a pod" else "add_pods"
            getattr(together, move)(places, pod_ids)
            for place, pod_id in zip(places.tolist(), pod_ids.tolist(), strict=True):
                getattr(alone[place], move)(np.zeros(1, np.intp), np.array([pod_id], np.intp))
        state = together.states.get(plugin.name)
        every = plugin.filter(state, attempt.pod, together.nodes, np.arange(len(rows))).codes.tolist()
        single = [
            int(
                plugin.filter(
                    world.states.get(plugin.name), attempt.pod, world.nodes, np.zeros(1, np.intp)
                ).codes[0]
            )
            for world in alone
        ]
        if every != single:
            place = next(place for place in range(len(rows)) if every[place] != single[place])
            yield (
                f"{plugin.name}: {attempt.pod.key} on {nodes.name(int(rows[place]))}, {step}: "
                f"{every[place]} among all rows, {single[place]} alone"
            )
            return


def _scored_alike(plugin: fw.ScorePlugin[Any], attempt: Attempt) -> Iterator[str]:
    nodes, rows = attempt.snapshot.nodes, attempt.snapshot.rows
    attempt.feasible = rows
    attempt.run_pre_score()
    attempt.run_score()
    if plugin.name in attempt.skipped_scores:
        return
    state = attempt.score_states.get(plugin.name)
    every = plugin.score(state, attempt.pod, nodes, rows).tolist()
    single = [
        int(plugin.score(state, attempt.pod, nodes, rows[place : place + 1])[0]) for place in range(len(rows))
    ]
    if every != single:
        yield f"{plugin.name}: {attempt.pod.key} is scored {every} among all rows, {single} one at a time"
