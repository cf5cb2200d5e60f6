"""Making a scenario out of what happened: the beginning of a cluster's log, and its inputs.

Only inputs are taken over, never outcomes: pods that were bound become pending again, and find their nodes anew when
the scenario is run. A write that changed an object becomes a patch of what its writer changed, so that nothing the
cluster itself had written by then slips in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from scheduler_core.config.types import API_VERSION as CONFIG_API_VERSION
from scheduler_core.config.types import KIND as CONFIG_KIND
from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.defaults import (
    PREEMPT_LOWER_PRIORITY,
    SYSTEM_PRIORITY_CLASSES,
    PriorityClass,
    PriorityClasses,
    prepare,
    priority_class_from,
)
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.kinds import KINDS, is_read
from scheduler_core.objects.merge import merge_patch, patch_between
from scheduler_core.objects.meta import object_of, owner_uids_of, uid_of
from scheduler_core.releases import OLDEST, Release, release_from
from scheduler_core.scenario import types
from scheduler_core.scenario.canonical import (
    NODES_RANK,
    WORKLOADS_RANK,
    owner_uids,
    run_rank,
    without_server_fields,
)
from scheduler_core.scenario.cassette import RecordedCall
from scheduler_core.scenario.load import with_plugins
from scheduler_core.scenario.mock_extender import MockExtender
from scheduler_core.scenario.record import Decided, cycle_line, decisions_digest
from scheduler_core.sim.admission import HIGHEST_USER_PRIORITY, TOLERATED_TAINTS, with_default_tolerations
from scheduler_core.version import ENGINE_VERSION
from scheduler_core.whatif.judge import Entry

DEFAULT_PROFILE = "default-scheduler"


class LogRecord(Entry, Protocol):
    """An entry of a cluster's log."""

    @property
    def source(self) -> str:
        """`api` for an input, `engine` for an outcome."""
        ...


@dataclass(frozen=True, slots=True)
class MadeScenario:
    """A scenario made of a log.

    Attributes
    ----------
    notes : tuple of str
        What could not be taken over as it was.
    """

    scenario: types.Scenario
    notes: tuple[str, ...]


def make_scenario(
    records: Iterable[LogRecord],
    *,
    config: types.Manifest | None = None,
    release: Release = OLDEST,
    seed: int = 0,
    start_ns: int,
    initial: Iterable[types.Manifest] = (),
    goes_on: bool = False,
    traces: Sequence[Decided] = (),
    name: str = "",
    title: str = "",
    ours_decide: bool = False,
    mock: Sequence[MockExtender] = (),
    kept: Iterable[types.Manifest] = (),
) -> MadeScenario:
    """Make a scenario of a log.

    Parameters
    ----------
    records : iterable of LogRecord
        In order of seq, from the beginning; outcomes too, as far as they are there.
    config : mapping or None
        The scheduler configuration at the start.
    release : Release
        The release of Kubernetes at the start.
    initial : iterable of mapping
        Objects that were there before the first record, bound pods among them.
    goes_on : bool
        The scenario holds what came after `initial` alone, all of it as steps: it is run where a checkpoint of
        that moment was taken (`run`).
    traces : sequence of Decided
        What was decided, in order: the scenario carries it, and replaying it is the proof.
    ours_decide : bool
        What other schedulers decided (records with `by`) is left out, and their pods ask for ours.
    mock : sequence of MockExtender
        Extenders of which the rules are known: they answer what was not recorded.
    kept : iterable of mapping
        Objects the cluster has that shape no placement.
    """
    maker = _Maker(start_ns, goes_on, tuple(mock), ours_decide)
    for manifest in initial:
        maker.begin_with(manifest)
    for record in records:
        maker.take(record)
    maker.read_rest()
    bare = types.Scenario(
        name=name,
        title=title,
        kubernetes_release=release.name,
        feature_gates=release.switched,
        seed=seed,
        start_ns=start_ns,
        scheduler=config,
    )
    scenario = with_plugins(maker.finish(bare))
    scenario = dataclasses.replace(scenario, kept=tuple(without_server_fields(item) for item in kept))
    if traces:
        newest = {trace.number: trace for trace in traces}
        ordered = [newest[number] for number in sorted(newest)]
        decisions = types.Decisions(
            digest=decisions_digest(trace.digest for trace in ordered),
            count=len(ordered),
            engine=ordered[0].engine or ENGINE_VERSION,
            cycles=tuple(cycle_line(trace) for trace in ordered),
        )
        scenario = dataclasses.replace(scenario, decisions=decisions)
    return MadeScenario(scenario, tuple(maker.notes))


@dataclass(slots=True)
class _Input:
    """An input that was written but not yet read by the engine."""

    seq: int
    at_ns: int
    step: types.Step | None


@dataclass(slots=True)
class _Maker:
    start_ns: int
    goes_on: bool = False
    mock: tuple[MockExtender, ...] = ()
    ours_decide: bool = False
    now_ns: int = 0
    notes: list[str] = field(default_factory=list)
    steps: list[types.Step] = field(default_factory=list)
    objects: list[types.Manifest] = field(default_factory=list)
    waiting: list[_Input] = field(default_factory=list)
    cassette: list[RecordedCall] = field(default_factory=list)
    current: dict[types.Key, types.Manifest] = field(default_factory=dict)
    """Every object as the API server has it after the records so far."""
    uids: dict[str, str] = field(default_factory=dict)
    """Uid in the log -> the uid a run gives the object."""
    generations: dict[types.Key, int] = field(default_factory=dict)
    expiry_ns: int | None = None
    posts_bindings: bool = False
    """Whether an extender accepted a pod, so that Bindings are steps as they came, or did not."""
    others: dict[str, None] = field(default_factory=dict)
    """Names by which pods ask for the other schedulers that decided something."""
    workload_uids: set[str] = field(default_factory=set)
    owner_uids: set[str] = field(default_factory=set)
    """Of `objects`: those of workloads, and those of the owners that workloads and pods name."""
    highest_rank: int = 0
    has_workloads: bool = False
    """Of `objects`: the highest `run_rank`, and whether a controller looks after any of them."""
    target_ns: int | None = None
    """Where the last bounded `advance` was going; None where the last step was none."""

    def __post_init__(self) -> None:
        self.now_ns = self.start_ns

    def begin_with(self, manifest: types.Manifest) -> None:
        self.current[types.object_key(manifest)] = manifest
        if not self.goes_on:  # it keeps its uid otherwise, and is there before any step
            self._named_anew(manifest)
            self._comes_in_turn((manifest,))
        self.objects.append(manifest)

    # ---- records

    def take(self, record: LogRecord) -> None:
        payload = record.payload
        if record.kind == "ran":
            self._ran(payload)
        elif record.source == "engine":
            self._outcome(record.kind, payload)
        elif record.kind == "extender":
            self._extender(payload)
        else:
            self.waiting.append(_Input(record.seq, record.at_ns, self._step(record)))

    def _outcome(self, kind: str, payload: Mapping[str, Any]) -> None:
        if kind == "write":
            manifest = payload["manifest"]
            self.current[types.object_key(manifest)] = manifest
        elif kind == "delete":
            self.current.pop((payload["kind"], payload.get("namespace") or "", payload["name"]), None)

    def _extender(self, payload: Mapping[str, Any]) -> None:
        call, answer = payload["call"], payload["answer"]
        pod = call.get("pod") or {}
        key = f"{pod['namespace']}/{pod['name']}" if pod else ""
        self.posts_bindings |= bool(pod)
        text = answer.get("text") or ""
        body: Any = None
        with contextlib.suppress(ValueError):
            body = json.loads(text) if text else None
        place = call.get("extender", 0)
        has_rules = any(extender.extender == place for extender in self.mock)
        self.cassette.append(
            RecordedCall(
                extender=place,
                verb=call["verb"],
                pod=key,
                request=call.get("request", "") if has_rules else "",
                status=answer.get("status") or 0,
                answer=body,
                text="" if body is not None else text,
                error=answer.get("error") or "",
                duration_ns=answer.get("durationNs") or 0,
            )
        )

    def _step(self, record: LogRecord) -> types.Step | None:
        payload = record.payload
        match record.kind:
            case "write":
                return self._write(payload["manifest"], payload.get("by") or "")
            case "delete":
                return self._delete(record)
            case "permit":
                answer = types.PermitAnswer(
                    f"{payload['namespace']}/{payload['name']}",
                    payload.get("plugin") or "",
                    payload.get("reason") or "",
                )
                return (
                    types.Step(allow=answer) if payload["decision"] == "allow" else types.Step(reject=answer)
                )
            case "config":
                if payload.get("release") is not None:
                    release = release_from(payload["release"])
                    return types.Step(upgrade=types.Upgrade(release.name, release.switched))
                default = {"apiVersion": CONFIG_API_VERSION, "kind": CONFIG_KIND}
                return types.Step(configure=payload["document"] or default)
            case "expiry":
                return types.Step(assumed_expiry_ns=int(payload["afterNs"]))
            case "clock" | "undo":
                return None
        self.notes.append(f"record {record.seq} of kind {record.kind} is no input and was left out")
        return None

    def _write(self, manifest: types.Manifest, by: str = "") -> types.Step | None:
        key = types.object_key(manifest)
        if by:
            self.others[str((manifest.get("spec") or {}).get("schedulerName") or "")] = None
        if by and self.ours_decide:
            self.current[key] = manifest
            return None
        if key[0] in KINDS and not is_read(manifest):
            self.notes.append(
                f"{manifest.get('apiVersion')} {key[0]} {key[2]} is not simulated and was left out"
            )
            return None
        before = self.current.get(key)
        self.current[key] = manifest
        if before is None:
            self._named_anew(manifest)
            return types.Step(apply=(manifest,))
        patch = patch_between(without_server_fields(before), without_server_fields(manifest))
        if by and not patch and key[0] == "Pod":
            patch = _said_of_pod(before, manifest)
        if not patch:
            return None
        if (
            key[0] == "Pod"
            and set(patch) <= {"spec", "status"}
            and set(patch.get("spec", {})) == {"nodeName"}
        ):
            return types.Step(bind=types.Binding(f"{key[1]}/{key[2]}", str(patch["spec"]["nodeName"]), by))
        return types.Step(patch=types.Patch(kind=key[0], namespace=key[1], name=key[2], patch=patch, by=by))

    def _delete(self, record: LogRecord) -> types.Step | None:
        payload = record.payload
        key = (str(payload["kind"]), str(payload.get("namespace") or ""), str(payload["name"]))
        by = str(payload.get("by") or "")
        gone = payload.get("gone", True)
        if gone:
            known = self.current.pop(key, None)
        else:
            known = self.current.get(key)
            self.current[key] = payload.get("manifest") or known or {}
        if known is None:
            self.notes.append(f"record {record.seq} deletes {key[0]} {key[1]}/{key[2]}, which is not there")
            return None
        if by and self.ours_decide:
            return None
        if key[0] != "Pod":
            return types.Step(delete=types.Deletion(key[0], key[2], key[1]))
        grace_s = payload.get("gracePeriodSeconds")
        if gone:
            grace_s = 0
        elif grace_s is None:
            ends = ((payload.get("manifest") or {}).get("metadata") or {}).get("deletionTimestamp")
            grace_s = None if ends is None else max(0, (parse_time_ns(ends) - record.at_ns) // 10**9)
        return types.Step(delete=types.Deletion("Pod", key[2], key[1], grace_s, by))

    def _named_anew(self, manifest: types.Manifest) -> None:
        key = types.object_key(manifest)
        generation = self.generations[key] = self.generations.get(key, 0) + 1
        uid = (manifest.get("metadata") or {}).get("uid")
        if uid:
            named = f"{key[1]}/{key[2]}" if key[1] else key[2]
            self.uids[uid] = named if generation == 1 else f"{named}#{generation}"

    # ---- what the engine did with them

    def _ran(self, payload: Mapping[str, Any]) -> None:
        self._read(int(payload["read"]))
        self._called(payload)
        self.now_ns = int(payload["clock_ns"])

    def read_rest(self) -> None:
        """Inputs no run has read: they are the last steps."""
        self._read(2**63)

    def _read(self, seq: int) -> None:
        read = [item for item in self.waiting if item.seq <= seq]
        self.waiting = [item for item in self.waiting if item.seq > seq]
        for item in read:
            if item.at_ns > self.now_ns:
                self._add_advance(item.at_ns - self.now_ns, None)
                self.now_ns = item.at_ns
            if item.step is None:
                continue
            self.target_ns = None
            is_first = not self.goes_on and not self.steps and self.now_ns == self.start_ns
            if item.step.assumed_expiry_ns is not None and is_first:
                self.expiry_ns = item.step.assumed_expiry_ns
            elif item.step.apply is not None and is_first and self._comes_in_turn(item.step.apply):
                self.objects += item.step.apply
            elif item.step.apply is not None and self.steps and self.steps[-1].apply is not None:
                self.steps[-1] = types.Step(apply=(*self.steps[-1].apply, *item.step.apply))
            else:
                self.steps.append(item.step)

    def _comes_in_turn(self, manifests: Iterable[types.Manifest]) -> bool:
        """Whether a run, which sorts its objects by kind, has them do what they did in the order of the log.

        A controller makes pods as soon as its object is there: those of a workload come before or after other pods, and
        a DaemonSet's as the nodes come.
        """
        for manifest in manifests:
            rank = run_rank(types.object_key(manifest)[0])
            if rank >= WORKLOADS_RANK and self._is_related(manifest, rank):
                return False
            after = self.highest_rank > rank >= NODES_RANK
            if after and (rank == WORKLOADS_RANK or self.has_workloads):
                return False
            self.highest_rank = max(self.highest_rank, rank)
            self.has_workloads |= rank == WORKLOADS_RANK
        return True

    def _is_related(self, manifest: types.Manifest, rank: int) -> bool:
        """Whether it is a workload that owns one of `objects`, or one of them owns it: a run would move the owner."""
        uid, owners = uid_of(manifest), owner_uids_of(manifest)
        if not self.workload_uids.isdisjoint(owners):
            return True
        if rank == WORKLOADS_RANK:
            if uid in self.owner_uids:
                return True
            self.workload_uids |= {uid} - {""}
        self.owner_uids.update(owners)
        return False

    def _called(self, payload: Mapping[str, Any]) -> None:
        calls = payload["calls"]
        if not calls:
            return
        name = calls[0][0]
        if name == "step":
            self.target_ns = None
            self.steps += [types.Step(run=types.Run("cycle"))] * len(calls)
            return
        stop = payload.get("stop", "")
        bound: int | None = None
        if stop in ("batch", "budget"):
            bound = sum(call[2] for call in calls)
        elif stop == "call":
            bound = int(payload.get("cycles") or 0)
        if name == "advance":
            self._add_advance(int(calls[0][1]), bound)
            return
        self.target_ns = None
        last = self.steps[-1].run if self.steps else None
        if last is not None and last.until == "idle" and last.cycles is not None:
            self.steps.pop()
            bound = None if bound is None else bound + last.cycles
        self.steps.append(types.Step(run=types.Run("idle", bound)))

    def _add_advance(self, by_ns: int, bound: int | None) -> None:
        """Let time pass; one that goes on where the last one was stopped by its bound is the same one."""
        target_ns = self.now_ns + by_ns
        last = self.steps[-1].advance if self.steps else None
        if last is not None and last.cycles is not None and self.target_ns == target_ns:
            self.steps[-1] = types.Step(
                advance=types.Advance(last.by_ns, None if bound is None else last.cycles + bound)
            )
        elif last is not None and last.cycles is None and bound is None and self.target_ns == self.now_ns:
            self.steps[-1] = types.Step(advance=types.Advance(last.by_ns + by_ns))
        else:
            self.steps.append(types.Step(advance=types.Advance(by_ns, bound)))
        self.target_ns = target_ns

    # ---- the scenario

    def finish(self, scenario: types.Scenario) -> types.Scenario:
        written = [*self.objects, *(manifest for step in self.steps for manifest in step.apply or ())]
        owners = owner_uids(written)
        # Pods whose class is gone or another by now, or that a later default came after.
        bare = ClassesForBarePriorities(names_of_classes(written))

        def cleaned(manifest: types.Manifest) -> types.Manifest:
            bare.now.wrote(manifest)
            own = without_defaults(without_server_fields(manifest, owners), bare.now)
            return bare.explained(own)

        for manifest in self.objects:
            # They are there before the pods, wherever they stand.
            bare.now.wrote(manifest)
        # Where it goes on, all that is asked of them is classes for bare ones.
        bare_ones = (item for item in self.objects if bare.is_bare(item))
        objects = tuple(map(cleaned, bare_ones if self.goes_on else self.objects))
        done = []
        for step in self.steps:
            if step.apply is not None:
                step = dataclasses.replace(step, apply=tuple(cleaned(manifest) for manifest in step.apply))
            elif step.patch is not None and step.patch.kind == "PriorityClass":
                bare.now.patched(step.patch.name, step.patch.patch)
            elif step.delete is not None and step.delete.kind == "PriorityClass":
                bare.now.deleted(step.delete.name)
            done.append(step)
        steps = tuple(done)
        extenders = types.Extenders(mock=self.mock) if self.mock else None
        if self.cassette:
            calls = tuple(
                dataclasses.replace(call, answer=_renamed_uids(call.answer, self.uids, owners))
                for call in self.cassette
            )
            extenders = types.Extenders(self.mock, calls, self.posts_bindings)
        if self.ours_decide:
            ours = _our_name(scenario.scheduler)
            objects = tuple(_asking(manifest, self.others, ours) for manifest in objects)
            steps = tuple(
                step
                if step.apply is None
                else types.Step(apply=tuple(_asking(manifest, self.others, ours) for manifest in step.apply))
                for step in steps
            )
            steps = (*steps, types.Step(run=types.Run("idle")))
        if not steps:
            # Nothing was run: a scenario without steps would run until idle.
            steps = (types.Step(advance=types.Advance(0, 0)),)
        objects = () if self.goes_on else objects
        if bare.made and self.goes_on:
            steps = (types.Step(apply=tuple(bare.made)), *steps)
        elif bare.made:
            objects = (*bare.made, *objects)
        return dataclasses.replace(
            scenario, objects=objects, steps=steps, extenders=extenders, assumed_expiry_ns=self.expiry_ns
        )


def _said_of_pod(before: types.Manifest, after: types.Manifest) -> dict[str, Any]:
    """What another scheduler says of a pod in its status: that it found no node, and where it makes room."""
    old, new = before.get("status") or {}, after.get("status") or {}
    said: dict[str, Any] = {}
    conditions = [
        {name: item[name] for name in ("type", "status", "reason") if name in item}
        for item in new.get("conditions") or ()
        if item.get("type") == "PodScheduled"
    ]
    if conditions and new.get("conditions") != old.get("conditions"):
        said["conditions"] = conditions
    if new.get("nominatedNodeName") != old.get("nominatedNodeName"):
        said["nominatedNodeName"] = new.get("nominatedNodeName")
    return {"status": said} if said else {}


def _our_name(config: types.Manifest | None) -> str:
    """The schedulerName of the profile used for other schedulers: the default one, or the first."""
    profiles = (config or {}).get("profiles") or [{}]
    names = [str(profile.get("schedulerName") or DEFAULT_PROFILE) for profile in profiles]
    return DEFAULT_PROFILE if DEFAULT_PROFILE in names else names[0]


def _asking(manifest: types.Manifest, others: Mapping[str, None], ours: str) -> types.Manifest:
    """A pod, or what makes pods, that asks for our scheduler instead of one of the others."""
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return manifest
    if spec.get("schedulerName") in others:
        spec = {**spec, "schedulerName": ours}
    for name in ("template", "jobTemplate"):
        if isinstance(spec.get(name), Mapping):
            spec = {**spec, name: _asking(spec[name], others, ours)}
    return {**manifest, "spec": spec}


def _renamed_uids(value: Any, uids: Mapping[str, str], kept: frozenset[str]) -> Any:
    if isinstance(value, str):
        return value if value in kept else uids.get(value, value)
    if isinstance(value, Mapping):
        return {key: _renamed_uids(item, uids, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed_uids(item, uids, kept) for item in value]
    return value


_DEFAULTED = prepare({"kind": "Pod", "metadata": {"name": "x"}})["spec"]
_CONTAINER_DEFAULTS = ("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "resources")


def without_defaults(manifest: types.Manifest, classes: KnownClasses) -> types.Manifest:
    """A pod or PodGroup without what defaulting writes into it anyway; other kinds as they are.

    Parameters
    ----------
    classes : KnownClasses
        PriorityClasses there are: a pod that none of them explains keeps its priority and policy and loses the name.
    """
    kind = manifest.get("kind")
    if kind not in ("Pod", "PodGroup") or not isinstance(manifest.get("spec"), Mapping):
        return manifest
    spec = dict(manifest["spec"])
    name, written, _ = written_in(spec)
    agrees = classes.agree(spec)
    if agrees:
        spec.pop("priority", None)
    elif name and written is not None:
        del spec["priorityClassName"]
    if kind == "PodGroup":
        return {**manifest, "spec": spec}
    for key, value in _DEFAULTED.items():
        if key != "priority" and spec.get(key) == value and (agrees or key != "preemptionPolicy"):
            del spec[key]
    if spec.get("tolerations"):
        own = [item for item in spec["tolerations"] if item.get("key") not in TOLERATED_TAINTS]
        if with_default_tolerations({**spec, "tolerations": own})["tolerations"] == spec["tolerations"]:
            spec["tolerations"] = own
        if not spec["tolerations"]:
            del spec["tolerations"]
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec[key] = [_container_without_defaults(item) for item in spec[key]]
    return {**manifest, "spec": spec}


def _container_without_defaults(container: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: value for key, value in container.items() if key not in _CONTAINER_DEFAULTS}
    defaulted = prepare({"kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [bare]}})
    defaults = defaulted["spec"]["containers"][0]
    return {
        key: value
        for key, value in container.items()
        if key not in _CONTAINER_DEFAULTS or defaults.get(key) != value
    }


_SYSTEM_NAMES = {value: name for name, value in SYSTEM_PRIORITY_CLASSES.items()}

Written = tuple[str, int | None, str]
"""Class, priority and preemption policy as a pod spec writes them."""


class KnownClasses:
    """The PriorityClasses there are at one moment, followed from write to write."""

    def __init__(self) -> None:
        self._manifests: dict[str, types.Manifest] = {}
        self._classes = PriorityClasses()

    def wrote(self, manifest: types.Manifest) -> None:
        """An object was written; one of another kind changes nothing."""
        if manifest.get("kind") == "PriorityClass":
            self._manifests[str(manifest["metadata"]["name"])] = manifest
            self._classes = PriorityClasses(map(priority_class_from, self._manifests.values()))

    def patched(self, name: str, patch: types.Manifest) -> None:
        """A class was changed by a merge patch."""
        if name in self._manifests:
            self.wrote(merge_patch(self._manifests[name], patch))

    def deleted(self, name: str) -> None:
        """A class was deleted."""
        if self._manifests.pop(name, None) is not None:
            self._classes = PriorityClasses(map(priority_class_from, self._manifests.values()))

    def of(self, name: str) -> PriorityClass | None:
        """The class of a name."""
        return self._classes.named(name)

    def agree(self, spec: types.Manifest) -> bool:
        """Whether admission takes a pod spec as it is written: class, priority and policy say the same."""
        try:
            self._classes.resolve(spec)
        except ForbiddenObject:
            return False
        return True


def written_in(spec: types.Manifest) -> Written:
    """What a pod spec says of its priority."""
    return spec.get("priorityClassName") or "", spec.get("priority"), spec.get("preemptionPolicy") or ""


class ClassesForBarePriorities:
    """Names a class for every pod whose written priority or policy is no class's, and keeps those it made.

    Parameters
    ----------
    names : iterable of str
        Every class the document or cluster ever has: one that is made is called otherwise.

    Attributes
    ----------
    now : KnownClasses
        Those of the moment an object is written; who walks through the writes keeps it so.
    made : list of dict
        Manifests of the classes there were none of, in order of first use; they are there from the beginning on.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.now = KnownClasses()
        self.made: list[dict[str, Any]] = []
        self._taken = {*names, *SYSTEM_PRIORITY_CLASSES}
        self._own: dict[tuple[int, str], str] = {}

    def is_bare(self, manifest: types.Manifest) -> bool:
        """Whether it is a pod or group whose priority and policy no class explains."""
        spec = manifest.get("spec")
        is_one = manifest.get("kind") in ("Pod", "PodGroup") and isinstance(spec, Mapping)
        return is_one and not self.now.agree(spec or {})

    def explained(self, manifest: types.Manifest) -> types.Manifest:
        """The pod or group with a class; any other object, or one with a class that agrees, is returned unchanged."""
        spec = manifest.get("spec")
        if not isinstance(spec, Mapping) or manifest.get("kind") not in ("Pod", "PodGroup"):
            return manifest
        changed = self._spec(spec)
        return manifest if changed is spec else {**manifest, "spec": changed}

    def _spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        name, written, policy = written_in(spec)
        if self.now.agree(spec) or (name and self.now.of(name) is None):
            # A class that is not there is told when the object is applied.
            return spec
        found = self.now.of(name)
        value, usual = (found.value, found.preemption_policy) if found else (0, PREEMPT_LOWER_PRIORITY)
        if written is not None or not name:
            value = written or 0
        if not isinstance(value, int) or (value > HIGHEST_USER_PRIORITY and value not in _SYSTEM_NAMES):
            # No class may have it, and none did.
            return spec
        kept = {key: item for key, item in spec.items() if key not in ("priority", "preemptionPolicy")}
        return {**kept, "priorityClassName": self._class(value, policy or usual)}

    def _class(self, value: int, policy: str) -> str:
        if value in _SYSTEM_NAMES and policy == PREEMPT_LOWER_PRIORITY:
            return _SYSTEM_NAMES[value]
        if (value, policy) in self._own:
            return self._own[value, policy]
        sign = "minus-" if value < 0 else ""
        own = f"priority-{sign}{abs(value)}" + ("" if policy == PREEMPT_LOWER_PRIORITY else "-never")
        name, number = own, 1
        while name in self._taken:
            number += 1
            name = f"{own}-{number}"
        self._taken.add(name)
        self._own[value, policy] = name
        made = object_of("scheduling.k8s.io/v1", "PriorityClass", {"name": name}, value=value)
        self.made.append(made if policy == PREEMPT_LOWER_PRIORITY else {**made, "preemptionPolicy": policy})
        return name


def names_of_classes(manifests: Iterable[types.Manifest]) -> list[str]:
    """Of every PriorityClass among the objects."""
    return [str(item["metadata"]["name"]) for item in manifests if item.get("kind") == "PriorityClass"]
