"""An incident, or a span of it, as a scenario: as its schedulers decided, or with ours in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler_core.config.types import API_VERSION
from scheduler_core.incident.changes import DELETE, Incident, LoggedChange, key_of
from scheduler_core.objects.defaults import SYSTEM_PRIORITY_CLASSES
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME
from scheduler_core.releases import Release
from scheduler_core.scenario import types
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.make import make_scenario
from scheduler_core.sim.controllers.deployment import deployment_behind
from scheduler_core.whatif.judge import Key, Manifest

RECORDED: Final = "as-recorded"
"""The scheduler that pods ask for whose decisions are steps: none of that name is there."""
OWNERS: Final = ("ReplicaSet", "StatefulSet", "ReplicationController")
_SERVICE: Final = "Service"


@dataclass(frozen=True, slots=True)
class WhatIfSpan:
    """What is otherwise in a span than it was.

    Attributes
    ----------
    like, n_more
        The name of a node, and how many like it are there besides, from the beginning.
    weights
        Score plugin -> weight, in every profile; 0 leaves it out.
    priorities
        ``namespace/name`` of a pod or its workload -> priority of these pods, in place of their class.
    """

    like: str = ""
    n_more: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Record:
    """An entry as `scenario.make` takes it."""

    seq: int
    kind: str
    payload: Mapping[str, Any]
    at_ns: int
    source: str


def scenario_of(
    incident: Incident,
    *,
    release: Release,
    config: Mapping[str, Any] | None = None,
    recorded: bool = False,
    from_ns: int = 0,
    to_ns: int | None = None,
    what_if: WhatIfSpan | None = None,
) -> types.Scenario:
    """What was there, what happened and when.

    What kubelets did is left out, and so are controllers: the objects that they made are there. Of workloads only what
    they select stays, as Services: the default spread goes by that.

    Parameters
    ----------
    recorded
        Decisions are steps by those who took them. Otherwise they are left out, and ours decide.
    from_ns, to_ns
        The span; all of it by default.
    what_if
        What is otherwise in it than it was.

    Raises
    ------
    ScenarioError
        The node that there are to be more of was not there at the beginning.
    """
    there, what_if = dict(incident.before), what_if or WhatIfSpan()
    changes = _from(incident.changes(), there, from_ns)
    graces = _graces(incident.changes())
    classes = {key[2] for key in there if key[0] == "PriorityClass"} | {*SYSTEM_PRIORITY_CLASSES}
    made = make_scenario(
        _records(changes, {**there}, graces, _Inputs(recorded, classes, what_if.priorities), to_ns),
        config=_weighted(config, what_if.weights) if what_if.weights else config,
        release=release,
        start_ns=max(incident.begins_ns, from_ns),
        initial=[
            *(_Inputs(recorded, classes, what_if.priorities).of(item) for item in there.values()),
            *_more_objects(there, what_if),
        ],
        ours_decide=not recorded,
        name="incident",
    )
    return made.scenario


@dataclass(frozen=True, slots=True)
class _Inputs:
    """How objects of a cluster are written into a scenario, with the PriorityClasses that are known."""

    recorded: bool
    classes: set[str]
    priorities: Mapping[str, int]

    def of(self, manifest: Manifest) -> Manifest:
        spec = manifest.get("spec") or {}
        if manifest["kind"] == "PriorityClass":
            self.classes.add(str(manifest["metadata"]["name"]))
        if manifest["kind"] in OWNERS:
            return selecting(manifest)
        if manifest["kind"] != "Pod":
            return manifest
        changed: dict[str, Any] = (
            {} if spec.get("priorityClassName") in self.classes else {"priorityClassName": ""}
        )
        for name in _names_of(manifest) if self.priorities else ():
            if name in self.priorities:
                changed = {"priorityClassName": _class_of(self.priorities[name]), "priority": ""}
        if self.recorded:
            changed["schedulerName"] = RECORDED
        return {**manifest, "spec": {key: item for key, item in {**spec, **changed}.items() if item != ""}}


def _names_of(pod: Manifest) -> Iterator[str]:
    """``namespace/name`` of a pod, its owner, and the Deployment behind that."""
    meta = pod["metadata"]
    namespace = str(meta.get("namespace") or "")
    yield f"{namespace}/{meta['name']}"
    for owner in meta.get("ownerReferences") or ():
        yield f"{namespace}/{owner['name']}"
        yield f"{namespace}/{deployment_behind(owner['kind'], owner['name'], meta.get('labels') or {})[1]}"


def _class_of(priority: int) -> str:
    return f"what-if-{priority}".replace("--", "-minus-")


def _more_objects(there: Mapping[Key, Manifest], what_if: WhatIfSpan) -> Iterator[Manifest]:
    """PriorityClasses, and empty nodes like one that was there, open to pods."""
    for priority in sorted({*what_if.priorities.values()}):
        yield object_of(
            "scheduling.k8s.io/v1", "PriorityClass", {"name": _class_of(priority)}, value=priority
        )
    if not what_if.n_more:
        return
    known = there.get(("Node", "", what_if.like))
    if known is None:
        raise ScenarioError([Problem("like", "was no node at the beginning of the span", what_if.like)])
    for number in range(1, what_if.n_more + 1):
        name = f"{what_if.like}-more-{number}"
        labels = {**(known["metadata"].get("labels") or {}), LABEL_HOSTNAME: name}
        spec = {key: item for key, item in (known.get("spec") or {}).items() if key != "unschedulable"}
        yield {**known, "metadata": {"name": name, "labels": labels}, "spec": spec}


def _weighted(config: Mapping[str, Any] | None, weights: Mapping[str, int]) -> dict[str, Any]:
    """A configuration with other weights of score plugins in every profile."""
    document = dict(config or {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"})
    profiles = []
    for profile in document.get("profiles") or [{}]:
        plugins = profile.get("plugins") or {}
        score = plugins.get("score") or {}
        off, on = (
            [one for one in score.get(place) or () if one["name"] not in weights]
            for place in ("disabled", "enabled")
        )
        off += [{"name": name} for name in weights]
        on += [{"name": name, "weight": weight} for name, weight in weights.items() if weight]
        profiles.append({**profile, "plugins": {**plugins, "score": {"disabled": off, "enabled": on}}})
    return {**document, "profiles": profiles}


def _from(
    changes: Iterator[LoggedChange], there: dict[Key, Manifest], from_ns: int
) -> Iterator[LoggedChange]:
    """The changes from a time on; those before are taken into what is there."""
    for change in changes:
        if change.at_ns >= from_ns:
            return _with(change, changes)
        if change.kind == DELETE and change.payload.get("gone", True):
            there.pop((change.payload["kind"], change.payload["namespace"], change.payload["name"]), None)
        else:
            there[key_of(change.payload["manifest"])] = change.payload["manifest"]
    return iter(())


def _with(first: LoggedChange, rest: Iterator[LoggedChange]) -> Iterator[LoggedChange]:
    yield first
    yield from rest


def _graces(changes: Iterable[LoggedChange]) -> Mapping[int, int]:
    """How many seconds each pod that was deleted stayed, by the number of its deletion."""
    graces: dict[int, int] = {}
    ending: dict[tuple[str, str], LoggedChange] = {}
    for change in changes:
        if change.kind != DELETE or change.payload["kind"] != "Pod":
            continue
        place = (change.payload["namespace"], change.payload["name"])
        if not change.payload.get("gone", True):
            ending[place] = change
        elif place in ending:
            began = ending.pop(place)
            graces[began.seq] = (change.at_ns - began.at_ns) // 10**9
    return graces


def _records(
    changes: Iterable[LoggedChange],
    there: dict[Key, Manifest],
    graces: Mapping[int, int],
    inputs: _Inputs,
    to_ns: int | None,
) -> Iterator[_Record]:
    ending = {key for key, item in there.items() if item["metadata"].get("deletionTimestamp")}
    for change in changes:
        if to_ns is not None and change.at_ns > to_ns:
            return
        payload = {**change.payload, "by": change.by}
        source = "api"
        if change.kind == DELETE:
            key = (payload["kind"], payload["namespace"], payload["name"])
            if key[0] in OWNERS:
                payload["kind"], payload["name"] = _SERVICE, _name_of(key)
            if payload.get("gone", True):
                # A pod that was being deleted ends by itself.
                source = "engine" if key in ending else "api"
                ending.discard(key)
                if there.pop(key, None) is None:
                    continue
            else:
                ending.add(key)
                there[key] = payload["manifest"]
                payload["gracePeriodSeconds"] = graces.get(change.seq)
        else:
            manifest = payload["manifest"]
            key = key_of(manifest)
            if not change.by and key in there and _is_of_a_kubelet(there[key], manifest):
                source = "engine"
            there[key] = manifest
            payload["manifest"] = inputs.of(manifest)
        yield _Record(change.seq, change.kind, payload, change.at_ns, source)


def _is_of_a_kubelet(before: Manifest, after: Manifest) -> bool:
    """Whether nothing of a pod changed but its status, and it did not end but by a kubelet that did not take it."""
    if after["kind"] != "Pod" or before["metadata"].get("uid") != after["metadata"].get("uid"):
        return False
    old, new = ((item.get("status") or {}).get("phase") for item in (before, after))
    ended = new in ("Succeeded", "Failed") and new != old
    return before.get("spec") == after.get("spec") and (not ended or (old, new) == ("Pending", "Failed"))


def _name_of(key: Key) -> str:
    return f"{key[0].lower()}-{key[2]}"


def selecting(owner: Manifest) -> Manifest:
    """A Service that selects as a workload does."""
    selector = (owner.get("spec") or {}).get("selector") or {}
    if owner["kind"] != "ReplicationController":
        selector = selector.get("matchLabels") or {}
    meta = {"name": _name_of(key_of(owner)), "namespace": str(owner["metadata"].get("namespace") or "")}
    return object_of("v1", _SERVICE, meta, spec={"selector": selector})
