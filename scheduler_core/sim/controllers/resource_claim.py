"""ResourceClaims of pods: made from templates, reserved for pods that came with their node, given back at their end.

Source: pkg/controller/resourceclaim/controller.go, v1.34
Differs: a claim that waits for its template is made as soon as the template is there, not at the next retry.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.objects.meta import object_of
from scheduler_core.objects.pod import Pod
from scheduler_core.randomness import name_suffix
from scheduler_core.sim.changes import Manifest
from scheduler_core.sim.controllers.base import Controller, ControllerContext, Key, owner_reference
from scheduler_core.sim.kubelet import claims_of
from scheduler_core.sim.world import Noticed, Stored, annotations_of

CLAIM, TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
MOST_USERS = 256
"""A claim can be reserved for so many pods."""
FINALIZER = "resource.kubernetes.io/delete-protection"


class ResourceClaimController(Controller):
    """Looks at pods that ask for claims of templates, and at claims whose pods went."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", CLAIM, TEMPLATE)
    component = "resourceclaim-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._pods: dict[Key, None] = {}
        self._claims: dict[Key, None] = {}
        self._without_template: dict[Key, None] = {}
        self._unreserved: dict[Key, None] = {}
        """Pods on a node for which a claim is not reserved: the scheduler never saw them."""
        self._used_by: dict[str, dict[Key, None]] = {}
        """Claims by the uid of a pod that they are reserved for or that owns them."""

    def concerns(self, change: Noticed) -> bool:
        if change.kind != "Pod" or self._used_by:
            return True
        return change.new is not None and bool(change.new.typed.resource_claims)

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Pod":
            self._pod_noticed(change)
        elif change.kind == TEMPLATE:
            self._pods.update(self._without_template)
            self._without_template.clear()
        else:
            for stored, is_new in change.versions:
                self._index(stored, present=is_new)
            if change.new is not None:
                self._claims[change.new.key] = None
                self._pods.update(self._unreserved)

    def restored(self) -> None:
        self._pods.clear()
        self._claims.clear()
        for stored in self.world.all("Pod"):
            pod: Pod = stored.typed
            if not pod.resource_claims or pod.is_terminal:
                continue
            if self._missing(pod):
                self._without_template[pod.namespace, pod.name] = None
            if pod.node_name and self._unreserved_claims(pod):
                self._unreserved[pod.namespace, pod.name] = None

    def sync(self) -> bool:
        if not self._pods and not self._claims:
            return False
        pods, self._pods = list(self._pods), {}
        for key in pods:
            self._make_claims(key)
            self._reserve(key)
        claims, self._claims = list(self._claims), {}
        for key in claims:
            self._clean(key)
        return True

    def _pod_noticed(self, change: Noticed) -> None:
        new: Pod | None = None if change.new is None else change.new.typed
        old: Pod | None = None if change.old is None else change.old.typed
        if new is not None and new.resource_claims and not new.is_terminal:
            self._pods[new.namespace, new.name] = None
        if old is not None and (new is None or new.uid != old.uid or new.is_terminal):
            self._claims.update(self._used_by.get(old.uid, {}))

    def _index(self, stored: Stored, *, present: bool) -> None:
        key = stored.key
        for uid in _users(stored.manifest):
            if present:
                self._used_by.setdefault(uid, {})[key] = None
            elif uid in self._used_by:
                self._used_by[uid].pop(key, None)
                if not self._used_by[uid]:
                    del self._used_by[uid]

    # ---- claims of templates

    def _missing(self, pod: Pod) -> list[Manifest]:
        """The pod's references to templates for which its status names no claim yet."""
        statuses = (pod.manifest.get("status") or {}).get("resourceClaimStatuses") or ()
        named = [status.get("name") for status in statuses]
        return [
            reference
            for reference in pod.resource_claims
            if reference.get("resourceClaimTemplateName") and reference.get("name") not in named
        ]

    def _make_claims(self, key: Key) -> None:
        pod = self.world.pod(*key)
        if pod is None or pod.is_terminal or pod.is_terminating:
            return
        made = []
        for reference in self._missing(pod):
            name = str(reference["name"])
            template = self.world.get(TEMPLATE, pod.namespace, str(reference["resourceClaimTemplateName"]))
            if template is None:
                self._without_template[key] = None
                wanted = reference["resourceClaimTemplateName"]
                said = (
                    f'PodResourceClaim {name}: resource claim template "{wanted}": '
                    f'resourceclaimtemplate.resource.k8s.io "{wanted}" not found'
                )
                self.warn(pod.manifest, "FailedResourceClaimCreation", said, action="Scheduling")
                continue
            claim = self._existing(pod, name) or self._make(pod, name, template.manifest)
            made.append({"name": name, "resourceClaimName": claim})
        if made:
            status = dict(pod.manifest.get("status") or {})
            status["resourceClaimStatuses"] = [*(status.get("resourceClaimStatuses") or ()), *made]
            status.setdefault("phase", "Pending")
            self.world.patch_status(pod, status, "claims made")

    def _existing(self, pod: Pod, name: str) -> str | None:
        """The claim that was made for the pod before, as after a status that was lost."""
        for namespace, claim in self._used_by.get(pod.uid, {}):
            stored = self.world.get(CLAIM, namespace, claim)
            if (
                stored is not None
                and annotations_of(stored.manifest).get(POD_CLAIM_NAME) == name
                and _is_owned(stored.manifest, pod)
            ):
                return claim
        return None

    def _make(self, pod: Pod, name: str, template: Manifest) -> str:
        spec = template.get("spec") or {}
        meta = spec.get("metadata") or {}
        prefix = f"{pod.name}-{name}-"
        full = prefix + name_suffix(self.context.randomness)
        while self.world.get(CLAIM, pod.namespace, full) is not None:
            full = prefix + name_suffix(self.context.randomness)
        labels = meta.get("labels")
        made = {
            "name": full,
            "namespace": pod.namespace,
            "uid": self.world.free_uid(self.context.randomness),
            **({"labels": dict(labels)} if labels else {}),
            "annotations": {**(meta.get("annotations") or {}), POD_CLAIM_NAME: name},
            "ownerReferences": [owner_reference(pod.manifest)],
        }
        version = template.get("apiVersion", "resource.k8s.io/v1")
        claim = object_of(version, CLAIM, made, spec=spec.get("spec") or {})
        self.world.create(claim, "made from its template")
        return full

    # ---- pods that came with their node

    def _unreserved_claims(self, pod: Pod) -> list[Stored]:
        """The pod's claims, as far as they are there, that are not reserved for it."""
        claims = (
            self.world.get(kind, pod.namespace, name)
            for kind, name in sorted(claims_of(pod))
            if kind == CLAIM
        )
        return [
            stored
            for stored in claims
            if stored is not None and pod.uid not in [user.get("uid") for user in _reserved_for(stored)]
        ]

    def _reserve(self, key: Key) -> None:
        """Reserve what is allocated for a pod on a node.

        Source: controller.go syncPod, v1.34
        """
        self._unreserved.pop(key, None)
        pod = self.world.pod(*key)
        if pod is None or not pod.node_name or pod.is_terminal or pod.is_terminating:
            return
        for stored in self._unreserved_claims(pod):
            status = stored.manifest.get("status") or {}
            if status.get("allocation") is None or len(_reserved_for(stored)) >= MOST_USERS:
                self._unreserved[key] = None
                continue
            user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
            status = {**status, "reservedFor": [*_reserved_for(stored), user]}
            self.world.put({**stored.manifest, "status": status}, "reserved for a pod on its node")

    # ---- what is given back

    def _clean(self, key: Key) -> None:
        """Take back reservations of pods that are done; a claim without users is deallocated, a pod's own one goes."""
        stored = self.world.get(CLAIM, *key)
        if stored is None:
            return
        manifest = stored.manifest
        goes = any(self._is_over(owner, key[0]) for owner in _owning_pods(manifest))
        status = dict(manifest.get("status") or {})
        reserved = list(status.get("reservedFor") or ())
        left = [
            user for user in reserved if user.get("resource") != "pods" or not self._is_over(user, key[0])
        ]
        if len(left) < len(reserved):
            self._give_back(manifest, status, left)
        if goes:
            # Deallocated first: that is what schedulers wait for, and what the finalizer waits for.
            self.world.remove(CLAIM, *key, "its pod is done")

    def _give_back(self, manifest: Manifest, status: dict[str, Any], left: list[Any]) -> None:
        status["reservedFor"] = left
        meta = dict(manifest["metadata"])
        if not left:
            del status["reservedFor"]
            status.pop("allocation", None)
            status.pop("devices", None)
            kept = [item for item in meta.get("finalizers") or () if item != FINALIZER]
            meta.pop("finalizers", None)
            if kept:
                meta["finalizers"] = kept
        self.world.put({**manifest, "metadata": meta, "status": status}, "its pods are done")

    def _is_over(self, reference: Manifest, namespace: str) -> bool:
        """Whether the pod of a reservation or owner reference is gone, or will run no longer."""
        pod = self.world.pod(namespace, str(reference.get("name")))
        return pod is None or pod.uid != reference.get("uid") or pod.is_terminal


def _reserved_for(stored: Stored) -> list[Manifest]:
    return list((stored.manifest.get("status") or {}).get("reservedFor") or ())


def _owning_pods(manifest: Manifest) -> list[Manifest]:
    owners = manifest["metadata"].get("ownerReferences") or ()
    return [owner for owner in owners if owner.get("kind") == "Pod" and owner.get("controller")]


def _is_owned(manifest: Manifest, pod: Pod) -> bool:
    return any(owner.get("uid") == pod.uid for owner in _owning_pods(manifest))


def _users(manifest: Manifest) -> list[str]:
    """Uids of pods the claim is reserved for, or that own it."""
    reserved = (manifest.get("status") or {}).get("reservedFor") or ()
    return [str(user.get("uid")) for user in (*reserved, *_owning_pods(manifest))]
