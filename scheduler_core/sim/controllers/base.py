"""What every controller is."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from scheduler_core.errors import ForbiddenObject, InvalidObject
from scheduler_core.objects import fields
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.meta import Named, ObjectMeta, OwnerReference, object_meta_from, object_of
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import MAX_GENERATED_PREFIX, Randomness, derived_uid, name_suffix
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.admission import RefusedObject, with_gated_condition
from scheduler_core.sim.changes import Act, ControllerRun
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Noticed, Owner, PodIndex, Stored, World, generation_of, owner_of

# --- ControllerRevisions: what templates a StatefulSet or DaemonSet had, for `kubectl rollout history` and `undo`.


KIND = "ControllerRevision"
DEFAULT_HISTORY = 10
HASH_LABEL = "controller-revision-hash"


def revisions_of(world: World, namespace: str, owner_uid: str) -> list[Stored]:
    """The revisions of a workload, oldest first."""
    found = [
        stored
        for stored in world.all(KIND)
        if (meta := stored.manifest["metadata"]).get("namespace") == namespace
        and any(item.get("uid") == owner_uid for item in meta.get("ownerReferences") or ())
    ]
    return sorted(found, key=_number)


def owner_reference(manifest: fields.Document) -> dict[str, Any]:
    """The owner reference of what a controller makes for an object."""
    meta = manifest["metadata"]
    return {
        "apiVersion": str(manifest.get("apiVersion", "")),
        "kind": str(manifest["kind"]),
        "name": str(meta["name"]),
        "uid": str(meta.get("uid", "")),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def keep_revision(world: World, pods: PodIndex, workload: Workload, hash_: str) -> None:
    """Have the newest revision be that of the present template; forget those beyond revisionHistoryLimit.

    Parameters
    ----------
    hash_ : str
        Of the template; its pods carry it as `controller-revision-hash`.
    """
    name = f"{workload.name}-{hash_}"
    history = revisions_of(world, workload.namespace, workload.meta.uid)
    newest = _number(history[-1]) if history else 0
    own = next((item for item in history if item.manifest["metadata"]["name"] == name), None)
    if own is None:
        world.create(_revision(workload, name, hash_, newest + 1), "template recorded")
    elif _number(own) < newest:
        world.put({**own.manifest, "revision": newest + 1}, "template rolled back")
    live = {pod.labels.get(HASH_LABEL) for pod in pods.of_owner(workload.owner).pods.values()}
    limit = max(fields.integer(workload.spec, "revisionHistoryLimit", "spec", DEFAULT_HISTORY), 0)
    past = [
        item
        for item in history
        if item is not own and (item.manifest["metadata"].get("labels") or {}).get(HASH_LABEL) not in live
    ]
    for item in past[: max(len(past) - limit, 0)]:
        world.remove(KIND, workload.namespace, item.manifest["metadata"]["name"], "revision history limit")


def _number(stored: Stored) -> int:
    return int(stored.manifest.get("revision") or 0)


def _revision(workload: Workload, name: str, hash_: str, number: int) -> dict[str, Any]:
    selector: Mapping[str, Any] = fields.mapping(workload.spec, "selector", "spec").get("matchLabels") or {}
    annotations = workload.manifest["metadata"].get("annotations")
    meta: dict[str, Any] = {
        "name": name,
        "namespace": workload.namespace,
        "uid": derived_uid(f"{workload.meta.uid}/{name}"),
        "labels": {**selector, HASH_LABEL: hash_},
        "ownerReferences": [owner_reference(workload.manifest)],
    }
    if annotations:
        meta["annotations"] = dict(annotations)
    data = {"spec": {"template": {**workload.template, "$patch": "replace"}}}
    return object_of("apps/v1", KIND, meta, data=data, revision=number)


# --- What the controllers of workloads read of their objects.


_PERCENT = re.compile(r"([0-9]+)%")
Key = tuple[str, str]
"""(namespace, name)"""


@dataclass(frozen=True, slots=True, eq=False)
class Workload(Named):
    """An object that makes pods from a template.

    Attributes
    ----------
    replicas : int
        `spec.replicas`, 1 where it is not given.
    selector : LabelSelector
        Matches nothing where none is given.
    template : mapping
        `spec.template`.
    """

    manifest: fields.Document
    kind: str
    meta: ObjectMeta
    spec: fields.Document
    replicas: int
    selector: LabelSelector
    template: fields.Document

    @property
    def owner(self) -> Owner:
        """As pods name it."""
        return (self.kind, self.meta.namespace, self.meta.uid)

    @property
    def is_deleted(self) -> bool:
        return self.meta.deletion_ns is not None

    @property
    def place(self) -> Key:
        """Namespace and name."""
        return (self.meta.namespace, self.meta.name)

    def status_with(self, numbers: Mapping[str, int]) -> dict[str, Any]:
        """Its status with other numbers, zeros left out as Go does, and the generation it is about."""
        before = self.manifest.get("status") or {}
        status = {name: value for name, value in before.items() if name not in numbers}
        status |= {name: number for name, number in numbers.items() if number}
        return {**status, "observedGeneration": generation_of(self.manifest)}


def workload_from(manifest: fields.Document) -> Workload:
    """Parse a workload.

    Raises
    ------
    InvalidObject
        Names the field path and value that cannot be read.
    """
    kind = fields.string(manifest, "kind", "")
    spec = fields.mapping(manifest, "spec", "")
    template = fields.mapping(spec, "template", "spec")
    replicas = fields.optional_integer(spec, "replicas", "spec")
    selector = fields.mapping(spec, "selector", "spec")
    if kind == "ReplicationController":
        labels = fields.string_map(spec, "selector", "spec")
        labels = labels or fields.string_map(
            fields.mapping(template, "metadata", "spec.template"), "labels", "spec.template.metadata"
        )
        selector = {"matchLabels": labels}
    try:
        parsed = label_selector_from(selector or None, "spec.selector")
    except fields.SelectorError as error:
        raise InvalidObject("spec.selector", None, str(error)) from error
    return Workload(
        manifest,
        kind,
        object_meta_from(manifest),
        spec,
        1 if replicas is None else max(replicas, 0),
        parsed,
        template,
    )


def resolve_amount(
    document: Mapping[str, Any], key: str, path: str, total: int, default: int, *, round_up: bool
) -> int:
    """A whole number or a percentage of `total`.

    Source: apimachinery/pkg/util/intstr/intstr.go GetScaledValueFromIntOrPercent, v1.34
    """
    value = document.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        if match is None:
            raise InvalidObject(fields.child(path, key), value, "must be a whole number or a percentage")
        product = int(match[1]) * total
        return -(-product // 100) if round_up else product // 100
    return fields.integer(document, key, path)


# --- Makes pods from templates. What pods of one template have in common is admitted and parsed once.


_MAX_PROTOTYPES = 4096


class PodFactory:
    """Creates pods in the world."""

    def __init__(self, world: World, randomness: Randomness) -> None:
        self._world = world
        self._randomness = randomness
        self._prototypes: dict[tuple[int, str, str], tuple[fields.Document, object, Pod]] = {}
        self.adapt: Callable[[Workload, fields.Document], fields.Document | None] | None = None
        """Makes the spec of a workload's new pod another one; None leaves it as the template has it."""

    def free_name(self, namespace: str, prefix: str) -> str:
        """A generated name that no pod of the namespace has."""
        prefix = prefix[:MAX_GENERATED_PREFIX]
        while True:
            name = prefix + name_suffix(self._randomness)
            if self._world.get("Pod", namespace, name) is None:
                return name

    def create(
        self,
        workload: Workload,
        labels: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: fields.Document | None = None,
        reason: str = "created by its controller",
    ) -> Pod:
        """Create one pod.

        Parameters
        ----------
        workload : Workload
            Owner and template.
        labels, annotations : mapping, optional
            Beside the template's.
        name : str, optional
            Generated from the owner's name by default.
        spec : mapping, optional
            In place of the template's spec. Such a pod is read for itself.

        Raises
        ------
        InvalidObject
            The template makes no pod an API server would take.
        """
        template = workload.template
        if self.adapt is not None:
            spec = self.adapt(workload, spec or fields.mapping(template, "spec", "spec.template")) or spec
        template_meta = fields.mapping(template, "metadata", "spec.template")
        all_labels = {
            **fields.string_map(template_meta, "labels", "spec.template.metadata"),
            **(labels or {}),
        }
        meta: dict[str, Any] = {}
        if name is None:
            meta["generateName"] = f"{workload.name}-"
            name = self.free_name(workload.namespace, meta["generateName"])
        meta |= {
            "name": name,
            "namespace": workload.namespace,
            "uid": self._world.free_uid(self._randomness),
            "creationTimestamp": fields.format_seconds(self._world.clock.now_ns),
            "labels": all_labels,
            "ownerReferences": [owner_reference(workload.manifest)],
        }
        all_annotations = {
            **fields.string_map(template_meta, "annotations", "spec.template.metadata"),
            **(annotations or {}),
        }
        if all_annotations:
            meta["annotations"] = all_annotations
        if template_meta.get("finalizers"):
            meta["finalizers"] = template_meta["finalizers"]
        given = copy.copy(spec if spec is not None else fields.mapping(template, "spec", "spec.template"))
        manifest = object_of("v1", "Pod", meta, spec=given, status={"phase": "Pending"})
        # Where a pod gets more than its template says, each is read for itself.
        is_alike = spec is None and not self._world.limits.completes(workload.namespace)
        key = (id(workload.template), workload.namespace, repr(sorted(all_labels.items())))
        prototype = self._prototype(workload, key) if is_alike else None
        if prototype is None:
            made: Pod = self._world.create(manifest, reason).typed
            if is_alike:
                if len(self._prototypes) >= _MAX_PROTOTYPES:
                    self._prototypes.clear()
                # The template is kept with it, so its id cannot come to mean another one.
                self._prototypes[key] = (workload.template, self._world.priority_classes, made)
            return made
        manifest["spec"] = prototype.manifest["spec"]
        manifest = self._world.limits.admitted(manifest)
        if prototype.scheduling_gates:
            manifest = with_gated_condition(manifest, self._world.clock.now_ns)
        api_version = str(workload.manifest.get("apiVersion", ""))
        typed_meta = prototype.meta._replace(
            name=name,
            uid=meta["uid"],
            creation_ns=fields.parse_time_ns(meta["creationTimestamp"]),
            owners=(OwnerReference(api_version, workload.kind, workload.name, workload.meta.uid, True),),
        )
        typed = replace(prototype, manifest=manifest, meta=typed_meta)
        self._world.put(manifest, reason, typed)
        return typed

    def _prototype(self, workload: Workload, key: tuple[int, str, str]) -> Pod | None:
        kept = self._prototypes.get(key)
        if kept is None or kept[0] is not workload.template or kept[1] is not self._world.priority_classes:
            return None
        return kept[2]


MOST_TOLD = 25
MAX_RUNS = 100_000


class ControllerContext:
    """What controllers work with; kube-controller-manager has one of this name, too.

    Attributes
    ----------
    pods : PodIndex
        Already told of a change when controllers are.
    factory : PodFactory
    release : Release
        Whose behaviour they follow.
    """

    def __init__(
        self, world: World, timers: Timers, randomness: Randomness, release: Release = OLDEST
    ) -> None:
        self.world = world
        self.release = release
        self.timers = timers
        self.randomness = randomness
        self.pods = PodIndex()
        self.factory = PodFactory(world, randomness)
        self.runs: list[ControllerRun] = []
        """What controllers decided, to be taken by the simulation's caller; those that follow `MAX_RUNS` are lost."""
        self.n_acts = 0
        """Runs that did something, since the last input."""


class Controller:
    """Brings the world to what some objects ask for.

    It says what it watches (`watches`), when it wakes (a change, or a timer of `timer_names`), and of each run what it
    did and why it did no more (`ran`). What it remembers follows from the objects there are, so that a checkpoint needs
    none of it; the few that remember more give it as `state`.

    Attributes
    ----------
    watches : tuple of str
        Kinds it is told about.
    watches_pods_of : tuple of str
        Kinds of owners of whose pods it is told; with `Pod` in `watches` it is told of all pods.
    timer_names : tuple of str
        `Timer.what` of the timers it sets.
    component : str
        Whom its Events come from.
    remembers : bool
        Whether there may be anything that no object tells; otherwise it is not asked for its state.
    looks_at_pods : bool
        Whether any pod may concern it (`concerns`) while things are as they are, of one with `Pod` in `watches`.
    """

    watches: ClassVar[tuple[str, ...]] = ()
    watches_pods_of: ClassVar[tuple[str, ...]] = ()
    timer_names: ClassVar[tuple[str, ...]] = ()
    component: str = ""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.world = context.world
        self.timers = context.timers
        self.pods = context.pods
        self.remembers, self.looks_at_pods = False, True
        self.reasons: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        """Subject -> why its last run did no more."""
        self._to_sync: dict[Any, None] = {}
        """Keys of the objects to look at, in order of notice."""

    def concerns(self, change: Noticed) -> bool:
        """Whether a change of a kind in `watches` concerns it; asked of every pod, so it is short."""
        return True

    def noticed(self, change: Noticed) -> None:
        """An object changed; only remember what to look at."""

    def sync(self) -> bool:
        """Do what is to be done; True when there was anything to look at."""
        if not self._to_sync:
            return False
        keys, self._to_sync = list(self._to_sync), {}
        for key in keys:
            self.sync_key(key)
        return True

    def sync_key(self, key: Any) -> None:
        """Bring one object that was noticed in order."""

    def ran(self, did: Iterable[Act], why_not: Mapping[str, Mapping[str, Any]], subject: str = "") -> None:
        """Record a run; one that does nothing for the same reasons as the last one is not news.

        Parameters
        ----------
        why_not : mapping of str to mapping
            As `ControllerRun` has it, and JSON-able: it outlasts a checkpoint.
        """
        before, now = self.reasons.get(subject), dict(sorted(why_not.items()))
        acts = tuple(did)
        if not acts and before == now:
            return
        news = tuple(name for name, facts in now.items() if (before or {}).get(name) != facts)
        self.remembers, self.reasons[subject] = True, now
        self.context.n_acts += bool(acts)
        if len(self.context.runs) < MAX_RUNS:
            clock = self.world.clock
            self.context.runs.append(ControllerRun(clock.now_ns, self.component, subject, acts, now, news))

    def tell(
        self, about: Mapping[str, Any], reason: str, message: str, *, action: str = "", type_: str = "Normal"
    ) -> None:
        """Record an Event of this controller."""
        self.world.record_event(about, type_, reason, action, message, self.component)

    def warn(self, about: Mapping[str, Any], reason: str, message: str, *, action: str = "") -> None:
        """Record a Warning event of this controller."""
        self.tell(about, reason, message, action=action, type_="Warning")

    def report(self) -> bool:
        """Write statuses; called when nothing is left to do at this moment. True when anything was written."""
        return False

    def restored(self) -> None:
        """`noticed` was called for every object of a checkpoint, in which nothing was left to do.

        Of pods, sixty thousand perhaps, only for those of `watches_pods_of`: all of them are in `world` and `pods`.
        """
        self._to_sync.clear()

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        """One of our timers has come."""

    def state(self) -> dict[str, Any]:
        """What it remembers that no object tells, JSON-able."""
        return {"reasons": self.reasons} if self.reasons else {}

    def restore_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self.remembers = self.remembers or bool(state)
        self.reasons = dict(state.get("reasons", {}))


class WorkloadController(Controller):
    """Base of the controllers of one kind of workload.

    Attributes
    ----------
    kind : str
    adopts : bool
        Whether pods that match the selector and have no controller are taken in.
    """

    kind: ClassVar[str]
    adopts: ClassVar[bool] = True
    not_created: ClassVar[str] = "Error creating: {said}"
    created: ClassVar[str] = "Created pod: {pod}"
    deleted: ClassVar[str] = "Deleted pod: {pod}"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.component = f"{self.kind.lower().removesuffix('controller')}-controller"
        self.workloads: dict[Key, Workload] = {}
        self._by_owner: dict[tuple[str, str, str], Key] = {}
        self._to_report: dict[Key, None] = {}
        self._orphaned: dict[str, None] = {}
        self._n_told: dict[tuple[str, str, str], int] = {}
        """Owner -> events about its pods in this round, which `pods` does not show yet."""
        self._recorded: dict[tuple[str, str, str], Any] = {}
        """Owner -> the template of which there is a ControllerRevision."""

    # ---- what happens

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Pod":
            self._pod_noticed(change)
        elif change.kind == self.kind:
            self._workload_noticed(change)
        elif change.kind == "PriorityClass":
            # What could not be made may be possible now.
            for key in self.workloads:
                self.look_at(key)
        else:
            self.other_noticed(change)

    def other_noticed(self, change: Noticed) -> None:
        """An object of a kind in `watches` changed that is neither a pod nor a workload of ours."""

    def _pod_noticed(self, change: Noticed) -> None:
        for stored, _ in change.versions:
            self.look_at_owner(owner_of(stored.typed))

    def orphan_noticed(self, pod: Pod) -> None:
        """A pod with labels and without a controller came or changed."""
        if self.workloads:
            self._orphaned[pod.namespace] = None

    def _workload_noticed(self, change: Noticed) -> None:
        key = change.newest.key
        before = self.workloads.get(key)
        if before is not None and change.new is not None and before.manifest is change.new.manifest:
            return  # our own status
        self.workloads.pop(key, None)
        if before is not None:
            self._by_owner.pop(before.owner, None)
            if change.new is None:
                self._recorded.pop(before.owner, None)
        if change.new is None:
            for waiting in (self._to_sync, self._to_report):
                waiting.pop(key, None)
            return
        try:
            workload = workload_from(change.new.manifest)
        except InvalidObject as error:
            self.warn(change.new.manifest, "InvalidSpec", str(error), action="Reading")
            return
        self.workloads[key] = workload
        self._by_owner[workload.owner] = key
        self.look_at(key)
        if self.adopts and self.context.pods.orphans.get(key[0]):
            self._orphaned[key[0]] = None

    def look_again(self, namespace: str) -> bool:
        """What could not be made in a namespace may be possible now; whether there is anything to look at."""
        found = [key for key in self.workloads if key[0] == namespace]
        for key in found:
            self.look_at(key)
        return bool(found)

    def look_at(self, key: Key) -> None:
        """Bring this workload in order, and its status up to date."""
        self._to_sync[key] = None
        self._to_report[key] = None

    def key_of_owner(self, owner: Owner | None) -> Key | None:
        return None if owner is None else self._by_owner.get(owner)

    def look_at_owner(self, owner: Owner | None) -> Key | None:
        """Bring the workload of that owner in order, if it is one of ours; its key."""
        key = self.key_of_owner(owner)
        if key is not None:
            self.look_at(key)
        return key

    def restored(self) -> None:
        super().restored()
        self._to_report.clear()
        self._orphaned.clear()

    # ---- what is done

    def sync(self) -> bool:
        if self._orphaned:
            self._adopt()
        self._n_told.clear()
        return super().sync()

    def sync_key(self, key: Key) -> None:
        workload = self.workloads.get(key)
        if workload is None or workload.is_deleted:
            return
        try:
            self.sync_one(workload)
        except InvalidObject as error:
            self.failed(workload, error)

    def sync_one(self, workload: Workload) -> None:
        """Bring one workload in order."""
        raise NotImplementedError

    def failed(self, workload: Workload, error: InvalidObject) -> None:
        """Nothing can be made of it until something changes."""
        said, refused = str(error), self.refused_name(workload)
        if isinstance(error, RefusedObject):
            refused = error.name
        if isinstance(error, ForbiddenObject):
            said = f'pods "{refused}" is forbidden: {error.reason}'
        message = self.not_created.format(pod=refused, owner=workload.name, said=said)
        self.warn(workload.manifest, "FailedCreate", message, action="Creating")

    def refused_name(self, workload: Workload) -> str:
        """What a pod that could not be made would be called, as far as that is known before it is."""
        return f"{workload.name}-"

    def _adopt(self) -> None:
        """Take in pods that match a selector and have no controller. Source: controller_ref_manager.go, v1.34."""
        namespaces, self._orphaned = list(self._orphaned), {}
        for namespace in namespaces:
            orphans = self.context.pods.orphans.get(namespace)
            if not orphans:
                continue
            ours = [
                item
                for key, item in sorted(self.workloads.items())
                if key[0] == namespace and not item.is_deleted
            ]
            for _, pod in sorted(orphans.items()):
                for workload in ours:
                    if (
                        not workload.selector.is_nothing
                        and workload.selector.requirements
                        and workload.selector.matches(pod.labels)
                    ):
                        meta = {**pod.manifest["metadata"]}
                        owners = (*(meta.get("ownerReferences") or ()), owner_reference(workload.manifest))
                        meta["ownerReferences"] = list(owners)
                        self.world.put_pod(pod, {**pod.manifest, "metadata": meta}, "adopted")
                        break

    def make_pod(self, workload: Workload, labels: Mapping[str, str] | None = None, **how: Any) -> Pod:
        """Make a pod of the template (`PodFactory.create`) and tell of it."""
        pod = self.context.factory.create(workload, labels, **how)
        self._tell(workload, "SuccessfulCreate", self.created, pod.name)
        return pod

    def delete_pod(self, pod: Pod, reason: str) -> None:
        live = self.world.live(pod)
        if live is not None and not live.is_terminating:
            delete_pod(self.world, live, None, reason)
            workload = self.workloads.get(self.key_of_owner(owner_of(pod)) or ("", ""))
            if workload is not None:
                self._tell(workload, "SuccessfulDelete", self.deleted, pod.name)

    def _tell(self, workload: Workload, reason: str, words: str, pod: str) -> None:
        """Record an event of one pod of a workload; after the first `MOST_TOLD` they are dropped.

        Upstream's filter of spam lets so many through at once: client-go tools/record/events_cache.go.
        """
        n_told = self._n_told.get(workload.owner, 0)
        if len(self.pods.of_owner(workload.owner).pods) + n_told >= MOST_TOLD:
            return
        self._n_told[workload.owner] = n_told + 1
        self.tell(workload.manifest, reason, words.format(pod=pod, owner=workload.name))

    def record_template(self, workload: Workload, hash_: str) -> None:
        """Keep a ControllerRevision of the present template; looked for once a template."""
        if self._recorded.get(workload.owner) is workload.template:
            return
        keep_revision(self.world, self.pods, workload, hash_)
        self._recorded[workload.owner] = workload.template

    # ---- what is told

    def report(self) -> bool:
        if not self._to_report:
            return False
        keys, self._to_report = list(self._to_report), {}
        wrote = False
        for key in keys:
            stored = self.world.get(self.kind, *key)
            workload = self.workloads.get(key)
            if stored is None or workload is None or stored.manifest is not workload.manifest:
                continue
            status = self.status_of(workload)
            if status is not None and status != (stored.manifest.get("status") or {}):
                self.write_status(stored, workload, status)
                wrote = True
        return wrote

    def status_of(self, workload: Workload) -> dict[str, Any] | None:
        """What its status should say; None to leave it."""
        return None

    def write_status(self, stored: Stored, workload: Workload, status: Mapping[str, Any]) -> None:
        """Write a status. Our own write is nothing to look at again."""
        manifest = {**stored.manifest, "status": dict(status)}
        typed = stored.typed
        if typed is not None:
            typed = replace(typed, manifest=manifest)
        self.world.put(manifest, "status", typed)
        self.workloads[workload.place] = replace(workload, manifest=manifest)
