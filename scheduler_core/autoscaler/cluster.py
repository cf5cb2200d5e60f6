"""The cluster and its provider as the autoscaler changes them: taints, evictions, machines that go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler_core.autoscaler.templates import DELETION_CANDIDATE, TO_BE_DELETED, is_expendable, prepared
from scheduler_core.objects.node import Node, node_from
from scheduler_core.objects.pod import Pod, pod_from

Document = Mapping[str, Any]


class ProgramEvent(NamedTuple):
    """What the program says about an object: the Event, but for its time; as text it is a line of the real one's log.

    Attributes
    ----------
    key : str
        `namespace/name`, of a node its name.
    type : str
        Normal or Warning.
    """

    kind: str
    key: str
    type: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {self.type} {self.reason}: {self.message}"


class LiveCluster:
    """Objects that loops read and write; what is asked of one node is kept until something changes there.

    Attributes
    ----------
    group_of : dict of str to str
        Node -> group; a node that is not named is not autoscaled.
    blocked : set of str
        Pods whose eviction is refused now, `namespace/name`.
    log : list of (int, dict)
        What was done, and when.
    """

    def __init__(self, objects: Iterable[Document], group_of: Mapping[str, str]) -> None:
        self._objects: dict[str, dict[tuple[str, str], Document]] = {}
        self._pods: dict[tuple[str, str], Pod] = {}
        self._on: dict[str, dict[tuple[str, str], Pod]] = {}
        """Node, or an empty name -> its pods."""
        self._listed: dict[str, tuple[int, tuple[Pod, ...]]] = {}
        self._nodes: dict[str, Node] = {}
        self._in_order: list[Node] | None = None
        self.group_of = dict(group_of)
        self.blocked: set[str] = set()
        self.log: list[tuple[int, dict[str, Any]]] = []
        self.evicted: list[Document] = []
        for document in objects:
            self.put(document)

    def objects(self) -> list[Document]:
        return [document for some in self._objects.values() for document in some.values()]

    def of_kind(self, kind: str) -> list[Document]:
        return list(self._objects.get(kind, {}).values())

    def nodes(self) -> list[Node]:
        """By name."""
        if self._in_order is None:
            found = self._objects.get("Node", {})
            for (_, name), document in found.items():
                if name not in self._nodes:
                    self._nodes[name] = node_from(document)
            self._in_order = sorted((self._nodes[name] for _, name in found), key=lambda node: node.name)
        return self._in_order

    def pods_on(self, node: str, cutoff: int) -> tuple[Pod, ...]:
        """Pods of a node that have not ended and are worth a node, by name; the same tuple until one changes."""
        kept = self._listed.get(node)
        if kept is None or kept[0] != cutoff:
            found = [
                pod
                for pod in self._on.get(node, {}).values()
                if not pod.is_terminal and not is_expendable(pod, cutoff)
            ]
            found.sort(key=lambda pod: (pod.namespace, pod.name))
            kept = self._listed[node] = (cutoff, tuple(found))
        return kept[1]

    def unplaced(self) -> list[Pod]:
        """Pods that are on no node, by name."""
        return sorted(self._on.get("", {}).values(), key=lambda pod: (pod.namespace, pod.name))

    def put(self, document: Document, typed: Pod | None = None) -> None:
        """Create an object, or put it in place of the one of its name; a pod may be given parsed, too."""
        made = prepared(document)
        kind, metadata = made["kind"], made["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        self._changes(kind, key)
        self._objects.setdefault(kind, {})[key] = made
        if kind == "Pod":
            pod = self._pods[key] = pod_from(made) if typed is None else typed
            self._on.setdefault(pod.node_name, {})[key] = pod
            self._listed.pop(pod.node_name, None)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self._changes(kind, (namespace, name))
        self._objects.get(kind, {}).pop((namespace, name), None)

    def _changes(self, kind: str, key: tuple[str, str]) -> None:
        """Forget what was kept of an object."""
        if kind == "Node":
            self._nodes.pop(key[1], None)
            self._in_order = None
        elif kind == "Pod" and (pod := self._pods.pop(key, None)) is not None:
            del self._on[pod.node_name][key]
            self._listed.pop(pod.node_name, None)

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def set_taints(self, name: str, taints: list[Document], unschedulable: bool, now_ns: int) -> None:
        """Write a node's taints, and whether it is cordoned."""
        node = self._objects["Node"]["", name]
        spec = {**(node.get("spec") or {}), "taints": taints}
        if unschedulable:
            spec["unschedulable"] = True
        else:
            spec.pop("unschedulable", None)
        self._changes("Node", ("", name))
        self._objects["Node"]["", name] = {**node, "spec": spec}
        own = [taint for taint in taints if taint["key"] in (TO_BE_DELETED, DELETION_CANDIDATE)]
        told = [f"{taint['key']}:{taint['effect']}" for taint in own]
        self.log.append((now_ns, {"node": name, "taints": told, "unschedulable": unschedulable}))

    def evict(self, key: str, now_ns: int) -> bool:
        """Evict a pod; False where it is refused. One that is gone counts as evicted."""
        namespace, _, name = key.partition("/")
        pod = self.get("Pod", namespace, name)
        if pod is None:
            return True
        if key in self.blocked:
            self.log.append((now_ns, {"evictRefused": key}))
            return False
        self.log.append((now_ns, {"evict": key}))
        self.delete("Pod", namespace, name)
        self.evicted.append(pod)
        return True

    def is_ending(self, key: str) -> bool:
        """Whether an evicted pod has ended, or takes its grace period to: its node waits for it."""
        return False

    def delete_node(self, name: str, group: str, now_ns: int) -> None:
        """The machine goes, and what is on it."""
        self.log.append((now_ns, {"deleteNode": name, "group": group}))
        self.delete("Node", "", name)
        self.group_of.pop(name, None)
        for key in list(self._on.pop(name, {})):
            del self._pods[key], self._objects["Pod"][key]
        self._listed.pop(name, None)
