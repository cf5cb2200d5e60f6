"""Controllers that go round in circles: a state that comes back is a loop, with the rule of each step of it.

A scenario is run in virtual time, moment by moment. The state is what is where, up to names and times: nodes by their
labels and taints, the pods on each by owner, requests and phase, and the replicas of workloads. It is a
loop when the last states came twice in the same order. Edits that may end it are tried, the smallest first, each by a
run of twice the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduler_core.framework.record import BOUND, CycleTrace
from scheduler_core.objects.documents import load_documents
from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.node import LABEL_HOSTNAME
from scheduler_core.objects.pod import Pod
from scheduler_core.scenario import types
from scheduler_core.scenario.canonical import without_server_fields
from scheduler_core.scenario.luck import with_seed
from scheduler_core.scenario.run import run as run_scenario
from scheduler_core.scenario.run import with_decisions
from scheduler_core.sim.changes import Act, Mention, ObjectWritten
from scheduler_core.sim.controllers.cluster_autoscaler import ClusterAutoscaler
from scheduler_core.sim.controllers.programs import (
    CLUSTER_AUTOSCALER,
    DESCHEDULER,
    EVICTED,
    PROGRAMS,
    VERTICAL,
)
from scheduler_core.sim.simulation import Simulation
from scheduler_core.sim.world import World, annotations_of

MOST_MOMENTS: Final = 3_000
"""Moments that one run looks at."""
MOST_CYCLES: Final = 5_000
MOST_CURES: Final = 16
_SCALED: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")


@dataclass(frozen=True, slots=True)
class Arrow:
    """What leads from one state to the next: who did what, and by which rule.

    Attributes
    ----------
    objects : tuple of str
        What goes round in it: workloads and nodes.
    plugin : str
        The plugin of the descheduler that did it.
    """

    at_ns: int
    by: str
    what: str
    rule: str = ""
    objects: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """The same in each round."""
        return self.by, self.what


@dataclass(frozen=True, slots=True)
class Circle:
    """A loop.

    Attributes
    ----------
    scenario : Scenario
        Run to the end of the second round; its recorded decisions prove the circle.
    round : tuple of Arrow
        One round.
    period_ns, found_ns : int
        How long a round takes, and after how long two rounds were over.
    objects : tuple of str
        What goes round.
    """

    scenario: types.Scenario
    round: tuple[Arrow, ...]
    period_ns: int
    found_ns: int
    objects: tuple[str, ...]
    n_pending: int


@dataclass(frozen=True, slots=True)
class Cure:
    """An edit that ends a loop; the recorded decisions of its scenario prove it.

    Attributes
    ----------
    rest_ns : int
        After how long nothing changed any more.
    """

    words: str
    scenario: types.Scenario
    rest_ns: int


@dataclass(slots=True)
class LoopSearch:
    """What was found, and how far was looked."""

    horizon_ns: int
    seeds: tuple[int, ...]
    circle: Circle | None = None
    cures: list[Cure] = field(default_factory=list)
    tried: list[tuple[str, str]] = field(default_factory=list)
    """Edits that do not end it, and why not."""


def find_loops(
    scenario: types.Scenario, *, horizon_ns: int, n_seeds: int = 3, all_cures: bool = False
) -> LoopSearch:
    """Look for a loop in a scenario with each of some seeds, and for the smallest change that ends it.

    Parameters
    ----------
    horizon_ns : int
        Virtual time that is looked at after the scenario's own steps.
    all_cures : bool
        Try every edit; else stop at the first that ends it.
    """
    scenario = _without_ended(_after_steps(scenario))
    seeds = tuple(range(scenario.seed, scenario.seed + n_seeds))
    search = LoopSearch(horizon_ns, seeds)
    search.circle = _first_circle(scenario, horizon_ns, seeds)
    if search.circle is None:
        return search
    limit_ns = min(2 * search.circle.found_ns, horizon_ns)
    for number, (words, edited) in enumerate(_edits(scenario, search.circle)):
        if number >= MOST_CURES or (search.cures and not all_cures):
            break
        watches = [_watch(with_seed(edited, seed), limit_ns) for seed in seeds]
        still = next((one.circle for one in watches if one.circle), None)
        n_pending = max(one.n_pending for one in watches)
        if still is not None:
            search.tried.append((words, f"still loops every {format_duration(still.period_ns)}"))
        elif n_pending > search.circle.n_pending:
            search.tried.append((words, f"leaves {n_pending} pod{'' if n_pending == 1 else 's'} pending"))
        else:
            rest_ns = max((one.moments[-1][0] for one in watches if one.moments), default=0)
            search.cures.append(Cure(words, _recorded(with_seed(edited, seeds[0]), limit_ns), rest_ns))
    return search


def _after_steps(scenario: types.Scenario) -> types.Scenario:
    """One that begins with what there is after the steps, so that edits find all of it among the objects."""
    if not scenario.steps:
        return scenario
    simulation = run_scenario(scenario, full_traces=False).simulation
    return replace(
        scenario,
        kubernetes_release=simulation.release.name,
        start_ns=simulation.now_ns,
        scheduler=simulation.config,
        objects=tuple(stored.manifest for stored in simulation.world.everything()),
        steps=(),
        path=(),
        expect=(),
        decisions=None,
    )


def _without_ended(scenario: types.Scenario) -> types.Scenario:
    """Without pods that are over, of which a loop may have left thousands; a Job counts its own."""

    def is_over(one: Mapping[str, Any]) -> bool:
        owners = one["metadata"].get("ownerReferences") or ()
        phase = (one.get("status") or {}).get("phase")
        return phase in ("Failed", "Succeeded") and all(owner["kind"] != "Job" for owner in owners)

    kept = (one for one in scenario.objects if one["kind"] != "Pod" or not is_over(one))
    return replace(scenario, objects=tuple(kept))


def _first_circle(scenario: types.Scenario, horizon_ns: int, seeds: Sequence[int]) -> Circle | None:
    for seed in seeds:
        seeded = with_seed(scenario, seed)
        watch = _watch(seeded, horizon_ns)
        if watch.circle is not None:
            found_ns = watch.moments[-1][0]
            return replace(watch.circle, scenario=_recorded(seeded, found_ns))
    return None


def _steps(scenario: types.Scenario, more_ns: int) -> types.Scenario:
    """The scenario with so much more time at its end."""
    advance = types.Step(advance=types.Advance(by_ns=more_ns))
    return replace(scenario, steps=(*scenario.steps, advance), decisions=None, expect=())


def _recorded(scenario: types.Scenario, more_ns: int) -> types.Scenario:
    return with_decisions(run_scenario(_steps(scenario, more_ns)))


# ---- one run


@dataclass(slots=True)
class _Watch:
    """Moments of a run: when, the state after it, and what led to it."""

    moments: list[tuple[int, str, tuple[Arrow, ...]]] = field(default_factory=list)
    circle: Circle | None = None
    n_pending: int = 0


def _watch(scenario: types.Scenario, horizon_ns: int) -> _Watch:
    run = run_scenario(_steps(scenario, 0))
    simulation, watch, teller = run.simulation, _Watch(), _Teller(run.simulation)
    simulation.keep_full_traces(True)
    began_ns = simulation.now_ns
    simulation.drain_outcomes(), simulation.drain_runs(), simulation.drain_cycles()
    n_cycles = 0
    for _ in range(MOST_MOMENTS):
        deadline = simulation.next_deadline()
        if deadline is None or deadline.at_ns - began_ns > horizon_ns or n_cycles > MOST_CYCLES:
            break
        n_cycles += simulation.advance(deadline.at_ns - simulation.now_ns, max_cycles=MOST_CYCLES).cycles
        arrows = teller.arrows()
        if arrows:
            watch.moments.append((simulation.now_ns - began_ns, state_of(simulation.world), arrows))
            watch.circle = _circle(scenario, watch.moments, simulation)
            if watch.circle is not None:
                break
    watch.n_pending = _n_pending(simulation)
    return watch


def _n_pending(simulation: Simulation) -> int:
    return sum(not one.typed.node_name for one in simulation.world.all("Pod"))


def round_sizes(moments: Sequence[Any]) -> Iterator[int]:
    """How many of the last moments came just before them, too: each such number, the smallest first."""
    for size in range(1, len(moments) // 2 + 1):
        if moments[-1] == moments[-1 - size] and moments[-size:] == moments[-2 * size : -size]:
            yield size


def _circle(
    scenario: types.Scenario, moments: Sequence[tuple[int, str, tuple[Arrow, ...]]], simulation: Simulation
) -> Circle | None:
    """The shortest end of the moments that is there twice and moves something."""

    for size in round_sizes([(state, [arrow.kind for arrow in arrows]) for _, state, arrows in moments]):
        last, before = moments[-size:], moments[-2 * size : -size]
        arrows = tuple(arrow for _, _, some in last for arrow in some)
        lasts = last[-1][0] - before[-1][0]
        if lasts > 0 and any(arrow.by != _SCHEDULER for arrow in arrows):
            names = {name for arrow in arrows for name in arrow.objects}
            return Circle(
                scenario, arrows, lasts, moments[-1][0], tuple(sorted(names)), _n_pending(simulation)
            )
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
        labels = [one for one in node.labels.items() if one[0] != LABEL_HOSTNAME and one[1] != node.name]
        taints = sorted((taint.key, taint.effect) for taint in node.taints)
        on_it = sorted(pods.get(node.name, ()))
        nodes.append((sorted(labels), sorted(node.allocatable.items()), taints, node.unschedulable, on_it))
    replicas = [
        (kind, stored.key, (stored.manifest.get("spec") or {}).get("replicas"))
        for kind in _SCALED
        for stored in world.all(kind)
        if (stored.manifest.get("spec") or {}).get("replicas")
    ]
    return repr((sorted(nodes, key=repr), sorted(pods.get("", ())), sorted(map(repr, replicas))))


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


# ---- arrows

_SCHEDULER: Final = "scheduler"


class _Teller:
    """What happened in a moment, as arrows.

    Pods are named by their owners, and nodes that came later by their groups, which one that is gone still has here.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._world = simulation, simulation.world
        self._owners: dict[str, str] = {}
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
        return Arrow(at_ns, by, act.told(self._named), rule, tuple(filter(None, mentioned)), act.plugin)

    def arrows(self) -> tuple[Arrow, ...]:
        """Who did what since the last call."""
        simulation = self._simulation
        outcomes, runs, cycles = (
            simulation.drain_outcomes(),
            simulation.drain_runs(),
            simulation.drain_cycles(),
        )
        self._note()
        arguments = _plugin_arguments(self._world) if any(run.did for run in runs) else {}
        found = [
            self._arrow(run.at_ns, run.controller.rpartition("/")[2], act, _rule(act, arguments))
            for run in runs
            for act in run.did
        ]
        for outcome in outcomes:
            if not isinstance(outcome, ObjectWritten) or outcome.manifest["kind"] != "Pod":
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
        for trace in cycles:
            if trace.outcome == BOUND:
                what = ("places ", Mention("Pod", trace.pod), " on ", Mention("Node", str(trace.node)))
                found.append(self._arrow(trace.at_ns, _SCHEDULER, Act(what), _choice(trace)))
        return tuple(found)


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
    return {} if stored is None else _read(stored.manifest)


def _read(namespace: Mapping[str, Any]) -> dict[str, Any]:
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


# ---- edits

_MOST_ALLOCATED: Final[Mapping[str, Any]] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{
        "schedulerName": "default-scheduler",
        "pluginConfig": [{
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [
                {"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1},
            ]}},
        }],
    }],
}  # fmt: skip
_ARGUMENTS: Final[Mapping[str, tuple[str, str, Mapping[str, Any]]]] = {
    "RemovePodsViolatingTopologySpreadConstraint": (
        "constraints", "let it enforce hard constraints only", {"constraints": ["DoNotSchedule"]},
    ),
    "RemovePodsViolatingNodeAffinity": (
        "nodeAffinityType", "let it enforce required affinity only",
        {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    ),
    "RemovePodsViolatingNodeTaints": (
        "includePreferNoSchedule", "let it enforce hard taints only", {"includePreferNoSchedule": False},
    ),
    "RemoveDuplicates": (
        "excludeOwnerKinds", "leave out pods of ReplicaSets", {"excludeOwnerKinds": ["ReplicaSet"]},
    ),
}  # fmt: skip
"""Plugin -> the argument that an edit sets, in words, and its value."""


def _edits(scenario: types.Scenario, circle: Circle) -> Iterator[tuple[str, types.Scenario]]:
    """Edits that may end a loop, those that take least away first."""
    namespace = next((one for one in scenario.objects if _is(one, "Namespace", "kube-system")), None)
    settings = {} if namespace is None else _read(namespace)
    acting = list(dict.fromkeys(arrow.plugin for arrow in circle.round if arrow.plugin))

    def with_settings(annotation: str, document: Mapping[str, Any]) -> types.Scenario:
        patch = {"metadata": {"annotations": {annotation: json.dumps(document, sort_keys=True)}}}
        return _patched(scenario, "Namespace", "kube-system", patch)

    def policy_with(plugin: str, arguments: Mapping[str, Any]) -> types.Scenario:
        document = json.loads(json.dumps(settings[DESCHEDULER]))
        for profile in document["policy"]["profiles"]:
            for config in profile.get("pluginConfig") or ():
                if config["name"] == plugin:
                    config["args"] = {**(config.get("args") or {}), **arguments}
        return with_settings(DESCHEDULER, document)

    if acting:
        yield "DefaultEvictor: set nodeFit: true", policy_with("DefaultEvictor", {"nodeFit": True})
    for plugin in acting:
        if plugin in _ARGUMENTS:
            name, words, value = _ARGUMENTS[plugin]
            yield f"{plugin}: {words} ({name}: {json.dumps(value[name])})", policy_with(plugin, value)
        if plugin == "LowNodeUtilization":
            thresholds = _targets(settings[DESCHEDULER]["policy"])
            yield (
                f"{plugin}: raise targetThresholds to 100",
                policy_with(plugin, {"targetThresholds": thresholds}),
            )
        if plugin == "HighNodeUtilization" and scenario.scheduler is None:
            words = "NodeResourcesFit: score by MostAllocated, as HighNodeUtilization asks for"
            yield words, replace(scenario, scheduler=_MOST_ALLOCATED)
    yield from _workload_edits(scenario, circle)
    if VERTICAL in settings and any(arrow.by == "vertical-pod-autoscaler" for arrow in circle.round):
        document = settings[VERTICAL]
        targets = [{**one, "controlledResources": ["memory"]} for one in document["autoscalers"]]
        words = "leave cpu to the HorizontalPodAutoscaler (controlledResources: [memory])"
        yield (
            f"vertical pod autoscaler: {words}",
            with_settings(VERTICAL, {**document, "autoscalers": targets}),
        )
    if CLUSTER_AUTOSCALER in settings and any(arrow.by == "cluster-autoscaler" for arrow in circle.round):
        for flag, setting in (("scale-down-utilization-threshold", "0.1"), ("scale-down-enabled", "false")):
            document = settings[CLUSTER_AUTOSCALER]
            changed = {**document, "options": {**(document.get("options") or {}), flag: setting}}
            yield f"cluster autoscaler: --{flag}={setting}", with_settings(CLUSTER_AUTOSCALER, changed)
    for plugin in acting:
        document = json.loads(json.dumps(settings[DESCHEDULER]))
        for profile in document["policy"]["profiles"]:
            for point in (profile.get("plugins") or {}).values():
                point["enabled"] = [name for name in point.get("enabled") or () if name != plugin]
        yield f"descheduler: disable {plugin}", with_settings(DESCHEDULER, document)


def _targets(policy: Mapping[str, Any]) -> dict[str, int]:
    """Each resource of the first LowNodeUtilization at 100 %."""
    return {
        name: 100
        for profile in policy.get("profiles") or ()
        for config in profile.get("pluginConfig") or ()
        if config["name"] == "LowNodeUtilization"
        for name in (config.get("args") or {}).get("targetThresholds") or {}
    }


def _workload_edits(scenario: types.Scenario, circle: Circle) -> Iterator[tuple[str, types.Scenario]]:
    for one in scenario.objects:
        kind, meta = str(one.get("kind")), one.get("metadata") or {}
        if f"{kind} {meta.get('namespace') or 'default'}/{meta.get('name')}" not in circle.objects:
            continue
        template = ((one.get("spec") or {}).get("template") or {}).get("spec") or {}
        where = f"{kind} {meta['name']}"
        patches: list[tuple[str, Mapping[str, Any]]] = []
        if template.get("nodeName"):
            patches.append((f"{where}: drop nodeName, so that the scheduler chooses", {"nodeName": None}))
        spread = template.get("topologySpreadConstraints") or ()
        if any(item.get("whenUnsatisfiable") == "ScheduleAnyway" for item in spread):
            hard = [{**item, "whenUnsatisfiable": "DoNotSchedule"} for item in spread]
            words = f"{where}: spread with whenUnsatisfiable: DoNotSchedule"
            patches.append((words, {"topologySpreadConstraints": hard}))
            patches.append((f"{where}: drop the preferred spread", {"topologySpreadConstraints": None}))
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        for rule in template.get("affinity") or {}:
            if preferred in (template["affinity"][rule] or {}):
                words = f"{where}: drop the preferred {rule}"
                patches.append((words, {"affinity": {rule: {preferred: None}}}))
        for said, patch in patches:
            yield said, _patched(scenario, kind, str(meta["name"]), {"spec": {"template": {"spec": patch}}})


def _is(manifest: Mapping[str, Any], kind: str, name: str) -> bool:
    return manifest.get("kind") == kind and (manifest.get("metadata") or {}).get("name") == name


def _patched(scenario: types.Scenario, kind: str, name: str, patch: Mapping[str, Any]) -> types.Scenario:
    return replace(
        scenario,
        objects=tuple(merge_patch(one, patch) if _is(one, kind, name) else one for one in scenario.objects),
    )


# ---- as text


def lines_of(search: LoopSearch) -> Iterator[str]:
    """The answer for a person."""
    circle = search.circle
    if circle is None:
        yield f"No loop in {format_duration(search.horizon_ns)} with {len(search.seeds)} seeds."
        return
    yield f"A loop: the same state every {format_duration(circle.period_ns)}."
    start_ns = circle.round[0].at_ns
    for number, arrow in enumerate(circle.round, 1):
        after = format_duration(arrow.at_ns - start_ns)
        yield f"  {number}. after {after} {arrow.by}: {arrow.what}"
        if arrow.rule and arrow.rule not in arrow.what:
            yield f"     because {arrow.rule}"
    yield "  and the state is that of the beginning."
    yield f"Goes round: {', '.join(circle.objects)}."
    if search.cures:
        yield f"The smallest change that ends it: {search.cures[0].words}."
        yield from (f"It ends with this, too: {cure.words}." for cure in search.cures[1:])
    else:
        yield "No change that was tried ends it."
    yield from (f"This does not end it: {words} ({why})." for words, why in search.tried)


def _change(before: types.Scenario, after: types.Scenario) -> dict[str, Any]:
    """Objects that an edit writes, and its configuration of the scheduler, if it has another."""
    pairs = zip(before.objects, after.objects, strict=True)
    change: dict[str, Any] = {"write": [without_server_fields(new) for old, new in pairs if new != old]}
    return change if after.scheduler == before.scheduler else {**change, "scheduler": after.scheduler}


def document_of(search: LoopSearch) -> dict[str, Any]:
    """The answer as JSON."""
    circle = search.circle
    return {
        "loop": None
        if circle is None
        else {
            "seed": circle.scenario.seed,
            "periodSeconds": circle.period_ns / 1e9,
            "foundAfterSeconds": circle.found_ns / 1e9,
            "objects": list(circle.objects),
            "arrows": [
                {
                    "afterSeconds": (arrow.at_ns - circle.round[0].at_ns) / 1e9,
                    "by": arrow.by,
                    "what": arrow.what,
                    "rule": arrow.rule,
                }
                for arrow in circle.round
            ],
        },
        "cures": [
            {
                "sentence": cure.words,
                "restAfterSeconds": cure.rest_ns / 1e9,
                "change": _change(circle.scenario, cure.scenario),
            }
            for cure in search.cures
            if circle is not None
        ],
        "tried": [{"sentence": words, "why": why} for words, why in search.tried],
        "horizonSeconds": search.horizon_ns / 1e9,
        "seeds": list(search.seeds),
    }
