"""StatefulSet: pods with ordinal names, one after the other.

Source: pkg/controller/statefulset/stateful_set_control.go, stateful_set_utils.go, v1.34
Differs: minReadySeconds and maxUnavailable are not
heeded; claims are made and kept (persistentVolumeClaimRetentionPolicy Retain).
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.objects.fields import Document, integer, mapping, mappings, string
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import template_hash
from scheduler_core.sim.controllers.base import Workload, WorkloadController
from scheduler_core.sim.kubelet import remove_pod
from scheduler_core.sim.world import is_ready

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"


class StatefulSetController(WorkloadController):
    """Pods `<name>-0`, `<name>-1`, ...; the next one comes when all before it are ready, unless Parallel."""

    kind: ClassVar[str] = "StatefulSet"
    created: ClassVar[str] = "create Pod {pod} in StatefulSet {owner} successful"
    deleted: ClassVar[str] = "delete Pod {pod} in StatefulSet {owner} successful"
    watches: ClassVar[tuple[str, ...]] = ("StatefulSet", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("StatefulSet",)
    # Source: stateful_pod_control.go recordPodEvent, v1.34
    not_created: ClassVar[str] = "create Pod {pod} in StatefulSet {owner} failed error: {said}"

    def sync_one(self, workload: Workload) -> None:
        self.record_template(workload, _revision(workload))
        pods = self.pods.of_owner(workload.owner).pods
        wanted = _ordinals(workload)
        ordered = string(workload.spec, "podManagementPolicy", "spec") != "Parallel"
        for ordinal in wanted:
            pod = pods.get(f"{workload.name}-{ordinal}")
            if pod is None:
                self._make(workload, ordinal)
                if ordered:
                    return
                continue
            if pod.is_terminal and not pod.is_terminating:
                remove_pod(self.world, pod, "finished, to be made anew")
                return
            if ordered and (pod.is_terminating or not is_ready(pod)):
                return
        surplus = sorted(
            ((ordinal, pod) for pod in pods.values() if (ordinal := _ordinal(workload, pod)) not in wanted),
            key=lambda item: (-item[0], item[1].name),
        )
        for _, pod in surplus:
            if pod.is_terminating:
                if ordered:
                    return
                continue
            self.delete_pod(pod, "scaled down")
            if ordered:
                return
        if not surplus:
            self._update(workload, pods, wanted)

    def refused_name(self, workload: Workload) -> str:
        pods = self.pods.of_owner(workload.owner).pods
        wanted = _ordinals(workload)
        names = (f"{workload.name}-{ordinal}" for ordinal in wanted)
        return next((name for name in names if name not in pods), f"{workload.name}-{wanted.start}")

    def _update(self, workload: Workload, pods: dict[str, Pod], wanted: range) -> None:
        """Replace pods of older templates, the highest ordinal first, one at a time."""
        strategy = mapping(workload.spec, "updateStrategy", "spec")
        if string(strategy, "type", "spec.updateStrategy") == "OnDelete":
            return
        partition = integer(
            mapping(strategy, "rollingUpdate", "spec.updateStrategy"),
            "partition",
            "spec.updateStrategy.rollingUpdate",
        )
        revision = _revision(workload)
        for ordinal in reversed(wanted):
            if ordinal < partition:
                return
            pod = pods.get(f"{workload.name}-{ordinal}")
            if pod is None:
                return
            if pod.labels.get(REVISION_LABEL, revision) != revision and not pod.is_terminating:
                self.delete_pod(pod, "updated")
                return
            if pod.is_terminating or not is_ready(pod):
                return

    def _make(self, workload: Workload, ordinal: int) -> None:
        name = f"{workload.name}-{ordinal}"
        if self.world.get("Pod", workload.namespace, name) is not None:
            return  # another owner's: wait until it is gone
        spec = dict(mapping(workload.template, "spec", "spec.template"))
        claims = self._claims(workload, name)
        if claims:
            others = [
                item
                for _, item in mappings(spec, "volumes", "spec.template.spec")
                if item.get("name") not in claims
            ]
            ours = [
                {"name": claim, "persistentVolumeClaim": {"claimName": named}}
                for claim, named in claims.items()
            ]
            spec["volumes"] = [*others, *ours]
        spec.setdefault("hostname", name)
        if workload.spec.get("serviceName"):
            spec.setdefault("subdomain", workload.spec["serviceName"])
        labels = {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal), REVISION_LABEL: _revision(workload)}
        self.make_pod(workload, labels, name=name, spec=spec)

    def _claims(self, workload: Workload, pod_name: str) -> dict[str, str]:
        """The pod's claims, made where they are missing: template name -> claim name."""
        claims: dict[str, str] = {}
        for path, template in mappings(workload.spec, "volumeClaimTemplates", "spec"):
            meta = mapping(template, "metadata", path)
            name = string(meta, "name", f"{path}.metadata")
            claims[name] = f"{name}-{pod_name}"
            if self.world.get("PersistentVolumeClaim", workload.namespace, claims[name]) is None:
                self.world.create(
                    self._claim(workload, meta, template, claims[name]), "created by its controller"
                )
        return claims

    def _claim(self, workload: Workload, meta: Document, template: Document, name: str) -> dict[str, Any]:
        labels = {
            **(meta.get("labels") or {}),
            **(mapping(workload.spec, "selector", "spec").get("matchLabels") or {}),
        }
        made = {
            **{key: value for key, value in meta.items() if key == "annotations"},
            "name": name,
            "namespace": workload.namespace,
            "uid": self.world.free_uid(self.context.randomness),
            "labels": labels,
        }
        spec = dict(template.get("spec") or {})
        return object_of("v1", "PersistentVolumeClaim", made, spec=spec, status={"phase": "Pending"})

    def status_of(self, workload: Workload) -> dict[str, Any]:
        group = self.pods.of_owner(workload.owner)
        revision = _revision(workload)
        existing = [pod for pod in group.pods.values() if not pod.is_terminal]
        updated = sum(1 for pod in existing if pod.labels.get(REVISION_LABEL, revision) == revision)
        numbers = {"readyReplicas": group.n_ready, "currentReplicas": updated, "updatedReplicas": updated}
        status = workload.status_with(numbers) | {
            "replicas": len(existing),
            "availableReplicas": group.n_ready,
            "updateRevision": f"{workload.name}-{revision}",
            "collisionCount": 0,
        }
        if updated == len(existing) or "currentRevision" not in status:
            status["currentRevision"] = status["updateRevision"]
        return status


def _revision(workload: Workload) -> str:
    return template_hash(workload.template)


def _ordinals(workload: Workload) -> range:
    start = integer(mapping(workload.spec, "ordinals", "spec"), "start", "spec.ordinals")
    return range(start, start + workload.replicas)


def _ordinal(workload: Workload, pod: Pod) -> int:
    prefix, _, number = pod.name.rpartition("-")
    return int(number) if prefix == workload.name and number.isdecimal() else -1
