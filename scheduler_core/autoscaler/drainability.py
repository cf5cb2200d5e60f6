"""Which pods keep a node, by twelve rules asked in order; the first that answers decides.

Source: cluster-autoscaler/simulator/drainability/rules, simulator/drain.go, utils/drain/drain.go, k8s 1.36
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from scheduler_core.objects.duration import parse_duration_ns
from scheduler_core.objects.fields import SelectorError
from scheduler_core.objects.labels import NOTHING, label_selector_from
from scheduler_core.objects.pod import Pod

Document = Mapping[str, Any]
_PREFIX: Final = "cluster-autoscaler.kubernetes.io/"
SAFE: Final = f"{_PREFIX}safe-to-evict"
_LOCAL: Final = f"{_PREFIX}safe-to-evict-local-volumes"
_MIRROR: Final = "kubernetes.io/config.mirror"
_REPLICATED: Final = ("ReplicationController", "Job", "ReplicaSet", "StatefulSet")
_LONG_TERMINATING_NS: Final = 30 * 10**9
_DEFAULT_GRACE: Final = 30
Answer = Literal["", "skip", "ok", "wait"]


class DrainBudgets:
    """PodDisruptionBudgets, and what they still allow."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._budgets: list[tuple[str, Any, list[int]]] = []
        for document in documents:
            try:
                selector = label_selector_from((document.get("spec") or {}).get("selector"))
            except SelectorError:
                selector = NOTHING
            allowed = (document.get("status") or {}).get("disruptionsAllowed", 0)
            self._budgets.append((document["metadata"].get("namespace", "default"), selector, [allowed]))

    def of(self, pod: Pod) -> list[list[int]]:
        """What each of the pod's budgets allows, as a cell that may be changed."""
        return [
            cell
            for namespace, selector, cell in self._budgets
            if namespace == pod.namespace and selector.matches(pod.labels)
        ]

    def allows_together(self, pods: Iterable[Pod]) -> bool:
        """Whether all of the pods may go at once."""
        counts: dict[int, int] = {}
        for pod in pods:
            for cell in self.of(pod):
                counts[id(cell)] = counts.get(id(cell), 0) + 1
                if cell[0] < counts[id(cell)]:
                    return False
        return True

    def take(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            for cell in self.of(pod):
                cell[0] -= 1


@dataclass
class PodsToMove:
    """A node's pods when it is to go."""

    pods: list[Pod] = field(default_factory=list)
    on_completion: list[Pod] = field(default_factory=list)
    blocking: Pod | None = None
    reason: str = ""


def pods_to_move(
    pods: Iterable[Pod],
    now_ns: int,
    option: Callable[[str], Any],
    controllers: Mapping[tuple[str, str, str], Document] | None,
    budgets: DrainBudgets | None,
) -> PodsToMove:
    """Sort a node's pods; the first that blocks ends it.

    Parameters
    ----------
    controllers : mapping or None
        (kind, namespace, name) -> object; None where it does not matter.
    budgets : DrainBudgets or None
        None for none at all.
    """
    found = PodsToMove()
    for pod in pods:
        answer, blocked = _asked(pod, now_ns, option, controllers, budgets or DrainBudgets(()))
        if blocked:
            found.blocking, found.reason = pod, blocked
            return found
        if answer == "wait":
            found.on_completion.append(pod)
        elif answer != "skip" and not _is_of_daemon_set(pod):
            found.pods.append(pod)
    return found


def _asked(
    pod: Pod,
    now_ns: int,
    option: Callable[[str], Any],
    controllers: Mapping[tuple[str, str, str], Document] | None,
    budgets: DrainBudgets,
) -> tuple[Answer, str]:
    marks = pod.manifest["metadata"].get("annotations") or {}
    if _MIRROR in marks or is_long_terminating(pod, now_ns):
        return "skip", ""
    custom = option("skip-nodes-with-custom-controller-pods")
    if custom and controllers is not None and (why := _controller_problem(pod, controllers, option)):
        return "", why
    safe = marks.get(SAFE)
    if _is_of_daemon_set(pod) or safe == "true" or _is_terminal(pod):
        return "ok", ""
    if safe == "on-completion":
        return "wait", ""
    controller = pod.meta.controller
    if controller is None or (custom and controller.kind not in _REPLICATED):
        return "", "NotReplicated"
    if option("skip-nodes-with-system-pods") and pod.namespace == "kube-system" and not budgets.of(pod):
        timeout_ns = parse_duration_ns(str(option("blocking-system-pod-distruption-timeout")))
        created_ns = pod.meta.creation_ns
        if created_ns is not None and now_ns > created_ns + timeout_ns:
            return "ok", ""
        return "", "UnmovableKubeSystemPod"
    if safe == "false":
        return "", "NotSafeToEvictAnnotation"
    if option("skip-nodes-with-local-storage") and _has_blocking_storage(pod, marks):
        return "", "LocalStorageRequested"
    if any(cell[0] < 1 for cell in budgets.of(pod)):
        return "", "NotEnoughPdb"
    return "", ""


def _is_of_daemon_set(pod: Pod) -> bool:
    controller = pod.meta.controller
    if controller is not None and controller.kind == "DaemonSet":
        return True
    return (pod.manifest["metadata"].get("annotations") or {}).get(f"{_PREFIX}daemonset-pod") == "true"


def is_long_terminating(pod: Pod, now_ns: int) -> bool:
    """Whether its grace ended more than half a minute ago."""
    if pod.meta.deletion_ns is None:
        return False
    spec, metadata = pod.manifest["spec"], pod.manifest["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    grace_ns = (_DEFAULT_GRACE if grace is None else grace) * 10**9
    return pod.meta.deletion_ns + grace_ns + _LONG_TERMINATING_NS < now_ns


def _is_terminal(pod: Pod) -> bool:
    policy = pod.manifest["spec"].get("restartPolicy")
    if policy == "Never":
        return pod.phase in ("Succeeded", "Failed")
    return policy == "OnFailure" and pod.phase == "Succeeded"


def _controller_problem(
    pod: Pod, controllers: Mapping[tuple[str, str, str], Document], option: Callable[[str], Any]
) -> str:
    controller = pod.meta.controller
    if controller is None:
        return ""
    kind = controller.kind
    if kind in ("DaemonSet", "StatefulSet") and controller.api_version.partition("/")[0] != "apps":
        return ""
    if kind not in (*_REPLICATED, "DaemonSet"):
        return ""
    found = controllers.get((kind, pod.namespace, controller.name))
    if found is None:
        return "ControllerNotFound"
    replicas = (found.get("spec") or {}).get("replicas")
    counts = kind in ("ReplicationController", "ReplicaSet")
    if counts and replicas is not None and replicas < option("min-replica-count"):
        return "MinReplicasReached"
    return ""


def _has_blocking_storage(pod: Pod, marks: Mapping[str, str]) -> bool:
    safe = {name.strip() for name in marks.get(_LOCAL, "").split(",")}
    return any(_is_local(volume) and volume.get("name") not in safe for volume in pod.volumes)


def _is_local(volume: Document) -> bool:
    empty = volume.get("emptyDir")
    return "hostPath" in volume or (empty is not None and (empty or {}).get("medium") != "Memory")
