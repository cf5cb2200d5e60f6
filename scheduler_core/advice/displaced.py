"""Pods an edit takes off their nodes: who brings each of them back, and where it then lands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.objects.kinds import KINDS
from scheduler_core.objects.pod import Pod, pod_from


@dataclass(frozen=True, slots=True)
class Displaced:
    """One pod that has to go.

    Attributes
    ----------
    pod : str
        `namespace/name`.
    owner : str
        `ReplicaSet web`, by its reference; empty where nothing brings the pod back.
    owner_is_there : bool or None
        Whether the owner is among the objects; None for kinds a scheduler does not read.
    node : str or None
        Where the pod that comes in its place lands, once the pending one has its own.
    message : str
        Why it lands nowhere.
    """

    pod: str
    owner: str
    owner_is_there: bool | None
    node: str | None
    message: str

    def document(self) -> dict[str, object]:
        """JSON-able."""
        return {
            "pod": self.pod,
            "owner": self.owner,
            "ownerIsThere": self.owner_is_there,
            "node": self.node,
            "message": self.message,
        }


def owner_is_there(sandbox: Sandbox, pod: Pod) -> bool | None:
    """Whether the pod's controller is among the objects; None without one, and for kinds a scheduler does not read."""
    owner = pod.meta.controller
    if owner is None or owner.kind not in KINDS:
        return None
    return sandbox.scheduler.cache.listers.get(owner.kind, pod.namespace, owner.name) is not None


def landings(sandbox: Sandbox, pending: Pod, node_name: str, going: Sequence[Pod]) -> tuple[Displaced, ...]:
    """What becomes of pods that make room for `pending` on a node: the most important is tried first.

    Pods that are ending anyway are left out.
    """
    found: list[Displaced] = []
    leaving = sorted(
        (pod for pod in going if not pod.is_terminating), key=lambda pod: (-pod.priority, pod.key)
    )
    with ExitStack() as made:
        made.enter_context(sandbox.without_pods([pod.uid for pod in leaving]))
        made.enter_context(sandbox.with_pod_on(pending, node_name))
        for pod in leaving:
            owner = pod.meta.controller
            waits = sandbox.scheduler.waiting_pods.get(pod.uid) is not None
            if owner is None and not waits:
                found.append(Displaced(pod.key, "", None, None, "it has no owner that recreates it"))
                continue
            words = "" if owner is None else f"{owner.kind} {owner.name}"
            is_there = owner_is_there(sandbox, pod)
            if pod.scheduler_name not in sandbox.scheduler.profiles:
                message = f"its scheduler {pod.scheduler_name} is not here"
                found.append(Displaced(pod.key, words, is_there, None, message))
                continue
            spec = {key: value for key, value in pod.manifest["spec"].items() if key != "nodeName"}
            again = pod_from({**pod.manifest, "spec": spec, "status": {}})
            decision = sandbox.decide(again)
            if decision.node_name is None or decision.error is not None:
                message = decision.fit_error or decision.error or ""
                found.append(Displaced(pod.key, words, is_there, None, message))
                continue
            made.enter_context(sandbox.with_pod_on(again, decision.node_name))
            found.append(Displaced(pod.key, words, is_there, decision.node_name, ""))
    return tuple(found)
