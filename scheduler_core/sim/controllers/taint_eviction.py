"""Taint eviction: pods leave nodes whose NoExecute taints they do not tolerate, or not for so long.

Source: pkg/controller/tainteviction/taint_eviction.go, v1.34
"""

from __future__ import annotations

from typing import ClassVar

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.node import Node, Taint
from scheduler_core.objects.pod import DISRUPTION_TARGET, Pod
from scheduler_core.sim.controllers.base import Controller, ControllerContext
from scheduler_core.sim.kubelet import delete_pod
from scheduler_core.sim.world import Noticed, with_condition

EVICT = "taint-eviction"


class TaintEvictionController(Controller):
    """Looks at pods that came to a node, and at all pods of a node whose NoExecute taints changed."""

    watches: ClassVar[tuple[str, ...]] = ("Pod", "Node")
    timer_names: ClassVar[tuple[str, ...]] = (EVICT,)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._nodes: dict[str, None] = {}
        self._pods: dict[tuple[str, str], None] = {}
        self._tainted: dict[str, None] = {}
        """Nodes with NoExecute taints: a pod on any other node costs one look-up."""

    def concerns(self, change: Noticed) -> bool:
        return bool(self._tainted) or change.kind != "Pod"

    def noticed(self, change: Noticed) -> None:
        if change.kind == "Node":
            self._node_noticed(change)
            return
        if change.new is None:
            if change.old is not None and change.old.typed.node_name in self._tainted:
                self._cancel(change.old.typed)
            return
        pod: Pod = change.new.typed
        if pod.node_name not in self._tainted:
            return
        old: Pod | None = None if change.old is None else change.old.typed
        if (
            old is None
            or old.node_name != pod.node_name
            or old.tolerations != pod.tolerations
            or old.uid != pod.uid
        ):
            self._pods[(pod.namespace, pod.name)] = None

    def _node_noticed(self, change: Noticed) -> None:
        stored = change.new or change.old
        assert stored is not None
        name: str = stored.typed.name
        if change.new is None:
            self._tainted.pop(name, None)
            return
        old, new = (() if item is None else _no_execute(item.typed) for item in (change.old, change.new))
        if new:
            self._tainted[name] = None
        else:
            self._tainted.pop(name, None)
        if old != new:
            self._nodes[name] = None

    def restored(self) -> None:
        self._nodes.clear()
        self._pods.clear()

    def sync(self) -> bool:
        if not self._nodes and not self._pods:
            return False
        nodes, self._nodes = list(self._nodes), {}
        pods, self._pods = dict(self._pods), {}
        for name in nodes:
            on_node = self.pods.on_node(name)
            for key in sorted(on_node):
                pods[(on_node[key].namespace, on_node[key].name)] = None
        for namespace, name in pods:
            pod = self.world.pod(namespace, name)
            stored = None if pod is None else self.world.get("Node", "", pod.node_name)
            if pod is not None and stored is not None:
                self._look_at(pod, stored.typed)
        return True

    def _look_at(self, pod: Pod, node: Node) -> None:
        taints = _no_execute(node)
        if not taints or pod.is_terminating or pod.is_terminal:
            self._cancel(pod)
            return
        seconds: int | None = None
        for taint in taints:
            used = [item for item in pod.tolerations if item.tolerates(taint)]
            if not used:
                self._evict(pod)
                return
            for item in used:
                if item.toleration_seconds is not None:
                    seconds = (
                        item.toleration_seconds if seconds is None else min(seconds, item.toleration_seconds)
                    )
        if seconds is None:
            self._cancel(pod)
        elif seconds <= 0:
            self._evict(pod)
        elif not self.timers.is_set(EVICT, *_subject(pod)):
            # A timer that runs goes on: another taint does not begin the wait anew.
            self.timers.add(self.world.clock.now_ns + seconds * SECOND_NS, EVICT, *_subject(pod))

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        namespace, name, uid = subject
        pod = self.world.pod(namespace, name)
        if pod is not None and pod.uid == uid and not pod.is_terminating and not pod.is_terminal:
            self._evict(pod)

    def _cancel(self, pod: Pod) -> None:
        self.timers.cancel(EVICT, *_subject(pod))

    def _evict(self, pod: Pod) -> None:
        self._cancel(pod)
        message = "Taint manager: deleting due to NoExecute taint"
        self.world.record_event(
            pod.manifest,
            "Normal",
            "TaintManagerEviction",
            "Deleting",
            f"Marking for deletion Pod {pod.key}",
            "taint-eviction-controller",
        )
        status = dict(pod.manifest.get("status") or {})
        status["conditions"] = with_condition(
            status,
            {
                "type": DISRUPTION_TARGET,
                "status": "True",
                "reason": "DeletionByTaintManager",
                "message": message,
                "lastTransitionTime": format_seconds(self.world.clock.now_ns),
            },
        )
        delete_pod(self.world, self.world.patch_status(pod, status, "taint eviction"), None, "taint eviction")


def _subject(pod: Pod) -> tuple[str, str, str]:
    return (pod.namespace, pod.name, pod.uid)


def _no_execute(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.effect == "NoExecute")
