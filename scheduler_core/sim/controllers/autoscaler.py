"""HorizontalPodAutoscaler: as many replicas as the load on a workload's pods asks for, looked at every 15 s.

The load is a curve (`sim/load.py`); no other metrics are served.

Source: pkg/controller/podautoscaler/horizontal.go, v1.34
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, ClassVar, Final

from scheduler_core.clock import SECOND_NS
from scheduler_core.errors import InvalidObject
from scheduler_core.objects import fields
from scheduler_core.objects.labels import LabelSelector, label_selector_from
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.quantity import QuantityError, quantity_from
from scheduler_core.sim.changes import Act, Mention
from scheduler_core.sim.controllers.base import Controller, ControllerContext, Key
from scheduler_core.sim.load import LOAD, Use, use_of_likes
from scheduler_core.sim.world import Noticed, Stored, annotations_of, condition, generation_of

SYNC = "autoscaler-syncs"
KIND = "HorizontalPodAutoscaler"
PERIOD_S = 15
STABILIZATION_S = 300
TOLERANCE = 0.1
SCALED: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_FOREVER_NS: Final = 10**18
_DEFAULT_POLICIES: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "scaleUp": (
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ),
    "scaleDown": ({"type": "Percent", "value": 100, "periodSeconds": 15},),
}


@dataclass(slots=True)
class _Memory:
    """What an autoscaler remembers of its past, which no object tells.

    Attributes
    ----------
    recommended : list of [ns, replicas]
    scaled : list of [ns, change]
    """

    recommended: list[list[int]] = field(default_factory=list)
    scaled: list[list[int]] = field(default_factory=list)


LikePods = Sequence[tuple[Pod, int]]
"""Pods, each for so many that metrics cannot tell from it."""


class _SameLabels:
    """Pods of a namespace that have the same labels, and have not succeeded."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.pods: dict[tuple[str, str], Pod] = {}
        self._keys: dict[Pod, tuple[Any, ...]] = {}
        """What metrics can tell pods apart by, of those that are young no longer."""
        self._likes: LikePods | None = None
        self._until_ns = 0

    def changed(self) -> None:
        self._likes = None

    def likes(self, now_ns: int) -> LikePods:
        """Its pods, those together that are alike to metrics; made anew when one changes, or is young no longer."""
        if self._likes is None or now_ns >= self._until_ns:
            found: dict[Any, list[Any]] = {}
            ends_ns = []
            if len(self._keys) > 2 * len(self.pods):
                self._keys = {}
            for pod in self.pods.values():
                key = self._keys.get(pod)
                if key is None:
                    key, young_until_ns = _told_apart_by(pod, now_ns)
                    if young_until_ns is None:
                        self._keys[pod] = key
                    else:
                        ends_ns.append(young_until_ns)
                found.setdefault(key, [pod, 0])[1] += 1
            self._likes = [(pod, n) for pod, n in found.values()]
            self._until_ns = min(ends_ns, default=now_ns + _FOREVER_NS)
        return self._likes


def _told_apart_by(pod: Pod, now_ns: int) -> tuple[tuple[Any, ...], int | None]:
    """What metrics can tell a pod from others by; and until when it is young, None if it is not."""
    young_until_ns = None if pod.start_ns is None else pod.start_ns + CPU_INITIALIZATION_NS
    ready = condition_of(pod.manifest, "Ready")
    age: Any = None
    if young_until_ns is not None and young_until_ns > now_ns:
        age = (pod.start_ns, repr(ready))
    elif young_until_ns is not None:
        age, young_until_ns = _counts(pod, now_ns), None
    owner = pod.meta.controller
    key = (
        id(pod.manifest["spec"].get("containers")),
        pod.phase,
        pod.is_terminating,
        (ready or {}).get("status"),
        age,
        None if owner is None else (owner.kind, owner.name, owner.uid),
        pod.name if LOAD in annotations_of(pod.manifest) else None,
    )
    return key, young_until_ns


class AutoscalerController(Controller):
    """Writes `spec.replicas` of what it scales."""

    watches: ClassVar[tuple[str, ...]] = (KIND, "Pod")
    timer_names: ClassVar[tuple[str, ...]] = (SYNC,)
    component = "horizontal-pod-autoscaler"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._memory: dict[Key, _Memory] = {}
        self._moment = (-1, -1)
        self._used: dict[str, Mapping[tuple[str, str], Use]] = {}
        self._labelled: dict[str, dict[tuple[tuple[str, str], ...], _SameLabels]] | None = None
        """Namespace -> labels -> pods; None before anybody asks."""
        self.looks_at_pods = False
        self._placed: dict[tuple[str, str], tuple[Pod, _SameLabels]] = {}
        self._changed: dict[tuple[str, str], None] = {}
        """Pods to look at again."""
        self._selected: dict[tuple[str, str, str], tuple[Any, list[_SameLabels]]] = {}

    def noticed(self, change: Noticed) -> None:
        key = change.newest.key
        if change.kind == "Pod":
            self._changed[key] = None
        elif change.new is None:
            self._to_sync.pop(key, None)
            self._memory.pop(key, None)
            self.reasons.pop(f"{KIND} {key[0]}/{key[1]}", None)
            self.timers.cancel(SYNC, *key)
        elif change.old is None or change.old.manifest.get("spec") != change.new.manifest.get("spec"):
            self._to_sync[key] = None

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        self._to_sync[subject] = None

    def state(self) -> dict[str, Any]:
        """What outlasts a checkpoint; empty where there are no autoscalers."""
        memory = {"/".join(key): [item.recommended, item.scaled] for key, item in self._memory.items()}
        return {**super().state(), **({"memory": memory} if memory else {})}

    def restore_state(self, state: Mapping[str, Any]) -> None:
        super().restore_state(state)
        self._memory = {}
        for name, (recommended, scaled) in state.get("memory", {}).items():
            namespace, _, own = name.partition("/")
            self._memory[(namespace, own)] = _Memory(
                [list(item) for item in recommended], [list(item) for item in scaled]
            )

    def use_in(self, namespace: str) -> Mapping[tuple[str, str], Use]:
        """What the running pods of a namespace use now; of pods that are alike only the first is named."""
        moment = (self.world.clock.now_ns, self.world.changes)
        if self._moment != moment:
            self._moment, self._used = moment, {}
        if namespace not in self._used:
            groups = self._pods_by_labels().get(namespace, {})
            likes = (like for group in groups.values() for like in group.likes(moment[0]))
            manifests = ((pod.manifest, n) for pod, n in likes)
            self._used[namespace] = use_of_likes(manifests, self.world.manifest, moment[0])
        return self._used[namespace]

    def pods_of(self, target: Stored) -> LikePods:
        """Pods that a workload's selector matches, those together that are alike to metrics."""
        labelled, key = self._pods_by_labels(), (str(target.manifest["kind"]), *target.key)
        written = fields.mapping(fields.mapping(target.manifest, "spec", ""), "selector", "spec")
        kept = self._selected.get(key)
        if kept is None or kept[0] is not written:
            is_plain = key[0] == "ReplicationController"
            document = {"matchLabels": written} if is_plain else written
            selector: LabelSelector = label_selector_from(document or None)
            groups = labelled.get(key[1], {}).values()
            found = [group for group in groups if selector.matches(group.labels)]
            kept = self._selected[key] = (written, found)
        now_ns = self.world.clock.now_ns
        return [like for group in kept[1] for like in group.likes(now_ns)]

    def _pods_by_labels(self) -> dict[str, dict[tuple[tuple[str, str], ...], _SameLabels]]:
        if self._labelled is None:
            self._labelled, self.looks_at_pods = {}, True
            self._changed = {stored.key: None for stored in self.world.all("Pod")}
        for change in self.world.noticed:  # what was written in this moment was not told yet
            if change.kind == "Pod":
                self._changed[change.newest.key] = None
        for key in self._changed:
            stored = self.world.get("Pod", *key)
            self._place(self._labelled, key, None if stored is None else stored.typed)
        self._changed.clear()
        return self._labelled

    def _place(
        self,
        labelled: dict[str, dict[tuple[tuple[str, str], ...], _SameLabels]],
        key: tuple[str, str],
        pod: Pod | None,
    ) -> None:
        """Have a pod in the group of its labels, or in none."""
        if pod is not None and pod.phase == "Succeeded":
            pod = None
        old, before = self._placed.pop(key, (None, None))
        labels = None if pod is None else tuple(sorted(pod.labels.items()))
        if old is not None and before is not None:
            before.changed()
            old_labels = tuple(sorted(old.labels.items()))
            if old_labels != labels:
                del before.pods[key]
                if not before.pods:
                    del labelled[key[0]][old_labels]
                    self._selected.clear()
        if pod is None or labels is None:
            return
        groups = labelled.setdefault(key[0], {})
        group = groups.get(labels)
        if group is None:
            group = groups[labels] = _SameLabels(pod.labels)
            self._selected.clear()
        group.pods[key] = pod
        group.changed()
        self._placed[key] = (pod, group)

    def sync_key(self, key: Key) -> None:
        stored = self.world.get(KIND, *key)
        if stored is None:
            return
        self.timers.add(self.world.clock.now_ns + PERIOD_S * SECOND_NS, SYNC, *key)
        look = _Look(self, stored, self._memory.setdefault(key, _Memory()))
        try:
            look.scale()
        except (InvalidObject, QuantityError, fields.SelectorError) as error:
            self.warn(stored.manifest, "InvalidSpec", str(error))
        look.write_status()
        said = {
            str(item["type"]): {"reason": str(item["reason"]), "text": str(item["message"])}
            for item in look.status.get("conditions") or ()
        }
        self.ran(look.did, {} if look.did else said, f"{KIND} {key[0]}/{key[1]}")


class _Look:
    """One look of one autoscaler at its workload."""

    def __init__(self, controller: AutoscalerController, stored: Stored, memory: _Memory) -> None:
        self.controller = controller
        self.world = controller.world
        self.manifest = stored.manifest
        self.memory = memory
        self.now_ns = self.world.clock.now_ns
        self.namespace = str(self.manifest["metadata"].get("namespace") or "")
        self.spec = fields.mapping(self.manifest, "spec", "")
        self.status: dict[str, Any] = dict(self.manifest.get("status") or {})
        given = self.spec.get("minReplicas")
        self.least = 1 if given is None else int(given)
        self.most = fields.integer(self.spec, "maxReplicas", "spec", 1)
        self.did: list[Act] = []
        self._conditions: list[dict[str, str]] = []

    # ---- what it does

    def scale(self) -> None:
        """Source: reconcileAutoscaler."""
        self.status["observedGeneration"] = generation_of(self.manifest)
        target, kind, name = self._target()
        if target is None:
            what = f'{_plural(kind)} "{name}" not found'
            self._condition(
                "AbleToScale", False, "FailedGetScale",
                f"the HPA controller was unable to get the target's current scale: {what}",
            )  # fmt: skip
            self.controller.warn(self.manifest, "FailedGetScale", what)
            self.status |= {"currentReplicas": 0, "desiredReplicas": 0}
            return
        self._condition(
            "AbleToScale", True, "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        )  # fmt: skip
        written = target.manifest["spec"].get("replicas")
        current = 1 if written is None else int(written)
        if not self.memory.recommended:
            self.memory.recommended.append([self.now_ns, current])
        reason, desired = "", 0
        if current == 0 and self.least != 0:
            self._condition(
                "ScalingActive", False, "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )  # fmt: skip
        elif current > self.most:
            reason, desired = "Current number of replicas above Spec.MaxReplicas", self.most
        elif current < self.least:
            reason, desired = "Current number of replicas below Spec.MinReplicas", self.least
        else:
            found = self._from_metrics(target, current)
            self.status["currentReplicas"] = _seen_replicas(target)
            if found is None:
                self.status.setdefault("desiredReplicas", current)
                return
            proposal, metric = found
            if proposal > current:
                reason = f"{metric} above target"
            elif proposal < current:
                reason = "All metrics below target"
            desired = self._limited(current, proposal)
        self.status["currentReplicas"] = _seen_replicas(target)
        self.status["desiredReplicas"] = desired
        if desired == current or (current == 0 and self.least != 0):
            return
        self.world.scale(target, desired, "scaled by its autoscaler")
        scaled = Mention(kind, f"{self.namespace}/{name}")
        facts = {"group": str(scaled), "delta": desired - current}
        effect = "takes" if desired < current else "acts"
        acted = ("scales ", scaled, f" from {current} to {desired}")
        self.did.append(Act(acted, why=reason, effect=effect, facts=facts))
        self._condition(
            "AbleToScale", True, "SucceededRescale",
            f"the HPA controller was able to update the target scale to {desired}",
        )  # fmt: skip
        self.controller.tell(self.manifest, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
        self.memory.scaled.append([self.now_ns, desired - current])
        self.status["lastScaleTime"] = fields.format_seconds(self.now_ns)

    def _target(self) -> tuple[Stored | None, str, str]:
        reference = fields.mapping(self.spec, "scaleTargetRef", "spec")
        kind, name = (
            fields.string(reference, "kind", "spec.scaleTargetRef"),
            fields.string(reference, "name", "spec.scaleTargetRef"),
        )
        return (self.world.get(kind, self.namespace, name) if kind in SCALED else None), kind, name

    # ---- what the metrics say

    def _from_metrics(self, target: Stored, current: int) -> tuple[int, str] | None:
        """The largest number that a metric asks for, and which one; None where they say nothing."""
        pods = self.controller.pods_of(target)
        metrics = fields.mappings(self.spec, "metrics", "spec") or [("spec.metrics[0]", _CPU)]
        best: tuple[int, str] | None = None
        statuses: list[dict[str, Any]] = []
        errors: list[tuple[str, str]] = []
        used = self.controller.use_in(self.namespace)
        for path, metric in metrics:
            type_ = fields.string(metric, "type", path)
            try:
                wanted, status, name = self._from_metric(metric, type_, pods, used, current)
            except MetricError as error:
                errors.append((type_, str(error)))
                continue
            statuses.append(status)
            if best is None or wanted.replicas > best[0]:
                best = (wanted.replicas, name)
        if errors and (best is None or best[0] < current):
            type_, said = errors[0]
            reason = f"FailedGet{type_}Metric"
            self._condition(
                "ScalingActive", False, reason, f"the HPA was unable to compute the replica count: {said}"
            )
            self.controller.warn(self.manifest, reason, said)
            counted = f"invalid metrics ({len(errors)} invalid out of {len(metrics)}), first error is: {said}"
            self.controller.warn(self.manifest, "FailedComputeMetricsReplicas", counted)
            return None
        self.status["currentMetrics"] = statuses
        assert best is not None
        self._condition(
            "ScalingActive", True, "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {best[1]}",
        )  # fmt: skip
        return best

    def _from_metric(
        self,
        metric: Mapping[str, Any],
        type_: str,
        pods: LikePods,
        used: Mapping[tuple[str, str], Any],
        current: int,
    ) -> tuple[Wanted, dict[str, Any], str]:
        key = {"Resource": "resource", "ContainerResource": "containerResource"}.get(type_)
        if key is None:
            other = fields.mapping(metric, type_[:1].lower() + type_[1:], "spec.metrics")
            name = fields.string(fields.mapping(other, "metric", ""), "name", "")
            api = "external" if type_ == "External" else "custom"
            raise MetricError(
                f"unable to get metric {name}: unable to fetch metrics from {api} metrics API:"
                " no known available metric versions found"
            )
        source = fields.mapping(metric, key, "spec.metrics")
        resource, container = fields.string(source, "name", key), fields.string(source, "container", key)
        target = fields.mapping(source, "target", key)
        percent = fields.optional_integer(target, "averageUtilization", key)
        amount = target.get("averageValue")
        words = f"{resource} {'container ' if container else ''}resource"
        try:
            wanted = wanted_replicas(
                pods,
                used,
                resource=resource,
                container=container,
                utilization=None if amount is not None else percent,
                average=0 if amount is None else quantity_from(amount).nano_value(),
                current=current,
                tolerance=(self._tolerance("scaleDown"), self._tolerance("scaleUp")),
                now_ns=self.now_ns,
            )
        except MetricError as error:
            what = "utilization" if amount is None else "usage"
            prefix = f"failed to get {resource} {'container ' if container else ''}{what}: "
            raise MetricError(prefix + str(error)) from None
        seen: dict[str, Any] = {"averageValue": _amount_text(resource, wanted.average)}
        if wanted.utilization is not None:
            seen = {"averageUtilization": wanted.utilization, **seen}
            words += " utilization (percentage of request)"
        place = {"container": container} if container else {}
        return wanted, {"type": type_, key: {**place, "name": resource, "current": seen}}, words

    def _tolerance(self, direction: str) -> float:
        written = self._rules(direction).get("tolerance")
        return TOLERANCE if written is None else quantity_from(written).as_approximate_float()

    # ---- how fast it may

    def _rules(self, direction: str) -> Mapping[str, Any]:
        return fields.mapping(fields.mapping(self.spec, "behavior", "spec"), direction, "spec.behavior")

    def _window_s(self, direction: str) -> int:
        rules = self._rules(direction)
        key = "stabilizationWindowSeconds"
        written = fields.optional_integer(rules, key, "spec.behavior") if rules else None
        if written is None:
            return STABILIZATION_S if direction == "scaleDown" else 0
        return written

    def _limited(self, current: int, proposal: int) -> int:
        """Source: normalizeDesiredReplicas, normalizeDesiredReplicasWithBehaviors."""
        desired = self._stabilized(current, proposal)
        if desired != proposal:
            up = desired < proposal
            reason, than, which = ("Up", "lower", "lowest") if up else ("Down", "higher", "highest")
            self._condition(
                "AbleToScale", True, f"Scale{reason}Stabilized",
                f"recent recommendations were {than} than current one, applying the {which} recent recommendation",
            )  # fmt: skip
        else:
            self._condition("AbleToScale", True, "ReadyForNewScale", "recommended size matches current size")
        behaves = self.spec.get("behavior") is not None
        limit, reason, message = (
            desired,
            "DesiredWithinRange",
            "the desired count is within the acceptable range",
        )
        if behaves and desired > current:
            fastest = max(self._fastest("scaleUp", current), current)
            most = min(fastest, self.most)
            if desired > most:
                limit = most
                reason, message = _TOO_FAST if fastest < self.most else _TOO_MANY
        elif behaves and desired < current:
            slowest = min(self._fastest("scaleDown", current), current)
            least = max(slowest, self.least)
            if desired < least:
                limit = least
                reason, message = _TOO_FAST_DOWN if slowest > self.least else _TOO_FEW
        elif not behaves:
            fastest = max(2 * current, 4)
            most = min(fastest, self.most)
            if desired < self.least:
                limit, (reason, message) = self.least, _TOO_FEW
            elif desired > most:
                limit = most
                reason, message = _TOO_FAST if fastest < self.most else _TOO_MANY
        elif desired < self.least:
            limit, (reason, message) = self.least, _TOO_FEW
        elif desired > self.most:
            limit, (reason, message) = self.most, _TOO_MANY
        self._condition("ScalingLimited", reason != "DesiredWithinRange", reason, message)
        return limit

    def _stabilized(self, current: int, proposal: int) -> int:
        """Source: stabilizeRecommendationWithBehaviors."""
        up_ns, down_ns = (self._window_s(direction) * SECOND_NS for direction in ("scaleUp", "scaleDown"))
        longest_ns = max(up_ns, down_ns, SECOND_NS)
        kept = self._recommended_in(longest_ns)
        in_down = kept if down_ns == longest_ns else self._recommended_in(down_ns)
        self.memory.recommended = [*kept, [self.now_ns, proposal]]
        down = max([proposal, *(number for _, number in in_down)])
        if self.spec.get("behavior") is None:
            return down
        up = min([proposal, *(number for at_ns, number in kept if at_ns > self.now_ns - up_ns)])
        return min(max(current, up), down)

    def _recommended_in(self, window_ns: int) -> list[list[int]]:
        recommended = self.memory.recommended  # in order of time
        return recommended[bisect_right(recommended, self.now_ns - window_ns, key=itemgetter(0)) :]

    def _fastest(self, direction: str, current: int) -> int:
        """How far its policies let it go at once."""
        rules = self._rules(direction)
        chosen = fields.string(rules, "selectPolicy", "spec.behavior") or "Max"
        if chosen == "Disabled":
            return current
        policies = rules.get("policies") or _DEFAULT_POLICIES[direction]
        longest_ns = max(int(item.get("periodSeconds") or 0) for item in policies) * SECOND_NS
        self.memory.scaled = [
            item for item in self.memory.scaled if item[0] > self.now_ns - max(longest_ns, 3600 * SECOND_NS)
        ]
        proposals = []
        for policy in policies:
            since_ns = self.now_ns - int(policy.get("periodSeconds") or 0) * SECOND_NS
            start = current - sum(change for at_ns, change in self.memory.scaled if at_ns > since_ns)
            value = int(policy.get("value") or 0)
            if policy.get("type") == "Pods":
                proposals.append(start + value if direction == "scaleUp" else start - value)
            elif direction == "scaleUp":
                proposals.append(math.ceil(start * (1 + value / 100)))
            else:
                proposals.append(int(start * (1 - value / 100)))
        # `Max` is the policy that changes most.
        take_largest = (chosen == "Max") == (direction == "scaleUp")
        return max(proposals) if take_largest else min(proposals)

    # ---- what it tells

    def _condition(self, type_: str, holds: bool, reason: str, message: str) -> None:
        self.status.setdefault("conditions", [])  # its place among the fields
        self._conditions.append(condition(type_, holds, reason, message))

    def write_status(self) -> None:
        """Write its status where it says more than other amounts of the same percentage."""
        self.status = self.world.status_with({"status": self.status}, *self._conditions)
        before = self.manifest.get("status") or {}
        if _without_amounts(self.status) != _without_amounts(before):
            self.world.put({**self.manifest, "status": self.status}, "status")


_CPU: Final[Mapping[str, Any]] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_TOO_FAST: Final = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_TOO_FAST_DOWN: Final = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")


def _without_amounts(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status without amounts shown as percentages, which change with every look."""
    result = dict(status)
    if "currentMetrics" in result:
        result["currentMetrics"] = [_without_amount(item) for item in result["currentMetrics"] or ()]
    return result


def _without_amount(metric: Mapping[str, Any]) -> Any:
    for key in ("resource", "containerResource"):
        current = (metric.get(key) or {}).get("current") or {}
        if "averageUtilization" in current:
            return {
                **metric,
                key: {**metric[key], "current": {"averageUtilization": current["averageUtilization"]}},
            }
    return metric


def _seen_replicas(target: Stored) -> int:
    return int((target.manifest.get("status") or {}).get("replicas") or 0)


def _amount_text(resource: str, amount: int) -> str:
    """As the autoscaler's status has it: thousandths."""
    milli = amount // 10**6
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _plural(kind: str) -> str:
    group = "" if kind == "ReplicationController" else ".apps"
    return f"{kind.lower()}s{group}"


# --- How many replicas a metric asks for.


CPU_INITIALIZATION_NS = 300 * SECOND_NS
INITIAL_READINESS_NS = 30 * SECOND_NS
WINDOW_NS = 15 * SECOND_NS
Tolerance = tuple[float, float]
"""(down, up)"""


class MetricError(ValueError):
    """A metric says nothing; in upstream's words."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a metric asks for.

    Attributes
    ----------
    replicas : int
    utilization : int or None
        In percent of the requests, where that is the target.
    average : int
        Use of a pod, nano units.
    """

    replicas: int
    utilization: int | None
    average: int


@dataclass(frozen=True, slots=True)
class _Measured:
    """What pods use and request, by the key of the first of those that are alike."""

    metrics: Mapping[str, int]
    n_of: Mapping[str, int]
    requests: Mapping[str, int]
    utilization: int | None
    average: int

    def n_pods(self) -> int:
        return sum(self.n_of[key] for key in self.metrics)

    def total(self) -> int:
        return sum(self.n_of[key] * amount for key, amount in self.metrics.items())

    def mean(self) -> int:
        return self.total() // self.n_pods()

    def ratio(self) -> tuple[float, int | None]:
        """How much more they use than they should, and their utilization in percent."""
        if self.utilization is None:
            return self.mean() / self.average, None
        requested = sum(self.n_of[key] * self.requests[key] for key in self.metrics)
        percent = self.total() * 100 // requested
        return percent / self.utilization, percent


def wanted_replicas(
    pods: LikePods,
    used: Mapping[tuple[str, str], Use],
    *,
    resource: str,
    container: str,
    utilization: int | None,
    average: int,
    current: int,
    tolerance: Tolerance,
    now_ns: int,
) -> Wanted:
    """How many replicas a resource metric asks for.

    Parameters
    ----------
    pods
        Those the scale's selector matches; metrics are of the first of those that are alike.
    container
        Of which the metric is; empty is the whole pod.
    utilization, average
        The target: percent of the requests, or an amount in nano units.

    Raises
    ------
    MetricError
    """
    if not used:
        raise MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    metrics = {
        pod.key: _use(used[(pod.namespace, pod.name)], resource, container)
        for pod, _ in pods
        if (pod.namespace, pod.name) in used
    }
    n_ready, unready, missing = 0, [], []
    for pod, n in pods:
        if pod.is_terminating or pod.phase == "Failed":
            metrics.pop(pod.key, None)
        elif pod.phase in ("", "Pending"):
            unready.append(pod)
        elif pod.key not in metrics:
            missing.append(pod)
        elif resource == "cpu" and not _counts(pod, now_ns):
            unready.append(pod)
        else:
            n_ready += n
    for pod in unready:
        metrics.pop(pod.key, None)
    requests: dict[str, int] = {}
    if utilization is not None:
        requests = {pod.key: _requests(pod, resource, container) for pod, _ in pods}
    if not metrics:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")

    measured = _Measured(metrics, {pod.key: n for pod, n in pods}, requests, utilization, average)
    usage_ratio, percent = measured.ratio()
    seen = measured.mean()
    up_with_unready = bool(unready) and usage_ratio > 1
    if not up_with_unready and not missing:
        if _within(usage_ratio, tolerance):
            return Wanted(current, percent, seen)
        return Wanted(math.ceil(usage_ratio * n_ready), percent, seen)
    for pod in missing:
        if usage_ratio < 1:
            share = average if utilization is None else requests[pod.key] * max(100, utilization) // 100
            metrics[pod.key] = share
        elif usage_ratio > 1:
            metrics[pod.key] = 0
    if up_with_unready:
        metrics |= {pod.key: 0 for pod in unready}
    new_ratio, _ = measured.ratio()
    turned = (usage_ratio < 1 < new_ratio) or (usage_ratio > 1 > new_ratio)
    replicas = math.ceil(new_ratio * measured.n_pods())
    backwards = (new_ratio < 1 and replicas > current) or (new_ratio > 1 and replicas < current)
    if _within(new_ratio, tolerance) or turned or backwards:
        replicas = current
    return Wanted(replicas, percent, seen)


def _within(ratio: float, tolerance: Tolerance) -> bool:
    return 1 - tolerance[0] <= ratio <= 1 + tolerance[1]


def _use(use: Use, resource: str, container: str) -> int:
    if container:
        return use.get(container, {}).get(resource, 0)
    return sum(amounts.get(resource, 0) for amounts in use.values())


def _requests(pod: Pod, resource: str, container: str) -> int:
    total = 0
    for item in pod.manifest["spec"].get("containers") or ():
        name = str(item.get("name", ""))
        if container and name != container:
            continue
        written = ((item.get("resources") or {}).get("requests") or {}).get(resource)
        if written is None:
            raise MetricError(f"missing request for {resource} in container {name} of Pod {pod.name}")
        total += quantity_from(written).nano_value()
    if not total:
        raise MetricError(f"missing request for {resource} in container {container} of Pod {pod.name}")
    return total


def _counts(pod: Pod, now_ns: int) -> bool:
    """Whether a pod's cpu is more than that of its start."""
    found = condition_of(pod.manifest, "Ready")
    if found is None or pod.start_ns is None:
        return False
    ready, since = found.get("status") == "True", found.get("lastTransitionTime")
    since_ns = fields.parse_time_ns(str(since)) if since else 0
    if pod.start_ns + CPU_INITIALIZATION_NS > now_ns:
        return ready and now_ns >= since_ns + WINDOW_NS
    return ready or pod.start_ns + INITIAL_READINESS_NS <= since_ns
