"""A run looked at moment by moment: who did what by which rule, states that come back, and promises that do not hold.

The state is what is where, up to names and times: nodes by their labels and taints, the pods on each by owner, requests
and phase, and the replicas of workloads. It is a loop when the last states came twice in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.clock import SECOND_NS
from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.node import LABEL_HOSTNAME, Node
from scheduler_core.objects.pod import Pod
from scheduler_core.scenario import types
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.ran import RunPart, ScenarioRun
from scheduler_core.sim.changes import Act, Mention, ObjectWritten, Outcome
from scheduler_core.sim.controllers.autoscaler import KIND as SCALER
from scheduler_core.sim.controllers.autoscaler import SCALED, AutoscalerController
from scheduler_core.sim.controllers.cluster_autoscaler import ClusterAutoscaler
from scheduler_core.sim.controllers.node_lifecycle import CRASHED, RESTARTED
from scheduler_core.sim.controllers.programs import DESCHEDULER, EVICTED, PROGRAMS
from scheduler_core.sim.load import LOAD, LoadError, load_from
from scheduler_core.sim.simulation import Simulation
from scheduler_core.sim.world import Stored, World, annotations_of

MOST_MOMENTS: Final = 3_000
"""Moments that one run looks at."""
MOST_CYCLES: Final = 5_000
LOOP, PENDING, BELOW, SWING = "loop", "pending", "below", "swing"
"""What goes wrong: a state comes back; a pod waits for good; fewer pods are ready than an object asks for; an
autoscaler takes back what it has just done."""
WAITS_NS: Final = 300 * SECOND_NS
"""A pod that has waited for so long at the end of a run is not placed any more."""
_SCHEDULER: Final = "scheduler"
_SCALES: Final = AutoscalerController.component


@dataclass(frozen=True, slots=True)
class Arrow:
    """What leads from one state to the next: who did what, and by which rule.

    Attributes
    ----------
    objects : tuple of str
        What goes round in it: workloads and nodes.
    plugin : str
        The plugin of the descheduler that did it.
    step : int
        The scenario's step that did it, from 1; else 0.
    crashed : str
        The node that crashes.
    like : str
        `what`, but for names of nodes that are alike.
    """

    at_ns: int
    by: str
    what: str
    rule: str = ""
    objects: tuple[str, ...] = ()
    plugin: str = ""
    step: int = 0
    crashed: str = ""
    like: str = ""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A loop, or a promise that does not hold.

    Attributes
    ----------
    kind : {"loop", "pending", "below", "swing"}
    sentence : str
    arrows : tuple of Arrow
        One round, or what led to it.
    objects : tuple of str
        What goes round, or what it is about.
    found_ns, period_ns : int
        After how long it was found, and how long a round takes.
    n_pending : int
        Pods without a node then, at most in a round.
    """

    kind: str
    sentence: str
    arrows: tuple[Arrow, ...]
    objects: tuple[str, ...]
    found_ns: int
    period_ns: int = 0
    n_pending: int = 0

    @property
    def crashed(self) -> tuple[str, ...]:
        """Nodes that crash in it."""
        return tuple(dict.fromkeys(arrow.crashed for arrow in self.arrows if arrow.crashed))


@dataclass(frozen=True, slots=True)
class Seen:
    """A moment: when after the beginning, the state then, what led to it, and how many pods had no node."""

    after_ns: int
    state: str
    arrows: tuple[Arrow, ...]
    n_pending: int
    kinds: tuple[tuple[str, str], ...]
    """Of its arrows, but for names of nodes that are alike."""

    @property
    def named(self) -> list[str]:
        return [arrow.what for arrow in self.arrows]


@dataclass(slots=True)
class Watched:
    """A run that was looked at.

    Attributes
    ----------
    moments : list of Seen
    steps_ns : int
        After how long the scenario's own steps were done.
    """

    moments: list[Seen] = field(default_factory=list)
    steps_ns: int = 0
    loop: Wrong | None = None
    broken: Wrong | None = None
    n_pending: int = 0

    @property
    def wrong(self) -> Wrong | None:
        return self.loop or self.broken

    @property
    def rest_ns(self) -> int:
        """After how long nothing changed any more."""
        return self.moments[-1].after_ns if self.moments else 0


def watched(scenario: types.Scenario, seed: int, more_ns: int) -> Watched:
    """Run a scenario, and so much longer than its steps take; up to the first loop."""
    steps = [step for step in scenario.steps if step.expect is None]
    advance = types.Step(advance=types.Advance(by_ns=more_ns))
    longer = replace(scenario, steps=(*steps, advance), path=(), expect=(), decisions=None)
    eyes = _Eyes(longer)
    run = run_scenario(longer, seed=seed, full_traces=True, max_cycles=MOST_CYCLES, after_moment=eyes.look)
    watch = eyes.watch
    watch.n_pending = n_pending(run.simulation)
    if watch.loop is None and watch.broken is None:
        watch.broken = _waiting(run.simulation, watch, eyes)
    return watch


class _Eyes:
    """Looks at each moment of a run."""

    def __init__(self, scenario: types.Scenario) -> None:
        self.watch = Watched()
        self._scenario, self.start_ns = scenario, scenario.start_ns
        self._teller: _Teller | None = None
        self._promises = _Promises()
        self._n_steps = self._n_moments = 0
        self.known: frozenset[str] = frozenset()
        """Pods that were there at the beginning."""

    def look(self, run: ScenarioRun, part: RunPart, n_steps: int) -> bool:
        """See a moment; true once there is a loop."""
        simulation, watch = run.simulation, self.watch
        after_ns = simulation.now_ns - self.start_ns
        if self._teller is None:
            self._teller = _Teller(simulation)
            keys = map(types.object_key, self._scenario.objects)
            self.known = frozenset(f"{namespace}/{name}" for kind, namespace, name in keys if kind == "Pod")
            self._promises.broken(simulation.world, (), part.outcomes)
            return False
        done = self._steps_before(n_steps, simulation.now_ns)
        arrows = (*done, *self._teller.arrows(part))
        if n_steps < len(self._scenario.steps) - 1:
            watch.steps_ns = after_ns
        self._n_moments += 1
        if part.outcomes and watch.broken is None:
            found = self._promises.broken(simulation.world, arrows, part.outcomes)
            if found is not None:
                watch.broken = self.wrong(*found, arrows, after_ns)
        if arrows:
            kinds = tuple(sorted((arrow.by, arrow.like) for arrow in arrows))
            state, waiting = state_of(simulation.world), n_pending(simulation)
            watch.moments.append(Seen(after_ns, state, arrows, waiting, kinds))
            watch.loop = _loop(watch.moments)
        return watch.loop is not None or self._n_moments >= MOST_MOMENTS

    def wrong(
        self, kind: str, sentence: str, objects: tuple[str, ...], now: tuple[Arrow, ...], after_ns: int
    ) -> Wrong:
        """A promise that is broken now, with the last that led to it."""
        before = (arrow for seen in self.watch.moments for arrow in seen.arrows)
        story = [
            arrow
            for arrow in (*before, *now)
            if arrow.step or (set(arrow.objects) & set(objects) and (kind != SWING or arrow.by == _SCALES))
        ]
        return Wrong(kind, sentence, tuple(story[-_STORY:]), objects, after_ns)

    def _steps_before(self, n_steps: int, now_ns: int) -> list[Arrow]:
        """Steps that were done since the last look."""
        first, self._n_steps = self._n_steps, n_steps
        return [
            Arrow(now_ns, f"step {number}", said, step=number)
            for number, step in enumerate(self._scenario.steps[first:n_steps], first + 1)
            if (said := _said(step))
        ]


_STORY: Final = 24
"""Arrows that are shown of what led to a broken promise."""


def _said(step: types.Step) -> str:
    """A step that writes something, in words."""
    if step.apply is not None:
        written = (types.object_key(one) for one in step.apply)
        return "apply " + ", ".join(_reference(*key) for key in written)
    about = step.patch or step.delete
    if about is not None:
        return f"{step.verb} {_reference(*about.key)}"
    node = step.cordon or step.uncordon or step.drain
    return f"{step.verb} Node {node}" if node else ""


def _reference(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def n_pending(simulation: Simulation) -> int:
    """Pods without a node."""
    return sum(not one.typed.node_name for one in simulation.world.all("Pod"))


# ---- what comes back


def round_sizes(moments: Sequence[Any]) -> Iterator[int]:
    """How many of the last moments came just before them, too: each such number, the smallest first."""
    for size in range(1, len(moments) // 2 + 1):
        if moments[-1] == moments[-1 - size] and moments[-size:] == moments[-2 * size : -size]:
            yield size


def _loop(moments: Sequence[Seen]) -> Wrong | None:
    """The shortest end of the moments that is there twice (three times with other nodes) and moves something."""
    for size in round_sizes([(seen.state, seen.kinds) for seen in moments]):
        last, before = moments[-size:], moments[-2 * size : -size]
        arrows = tuple(arrow for seen in last for arrow in seen.arrows)
        if any(one.named != other.named for one, other in zip(last, before, strict=True)):
            # Other nodes that are alike: it may have been chance, once.
            first = moments[-3 * size : -2 * size]
            if [(seen.state, seen.kinds) for seen in first] != [(seen.state, seen.kinds) for seen in last]:
                continue
        lasts = last[-1].after_ns - before[-1].after_ns
        if lasts > 0 and any(arrow.by != _SCHEDULER for arrow in arrows):
            names = tuple(sorted({name for arrow in arrows for name in arrow.objects}))
            sentence = f"the same state every {format_duration(lasts)}"
            waiting = max(seen.n_pending for seen in last)
            return Wrong(LOOP, sentence, arrows, names, moments[-1].after_ns, lasts, waiting)
    return None


def state_of(world: World) -> str:
    """What is where, up to names and times."""
    pods: dict[str, list[Any]] = {}
    for stored in world.all("Pod"):
        pod: Pod = stored.typed
        if not pod.is_terminal:
            kind = (_owner(world, pod), sorted(pod.requests.items()), pod.phase, pod.is_terminating)
            pods.setdefault(pod.node_name, []).append(kind)
    nodes = []
    for stored in world.all("Node"):
        node = stored.typed
        taints = sorted((taint.key, taint.effect) for taint in node.taints)
        on_it = sorted(pods.get(node.name, ()))
        nodes.append((*_kind_of(node), taints, node.unschedulable, on_it))
    replicas = [
        (kind, stored.key, (stored.manifest.get("spec") or {}).get("replicas"))
        for kind in SCALED
        for stored in world.all(kind)
        if (stored.manifest.get("spec") or {}).get("replicas")
    ]
    return repr((sorted(nodes, key=repr), sorted(pods.get("", ())), sorted(map(repr, replicas))))


def _kind_of(node: Node) -> tuple[list[tuple[str, str]], list[tuple[str, int]]]:
    """What tells a node from others but its name: labels, and amounts."""
    labels = [one for one in node.labels.items() if one[0] != LABEL_HOSTNAME and one[1] != node.name]
    return sorted(labels), sorted(node.allocatable.items())


def _owner(world: World, pod: Pod) -> str:
    """The workload that a pod is of."""
    owner = pod.meta.controller
    if owner is None:
        return f"Pod {pod.key}"
    stored = world.get(owner.kind, pod.namespace, owner.name)
    above = (
        ((stored.manifest["metadata"].get("ownerReferences") or [None])[0]) if stored is not None else None
    )
    kind, name = (above["kind"], above["name"]) if above else (owner.kind, owner.name)
    return f"{kind} {pod.namespace}/{name}"


# ---- what is promised


class _Promises:
    """What objects ask for, and what of it held when it was looked at last."""

    def __init__(self) -> None:
        self._ready: dict[str, int] = {}
        self._replicas: dict[str, int] = {}
        self._raised: dict[str, tuple[int, int]] = {}
        """Autoscaler -> from how many replicas to how many it has raised its workload."""

    def broken(
        self, world: World, arrows: Sequence[Arrow], outcomes: Sequence[Outcome]
    ) -> tuple[str, str, tuple[str, ...]] | None:
        """The first that does not hold any more: its kind, the sentence, and the objects."""
        found = None
        for outcome in outcomes:
            if isinstance(outcome, ObjectWritten) and outcome.manifest["kind"] == "PodDisruptionBudget":
                found = found or self._budget(world, outcome.manifest)
        for stored in world.all(SCALER):
            found = found or self._scaler(world, stored, arrows)
        return found

    def _fell(self, name: str, ready: int, wanted: int) -> bool:
        """Whether there are fewer than wanted, and fewer than before."""
        before, self._ready[name] = self._ready.get(name), ready
        return before is not None and ready < before and ready < wanted

    def _budget(self, world: World, budget: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]] | None:
        meta, status = budget["metadata"], budget.get("status") or {}
        name = f"PodDisruptionBudget {meta['namespace']}/{meta['name']}"
        ready, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        stored = world.get("PodDisruptionBudget", meta["namespace"], meta["name"])
        if not self._fell(name, ready, wanted) or stored is None:
            return None
        said = f"{name} has {ready} healthy {_pods(ready)}, and asks for {wanted}"
        return BELOW, said, (name, *self._covered(world, stored))

    def _covered(self, world: World, budget: Stored) -> list[str]:
        """The workloads whose pods a budget selects."""
        selector: LabelSelector = budget.typed.selector
        pods = (stored.typed for stored in world.all("Pod") if stored.key[0] == budget.key[0])
        return sorted({_owner(world, pod) for pod in pods if selector.matches(pod.labels)})

    def _scaler(
        self, world: World, stored: Stored, arrows: Sequence[Arrow]
    ) -> tuple[str, str, tuple[str, ...]] | None:
        spec, name = stored.manifest.get("spec") or {}, f"{SCALER} {'/'.join(stored.key)}"
        reference = spec.get("scaleTargetRef") or {}
        kind, own = str(reference.get("kind")), str(reference.get("name"))
        target = world.get(kind, stored.key[0], own) if kind in SCALED else None
        if target is None:
            return None
        least, about = int(spec.get("minReplicas") or 1), f"{kind} {stored.key[0]}/{own}"
        ready = int((target.manifest.get("status") or {}).get("readyReplicas") or 0)
        if self._fell(name, ready, least):
            said = f"{about} has {ready} ready {_pods(ready)}, and minReplicas of {name} is {least}"
            return BELOW, said, (name, about)
        wanted = int((target.manifest.get("spec") or {}).get("replicas") or 1)
        before, self._replicas[name] = self._replicas.get(name, wanted), wanted
        scaled = any(arrow.by == _SCALES and about in arrow.objects for arrow in arrows)
        if not scaled:
            return None
        low, high = self._raised.get(name, (before, before))
        if wanted > before:
            self._raised[name] = (low if before >= high else before, wanted)
        elif high - low >= _SWINGS and wanted <= (low + high) // 2 and _is_of_its_own(target):
            said = f"{name} raises {about} from {low} to {high} and lowers it to {wanted} again"
            return SWING, f"{said}, by a load that pods bring", (name, about)
        return None


def _waiting(simulation: Simulation, watch: Watched, eyes: _Eyes) -> Wrong | None:
    """Pods that came during a run and have waited for long at its end."""
    world, now_ns = simulation.world, simulation.now_ns
    waiting: dict[str, list[Pod]] = {}
    for stored in world.all("Pod"):
        pod: Pod = stored.typed
        if (
            pod.key not in eyes.known
            and _is_unplaced(pod, simulation)
            and (pod.meta.creation_ns or 0) <= now_ns - WAITS_NS
        ):
            waiting.setdefault(_owner(world, pod), []).append(pod)
    if not waiting:
        return None
    about, pods = next(iter(waiting.items()))
    since_ns = min(pod.meta.creation_ns or 0 for pod in pods) - eyes.start_ns
    scheduled = condition_of(pods[0].manifest, "PodScheduled") or {}
    said = f"{len(pods)} {_pods(len(pods))} of {about} find{'s' if len(pods) == 1 else ''} no node"
    if about.startswith("Pod "):
        said = f"{about} finds no node"
    sentence = f"{said}: {scheduled.get('message', '')}".rstrip(": .")
    found = eyes.wrong(PENDING, sentence, (about,), (), since_ns)
    return replace(found, n_pending=watch.n_pending)


def _is_unplaced(pod: Pod, simulation: Simulation) -> bool:
    """Whether a pod is to get a node by this scheduler, and has none."""
    over = pod.node_name or pod.is_terminal or pod.is_terminating
    return not over and not pod.scheduling_gates and pod.scheduler_name in simulation.scheduler.profiles


_SWINGS: Final = 2
"""Replicas by which a workload is raised at least where lowering it again is a swing."""


def _pods(n: int) -> str:
    return "pod" if n == 1 else "pods"


def _is_of_its_own(target: Stored) -> bool:
    """Whether the load on a workload changes by its pods alone: its own curve is flat, or each pod brings one."""
    template = (target.manifest["spec"].get("template") or {}).get("metadata") or {}
    for metadata, by_age in ((target.manifest["metadata"], False), (template, True)):
        text = (metadata.get("annotations") or {}).get(LOAD)
        if text is None:
            continue
        try:
            load = load_from(str(text))
        except LoadError:
            return False
        is_flat = all(len({amount for _, amount in points}) == 1 for points in load.curves.values())
        if not is_flat and not (by_age and load.start_ns is None):
            return False
    return True


# ---- arrows


class _Teller:
    """What happened in a moment, as arrows.

    Pods are named by their owners, and nodes that came later by their groups, which one that is gone still has here.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._world = simulation, simulation.world
        self._owners: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._groups = {stored.typed.name: "" for stored in self._world.all("Node")}
        self._note()

    def _note(self) -> None:
        for stored in self._world.all("Pod"):
            if stored.typed.key not in self._owners:
                self._owners[stored.typed.key] = _owner(self._world, stored.typed)
        for program in self._simulation.control_plane.controllers:
            if isinstance(program, ClusterAutoscaler) and program.groups is not None:
                for name, group in program.hands.group_of.items():
                    self._groups.setdefault(name, group)

    def _alike(self, one: Mention) -> str:
        """As `_named`, but for the name of a node that is like others, one that is gone too."""
        stored = self._world.get("Node", "", one.key) if one.kind == "Node" else None
        if stored is not None:
            node: Node = stored.typed
            self._kinds[node.name] = f"a node like {_kind_of(node)}"
        return self._kinds.get(one.key, one.key) if one.kind == "Node" else self._named(one)

    def _named(self, one: Mention) -> str:
        if one.kind == "Node":
            group = self._groups.get(one.key)
            return f"a node of {group}" if group else str(one)
        owner = self._owners.get(one.key) if one.kind == "Pod" else None
        return str(one) if owner is None or owner == str(one) else f"a pod of {owner}"

    def _object(self, one: Mention) -> str:
        """What goes round, where it is mentioned: of a pod its workload; empty for one that has none."""
        if one.kind == "Pod":
            owner = self._owners.get(one.key, "")
            return "" if owner == str(one) else owner
        return self._named(one)

    def _arrow(self, at_ns: int, by: str, act: Act, rule: str = "") -> Arrow:
        mentioned = (self._object(part) for part in act.what if isinstance(part, Mention))
        what, like = act.told(self._named), act.told(self._alike)
        return Arrow(at_ns, by, what, rule, tuple(filter(None, mentioned)), act.plugin, like=like)

    def arrows(self, part: RunPart) -> tuple[Arrow, ...]:
        """Who did what."""
        self._note()
        arguments = _plugin_arguments(self._world) if any(run.did for run in part.runs) else {}
        found = [
            self._arrow(run.at_ns, run.controller.rpartition("/")[2], act, _rule(act, arguments))
            for run in part.runs
            for act in run.did
        ]
        for outcome in part.outcomes:
            if not isinstance(outcome, ObjectWritten):
                continue
            if outcome.manifest["kind"] == "Node" and outcome.reason in (CRASHED, RESTARTED):
                found.append(self._crash(outcome))
            if outcome.manifest["kind"] != "Pod":
                continue
            meta, status = outcome.manifest["metadata"], outcome.manifest.get("status") or {}
            pod = Mention("Pod", f"{meta['namespace']}/{meta['name']}")
            node = Mention("Node", outcome.manifest["spec"].get("nodeName", ""))
            if status.get("phase") == "Failed" and not meta.get("deletionTimestamp"):
                said = f"{status.get('reason', '')}: {status.get('message', '')}"
                found.append(
                    self._arrow(outcome.at_ns, "kubelet", Act(("refuses ", pod, " on ", node)), said)
                )
            elif meta.get("deletionTimestamp") and outcome.reason not in EVICTED:
                left = Act((f"{outcome.reason}: ", pod, " leaves ", node))
                found.append(self._arrow(outcome.at_ns, "controllers", left))
            elif outcome.reason == "created by its controller":
                found.append(self._arrow(outcome.at_ns, "controllers", Act(("make ", pod))))
        for trace in part.cycles:
            if trace.outcome == BOUND:
                what = ("places ", Mention("Pod", trace.pod), " on ", Mention("Node", str(trace.node)))
                found.append(self._arrow(trace.at_ns, _SCHEDULER, Act(what), _choice(trace)))
        return tuple(found)

    def _crash(self, outcome: ObjectWritten) -> Arrow:
        """A node that crashed or started again."""
        conditions = (outcome.manifest.get("status") or {}).get("conditions") or ()
        why = next((str(one.get("message", "")) for one in conditions if one.get("type") == "Ready"), "")
        node = Mention("Node", str(outcome.manifest["metadata"]["name"]))
        words = " crashes" if outcome.reason == CRASHED else " starts again"
        arrow = self._arrow(outcome.at_ns, "kubelet", Act((node, words)), why)
        return replace(arrow, crashed=node.key if outcome.reason == CRASHED else "")


def _choice(trace: CycleTrace) -> str:
    """Why this node and not the best other one."""
    body = trace.body
    if trace.n_feasible < 2 or body is None or "scores" not in body.arrays:
        return "no other node passes the filters"
    names = [body.nodes[place] for place in body.arrays["feasible"].tolist()]
    mine, totals = names.index(str(trace.node)), body.arrays["total"].tolist()
    other = max(
        (place for place in range(len(names)) if place != mine), key=lambda place: (totals[place], -place)
    )
    if totals[mine] == totals[other]:
        return f"drawn: {names[other]} has as many points"
    gains = {
        plugin: int(scores[mine] - scores[other]) * int(body.weights.get(plugin, 1))
        for plugin, scores in zip(body.scored_plugins, body.arrays["scores"].tolist(), strict=True)
    }
    best = max(gains, key=lambda plugin: (gains[plugin], plugin))
    return f"{best} gives it {gains[best]} points more than {names[other]}"


def _plugin_arguments(world: World) -> dict[str, Mapping[str, Any]]:
    """Plugins of the descheduler's policy, and what it says to each."""
    policy = _settings(world).get(DESCHEDULER, {}).get("policy", {})
    return {
        config["name"]: config.get("args") or {}
        for profile in policy.get("profiles") or ()
        for config in profile.get("pluginConfig") or ()
    }


def _rule(act: Act, arguments: Mapping[str, Mapping[str, Any]]) -> str:
    found = arguments.get(act.plugin)
    return act.why if found is None else f"{act.plugin} {json.dumps(found)}"


def _settings(world: World) -> dict[str, Any]:
    stored = world.get("Namespace", "", "kube-system")
    return {} if stored is None else settings_of(stored.manifest)


def settings_of(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the programs, by annotation; flags as a command line has them are left as they are."""
    found = {}
    for name in PROGRAMS:
        text = annotations_of(namespace).get(name)
        if text is not None and not text.startswith("-"):
            document = load_documents(text)[0].value
            found[name] = (
                {"policy": document} if document.get("kind") == "DeschedulerPolicy" else dict(document)
            )
    return found
