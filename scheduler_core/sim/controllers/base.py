"""What every controller is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from scheduler_core.errors import ForbiddenObject, InvalidObject
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release
from scheduler_core.sim.controllers.pod_factory import PodFactory
from scheduler_core.sim.controllers.revisions import keep_revision
from scheduler_core.sim.controllers.workload import Workload, workload_from
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.namespace_limits import RefusedObject
from scheduler_core.sim.pod_index import PodIndex, owner_of
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import Noticed, Stored, World

Key = tuple[str, str]
"""(namespace, name)"""


MOST_TOLD = 25


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


class Controller:
    """Brings the world to what some objects ask for.

    What a controller remembers follows from the objects there are, so that a checkpoint needs none of it; the few that
    remember more give it as `state`.

    Attributes
    ----------
    watches : tuple of str
        Kinds it is told about.
    watches_pods_of : tuple of str
        Kinds of owners of whose pods it is told; with `Pod` in `watches` it is told of all pods.
    timer_names : tuple of str
        `Timer.what` of the timers it sets.
    """

    watches: ClassVar[tuple[str, ...]] = ()
    watches_pods_of: ClassVar[tuple[str, ...]] = ()
    timer_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self.world = context.world
        self.timers = context.timers
        self.pods = context.pods

    def concerns(self, change: Noticed) -> bool:
        """Whether it wants to be told of a change of a kind in `watches`; asked of every pod, so it is short."""
        return True

    def noticed(self, change: Noticed) -> None:
        """An object changed; only remember what to look at."""

    def sync(self) -> bool:
        """Do what is to be done; True when there was anything to look at."""
        return False

    def report(self) -> bool:
        """Write statuses; called when nothing is left to do at this moment. True when anything was written."""
        return False

    def restored(self) -> None:
        """`noticed` was called for every object of a checkpoint, in which nothing was left to do.

        Of pods, sixty thousand perhaps, only for those of `watches_pods_of`: all of them are in `world` and `pods`.
        """

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        """One of our timers has come."""

    def state(self) -> dict[str, Any]:
        """What it remembers that no object tells, JSON-able: hardly any does."""
        return {}

    def restore_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""


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
        self.workloads: dict[Key, Workload] = {}
        self._by_owner: dict[tuple[str, str, str], Key] = {}
        self._to_sync: dict[Key, None] = {}
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
        for stored in (change.old, change.new):
            if stored is not None:
                owner = owner_of(stored.typed)
                key = None if owner is None else self._by_owner.get(owner)
                if key is not None:
                    self.look_at(key)

    def orphan_noticed(self, pod: Pod) -> None:
        """A pod with labels and without a controller came or changed."""
        if self.workloads:
            self._orphaned[pod.namespace] = None

    def _workload_noticed(self, change: Noticed) -> None:
        stored = change.new or change.old
        assert stored is not None
        meta = stored.manifest.get("metadata") or {}
        key = (str(meta.get("namespace") or ""), str(meta.get("name", "")))
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
            self.world.record_event(
                change.new.manifest,
                "Warning",
                "InvalidSpec",
                "Reading",
                str(error),
                f"{self.kind.lower()}-controller",
            )
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

    def key_of_owner(self, owner: tuple[str, str, str] | None) -> Key | None:
        return None if owner is None else self._by_owner.get(owner)

    def restored(self) -> None:
        self._to_sync.clear()
        self._to_report.clear()
        self._orphaned.clear()

    # ---- what is done

    def sync(self) -> bool:
        if self._orphaned:
            self._adopt()
        if not self._to_sync:
            return False
        keys, self._to_sync = list(self._to_sync), {}
        self._n_told.clear()
        for key in keys:
            workload = self.workloads.get(key)
            if workload is None or workload.is_deleted:
                continue
            try:
                self.sync_one(workload)
            except InvalidObject as error:
                self.failed(workload, error)
        return True

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
        self.world.record_event(
            workload.manifest,
            "Warning",
            "FailedCreate",
            "Creating",
            self.not_created.format(pod=refused, owner=workload.name, said=said),
            f"{self.kind.lower()}-controller",
        )

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
            for name in sorted(orphans):
                pod = orphans[name]
                for workload in ours:
                    if (
                        not workload.selector.is_nothing
                        and workload.selector.requirements
                        and workload.selector.matches(pod.labels)
                    ):
                        meta = {**pod.manifest["metadata"]}
                        meta["ownerReferences"] = [*(meta.get("ownerReferences") or ()), workload.reference()]
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
        """An event about one pod of a workload; of a workload with more than `MOST_TOLD` none is told any more.

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

    def tell(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """A Normal event of this controller."""
        component = f"{self.kind.lower().removesuffix('controller')}-controller"
        self.world.record_event(dict(about), "Normal", reason, "", message, component)

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
        self.workloads[(workload.namespace, workload.name)] = replace(workload, manifest=manifest)
