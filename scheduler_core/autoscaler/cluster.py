"""The cluster and its provider as the autoscaler changes them: taints, evictions, machines that go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler_core.autoscaler.templates import DELETION_CANDIDATE, TO_BE_DELETED, prepared
from scheduler_core.objects.node import node_from
from scheduler_core.objects.pod import pod_from

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
    """Objects that loops read and write.

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
        self._objects: dict[tuple[str, str, str], Document] = {}
        self._typed: dict[tuple[str, str, str], tuple[Document, Any]] = {}
        self.group_of = dict(group_of)
        self.blocked: set[str] = set()
        self.log: list[tuple[int, dict[str, Any]]] = []
        self.evicted: list[Document] = []
        for document in objects:
            self.put(document)

    def objects(self) -> list[Document]:
        return list(self._objects.values())

    def of_kind(self, kind: str) -> list[Document]:
        return [document for key, document in self._objects.items() if key[0] == kind]

    def typed(self, kind: str) -> list[Any]:
        """Nodes or pods, parsed: each once."""
        parse, found = {"Node": node_from, "Pod": pod_from}[kind], []
        for key, document in self._objects.items():
            if key[0] != kind:
                continue
            kept = self._typed.get(key)
            if kept is None or kept[0] is not document:
                kept = self._typed[key] = (document, parse(document))
            found.append(kept[1])
        return found

    def put(self, document: Document, typed: Any = None) -> None:
        """Create an object, or put it in place of the one of its name; `typed` is it, parsed, where that is there."""
        made = prepared(document)
        metadata = made["metadata"]
        key = (made["kind"], metadata.get("namespace", ""), metadata["name"])
        self._objects[key] = made
        if typed is not None:
            self._typed[key] = (made, typed)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self._objects.pop((kind, namespace, name), None)
        self._typed.pop((kind, namespace, name), None)

    def get(self, kind: str, namespace: str, name: str) -> Document | None:
        return self._objects.get((kind, namespace, name))

    def set_taints(self, name: str, taints: list[Document], unschedulable: bool, now_ns: int) -> None:
        """Write a node's taints, and whether it is cordoned."""
        node = self._objects["Node", "", name]
        spec = {**(node.get("spec") or {}), "taints": taints}
        if unschedulable:
            spec["unschedulable"] = True
        else:
            spec.pop("unschedulable", None)
        self._objects["Node", "", name] = {**node, "spec": spec}
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
        for key, document in list(self._objects.items()):
            if key[0] == "Pod" and (document.get("spec") or {}).get("nodeName") == name:
                del self._objects[key]
