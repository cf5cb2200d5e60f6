"""PodDisruptionBudget: how many of a budget's pods may be disrupted now.

A status that came with the manifest stands as it is: a dump of a cluster rarely holds what it was computed from.
A status of our own says so in its condition's message, which is how it is known again.

Source: pkg/controller/disruption/disruption.go, v1.34
Differs: evictions in flight (disruptedPods) are not kept, as they take effect at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.fields import Document, integer, mapping
from scheduler_core.objects.labels import LabelSelector
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.controllers.base import Controller, ControllerContext, Key, resolve_amount
from scheduler_core.sim.world import Noticed, OwnedPods, Owner, condition, generation_of, owner_of

COMPUTED = "computed from the cluster's pods"
DISRUPTION_ALLOWED = "DisruptionAllowed"
_MOST_KEPT = 4096
SCALED_KINDS = ("ReplicationController", "ReplicaSet", "StatefulSet", "Deployment")


class _Budget:
    """A budget and the pods it covers."""

    def __init__(self, manifest: Document, selector: LabelSelector) -> None:
        self.manifest = manifest
        self.selector = selector
        self.covered = OwnedPods()
        self.owners: dict[Owner | None, list[Any]] = {}
        """Owner -> [its name, number of covered pods]."""

    def put(self, pod: Pod) -> None:
        self.take(pod.name)
        self.covered.pods[pod.name] = pod
        self.covered.count(pod, 1)
        reference = pod.meta.controller
        entry = self.owners.setdefault(owner_of(pod), ["" if reference is None else reference.name, 0])
        entry[1] += 1

    def take(self, name: str) -> bool:
        pod = self.covered.pods.pop(name, None)
        if pod is None:
            return False
        self.covered.count(pod, -1)
        owner = owner_of(pod)
        self.owners[owner][1] -= 1
        if not self.owners[owner][1]:
            del self.owners[owner]
        return True


class DisruptionController(Controller):
    """Writes budgets' statuses before the next cycle reads them."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", "PodDisruptionBudget", *SCALED_KINDS)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._budgets: dict[str, dict[str, _Budget]] = {}
        self._covering: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[str, ...]] = {}
        """Namespace and labels -> names of the budgets that select them."""
        self.looks_at_pods = False

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Pod":
            self._pod_noticed(change)
        elif change.kind == "PodDisruptionBudget":
            self._budget_noticed(change)
        else:
            namespace, _ = change.newest.key
            for name, budget in self._budgets.get(namespace, {}).items():
                if budget.owners and (
                    change.old is None
                    or change.new is None
                    or _replicas(change.old.manifest) != _replicas(change.new.manifest)
                ):
                    self._to_sync[(namespace, name)] = None

    def _pod_noticed(self, change: Noticed) -> None:
        pod: Pod = change.newest.typed
        budgets = self._budgets.get(pod.namespace, {})
        key = (pod.namespace, tuple(pod.labels.items()))
        names = self._covering.get(key)
        if names is None:
            if len(self._covering) >= _MOST_KEPT:
                self._covering.clear()
            found = (name for name, budget in budgets.items() if budget.selector.matches(pod.labels))
            names = self._covering[key] = tuple(found)
        if change.old is not None and change.old.typed.labels != pod.labels:
            for name, budget in budgets.items():
                if name not in names and budget.take(pod.name):
                    self._to_sync[(pod.namespace, name)] = None
        for name in names:
            if change.new is not None:
                budgets[name].put(pod)
                self._to_sync[(pod.namespace, name)] = None
            elif budgets[name].take(pod.name):
                self._to_sync[(pod.namespace, name)] = None

    def _budget_noticed(self, change: Noticed) -> None:
        meta = change.newest.typed.meta
        budgets = self._budgets.setdefault(meta.namespace, {})
        self._covering.clear()
        self.looks_at_pods = True
        before = budgets.pop(meta.name, None)
        if change.new is None or not is_computed(change.new.manifest):
            self._to_sync.pop((meta.namespace, meta.name), None)
            return
        selector: LabelSelector = change.new.typed.selector
        budget = _Budget(change.new.manifest, selector)
        if before is not None and before.selector == selector:
            budget.covered, budget.owners = before.covered, before.owners
        elif not selector.is_nothing:
            for other in self.world.all("Pod"):
                if other.typed.namespace == meta.namespace and selector.matches(other.typed.labels):
                    budget.put(other.typed)
        budgets[meta.name] = budget
        self._to_sync[(meta.namespace, meta.name)] = None

    def sync_key(self, key: Key) -> None:
        stored = self.world.get("PodDisruptionBudget", *key)
        budget = self._budgets.get(key[0], {}).get(key[1])
        if stored is None or budget is None or stored.manifest is not budget.manifest:
            return
        status = self._status(budget)
        if status != (stored.manifest.get("status") or {}):
            self.world.put({**stored.manifest, "status": status}, "status")

    def _status(self, budget: _Budget) -> dict[str, Any]:
        healthy = budget.covered.n_ready
        failure = ""
        try:
            expected, desired = self._expected(budget)
        except InvalidObject as error:
            failure, expected, desired = str(error), 0, 0
        allowed = max(healthy - desired, 0) if expected > 0 and not failure else 0
        reason = "SyncFailed" if failure else "SufficientPods" if allowed else "InsufficientPods"
        said = COMPUTED if not failure else f"{COMPUTED}: {failure}"
        generation = generation_of(budget.manifest)
        computed = condition(DISRUPTION_ALLOWED, allowed > 0, reason, said)
        status = self.world.status_with(budget.manifest, {**computed, "observedGeneration": generation})
        return {
            "conditions": status["conditions"],
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation,
        }

    def _expected(self, budget: _Budget) -> tuple[int, int]:
        """(expected pods, healthy ones wanted). Source: disruption.go getExpectedPodCount."""
        spec = mapping(budget.manifest, "spec", "")
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(budget)
            unavailable = resolve_amount(spec, "maxUnavailable", "spec", expected, 0, round_up=True)
            return expected, max(expected - unavailable, 0)
        if isinstance(spec.get("minAvailable"), str):
            expected = self._scale(budget)
            return expected, resolve_amount(spec, "minAvailable", "spec", expected, 0, round_up=True)
        if spec.get("minAvailable") is None:
            return 0, 0  # without a rule nothing is counted, and nothing allowed
        return len(budget.covered.pods), integer(spec, "minAvailable", "spec")

    def _scale(self, budget: _Budget) -> int:
        """How many pods the covered pods' owners want together; pods without an owner do not count.

        Source: disruption.go getExpectedScale
        """
        total = 0
        counted: dict[Owner, None] = {}
        for owner, (name, _) in sorted(
            budget.owners.items(), key=lambda item: (item[0] is not None, item[0] or ())
        ):
            if owner is None:
                continue
            kind, namespace, uid = owner
            stored = self.world.get(kind, namespace, name) if kind in SCALED_KINDS else None
            if stored is None or stored.manifest["metadata"].get("uid") != uid:
                raise InvalidObject("spec", None, f"found no controller to scale by for {kind} {name}")
            for reference in stored.manifest["metadata"].get("ownerReferences") or ():
                if (
                    kind == "ReplicaSet"
                    and reference.get("controller")
                    and reference.get("kind") == "Deployment"
                ):
                    above = self.world.get("Deployment", namespace, str(reference.get("name", "")))
                    if above is not None and above.manifest["metadata"].get("uid") == reference.get("uid"):
                        owner = ("Deployment", namespace, str(reference.get("uid")))
                        stored = above
            if owner not in counted:
                counted[owner] = None
                total += _replicas(stored.manifest)
        return total


def is_computed(manifest: Mapping[str, Any]) -> bool:
    """Whether a budget's status is ours to write: it has none, or one we wrote."""
    status = manifest.get("status") or {}
    if status.get("disruptionsAllowed") is None:
        return True
    found = condition_of(manifest, DISRUPTION_ALLOWED)
    return found is not None and str(found.get("message", "")).startswith(COMPUTED)


def _replicas(manifest: Mapping[str, Any]) -> int:
    value = (manifest.get("spec") or {}).get("replicas")
    return 1 if not isinstance(value, int) else max(value, 0)
