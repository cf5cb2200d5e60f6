"""The API server of a simulated cluster: every object, pods by owner and node, and changes for those who watch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from scheduler_core.clock import Clock
from scheduler_core.errors import require
from scheduler_core.objects.defaults import PriorityClass, PriorityClasses, prepare, priority_class_from
from scheduler_core.objects.fields import format_micro_time, format_seconds
from scheduler_core.objects.kinds import is_read, parse
from scheduler_core.objects.meta import condition_of, uid_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod, resized_as_sums, with_node, with_status
from scheduler_core.randomness import Randomness, object_uid
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.admission import NamespaceLimits, with_default_tolerations, with_gated_condition
from scheduler_core.sim.changes import EventRecorded, Manifest, ObjectDeleted, ObjectWritten, Outcome
from scheduler_core.sim.manifests import Packer

Key = tuple[str, str, str]
"""(kind, namespace, name)"""


WORKLOADS = (
    "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob",
    "HorizontalPodAutoscaler",
)  # fmt: skip
"""Kinds whose changes are no news to a scheduler: what they bring is pods."""


VERSIONED = ("PersistentVolume", "PersistentVolumeClaim")
"""Kinds of which the scheduler tells versions apart: what the cluster writes gets a version of its own."""


class Stored(NamedTuple):
    """An object as the API server holds it."""

    manifest: Manifest
    typed: Any
    """Parsed, for kinds the scheduler reads; None for all others."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return key_of(self.manifest)


class Noticed(NamedTuple):
    """A change not sent to watchers yet."""

    kind: str
    old: Stored | None
    new: Stored | None

    @property
    def newest(self) -> Stored:
        """The object after the change; before it where it was deleted."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def versions(self) -> list[tuple[Stored, bool]]:
        """The object before and after the change, each where it exists, and whether it is the one after."""
        return [(item, item is self.new) for item in (self.old, self.new) if item is not None]


class World:
    """Objects by kind, namespace and name, in order of creation.

    Parameters
    ----------
    default_tolerations : bool
    release : Release
        Whose API server it is.

    Attributes
    ----------
    noticed : deque of Noticed
        Changes in order; the simulation tells the scheduler and the controllers.
    outcomes : list of Outcome
        What the cluster itself did; taken by the simulation's caller.
    changes : int
        Counts changes of any kind: "no cluster event since" is this number standing still.
    """

    def __init__(self, clock: Clock, *, default_tolerations: bool = False, release: Release = OLDEST) -> None:
        self.clock = clock
        self.release = release
        self._sums_resized = release.has("ResizedPodsSummed")
        self._default_tolerations = default_tolerations
        self.cycle = 0
        self.changes = 0
        self.noticed: deque[Noticed] = deque()
        self.outcomes: list[Outcome] = []
        self.watcher: Callable[[str, Stored | None, Stored | None], None] | None = None
        """Told of each change at once, kind, old and new; changes nothing."""
        self._objects: dict[str, dict[tuple[str, str], Stored]] = {}
        self._priority_classes: PriorityClasses | None = None
        self._packer = Packer()
        self._given_uids: set[str] | None = None
        """Uids of objects from outside, of all after a checkpoint; None before they are asked for."""
        self._n_events = 0
        self._n_versions = 0
        self.limits = NamespaceLimits(
            lambda kind: (stored.manifest for stored in self._objects.get(kind, {}).values()),
            lambda: (stored.manifest for stored in self.everything()),
        )

    # ---- reading

    def get(self, kind: str, namespace: str, name: str) -> Stored | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def manifest(self, kind: str, namespace: str, name: str) -> Manifest | None:
        stored = self.get(kind, namespace, name)
        return None if stored is None else stored.manifest

    def all(self, kind: str) -> list[Stored]:
        return list(self._objects.get(kind, {}).values())

    def pod(self, namespace: str, name: str) -> Pod | None:
        stored = self.get("Pod", namespace, name)
        return None if stored is None else stored.typed

    def node(self, name: str) -> Node | None:
        stored = self.get("Node", "", name)
        return None if stored is None else stored.typed

    def live(self, pod: Pod) -> Pod | None:
        """The present version of a pod, None when it is gone (a new pod of the same name is another)."""
        found = self.pod(pod.namespace, pod.name)
        return found if found is not None and found.uid == pod.uid else None

    def everything(self) -> Iterator[Stored]:
        """Every object, kind by kind in alphabetical order, in order of creation."""
        for kind in sorted(self._objects):
            yield from self._objects[kind].values()

    @property
    def priority_classes(self) -> PriorityClasses:
        if self._priority_classes is None:
            classes: list[PriorityClass] = [
                priority_class_from(stored.manifest) for stored in self.all("PriorityClass")
            ]
            self._priority_classes = PriorityClasses(classes)
        return self._priority_classes

    def status_with(self, manifest: Manifest, *conditions: Mapping[str, Any]) -> dict[str, Any]:
        """An object's status with some conditions set now; one whose status stays keeps its lastTransitionTime."""
        status = dict(manifest.get("status") or {})
        now = format_seconds(self.clock.now_ns)
        found = {item.get("type"): item for item in status.get("conditions") or ()}
        for condition in conditions:
            stamped = {**condition, "lastTransitionTime": now}
            before = found.get(condition["type"], {})
            if before.get("status") == condition.get("status"):
                stamped["lastTransitionTime"] = before.get("lastTransitionTime") or now
            found[condition["type"]] = stamped
        status["conditions"] = [*found.values()]
        return status

    # ---- writing

    def put(self, manifest: Manifest, reason: str | None = None, typed: Any = None) -> Stored:
        """Create or replace an object.

        Parameters
        ----------
        manifest : mapping
            Prepared.
        reason : str, optional
            Why the cluster itself writes it; None for a person's write, which is no outcome.
        typed : object, optional
            The parsed object where the caller has it already.
        """
        kind = str(manifest.get("kind", ""))
        if reason is not None and kind in VERSIONED:
            self._n_versions += 1
            version = f"engine-{self._n_versions}"
            manifest = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}
        key = key_of(manifest)
        if typed is None and is_read(manifest):
            typed = parse(manifest).typed
        if self._sums_resized and isinstance(typed, Pod):
            typed = resized_as_sums(typed)
        stored = Stored(manifest, typed)
        self._store(kind, key, stored, reason)
        if reason is None and self._given_uids is not None:
            self._given_uids.add(uid_of(manifest))
        return stored

    def free_uid(self, randomness: Randomness) -> str:
        """A drawn uid that no object has: those of another run of the same seed may have come from outside."""
        if self._given_uids is None:
            self._given_uids = {uid_of(stored.manifest) for stored in self.everything()}
        while (uid := object_uid(randomness)) in self._given_uids:
            pass
        return uid

    def _store(self, kind: str, key: tuple[str, str], stored: Stored, reason: str | None) -> None:
        objects = self._objects.setdefault(kind, {})
        old = objects.get(key)
        objects[key] = stored
        self._note(kind, old, stored)
        if reason is not None:
            self.outcomes.append(ObjectWritten(self.clock.now_ns, self.cycle, stored.manifest, reason))

    def create(self, manifest: Manifest, reason: str) -> Stored:
        """Create an object as the API server would: defaults, priority, creation time, limits of its namespace.

        Raises
        ------
        InvalidObject
        """
        meta = {**manifest["metadata"], "creationTimestamp": format_seconds(self.clock.now_ns)}
        prepared = prepare({**manifest, "metadata": meta}, self.priority_classes)
        if self._default_tolerations and prepared["kind"] == "Pod":
            prepared["spec"] = with_default_tolerations(prepared["spec"])
        prepared = self.limits.admitted(prepared)
        if prepared["kind"] == "Pod":
            prepared = with_gated_condition(prepared, self.clock.now_ns)
        return self.put(prepared, reason)

    def patch_status(self, pod: Pod, status: Mapping[str, Any], reason: str, *, counts: bool = True) -> Pod:
        """Replace a pod's status; `counts` says whether that is a change others may take as news."""
        if not counts:
            self.changes -= 1
        return self.put_pod(pod, {**pod.manifest, "status": dict(status)}, reason)

    def put_pod(self, pod: Pod, manifest: Manifest, reason: str | None) -> Pod:
        """Replace a pod by a version that differs in metadata or status only."""
        typed = with_status(pod, manifest)
        self._store("Pod", (pod.namespace, pod.name), Stored(manifest, typed), reason)
        return typed

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> str | None:
        """Post a Binding; returns the API server's refusal, None when it is done."""
        live = self.pod(namespace, name)
        if live is None or live.uid != uid:
            return f'pods "{name}" not found'
        if live.is_terminating:
            return f"pod {name} is being deleted, cannot be assigned to a host"
        if live.node_name:
            return (
                f'Operation cannot be fulfilled on pods/binding "{name}": '
                f'pod {name} is already assigned to node "{live.node_name}"'
            )
        status = self.status_with(live.manifest, {"type": "PodScheduled", "status": "True"})
        if "nominatedNodeName" in status and self.release.gate("ClearingNominatedNodeNameAfterBinding"):
            del status["nominatedNodeName"]
        spec = {**live.manifest["spec"], "nodeName": node_name}
        manifest = {**live.manifest, "spec": spec, "status": status}
        self._store("Pod", (namespace, name), Stored(manifest, with_node(live, node_name, manifest)), "bound")
        return None

    def remove(self, kind: str, namespace: str, name: str, reason: str | None = None) -> bool:
        """Remove an object; False when it is not there."""
        old = self._objects.get(kind, {}).pop((namespace, name), None)
        if old is None:
            return False
        self._note(kind, old, None)
        if self._given_uids:
            self._given_uids.discard(uid_of(old.manifest))
        if reason is not None:
            self.outcomes.append(
                ObjectDeleted(
                    self.clock.now_ns,
                    self.cycle,
                    str(old.manifest.get("apiVersion", "")),
                    kind,
                    namespace,
                    name,
                    reason,
                )
            )
        return True

    def scale(self, stored: Stored, replicas: int, reason: str) -> None:
        """Write `spec.replicas` of a workload, which is a new generation of it."""
        meta = {**stored.manifest["metadata"], "generation": generation_of(stored.manifest) + 1}
        spec = {**stored.manifest["spec"], "replicas": replicas}
        self.put({**stored.manifest, "metadata": meta, "spec": spec}, reason)

    def record_event(
        self,
        about: Manifest,
        type_: str,
        reason: str,
        action: str,
        message: str,
        component: str,
        *,
        related: Manifest | None = None,
    ) -> None:
        """Record a v1 Event about an object, and another one it has to do with."""
        self._n_events += 1
        now_ns = self.clock.now_ns
        now = format_seconds(now_ns)
        meta = about["metadata"]
        name, namespace = str(meta["name"]), str(meta.get("namespace") or "default")
        manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{name}.{self._n_events:016x}",
                "namespace": namespace,
                "creationTimestamp": now,
            },
            "involvedObject": _reference(about),
            "type": type_,
            "reason": reason,
            "action": action,
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "eventTime": format_micro_time(now_ns),
            "count": 1,
            "reportingComponent": component,
            "reportingInstance": component,
            "source": {"component": component},
        }
        if related is not None:
            fields = list(manifest.items())
            fields.insert(fields.index(("type", type_)), ("related", _reference(related)))
            manifest = dict(fields)
        self.outcomes.append(EventRecorded(now_ns, self.cycle, manifest))

    def _note(self, kind: str, old: Stored | None, new: Stored | None) -> None:
        if kind not in WORKLOADS:
            self.changes += 1
        if kind == "PriorityClass":
            self._priority_classes = None
        self.limits.changed(kind, old and old.manifest, new and new.manifest)
        self.noticed.append(Noticed(kind, old, new))
        if self.watcher is not None:
            self.watcher(kind, old, new)

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        return {
            "cycle": self.cycle,
            "changes": self.changes,
            "nEvents": self._n_events,
            "nVersions": self._n_versions,
            "manifests": self._packer.pack(stored.manifest for stored in self.everything()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned; no events are sent of these objects."""
        of_kind = self._objects
        for manifest, typed in self._packer.unpack(state["manifests"]):
            kind = manifest["kind"]
            if kind not in of_kind:
                of_kind[kind] = {}
            of_kind[kind][key_of(manifest)] = Stored(manifest, typed)
        self._priority_classes = self._given_uids = None
        self.limits.changed("LimitRange", None, None)
        self.cycle = state["cycle"]
        self.changes = state["changes"]
        self._n_events = state["nEvents"]
        self._n_versions = state["nVersions"]


def key_of(manifest: Manifest) -> tuple[str, str]:
    """Namespace and name of an object."""
    meta = manifest.get("metadata") or {}
    return str(meta.get("namespace") or ""), str(meta.get("name", ""))


def condition(type_: str, holds: bool, reason: str, message: str = "") -> dict[str, str]:
    """A condition without its time (`World.status_with`)."""
    found = {"type": type_, "status": str(holds), "reason": reason, "message": message}
    return found if message else {name: value for name, value in found.items() if name != "message"}


def generation_of(manifest: Manifest) -> int:
    """Which version of its spec an object has."""
    return int((manifest.get("metadata") or {}).get("generation") or 1)


def annotations_of(manifest: Manifest) -> Mapping[str, Any]:
    """Annotations of an object; none are an empty mapping."""
    found: Mapping[str, Any] = (manifest.get("metadata") or {}).get("annotations") or {}
    return found


def _reference(about: Manifest) -> dict[str, str]:
    """An ObjectReference to an object of a namespace."""
    meta = about["metadata"]
    return {
        "apiVersion": str(about.get("apiVersion", "v1")),
        "kind": str(about.get("kind", "Pod")),
        "namespace": str(meta.get("namespace") or "default"),
        "name": str(meta["name"]),
        "uid": str(meta.get("uid", "")),
    }


# ---- Pods by who owns them and by the node they are on, counted as they change: no controller ever scans all pods

Owner = tuple[str, str, str]
"""(kind, namespace, uid): a uid alone may be derived from the name, and so shared by two kinds."""


class OwnedPods:
    """The pods of one owner.

    Attributes
    ----------
    pods : dict of str to Pod
        By name; the order means nothing.
    n_active : int
        Neither finished nor being deleted.
    n_ready : int
        Active ones whose Ready condition is true.
    """

    __slots__ = ("n_active", "n_ready", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.n_active = 0
        self.n_ready = 0

    def count(self, pod: Pod, by: int) -> None:
        if is_active(pod):
            self.n_active += by
            self.n_ready += by * is_ready(pod)

    def active(self) -> list[Pod]:
        """Active pods by name."""
        return [self.pods[name] for name in sorted(self.pods) if is_active(self.pods[name])]


NO_PODS = OwnedPods()
"""For owners without pods; never written to."""

_NONE_THERE: Mapping[str, Pod] = {}


class PodIndex:
    """Every pod of the cluster, found by owner or node.

    Attributes
    ----------
    orphans : dict of str to dict
        Namespace -> name -> pods without a controller.
    """

    def __init__(self) -> None:
        self._by_owner: dict[Owner, OwnedPods] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self.orphans: dict[str, dict[str, Pod]] = {}

    def of_owner(self, owner: Owner) -> OwnedPods:
        return self._by_owner.get(owner, NO_PODS)

    def on_node(self, node_name: str) -> Mapping[str, Pod]:
        """Pods by `namespace/name`; the order means nothing."""
        return self._by_node.get(node_name, _NONE_THERE)

    def noticed(self, change: Noticed) -> tuple[Owner | None, Owner | None]:
        """A pod changed; returns its owner before and after."""
        old: Pod | None = None if change.old is None else change.old.typed
        new: Pod | None = None if change.new is None else change.new.typed
        old_owner = None if old is None else owner_of(old)
        if old is not None:
            if old_owner is None:
                self.orphans.get(old.namespace, {}).pop(old.name, None)
            elif new is None or old_owner != owner_of(new):
                self._disown(old_owner, old.name)
            if old.node_name and (new is None or new.node_name != old.node_name):
                self._leave(old.node_name, old.key)
        return old_owner, None if new is None else self.put(new)

    def put(self, pod: Pod) -> Owner | None:
        """A pod came, or has another version with the same owner and node; returns its owner."""
        owner = owner_of(pod)
        if owner is None:
            self.put_orphan(pod)
            return None
        self._own(owner, pod.meta.name, pod)
        if pod.node_name:
            self._by_node.setdefault(pod.node_name, {})[pod.key] = pod
        return owner

    def put_orphan(self, pod: Pod) -> None:
        """`put` of a pod without an owner."""
        meta, node_name = pod.meta, pod.node_name
        if is_active(pod):
            if meta.namespace not in self.orphans:
                self.orphans[meta.namespace] = {}
            self.orphans[meta.namespace][meta.name] = pod
        if node_name:
            if node_name not in self._by_node:
                self._by_node[node_name] = {}
            self._by_node[node_name][f"{meta.namespace}/{meta.name}"] = pod

    def validate(self, pods: Iterable[Pod]) -> None:
        """Check that the index holds these pods, the cluster's, and counts them as counting afresh would."""
        afresh = PodIndex()
        for pod in pods:
            afresh.put(pod)
        names = OwnedPods.__slots__
        ours, theirs = (
            {owner: [getattr(group, name) for name in names] for owner, group in index._by_owner.items()}
            for index in (self, afresh)
        )
        require(
            self,
            pods_are_found_and_counted_by_owner=ours == theirs,
            pods_are_found_by_node=self._by_node == afresh._by_node,
            orphans_are_known={name: kept for name, kept in self.orphans.items() if kept} == afresh.orphans,
        )

    def _own(self, owner: Owner, name: str, pod: Pod) -> None:
        group = self._by_owner.get(owner)
        if group is None:
            group = self._by_owner[owner] = OwnedPods()
        before = group.pods.get(name)
        if before is not None:
            group.count(before, -1)
        group.pods[name] = pod
        group.count(pod, 1)

    def _disown(self, owner: Owner, name: str) -> None:
        group = self._by_owner.get(owner)
        before = None if group is None else group.pods.pop(name, None)
        if group is None or before is None:
            return
        group.count(before, -1)
        if not group.pods:
            del self._by_owner[owner]

    def _leave(self, node_name: str, key: str) -> None:
        pods = self._by_node.get(node_name)
        if pods is not None and pods.pop(key, None) is not None and not pods:
            del self._by_node[node_name]


def owner_of(pod: Pod) -> Owner | None:
    """Who controls the pod."""
    if not pod.meta.owners:
        return None
    reference = pod.meta.controller
    return None if reference is None else (reference.kind, pod.namespace, reference.uid)


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted. Source: pkg/controller/controller_utils.go IsPodActive, v1.34."""
    return not pod.is_terminal and pod.meta.deletion_ns is None


def is_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is true."""
    condition = condition_of(pod.manifest, "Ready")
    return condition is not None and condition.get("status") == "True"
