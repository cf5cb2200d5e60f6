"""Which pods may be evicted (DefaultEvictor), and evicting one within the limits of a cycle.

Source: pkg/framework/plugins/defaultevictor, pkg/descheduler/evictions/evictions.go, 7d2b28bf2b6a (v0.36)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from scheduler_core.descheduler.policy import (
    PROTECTIONS,
    SYSTEM_CRITICAL,
    Document,
    Policy,
    protected_classes,
)
from scheduler_core.descheduler.view import PREFER_NO_EVICTION, View, priority, status
from scheduler_core.errors import quoted
from scheduler_core.objects.duration import format_duration, parse_duration_ns
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import label_selector_from, parse_label_selector_text
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
_SOURCE: Final = "kubernetes.io/config.source"
NO_OTHER_NODE: Final = (
    "pod does not fit on any other node because of "
    "nodeSelector(s), Taint(s), or nodes marked as unschedulable"
)
_WRONG_NAMESPACE: Final = (
    "pod namespace do not match the namespaceLabelSelector filter in the policy parameter"
)


class _Looked(NamedTuple):
    """Whether a pod may be evicted, whether an annotation says so, and every check that it fails."""

    passes: bool
    is_forced: bool
    checks: tuple[str, ...]


class DefaultEvictor:
    """The filters that every plugin of a profile asks."""

    def __init__(self, arguments: Document, view: View) -> None:
        self._arguments = arguments
        self._view = view
        self._protections = _protections(arguments)
        self._threshold: int = arguments["priorityThreshold"]
        self._classes = protected_classes(arguments)
        self._labels = label_selector_from(arguments.get("labelSelector") or {})
        self._namespaces = label_selector_from(arguments.get("namespaceLabelSelector") or {})
        self._least: int = arguments.get("minReplicas") or 0
        self._age: str = arguments.get("minPodAge") or ""
        self._nodes = self._nodes_to_fit() if arguments.get("nodeFit") else None
        self._fits: dict[tuple[Pod, int], bool] = {}
        """Pod, and how often the view changed -> whether it fits on another node."""
        self._mandatory = arguments.get("noEvictionPolicy") == "Mandatory"
        goes_by_others = self._age or self._protections & {"PodsWithPVC", "PodsWithoutPDB"}
        self._looked: dict[Pod, _Looked] = {} if goes_by_others else view.lasting(repr(arguments))

    def _nodes_to_fit(self) -> list[Node]:
        try:
            return self._view.ready_nodes(
                parse_label_selector_text(self._arguments.get("nodeSelector") or "")
            )
        except SelectorError:
            return []

    def is_forced(self, pod: Pod) -> bool:
        """An annotation evicts it whatever the filter says."""
        return EVICT in pod.annotations

    def is_kept(self, pod: Pod) -> bool:
        """An annotation keeps it, where the policy makes that one binding."""
        return self._mandatory and PREFER_NO_EVICTION in pod.annotations

    def filter(self, pod: Pod) -> bool:
        """Whether it may be evicted at all."""
        return self._look_at(pod).passes

    def _look_at(self, pod: Pod) -> _Looked:
        found = self._looked.get(pod)
        if found is None:
            is_forced, is_kept = self.is_forced(pod), self.is_kept(pod)
            checks = () if is_kept and not is_forced else tuple(self._failed_checks(pod))
            found = _Looked(is_forced or not (is_kept or checks), is_forced, checks)
            if self._least <= 1:  # evictions of the cycle change how many replicas there are
                self._looked[pod] = found
        return found

    def _failed_checks(self, pod: Pod) -> Iterator[str]:
        marks, protections = pod.annotations, self._protections
        if pod.is_mirror:
            yield "pod is a mirror pod"
        if marks.get(_SOURCE, "api") != "api":
            yield "pod is a static pod"
        if pod.is_terminating:
            yield "pod is terminating"
        level = priority(pod)
        if "SystemCriticalPods" in protections and level is not None:
            if level >= SYSTEM_CRITICAL:
                yield "pod has system critical priority and is protected against eviction"
            if level >= self._threshold:
                yield "pod has higher priority than specified priority class threshold"
        if not pod.meta.owners:
            if "FailedBarePods" in protections:
                yield "pod does not have any ownerRefs"
            elif pod.phase != "Failed":
                yield "pod does not have any ownerRefs and is not in failed phase"
        yield from self._failed_protections(pod)
        if not self._labels.matches(pod.labels):
            yield "pod labels do not match the labelSelector filter in the policy parameter"
        if self._least > 1 and len(pod.meta.owners) == 1:
            replicas = self._view.pods_of_owner(pod.meta.owners[0].uid)
            if replicas < self._least:
                yield f"owner has {replicas} replicas which is less than minReplicas of {self._least}"
        if self._age:
            least_ns = parse_duration_ns(self._age)
            if pod.start_ns is None or self._view.now_ns - pod.start_ns < least_ns:
                duration = format_duration(least_ns)
                yield f"pod age is not older than MinPodAge: &Duration{{Duration:{duration},}} seconds"

    def _failed_protections(self, pod: Pod) -> Iterator[str]:
        protections = self._protections
        stored = any("hostPath" in volume or "emptyDir" in volume for volume in pod.volumes)
        if "PodsWithLocalStorage" in protections and stored:
            yield "pod has local storage and is protected against eviction"
        if "DaemonSetPods" in protections and any(owner.kind == "DaemonSet" for owner in pod.meta.owners):
            yield "daemonset pods are protected against eviction"
        if "PodsWithPVC" in protections and (problem := self._claim_problem(pod)):
            yield problem
        if "PodsWithoutPDB" in protections and not any(budget.selects(pod) for budget in self._view.budgets):
            yield "pod does not have a PodDisruptionBudget and is protected against eviction"
        if "PodsWithResourceClaims" in protections and pod.resource_claims:
            yield "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods"

    def _claim_problem(self, pod: Pod) -> str:
        names = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod.volumes
            if volume.get("persistentVolumeClaim") is not None
        ]
        if not self._classes:
            return "pod with PVC is protected against eviction" if names else ""
        classes = []
        for name in names:
            where = f"{quoted(pod.namespace)}/{quoted(name)}"
            claim = self._view.claims.get((pod.namespace, name))
            if claim is None:
                missing = f'persistentvolumeclaim "{name}" not found'
                return f"failed to get persistent volume claim {where}: {missing}"
            storage_class = (claim.get("spec") or {}).get("storageClassName")
            if not storage_class:
                return f"failed to resolve storage class for pod {where}"
            classes.append(storage_class)
        found = next((name for name in classes if name in self._classes), "")
        return f"pod using protected storage class {quoted(found)}" if found else ""

    def pre_eviction_filter(self, pod: Pod) -> str:
        """Why it is not evicted although the filter lets it pass; empty if it is."""
        if self._nodes is not None:
            key = (pod, self._view.n_changes)
            if key not in self._fits:
                self._fits[key] = self._view.fits_any(pod, self._nodes)
            if not self._fits[key]:
                return NO_OTHER_NODE
        if not self._namespaces.is_everything:
            labels = self._view.namespaces.get(pod.namespace)
            if labels is None or not self._namespaces.matches(labels):
                return _WRONG_NAMESPACE
        return ""

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """What it says of every pod that it would not simply evict."""
        for pod in self._view.pods.values():
            if pod.node_name not in self._view.nodes:
                continue
            looked = self._look_at(pod)
            if not looked.passes:
                said = {"verdict": "protected", "checks": list(looked.checks)}
                yield {"pod": pod.key, **(said if looked.checks else {"verdict": "noEviction"})}
            elif text := self.pre_eviction_filter(pod):
                fit = {"nodeFit": self._refusals(pod)} if text == NO_OTHER_NODE else {}
                yield {"pod": pod.key, "verdict": "preEviction", "text": text, **fit}
            elif looked.is_forced:
                yield {"pod": pod.key, "verdict": "evictAnnotation"}

    def _refusals(self, pod: Pod) -> dict[str, list[str]]:
        nodes = [node for node in self._nodes or () if node.name != pod.node_name]
        return {node.name: list(self._view.refusals(pod, node)) for node in nodes}


def _protections(arguments: Document) -> set[str]:
    written = arguments.get("podProtections") or {}
    disabled, extra = (set(written.get(key) or ()) for key in ("defaultDisabled", "extraEnabled"))
    if disabled or extra:
        return set(PROTECTIONS["default"]) - disabled | extra
    switched = {name for switch, name in PROTECTIONS["switches"].items() if arguments.get(switch)}
    return set(PROTECTIONS["default"]) ^ switched


Limit = Literal["", "node", "total", "other"]


class Refusal(NamedTuple):
    """Why a pod was not evicted."""

    limit: Limit
    """`node` and `total` end more than this pod's turn; all others are alike."""
    text: str


class Evictions:
    """Evictions of one cycle, over all of its profiles.

    Attributes
    ----------
    accepted : list of dict
        Those that were accepted, in order.
    on_node, events
        How many were on each node; Events of those that failed, if the policy asks for them.
    """

    def __init__(self, policy: Policy, view: View, *, enforces_budgets: bool) -> None:
        self._policy = policy
        self._view = view
        self._enforces_budgets = enforces_budgets
        self._in_namespace: Counter[str] = Counter()
        self.accepted: list[dict[str, str]] = []
        self.on_node: Counter[str] = Counter()
        self.events: list[dict[str, str]] = []

    def evict(self, pod: Pod, profile: str, plugin: str) -> Refusal | None:
        """Evict a pod, or say why not."""
        if not pod.uid:
            return Refusal("other", f"pod {pod.key} is missing UID")
        refusal, told = self._limit(pod)
        if refusal is None and (text := self._api_refuses(pod)):
            refusal, told = Refusal("other", text), text
        if refusal is not None:
            if self._policy.tells_failures:
                note = f"pod eviction from {pod.node_name} node by sigs.k8s.io/descheduler failed: {told}"
                event = {"type": "Warning", "reason": "EvictionFailed", "action": "Descheduled", "note": note}
                self.events.append({"pod": pod.key, **event})
            return refusal
        self.on_node[pod.node_name] += 1
        self._in_namespace[pod.namespace] += 1
        reason = f"triggered by {profile}/{plugin}: "
        self.accepted.append(
            {"profile": profile, "plugin": plugin, "pod": pod.key, "node": pod.node_name, "reason": reason}
        )
        self._view.evicted(pod)
        return None

    def _limit(self, pod: Pod) -> tuple[Refusal | None, str]:
        for limit, most, count, words, name in (
            ("total", self._policy.most_in_all, len(self.accepted), "a descheduling cycle", "total"),
            ("node", self._policy.most_on_a_node, self.on_node[pod.node_name], "node", "node"),
            (
                "other", self._policy.most_in_a_namespace, self._in_namespace[pod.namespace],
                "namespace", "namespace",
            ),
        ):  # fmt: skip
            if most is not None and count + 1 > most:
                text = f"maximum number of evicted pods per {words} reached"
                return Refusal(limit, text), f"{name} eviction limit exceeded ({most})"  # type: ignore[arg-type]
        return None, ""

    def _api_refuses(self, pod: Pod) -> str:
        """The eviction API's refusal, as its client says it; a budget loses what it allows."""
        if pod.key not in self._view.pods:
            return f'pod not found when evicting "{pod.name}": pods "{pod.name}" not found'
        current = self._view.pods[pod.key]
        exempt = current.is_terminating or status(current).get("phase") not in ("Running", "Unknown")
        if not self._enforces_budgets or exempt:
            return ""
        budgets = [budget for budget in self._view.budgets if budget.selects(pod)]
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            why = "has prevented the request from succeeding"
            return f'an error on the server ("{text}") {why} (create pods {pod.name})'
        if budgets:
            if budgets[0].left <= 0:
                text = "Cannot evict pod as it would violate the pod's disruption budget."
                return f'error when evicting pod (ignoring) "{pod.name}": {text}'
            budgets[0].left -= 1
        return ""

    def object_of(self, eviction: dict[str, str]) -> dict[str, Any]:
        """An eviction as it is posted."""
        namespace, _, name = eviction["pod"].partition("/")
        grace = self._policy.grace_period_seconds
        marks = {"reason": eviction["reason"], "requested-by": "sigs.k8s.io/descheduler"}
        return {
            "kind": "Eviction",
            "apiVersion": "policy/v1",
            "metadata": {"name": name, "namespace": namespace, "annotations": marks},
            "deleteOptions": {} if grace is None else {"gracePeriodSeconds": grace},
        }
