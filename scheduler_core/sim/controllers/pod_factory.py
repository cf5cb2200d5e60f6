"""Makes pods from templates. What pods of one template have in common is admitted and parsed once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduler_core.objects.fields import Document, format_seconds, mapping, parse_time_ns, string_map
from scheduler_core.objects.meta import OwnerReference
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import Randomness
from scheduler_core.sim.admission import with_gated_condition
from scheduler_core.sim.controllers.workload import Workload
from scheduler_core.sim.identities import MAX_GENERATED_PREFIX, name_suffix, object_uid
from scheduler_core.sim.world import World

_MAX_PROTOTYPES = 4096


class PodFactory:
    """Creates pods in the world."""

    def __init__(self, world: World, randomness: Randomness) -> None:
        self._world = world
        self._randomness = randomness
        self._prototypes: dict[tuple[int, str, str], tuple[Document, object, Pod]] = {}

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
        spec: Document | None = None,
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
        template_meta = mapping(template, "metadata", "spec.template")
        all_labels = {**string_map(template_meta, "labels", "spec.template.metadata"), **(labels or {})}
        meta: dict[str, Any] = {}
        if name is None:
            meta["generateName"] = f"{workload.name}-"
            name = self.free_name(workload.namespace, meta["generateName"])
        meta |= {
            "name": name,
            "namespace": workload.namespace,
            "uid": object_uid(self._randomness),
            "creationTimestamp": format_seconds(self._world.clock.now_ns),
            "labels": all_labels,
            "ownerReferences": [workload.reference()],
        }
        all_annotations = {
            **string_map(template_meta, "annotations", "spec.template.metadata"),
            **(annotations or {}),
        }
        if all_annotations:
            meta["annotations"] = all_annotations
        if template_meta.get("finalizers"):
            meta["finalizers"] = template_meta["finalizers"]
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": copy.copy(spec if spec is not None else mapping(template, "spec", "spec.template")),
            "status": {"phase": "Pending"},
        }
        if spec is not None:
            stored = self._world.create(manifest, reason)
            made: Pod = stored.typed
            return made
        prototype = None
        if not self._completed(workload.namespace):
            prototype = self._prototype(workload, manifest, repr(sorted(all_labels.items())))
        if prototype is None:
            stored = self._world.create(manifest, reason)
            made = stored.typed
            if not self._completed(workload.namespace):
                self._keep(workload, repr(sorted(all_labels.items())), made)
            return made
        manifest["spec"] = prototype.manifest["spec"]
        manifest = self._world.limits.admitted(manifest)
        if prototype.scheduling_gates:
            manifest = with_gated_condition(manifest, self._world.clock.now_ns)
        reference = workload.reference()
        typed_meta = prototype.meta._replace(
            name=name,
            uid=meta["uid"],
            creation_ns=parse_time_ns(meta["creationTimestamp"]),
            owners=(
                OwnerReference(
                    reference["apiVersion"], workload.kind, workload.name, workload.meta.uid, True
                ),
            ),
        )
        typed = replace(prototype, manifest=manifest, meta=typed_meta)
        self._world.put(manifest, reason, typed)
        return typed

    def _completed(self, namespace: str) -> bool:
        """Whether a pod gets more there than its template says: such ones are read one by one."""
        return self._world.limits.completes(namespace)

    def _prototype(self, workload: Workload, manifest: Mapping[str, Any], labels: str) -> Pod | None:
        kept = self._prototypes.get((id(workload.template), workload.namespace, labels))
        if kept is None or kept[0] is not workload.template or kept[1] is not self._world.priority_classes:
            return None
        return kept[2]

    def _keep(self, workload: Workload, labels: str, pod: Pod) -> None:
        if len(self._prototypes) >= _MAX_PROTOTYPES:
            self._prototypes.clear()
        # The template is kept with it, so its id cannot come to mean another one.
        key = (id(workload.template), workload.namespace, labels)
        self._prototypes[key] = (workload.template, self._world.priority_classes, pod)
