"""Which pods keep a node, by twelve rules asked in order; the first that answers decides.

Source: cluster-autoscaler/simulator/drainability/rules, simulator/drain.go, utils/drain/drain.go, k8s 1.36
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_not
from typing import Any, Final, Literal, NamedTuple

from scheduler_core.autoscaler.cluster import LiveCluster
from scheduler_core.autoscaler.cluster_state import Flags
from scheduler_core.autoscaler.templates import is_daemon
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.policy import EvictionBudget

Document = Mapping[str, Any]
_PREFIX: Final = "cluster-autoscaler.kubernetes.io/"
SAFE: Final = f"{_PREFIX}safe-to-evict"
_LOCAL: Final = f"{_PREFIX}safe-to-evict-local-volumes"
_REPLICATED: Final = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
_LONG_TERMINATING_NS: Final = 30 * 10**9
_DEFAULT_GRACE: Final = 30
_MOST_KEPT: Final = 10_000
Answer = Literal["", "skip", "ok", "wait"]


class DrainBudgets:
    """PodDisruptionBudgets, and what they still allow."""

    def __init__(self) -> None:
        self._specs: list[Any] = []
        self._budgets: list[EvictionBudget] = []
        self._of: dict[tuple[str, tuple[tuple[str, str], ...]], list[EvictionBudget]] = {}

    def look(self, documents: Sequence[Document]) -> bool:
        """See what they allow now; whether others are there than were before."""
        specs = [document.get("spec") for document in documents]
        fresh = len(specs) != len(self._specs) or any(map(is_not, specs, self._specs))
        if fresh:
            self._specs, self._of = specs, {}
            self._budgets = [EvictionBudget(document) for document in documents]
        for budget, document in zip(self._budgets, documents, strict=True):
            budget.left = (document.get("status") or {}).get("disruptionsAllowed", 0)
        return fresh

    def of(self, pod: Pod) -> list[EvictionBudget]:
        if not self._budgets:
            return []
        key = (pod.namespace, tuple(pod.labels.items()))
        found = self._of.get(key)
        if found is None:
            found = self._of[key] = [budget for budget in self._budgets if budget.selects(pod)]
        return found

    def allows_together(self, pods: Iterable[Pod]) -> bool:
        """Whether all of the pods may go at once."""
        counts = Counter(budget for pod in pods for budget in self.of(pod))
        return all(budget.left >= count for budget, count in counts.items())

    def take(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            for budget in self.of(pod):
                budget.left -= 1


@dataclass
class PodsToMove:
    """A node's pods when it is to go."""

    pods: list[Pod] = field(default_factory=list)
    on_completion: list[Pod] = field(default_factory=list)
    blocking: Pod | None = None
    reason: str = ""


class _Sorted(NamedTuple):
    """How a node's pods were sorted, the budgets that count for it, and which of them were spent."""

    pods: tuple[Pod, ...]
    budgets: tuple[EvictionBudget, ...]
    spent: tuple[bool, ...]
    found: PodsToMove


class Drainability:
    """Sorts the pods of nodes that are to go.

    What it said of a node's pods is kept until one of them, a controller or a budget that matters to it changes.

    Parameters
    ----------
    cluster : LiveCluster or None
        Has the pods' controllers and budgets; None where neither matters.
    """

    def __init__(self, flags: Flags, cluster: LiveCluster | None = None) -> None:
        self._flags = flags
        self._custom, self._system, self._local = (
            bool(flags(f"skip-nodes-with-{what}"))
            for what in ("custom-controller-pods", "system-pods", "local-storage")
        )
        self._cluster = cluster
        self.budgets = DrainBudgets()
        self._problems: dict[tuple[str, str, str, str], str] = {}
        self._kept: dict[int, _Sorted] = {}
        self._awaited: dict[int, tuple[tuple[Pod, ...], list[Pod] | None]] = {}
        self.look()

    def look(self) -> None:
        """Begin a loop, with the controllers and budgets as they are now."""
        if len(self._awaited) > _MOST_KEPT:
            self._awaited = {}
        cluster = self._cluster
        if cluster is None:
            return
        problems = {key: self._find_problem(*key) for key in self._problems}
        fresh = self.budgets.look(cluster.of_kind("PodDisruptionBudget"))
        if fresh or problems != self._problems or len(self._kept) > _MOST_KEPT:
            self._kept, self._problems = {}, {}

    def pods_to_move(self, pods: tuple[Pod, ...], now_ns: int) -> PodsToMove:
        """Sort a node's pods; the first that blocks ends it."""
        kept = self._kept.get(id(pods))
        if kept is not None and kept.pods is pods and kept.spent == _spent(kept.budgets):
            return kept.found
        found = self._sort(pods, now_ns)
        if not any(map(_changes_with_time, pods)):
            budgets = tuple({budget: None for pod in pods for budget in self.budgets.of(pod)})
            self._kept[id(pods)] = _Sorted(pods, budgets, _spent(budgets), found)
        return found

    def awaited(self, pods: tuple[Pod, ...], now_ns: int) -> list[Pod] | None:
        """The pods whose end a node waits for, where no pod moves or blocks; None where one does."""
        kept = self._awaited.get(id(pods))
        if kept is not None and kept[0] is pods:
            return kept[1]
        found: list[Pod] | None = []
        for pod in pods:
            answer, blocked = self._asked(pod, now_ns)
            if blocked or answer in ("", "ok"):
                found = None
                break
            if answer == "wait" and found is not None:
                found.append(pod)
        if not any(map(_changes_with_time, pods)):
            self._awaited[id(pods)] = pods, found
        return found

    def _sort(self, pods: Iterable[Pod], now_ns: int) -> PodsToMove:
        found = PodsToMove()
        for pod in pods:
            answer, blocked = self._asked(pod, now_ns)
            if blocked:
                found.blocking, found.reason = pod, blocked
                return found
            if answer == "wait":
                found.on_completion.append(pod)
            elif answer != "skip":
                found.pods.append(pod)
        return found

    def _asked(self, pod: Pod, now_ns: int) -> tuple[Answer, str]:
        marks = pod.annotations
        if pod.is_mirror or is_long_terminating(pod, now_ns):
            return "skip", ""
        if self._custom and (why := self._controller_problem(pod)):
            return "", why
        safe = marks.get(SAFE)
        if is_daemon(pod):
            return "skip", ""
        if safe == "true" or _is_terminal(pod):
            return "ok", ""
        if safe == "on-completion":
            return "wait", ""
        controller = pod.meta.controller
        if controller is None or (self._custom and controller.kind not in _REPLICATED):
            return "", "NotReplicated"
        budgets = self.budgets.of(pod)
        if self._system and pod.namespace == "kube-system" and not budgets:
            timeout_ns = self._flags.ns("blocking-system-pod-distruption-timeout")
            created_ns = pod.meta.creation_ns
            if created_ns is not None and now_ns > created_ns + timeout_ns:
                return "ok", ""
            return "", "UnmovableKubeSystemPod"
        if safe == "false":
            return "", "NotSafeToEvictAnnotation"
        if self._local and pod.volumes and _has_blocking_storage(pod, marks):
            return "", "LocalStorageRequested"
        if any(budget.left < 1 for budget in budgets):
            return "", "NotEnoughPdb"
        return "", ""

    def _controller_problem(self, pod: Pod) -> str:
        controller = pod.meta.controller
        if controller is None or self._cluster is None:
            return ""
        key = (controller.kind, controller.api_version.partition("/")[0], pod.namespace, controller.name)
        found = self._problems.get(key)
        if found is None:
            found = self._problems[key] = self._find_problem(*key)
        return found

    def _find_problem(self, kind: str, group: str, namespace: str, name: str) -> str:
        if kind in ("DaemonSet", "StatefulSet") and group != "apps":
            return ""
        if kind not in (*_REPLICATED, "DaemonSet"):
            return ""
        found = None if self._cluster is None else self._cluster.get(kind, namespace, name)
        if found is None:
            return "ControllerNotFound"
        replicas = (found.get("spec") or {}).get("replicas")
        counts = kind in ("ReplicationController", "ReplicaSet")
        if counts and replicas is not None and replicas < self._flags("min-replica-count"):
            return "MinReplicasReached"
        return ""


def _spent(budgets: Iterable[EvictionBudget]) -> tuple[bool, ...]:
    return tuple([budget.left < 1 for budget in budgets])


def _changes_with_time(pod: Pod) -> bool:
    """Whether time alone may change whether it blocks."""
    return pod.is_terminating or (pod.namespace == "kube-system" and not is_daemon(pod))


def is_long_terminating(pod: Pod, now_ns: int) -> bool:
    """Whether the grace period of its spec, which a deletion may have changed, ended more than half a minute ago."""
    if pod.meta.deletion_ns is None:
        return False
    grace = pod.manifest["spec"].get("terminationGracePeriodSeconds")
    grace_ns = (_DEFAULT_GRACE if grace is None else grace) * 10**9
    return pod.meta.deletion_ns + grace_ns + _LONG_TERMINATING_NS < now_ns


def _is_terminal(pod: Pod) -> bool:
    policy = pod.manifest["spec"].get("restartPolicy")
    if policy == "Never":
        return pod.phase in ("Succeeded", "Failed")
    return policy == "OnFailure" and pod.phase == "Succeeded"


def _has_blocking_storage(pod: Pod, marks: Mapping[str, str]) -> bool:
    safe = {name.strip() for name in marks.get(_LOCAL, "").split(",")}
    return any(_is_local(volume) and volume.get("name") not in safe for volume in pod.volumes)


def _is_local(volume: Document) -> bool:
    empty = volume.get("emptyDir")
    return "hostPath" in volume or (empty is not None and (empty or {}).get("medium") != "Memory")
