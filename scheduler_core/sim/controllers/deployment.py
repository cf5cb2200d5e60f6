"""Deployment: one ReplicaSet for each template it ever had, and pods moved from the old ones to the new one.

ReplicaSets that are taken again get a new number, and Deployments tell theirs.

Source: pkg/controller/deployment/{sync,rolling,recreate}.go, util/deployment_util.go, v1.34
Differs: no minReadySeconds, no progress deadline, no rollback; scaling in the middle of a rollout goes to the new
ReplicaSet as far as the surge allows, not to all in proportion; the template hash is another function's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from scheduler_core.objects.fields import Document, boolean, integer, mapping, parse_time_ns, string
from scheduler_core.objects.meta import OwnerReference, condition_of, object_of
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import template_hash
from scheduler_core.sim.controllers import base
from scheduler_core.sim.world import Noticed, Owner, annotations_of, condition, is_ready, owner_of

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
_OWN_NOTES = (
    REVISION,
    HISTORY,
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
)
"""Annotations that a ReplicaSet does not take over from its Deployment."""
DEFAULT_SHARE = "25%"
DEFAULT_HISTORY = 10


def deployment_behind(kind: str, name: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """(kind, name) of the Deployment of a ReplicaSet that ends in its pods' hash; any other owner itself."""
    suffix = f"-{labels.get(HASH_LABEL, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return "Deployment", name.removesuffix(suffix)
    return kind, name


class DeploymentController(base.WorkloadController):
    """Makes a ReplicaSet named `<name>-<template hash>`."""

    kind: ClassVar[str] = "Deployment"
    watches: ClassVar[tuple[str, ...]] = ("ReplicaSet", "Deployment")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("ReplicaSet",)
    adopts: ClassVar[bool] = False

    def __init__(self, context: base.ControllerContext) -> None:
        super().__init__(context)
        self._sets: dict[Owner, dict[str, base.Workload]] = {}
        """ReplicaSets by the Deployment that owns them, then by name."""
        self._deployment_of: dict[Owner, Owner] = {}
        """A ReplicaSet -> its Deployment, as owners."""

    def noticed(self, change: Noticed) -> None:
        if change.kind != "Pod":
            super().noticed(change)
            return
        # Pods belong to ReplicaSets; their Deployments look at how many are ready.
        for stored, _ in change.versions:
            owner = owner_of(stored.typed)
            if owner is not None:
                self.look_at_owner(self._deployment_of.get(owner))

    def other_noticed(self, change: Noticed) -> None:
        if change.kind != "ReplicaSet":
            return
        for stored, is_new in change.versions:
            reference: OwnerReference | None = stored.typed.meta.controller
            if reference is None or reference.kind != self.kind:
                continue
            meta = stored.typed.meta
            deployment = (reference.kind, meta.namespace, reference.uid)
            sets = self._sets.setdefault(deployment, {})
            itself = ("ReplicaSet", meta.namespace, meta.uid)
            if is_new:
                sets[meta.name] = base.workload_from(stored.manifest)
                self._deployment_of[itself] = deployment
            else:
                sets.pop(meta.name, None)
                self._deployment_of.pop(itself, None)
            if not sets:
                del self._sets[deployment]
            self.look_at_owner(deployment)

    def _sets_of(self, workload: base.Workload) -> list[base.Workload]:
        """Its ReplicaSets, oldest first."""
        found = self._sets.get(workload.owner, {})
        return sorted(
            found.values(), key=lambda item: (_revision(item), item.meta.creation_ns or 0, item.name)
        )

    def _set_of_template(self, workload: base.Workload, sets: list[base.Workload]) -> base.Workload | None:
        """The ReplicaSet of the present template, the oldest if there are several.

        Source: deployment_util.go FindNewReplicaSet
        """
        same = [item for item in sets if _same_template(item.template, workload.template)]
        # Not the one of the lowest revision: it is given the highest one, and then the other has the lowest.
        return min(same, key=lambda item: (item.meta.creation_ns or 0, item.name), default=None)

    # ---- bringing it in order

    def sync_one(self, workload: base.Workload) -> None:
        sets = self._sets_of(workload)
        paused = boolean(workload.spec, "paused", "spec")
        new = self._set_of_template(workload, sets)
        if new is None:
            if paused:
                return
            new = self._make_set(workload, sets)
            if new is None:
                return
            sets.append(new)
        old = [item for item in sets if item is not new]
        self._number(workload, new, old)
        if paused:
            self._scale_when_alone(workload, sets)
        elif string(mapping(workload.spec, "strategy", "spec"), "type", "spec.strategy") == "Recreate":
            self._recreate(workload, new, old)
        else:
            self._roll(workload, new, old)
        self._clean_up(workload, old)

    def _number(self, workload: base.Workload, new: base.Workload, old: list[base.Workload]) -> None:
        """The present ReplicaSet has the highest revision, and its Deployment says which; `rollout undo` reads both.

        Source: pkg/controller/deployment/util/deployment_util.go SetNewReplicaSetAnnotations, SetDeploymentRevision
        """
        revision = max(_revision(new), max((_revision(item) for item in old), default=0) + 1)
        stored = self.world.get("ReplicaSet", new.namespace, new.name)
        if stored is not None:
            notes = dict(mapping(stored.manifest["metadata"], "annotations", "metadata"))
            said = notes | _handed_down(workload) | {REVISION: str(revision)}
            if notes.get(REVISION, str(revision)) != str(revision):
                said[HISTORY] = ",".join(filter(None, (notes.get(HISTORY), notes[REVISION])))
            self._annotate(stored.manifest, said)
        of_deployment = mapping(workload.manifest["metadata"], "annotations", "metadata")
        self._annotate(workload.manifest, {**of_deployment, REVISION: str(revision)})

    def _annotate(self, manifest: Document, annotations: Mapping[str, Any]) -> None:
        meta = manifest["metadata"]
        if meta.get("annotations") != annotations:
            self.world.put({**manifest, "metadata": {**meta, "annotations": annotations}}, "numbered")

    def _make_set(self, workload: base.Workload, sets: list[base.Workload]) -> base.Workload | None:
        template = workload.template
        hash_ = template_hash(template)
        name = f"{workload.name}-{hash_}"
        taken = self.world.get("ReplicaSet", workload.namespace, name)
        if taken is not None:
            # Of another owner, or being given up: it is in the way until it is gone.
            return None
        labels = {**(mapping(template, "metadata", "spec.template").get("labels") or {}), HASH_LABEL: hash_}
        selector = dict(mapping(workload.spec, "selector", "spec"))
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hash_}
        template_meta = {**mapping(template, "metadata", "spec.template"), "labels": labels}
        revision = max((_revision(item) for item in sets), default=0) + 1
        strategy = string(mapping(workload.spec, "strategy", "spec"), "type", "spec.strategy")
        replicas = self._room_for_new(workload, sum(item.replicas for item in sets), 0)
        if strategy == "Recreate" and any(self.pods.of_owner(item.owner).pods for item in sets):
            replicas = 0
        desired = {"deployment.kubernetes.io/desired-replicas": str(workload.replicas)}
        meta = {
            "name": name,
            "namespace": workload.namespace,
            "uid": self.world.free_uid(self.context.randomness),
            "labels": labels,
            "annotations": {**desired, REVISION: str(revision)},
            "ownerReferences": [base.owner_reference(workload.manifest)],
            "generation": 1,
        }
        made_of = {**template, "metadata": template_meta}
        spec = {"replicas": replicas, "selector": selector, "template": made_of}
        manifest = object_of("apps/v1", "ReplicaSet", meta, spec=spec, status={"replicas": 0})
        made = base.workload_from(self.world.create(manifest, "rolled out").manifest)
        self._tell_scaled(workload, name, 0, replicas)
        return made

    def _roll(self, workload: base.Workload, new: base.Workload, old: list[base.Workload]) -> None:
        """Source: rolling.go rolloutRolling, reconcileNewReplicaSet, reconcileOldReplicaSets."""
        old_total = sum(item.replicas for item in old)
        new_total = new.replicas
        if new.replicas > workload.replicas:
            new_total = workload.replicas
        elif new.replicas < workload.replicas:
            new_total = self._room_for_new(workload, old_total, new.replicas)
        if new_total != new.replicas:
            self._scale(workload, new, new_total)
        if not old_total:
            return
        _, max_unavailable = self._bounds(workload)
        min_available = workload.replicas - max_unavailable
        new_unavailable = new_total - min(self.pods.of_owner(new.owner).n_ready, new_total)
        may_go = old_total + new_total - min_available - new_unavailable
        if may_go <= 0:
            return
        left: dict[str, int] = {item.name: item.replicas for item in old}
        # Pods that do not run serve no requests: they go first.
        for item in old:
            unhealthy = min(
                item.replicas - min(self.pods.of_owner(item.owner).n_ready, item.replicas), may_go
            )
            left[item.name] -= unhealthy
            may_go -= unhealthy
        ready = sum(min(self.pods.of_owner(item.owner).n_ready, left[item.name]) for item in old)
        ready += min(self.pods.of_owner(new.owner).n_ready, new_total)
        may_go = min(may_go, max(ready - min_available, 0))
        for item in old:
            taken = min(left[item.name], may_go)
            left[item.name] -= taken
            may_go -= taken
            if left[item.name] != item.replicas:
                self._scale(workload, item, left[item.name])

    def _recreate(self, workload: base.Workload, new: base.Workload, old: list[base.Workload]) -> None:
        """All old pods go before the first new one comes. Source: recreate.go."""
        for item in old:
            if item.replicas:
                self._scale(workload, item, 0)
        if any(not pod.is_terminal for item in old for pod in self.pods.of_owner(item.owner).pods.values()):
            return
        if new.replicas != workload.replicas:
            self._scale(workload, new, workload.replicas)

    def _scale_when_alone(self, workload: base.Workload, sets: list[base.Workload]) -> None:
        active = [item for item in sets if item.replicas] or sets[-1:]
        if len(active) == 1 and active[0].replicas != workload.replicas:
            self._scale(workload, active[0], workload.replicas)

    def _room_for_new(self, workload: base.Workload, old_total: int, new_total: int) -> int:
        """How many pods the new ReplicaSet may have now. Source: deployment_util.go NewRSNewReplicas."""
        surge, _ = self._bounds(workload)
        room = workload.replicas + surge - old_total - new_total
        return new_total + max(min(room, workload.replicas - new_total), 0)

    def _bounds(self, workload: base.Workload) -> tuple[int, int]:
        """maxSurge and maxUnavailable as numbers. Source: deployment_util.go ResolveFenceposts."""
        strategy = mapping(workload.spec, "strategy", "spec")
        if string(strategy, "type", "spec.strategy") == "Recreate":
            return 0, workload.replicas
        document = mapping(strategy, "rollingUpdate", "spec.strategy")
        path = "spec.strategy.rollingUpdate"
        both: dict[str, Any] = {"maxSurge": DEFAULT_SHARE, "maxUnavailable": DEFAULT_SHARE}
        both |= {name: value for name, value in document.items() if value is not None}
        surge = base.resolve_amount(both, "maxSurge", path, workload.replicas, 0, round_up=True)
        unavailable = base.resolve_amount(both, "maxUnavailable", path, workload.replicas, 0, round_up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return surge, min(unavailable, workload.replicas)

    def _tell_scaled(self, workload: base.Workload, name: str, before: int, after: int) -> None:
        """Source: pkg/controller/deployment/sync.go scaleReplicaSet, v1.34."""
        if before != after:
            way = "up" if after > before else "down"
            message = f"Scaled {way} replica set {name} from {before} to {after}"
            self.tell(workload.manifest, "ScalingReplicaSet", message)

    def _scale(self, workload: base.Workload, replica_set: base.Workload, replicas: int) -> None:
        stored = self.world.get("ReplicaSet", replica_set.namespace, replica_set.name)
        if stored is not None:
            self.world.scale(stored, replicas, "scaled")
            before = int(stored.manifest["spec"].get("replicas") or 0)
            self._tell_scaled(workload, replica_set.name, before, replicas)

    def _clean_up(self, workload: base.Workload, old: list[base.Workload]) -> None:
        limit = integer(workload.spec, "revisionHistoryLimit", "spec", DEFAULT_HISTORY)
        idle = [item for item in old if not item.replicas and not self.pods.of_owner(item.owner).pods]
        for item in idle[: max(len(idle) - max(limit, 0), 0)]:
            self.world.remove("ReplicaSet", item.namespace, item.name, "revision history limit")

    # ---- status

    def status_of(self, workload: base.Workload) -> dict[str, Any]:
        sets = self._sets_of(workload)
        new = self._set_of_template(workload, sets)
        groups = [self.pods.of_owner(item.owner) for item in sets]
        ready = sum(group.n_ready for group in groups)
        updated = 0 if new is None else self.pods.of_owner(new.owner).n_active
        numbers = {
            "replicas": sum(group.n_active for group in groups),
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(workload.replicas - ready, 0),
        }
        _, max_unavailable = self._bounds(workload)
        enough = ready >= workload.replicas - max_unavailable
        complete = updated == workload.replicas == numbers["replicas"] == ready
        name = new.name if new is not None else ""
        available = ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if not enough:
            available = ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        progressing = ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
        if complete:
            progressing = ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        return self.world.status_with(
            {"status": workload.status_with(numbers)},
            condition("Available", enough, *available),
            condition("Progressing", True, *progressing),
        )


def _same_template(ours: Document, theirs: Document) -> bool:
    return ours.get("spec") == theirs.get("spec") and _bare_meta(ours) == _bare_meta(theirs)


def _bare_meta(template: Document) -> dict[str, Any]:
    meta = {name: value for name, value in (template.get("metadata") or {}).items() if value}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != HASH_LABEL}
    meta.pop("labels", None)
    meta.pop("creationTimestamp", None)
    return {**meta, "labels": labels}


def _handed_down(workload: base.Workload) -> dict[str, Any]:
    """What a ReplicaSet takes over, as the cause of a change."""
    notes = mapping(workload.manifest["metadata"], "annotations", "metadata")
    return {name: value for name, value in notes.items() if name not in _OWN_NOTES}


def _revision(replica_set: base.Workload) -> int:
    try:
        return int(annotations_of(replica_set.manifest).get(REVISION, 0))
    except (TypeError, ValueError):
        return 0


# --- ReplicaSet: keeps so many pods of a template.


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController(base.WorkloadController):
    """A pod that goes away comes back under a new name."""

    kind: ClassVar[str] = "ReplicaSet"
    watches: ClassVar[tuple[str, ...]] = ("ReplicaSet", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("ReplicaSet",)

    def sync_one(self, workload: base.Workload) -> None:
        group = self.pods.of_owner(workload.owner)
        missing = workload.replicas - group.n_active
        if missing > 0:
            for _ in range(missing):
                self.make_pod(workload)
        elif missing < 0:
            for pod in in_order_of_deletion(group.active())[:-missing]:
                self.delete_pod(pod, "scaled down")

    def status_of(self, workload: base.Workload) -> dict[str, Any]:
        group = self.pods.of_owner(workload.owner)
        numbers = {
            "fullyLabeledReplicas": group.n_active,
            "readyReplicas": group.n_ready,
            "availableReplicas": group.n_ready,
        }
        return {**workload.status_with(numbers), "replicas": group.n_active}


class ReplicationControllerController(ReplicaSetController):
    """The same under its older name. Source: pkg/controller/replication/replication_controller.go, v1.34."""

    kind: ClassVar[str] = "ReplicationController"
    watches: ClassVar[tuple[str, ...]] = ("ReplicationController", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("ReplicationController",)


def in_order_of_deletion(pods: list[Pod]) -> list[Pod]:
    """Pods in the order a scale-down takes them: those that serve least first."""
    neighbours = Counter(pod.node_name for pod in pods if pod.node_name)

    def rank(pod: Pod) -> tuple[Any, ...]:
        ready = is_ready(pod)
        return (
            bool(pod.node_name),
            {"Pending": 0, "": 0, "Unknown": 1}.get(pod.phase, 2),
            ready,
            _deletion_cost(pod),
            -neighbours[pod.node_name] if pod.node_name else 0,
            -_ready_since_ns(pod) if ready else 0,
            -(pod.meta.creation_ns or 0),
            pod.name,
        )

    return sorted(pods, key=rank)


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(annotations_of(pod.manifest).get(DELETION_COST, 0))
    except (TypeError, ValueError):
        return 0


def _ready_since_ns(pod: Pod) -> int:
    text = (condition_of(pod.manifest, "Ready") or {}).get("lastTransitionTime")
    try:
        return parse_time_ns(text) if isinstance(text, str) else 0
    except ValueError:
        return 0
