"""Controllers that go round in circles or break what objects ask for, and the smallest change that ends it.

A scenario is run in virtual time and looked at moment by moment (`watch`), with each of some seeds: order is chance.
Edits that may end what is wrong are tried, the smallest first, each by a run of twice the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from scheduler_core.objects.duration import format_duration
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.node import LABEL_HOSTNAME
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.scenario import types
from scheduler_core.scenario.canonical import without_server_fields
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.luck import with_seed
from scheduler_core.scenario.run import with_decisions
from scheduler_core.scenario.watch import (
    BELOW,
    LOOP,
    PENDING,
    SWING,
    WAITS_NS,
    Watched,
    Wrong,
    settings_of,
    watched,
)
from scheduler_core.sim.controllers.autoscaler import KIND as SCALER
from scheduler_core.sim.controllers.node_lifecycle import CRASHES, crashes_from
from scheduler_core.sim.controllers.programs import CLUSTER_AUTOSCALER, DESCHEDULER, VERTICAL
from scheduler_core.sim.world import annotations_of

MOST_CURES: Final = 16
_LEAST_NS: Final = 3 * WAITS_NS
"""An edit is run for so long after the steps at least."""


@dataclass(frozen=True, slots=True)
class Cure:
    """An edit that ends what is wrong.

    Attributes
    ----------
    scenario : Scenario
        With the edit, run for long enough; as `recorded` it proves that.
    rest_ns : int
        After how long nothing changed any more.
    """

    words: str
    scenario: types.Scenario
    rest_ns: int


@dataclass(slots=True)
class LoopSearch:
    """What was found, and how far was looked.

    Attributes
    ----------
    proof : Scenario or None
        Run to the moment in which it was found; as `recorded` it proves that.
    """

    horizon_ns: int
    seeds: tuple[int, ...]
    wrong: Wrong | None = None
    proof: types.Scenario | None = None
    cures: list[Cure] = field(default_factory=list)
    tried: list[tuple[str, str]] = field(default_factory=list)
    """Edits that do not end it, and why not."""


def find_loops(
    scenario: types.Scenario, *, horizon_ns: int, n_seeds: int = 3, all_cures: bool = False
) -> LoopSearch:
    """Look for a loop or a broken promise with each of some seeds, and for the smallest change that ends it.

    Parameters
    ----------
    horizon_ns : int
        Virtual time that is looked at after the scenario's own steps.
    all_cures : bool
        Try every edit; else stop at the first that ends it.
    """
    scenario = _without_ended(scenario)
    seeds = tuple(range(scenario.seed, scenario.seed + n_seeds))
    search = LoopSearch(horizon_ns, seeds)
    seed, watch = _first_wrong(scenario, horizon_ns, seeds)
    if watch.loop is not None and scenario.steps:
        # Edits find all there is then among the objects, and each run is shorter by the steps.
        later = _without_ended(_after_steps(with_seed(scenario, seed)))
        again = watched(later, seed, horizon_ns)
        if again.loop is not None:
            scenario, watch = later, again
    wrong = search.wrong = watch.wrong
    if wrong is None:
        return search
    search.proof = _longer(with_seed(scenario, seed), wrong.found_ns - watch.steps_ns)
    more_ns = min(
        max(2 * wrong.found_ns - watch.steps_ns, 0 if wrong.kind == LOOP else _LEAST_NS), horizon_ns
    )
    for number, (words, edited) in enumerate(_edits(scenario, wrong)):
        if number >= MOST_CURES or (search.cures and not all_cures):
            break
        rest_ns, why_not = _tried(edited, seeds, more_ns, wrong)
        if why_not:
            search.tried.append((words, why_not))
        else:
            search.cures.append(Cure(words, _longer(with_seed(edited, seeds[0]), more_ns), rest_ns))
    return search


def _first_wrong(scenario: types.Scenario, horizon_ns: int, seeds: tuple[int, ...]) -> tuple[int, Watched]:
    watch = Watched()
    for seed in seeds:
        watch = watched(scenario, seed, horizon_ns)
        if watch.wrong is not None:
            return seed, watch
    return seeds[0], watch


def _tried(edited: types.Scenario, seeds: tuple[int, ...], more_ns: int, wrong: Wrong) -> tuple[int, str]:
    """After how long nothing changes any more, or why an edit does not end what is wrong; with each seed."""
    rest_ns = 0
    for seed in seeds:
        watch = watched(edited, seed, more_ns)
        rest_ns = max(rest_ns, watch.rest_ns)
        n, broken = watch.n_pending, watch.broken
        if watch.loop is not None:
            return 0, f"still loops every {format_duration(watch.loop.period_ns)}"
        if n > wrong.n_pending or (wrong.kind == PENDING and n == wrong.n_pending):
            return 0, f"leaves {n} pod{'' if n == 1 else 's'} pending"
        if broken is not None and (wrong.kind != LOOP or broken.kind != PENDING):
            return 0, broken.sentence
    return rest_ns, ""


def _after_steps(scenario: types.Scenario) -> types.Scenario:
    """One that begins with what there is after the steps."""
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


def _longer(scenario: types.Scenario, more_ns: int) -> types.Scenario:
    """The scenario with so much more time at its end."""
    advance = (types.Step(advance=types.Advance(by_ns=more_ns)),) if more_ns > 0 else ()
    return replace(scenario, steps=(*scenario.steps, *advance), path=(), expect=(), decisions=None)


def recorded(scenario: types.Scenario) -> types.Scenario:
    """The scenario with what is decided in it."""
    return with_decisions(run_scenario(scenario))


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


def _edits(scenario: types.Scenario, wrong: Wrong) -> Iterator[tuple[str, types.Scenario]]:
    """Edits that may end a loop, those that take least away first."""
    namespace = next((one for one in scenario.objects if _is(one, "Namespace", "kube-system")), None)
    settings = {} if namespace is None else settings_of(namespace)
    acting = list(dict.fromkeys(arrow.plugin for arrow in wrong.arrows if arrow.plugin))

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
    yield from _workload_edits(scenario, wrong)
    yield from _reserving(scenario, wrong)
    yield from _autoscaler_edits(scenario, wrong)
    if VERTICAL in settings and any(arrow.by == "vertical-pod-autoscaler" for arrow in wrong.arrows):
        document = settings[VERTICAL]
        targets = [{**one, "controlledResources": ["memory"]} for one in document["autoscalers"]]
        words = "leave cpu to the HorizontalPodAutoscaler (controlledResources: [memory])"
        yield (
            f"vertical pod autoscaler: {words}",
            with_settings(VERTICAL, {**document, "autoscalers": targets}),
        )
    if CLUSTER_AUTOSCALER in settings and any(arrow.by == "cluster-autoscaler" for arrow in wrong.arrows):
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


def _workload_edits(scenario: types.Scenario, wrong: Wrong) -> Iterator[tuple[str, types.Scenario]]:
    for one in _manifests(scenario):
        kind, meta = str(one.get("kind")), one.get("metadata") or {}
        if f"{kind} {meta.get('namespace') or 'default'}/{meta.get('name')}" not in wrong.objects:
            continue
        spec = one.get("spec") or {}
        whole = spec.get("template") or {}
        template, labels = whole.get("spec") or {}, (whole.get("metadata") or {}).get("labels") or {}
        for said, patch in _template_edits(template, labels, wrong.kind):
            patched = _patched(scenario, kind, str(meta["name"]), {"spec": {"template": {"spec": patch}}})
            yield f"{kind} {meta['name']}: {said}", patched
        replicas = spec.get("replicas")
        if replicas and wrong.crashed:
            for fewer in range(int(replicas) - 1, max(int(replicas) - _FEWER, 1) - 1, -1):
                patched = _patched(scenario, kind, str(meta["name"]), {"spec": {"replicas": fewer}})
                yield f"{kind} {meta['name']}: replicas: {fewer}, so that no node is full", patched


def _reserving(scenario: types.Scenario, wrong: Wrong) -> Iterator[tuple[str, types.Scenario]]:
    """Nodes that crash give pods less than what they crash at."""
    edited = scenario
    for one in scenario.objects:
        name, text = (one.get("metadata") or {}).get("name"), annotations_of(one).get(CRASHES)
        if one.get("kind") == "Node" and wrong.crashed and text is not None:
            status = one.get("status") or {}
            capacity = status.get("capacity") or status.get("allocatable") or {}
            milli = quantity_from(capacity.get("cpu") or "0").milli_value()
            below = milli * crashes_from(str(text)).percent // 100 - 1
            given = {"capacity": capacity, "allocatable": {**capacity, "cpu": f"{below}m"}}
            edited = _patched(edited, "Node", str(name), {"status": given})
    if edited is not scenario:
        yield "Nodes: reserve cpu (allocatable), so that pods cannot use what they crash at", edited


_FEWER: Final = 3
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SOFT, _HARD = "ScheduleAnyway", "DoNotSchedule"


def _template_edits(
    template: Mapping[str, Any], labels: Mapping[str, str], kind: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Patches of a pod template: rules that make pods wait are preferred only, others are made to hold."""
    spread = template.get("topologySpreadConstraints") or ()
    affinity = template.get("affinity") or {}
    if kind == PENDING:
        for place, item in enumerate(spread):
            if item.get("whenUnsatisfiable", _HARD) == _HARD:
                softer = [*spread[:place], {**item, "whenUnsatisfiable": _SOFT}, *spread[place + 1 :]]
                said = f"spread over {item.get('topologyKey')} with whenUnsatisfiable: {_SOFT}"
                yield said, {"topologySpreadConstraints": softer}
        required = (affinity.get("podAntiAffinity") or {}).get(_REQUIRED)
        if required:
            preferred = [{"weight": 100, "podAffinityTerm": term} for term in required]
            rules = {_REQUIRED: None, _PREFERRED: preferred}
            yield "prefer, not require, its podAntiAffinity", {"affinity": {"podAntiAffinity": rules}}
        return
    if template.get("nodeName"):
        yield "drop nodeName, so that the scheduler chooses", {"nodeName": None}
    if any(item.get("whenUnsatisfiable") == _SOFT for item in spread):
        hard = [{**item, "whenUnsatisfiable": _HARD} for item in spread]
        yield f"spread with whenUnsatisfiable: {_HARD}", {"topologySpreadConstraints": hard}
        if kind == LOOP:
            yield "drop the preferred spread", {"topologySpreadConstraints": None}
    if kind == BELOW and labels and not (affinity.get("podAntiAffinity") or {}).get(_REQUIRED):
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": LABEL_HOSTNAME}
        apart = {"affinity": {"podAntiAffinity": {_REQUIRED: [term]}}}
        yield "require nodes without another of its pods (podAntiAffinity)", apart
    if kind == LOOP:
        for rule in affinity:
            if _PREFERRED in (affinity[rule] or {}):
                yield f"drop the preferred {rule}", {"affinity": {rule: {_PREFERRED: None}}}


_STABILIZATIONS_S: Final = (60, 120, 300, 600)


def _autoscaler_edits(scenario: types.Scenario, wrong: Wrong) -> Iterator[tuple[str, types.Scenario]]:
    """Patches of the HorizontalPodAutoscaler of a workload, and of what is applied over it."""
    for one in _manifests(scenario):
        spec, meta = one.get("spec") or {}, one.get("metadata") or {}
        reference = spec.get("scaleTargetRef") or {}
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        about = f"{kind} {meta.get('namespace') or 'default'}/{name}"
        if one.get("kind") != SCALER or about not in wrong.objects:
            continue
        where, own = f"{SCALER} {meta['name']}", str(meta["name"])
        if wrong.kind == SWING:
            for seconds in _STABILIZATIONS_S:
                rules = {"behavior": {"scaleUp": {"stabilizationWindowSeconds": seconds}}}
                words = f"{where}: behavior.scaleUp.stabilizationWindowSeconds: {seconds}"
                yield words, _patched(scenario, SCALER, own, {"spec": rules})
        if wrong.kind == PENDING:
            for fewer in range(1, _FEWER + 1):
                most = int(spec.get("maxReplicas") or 1) - fewer
                if most >= int(spec.get("minReplicas") or 1):
                    yield (
                        f"{where}: maxReplicas: {most}",
                        _patched(scenario, SCALER, own, {"spec": {"maxReplicas": most}}),
                    )
        if wrong.kind == BELOW:
            least = int(spec.get("minReplicas") or 1)
            for place, step in enumerate(scenario.steps):
                if any(_is(item, kind, name) and "replicas" not in item["spec"] for item in step.apply or ()):
                    applied = tuple(
                        merge_patch(item, {"spec": {"replicas": least}}) if _is(item, kind, name) else item
                        for item in step.apply or ()
                    )
                    steps = (
                        *scenario.steps[:place],
                        replace(step, apply=applied),
                        *scenario.steps[place + 1 :],
                    )
                    words = f"step {place + 1}: apply {kind} {name} with replicas: {least}"
                    yield words, replace(scenario, steps=steps)


def _manifests(scenario: types.Scenario) -> Iterator[Mapping[str, Any]]:
    """Those there are at the beginning, and those that steps apply for the first time."""
    seen = set()
    applied = (one for step in scenario.steps for one in step.apply or ())
    for one in (*scenario.objects, *applied):
        key = types.object_key(one)
        if key not in seen:
            seen.add(key)
            yield one


def _is(manifest: Mapping[str, Any], kind: str, name: str) -> bool:
    return manifest.get("kind") == kind and (manifest.get("metadata") or {}).get("name") == name


def _patched(scenario: types.Scenario, kind: str, name: str, patch: Mapping[str, Any]) -> types.Scenario:
    """With an object patched wherever it is given."""

    def patched(given: tuple[types.Manifest, ...]) -> tuple[types.Manifest, ...]:
        return tuple(merge_patch(one, patch) if _is(one, kind, name) else one for one in given)

    steps = (
        step if step.apply is None else replace(step, apply=patched(step.apply)) for step in scenario.steps
    )
    return replace(scenario, objects=patched(scenario.objects), steps=tuple(steps))


# ---- as text


def lines_of(search: LoopSearch) -> Iterator[str]:
    """The answer for a person."""
    wrong = search.wrong
    if wrong is None:
        yield f"No loop in {format_duration(search.horizon_ns)} with {len(search.seeds)} seeds."
        return
    if wrong.kind == LOOP:
        yield f"A loop: {wrong.sentence}."
    else:
        yield f"After {format_duration(wrong.found_ns)} {wrong.sentence}."
    start_ns = _start_ns(wrong)
    for number, (arrow, alike) in enumerate(groupby(wrong.arrows), 1):
        after, times = format_duration(arrow.at_ns - start_ns), len(list(alike))
        yield f"  {number}. after {after} {arrow.by}: {arrow.what}{f' ({times} times)' if times > 1 else ''}"
        if arrow.rule and arrow.rule not in arrow.what:
            yield f"     because {arrow.rule}"
    if wrong.kind == LOOP:
        yield "  and the state is that of the beginning, but for names."
        yield f"Goes round: {', '.join(wrong.objects)}."
    if search.cures:
        yield f"The smallest change that ends it: {search.cures[0].words}."
        yield from (f"It ends with this, too: {cure.words}." for cure in search.cures[1:])
    else:
        yield "No change that was tried ends it."
    yield from (f"This does not end it: {words} ({why})." for words, why in search.tried)


def _start_ns(wrong: Wrong) -> int:
    return wrong.arrows[0].at_ns if wrong.arrows else 0


def _change(before: types.Scenario, after: types.Scenario) -> dict[str, Any]:
    """Objects that an edit writes, and its configuration of the scheduler, if it has another."""
    pairs = zip(_given(before), _given(after), strict=True)
    change: dict[str, Any] = {"write": [without_server_fields(new) for old, new in pairs if new != old]}
    return change if after.scheduler == before.scheduler else {**change, "scheduler": after.scheduler}


def _given(scenario: types.Scenario) -> list[Mapping[str, Any]]:
    return [*scenario.objects, *(one for step in scenario.steps for one in step.apply or ())]


def document_of(search: LoopSearch) -> dict[str, Any]:
    """The answer as JSON."""
    wrong, proof = search.wrong, search.proof
    found: dict[str, Any] = {"loop": None, "failure": None, "cures": []}
    if wrong is not None and proof is not None:
        start_ns = _start_ns(wrong)
        shown: dict[str, Any] = {
            "seed": proof.seed,
            "foundAfterSeconds": wrong.found_ns / 1e9,
            "objects": list(wrong.objects),
            "arrows": [
                {
                    "afterSeconds": (arrow.at_ns - start_ns) / 1e9,
                    "by": arrow.by,
                    "what": arrow.what,
                    "rule": arrow.rule,
                }
                for arrow in wrong.arrows
            ],
        }
        if wrong.kind == LOOP:
            found["loop"] = {**shown, "periodSeconds": wrong.period_ns / 1e9}
        else:
            found["failure"] = {**shown, "kind": wrong.kind, "sentence": wrong.sentence}
        found["cures"] = [
            {
                "sentence": cure.words,
                "restAfterSeconds": cure.rest_ns / 1e9,
                "change": _change(proof, cure.scenario),
            }
            for cure in search.cures
        ]
    return {
        **found,
        "tried": [{"sentence": words, "why": why} for words, why in search.tried],
        "horizonSeconds": search.horizon_ns / 1e9,
        "seeds": list(search.seeds),
    }
