"""A vertical pod autoscaler: pods get the requests that are recommended, in place or by being made again.

Its recommender and its updater are two programs: what the updater applies was recommended at the look before, of use by
then. Pods that controllers make meanwhile get the last recommendation, as its admission does it.

Source: vertical-pod-autoscaler/pkg/updater, pkg/recommender of kubernetes/autoscaler
Differs: a recommendation follows the mean use of now, where the real one follows a decaying histogram; not proved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from scheduler_core.errors import InvalidObject
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import EvictionBudget
from scheduler_core.objects.quantity import quantity_from
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import ControllerContext, Workload
from scheduler_core.sim.controllers.programs import (
    BY_VERTICAL,
    RECREATE,
    VERTICAL,
    ClusterProgram,
    VerticalSettings,
    VerticalTarget,
    read_vertical,
)
from scheduler_core.sim.kubelet import PENDING, delete_pod
from scheduler_core.sim.load import use_of

Document = Mapping[str, Any]
LOOKS: Final = "vertical-pod-autoscaler-looks"
THRESHOLD: Final = 0.1
"""A pod is updated where a request differs by more (`--pod-update-threshold`)."""
TOLERANCE: Final = 0.5
"""Share of a workload's pods that one look evicts (`--eviction-tolerance`)."""
_LEAST_REPLICAS: Final = 2
_NANO: Final = 10**9
Recommended = dict[str, dict[str, str]]
"""Container -> resource -> amount."""


class VerticalPodAutoscaler(ClusterProgram):
    """Resizes pods of workloads."""

    timer_names: ClassVar[tuple[str, ...]] = (LOOKS,)
    annotation: ClassVar[str] = VERTICAL
    component = "vertical-pod-autoscaler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._settings: VerticalSettings | None = None
        self._recommended: dict[str, Recommended] = {}

    def stop(self) -> None:
        self._settings, self._recommended = None, {}
        self.context.factory.adapt = None

    def _begin(self) -> VerticalSettings | None:
        try:
            self._settings = read_vertical(self.text or "")
        except InvalidObject as error:
            self.refused(error)
            return None
        self.context.factory.adapt = self._adapted
        return self._settings

    def act(self, key: tuple[str, ...]) -> None:
        settings = self._settings or self._begin()
        if settings is None:
            return
        self.timers.add(self.world.clock.now_ns + settings.interval_ns, LOOKS)
        pods = self._pods(settings)
        used = use_of(
            [stored.manifest for stored in self.world.all("Pod")],
            self.world.manifest,
            self.world.clock.now_ns,
        )
        did, why_not = list[Act](), dict[str, dict[str, str]]()
        budgets = [EvictionBudget(stored.manifest) for stored in self.world.all("PodDisruptionBudget")]
        for target in settings.targets:
            name, own = _name(target), pods.get(target.workload, [])
            wanted = self._recommended.get(name)
            if own:
                self._recommended[name] = _recommended(target, own, used, settings.margin)
            if wanted is None:
                text = "nothing is recommended yet" if own else "it has no running pods"
                why_not[name] = {"text": text}
                continue
            n_evicted = 0
            for pod in own:
                refused = _is_refused(pod)
                changed = wanted if refused else _changed(pod, wanted)
                if not changed:
                    continue
                if target.mode != RECREATE and not refused:
                    did.append(self._resize(pod, changed))
                elif why := self._held(pod, own, n_evicted, budgets):
                    why_not[f"Pod {pod.key}"] = {"text": why}
                else:
                    n_evicted += 1
                    did.append(self._evict(pod, changed, budgets))
        self.ran(did, why_not)

    def _pods(self, settings: VerticalSettings) -> dict[tuple[str, str, str], list[Pod]]:
        """Running pods by the workload that is theirs, or their owner's."""
        asked = {target.workload for target in settings.targets}
        found: dict[tuple[str, str, str], list[Pod]] = {}
        for stored in self.world.all("Pod"):
            pod: Pod = stored.typed
            owner = pod.meta.controller
            if owner is None or pod.phase != "Running" or pod.is_terminating:
                continue
            workload = self._workload(owner.kind, pod.namespace, owner.name, asked)
            if workload is not None:
                found.setdefault(workload, []).append(pod)
        return found

    def _workload(
        self, kind: str, namespace: str, name: str, asked: set[tuple[str, str, str]]
    ) -> tuple[str, str, str] | None:
        if (kind, namespace, name) in asked:
            return kind, namespace, name
        above = (self.world.manifest(kind, namespace, name) or {"metadata": {}})["metadata"].get(
            "ownerReferences"
        ) or ()
        owner = next((item for item in above if item.get("controller")), None)
        key = None if owner is None else (str(owner["kind"]), namespace, str(owner["name"]))
        return key if key in asked else None

    # ---- updates

    def _resize(self, pod: Pod, changed: Recommended) -> Act:
        self.world.put(
            {**pod.manifest, "spec": _resized(pod.manifest["spec"], changed)},
            "resized by the vertical pod autoscaler",
        )
        self.tell(pod.manifest, "InPlaceResizedByVPA", "Pod was resized in place by VPA Updater.")
        return Act(("resizes ", Mention("Pod", pod.key)), why=_words(pod, changed))

    def _held(self, pod: Pod, own: Sequence[Pod], n_evicted: int, budgets: Sequence[EvictionBudget]) -> str:
        """Why a pod may not be evicted now; empty where it may."""
        if len(own) < _LEAST_REPLICAS:
            return f"its workload has fewer than {_LEAST_REPLICAS} pods"
        if n_evicted >= max(int(len(own) * TOLERANCE), 1):
            return "as many pods of its workload as may be are evicted"
        covering = [budget for budget in budgets if budget.selects(pod)]
        held = len(covering) > 1 or any(budget.left <= 0 for budget in covering)
        return "a disruption budget allows no eviction" if held else ""

    def _evict(self, pod: Pod, changed: Recommended, budgets: Sequence[EvictionBudget]) -> Act:
        for budget in budgets:
            if budget.selects(pod):
                budget.left -= 1
        self.tell(
            pod.manifest, "EvictedByVPA", "Pod was evicted by VPA Updater to apply resource recommendation."
        )
        delete_pod(self.world, pod, None, BY_VERTICAL)
        return Act(("evicts ", Mention("Pod", pod.key)), why=_words(pod, changed), effect="takes")

    def _adapted(self, workload: Workload, spec: Document) -> Document | None:
        """The spec of a new pod as its workload is recommended; None where nothing is."""
        if self._settings is None:
            return None
        by_workload = {target.workload: target for target in self._settings.targets}
        key = self._workload(workload.kind, workload.namespace, workload.name, set(by_workload))
        wanted = None if key is None else self._recommended.get(_name(by_workload[key]))
        return None if wanted is None else _resized(spec, wanted)

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        known = {"recommended": self._recommended} if self._settings is not None else {}
        return {**super().state(), **known}

    def restore_state(self, state: Mapping[str, Any]) -> None:
        super().restore_state(state)
        self.stop()
        if "recommended" in state and self._begin() is not None:
            self._recommended = {name: dict(item) for name, item in state["recommended"].items()}


def _name(target: VerticalTarget) -> str:
    kind, namespace, name = target.workload
    return f"{kind} {namespace}/{name}"


def _recommended(
    target: VerticalTarget, pods: Sequence[Pod], used: Mapping[tuple[str, str], Any], margin: float
) -> Recommended:
    """What each container should ask for: what is given, else the mean use of the pods and the margin."""
    found: Recommended = {}
    for item in pods[0].manifest["spec"].get("containers") or ():
        name = str(item.get("name", ""))
        for resource in target.resources:
            if resource in target.given:
                nano = target.given[resource].nano_value()
            else:
                uses = [
                    used.get((pod.namespace, pod.name), {}).get(name, {}).get(resource, 0) for pod in pods
                ]
                nano = math.ceil(sum(uses) / len(uses) * (1 + margin))
            if resource in target.least:
                nano = max(nano, target.least[resource].nano_value())
            if resource in target.most:
                nano = min(nano, target.most[resource].nano_value())
            if nano:
                found.setdefault(name, {})[resource] = _amount(resource, nano)
    return found


def _amount(resource: str, nano: int) -> str:
    return f"{-(-nano // 10**6)}m" if resource == "cpu" else str(-(-nano // _NANO))


def _changed(pod: Pod, wanted: Recommended) -> Recommended:
    """Of the containers' requests those that are too far from what is recommended."""
    found: Recommended = {}
    for item in pod.manifest["spec"].get("containers") or ():
        name = str(item.get("name", ""))
        has = (item.get("resources") or {}).get("requests") or {}
        for resource, amount in wanted.get(name, {}).items():
            before = quantity_from(has.get(resource, 0)).nano_value()
            if abs(quantity_from(amount).nano_value() - before) > THRESHOLD * before:
                found.setdefault(name, {})[resource] = amount
    return found


def _resized(spec: Document, wanted: Recommended) -> dict[str, Any]:
    """The spec with other requests; limits that are lower are raised to them."""
    containers = []
    for item in spec.get("containers") or ():
        amounts = wanted.get(str(item.get("name", "")), {})
        resources = dict(item.get("resources") or {})
        if amounts:
            resources["requests"] = {**(resources.get("requests") or {}), **amounts}
        if amounts and resources.get("limits"):
            resources["limits"] = {
                name: amounts[name]
                if name in amounts
                and quantity_from(limit).nano_value() < quantity_from(amounts[name]).nano_value()
                else limit
                for name, limit in resources["limits"].items()
            }
        containers.append({**item, "resources": resources} if amounts else item)
    return {**spec, "containers": containers}


def _is_refused(pod: Pod) -> bool:
    """Whether its node has no room for the resize that was asked for."""
    return condition_of(pod.manifest, PENDING) is not None


def _words(pod: Pod, changed: Recommended) -> str:
    several = len(pod.manifest["spec"].get("containers") or ()) > 1
    return ", ".join(
        f"{f'{name}/' if several else ''}{resource}={amount} is recommended"
        for name, amounts in changed.items()
        for resource, amount in amounts.items()
    )
