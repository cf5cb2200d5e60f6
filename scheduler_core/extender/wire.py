"""Bodies of extender requests and what their answers say.

kube-scheduler has sent Go's names (`Pod`, `Nodes`, `NodeNames`, nulls included) since 1.6; before, its types had JSON
tags (`pod`, `nodes`). The documented types kept theirs until 1.17, with `nodenames`, though nothing sent them. Answers
need no such distinction: their keys match in any case.

Source: staging/src/k8s.io/kube-scheduler/extender/v1/types.go, v1.34; plugin/pkg/scheduler/api/types.go, v1.5 and
v1.6; pkg/scheduler/api/v1/types.go, v1.16
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler_core.extender.go_json import DecodeProblem, decode, encode, read_value
from scheduler_core.framework.interface import Victims
from scheduler_core.objects.fields import Document
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod

MetaVictims = tuple[tuple[str, ...], int]
"""The same with uids."""


def pod_document(pod: Pod) -> dict[str, Any]:
    """The pod as the scheduler's cache holds it, printed."""
    return _own_document("Pod", pod.manifest)


def node_document(node: Node, *, answered: bool = False) -> dict[str, Any]:
    """The node, printed.

    Parameters
    ----------
    answered : bool
        It came from an extender and goes on as it was said, `kind` and all.
    """
    if answered:
        printed: dict[str, Any] = encode("Node", node.manifest)
        return printed
    return _own_document("Node", node.manifest)


def _own_document(struct: str, manifest: Document) -> dict[str, Any]:
    printed: dict[str, Any] = encode(struct, manifest)
    # Objects out of a typed cache carry no type, and the scheduler's cache drops managedFields.
    for name in ("kind", "apiVersion"):
        printed.pop(name, None)
    if "managedFields" in printed["metadata"]:
        del printed["metadata"]["managedFields"]
    return printed


# ---- bodies


def candidates_body(
    pod: Document, names: Sequence[str] | None, nodes: Sequence[Document] | None, *, lower_case: bool
) -> dict[str, Any]:
    """ExtenderArgs: of filter and prioritize. Either names or nodes, both in evaluation order."""
    node_list = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    node_names = None if names is None else list(names)
    if not lower_case:
        return {"Pod": pod, "Nodes": node_list, "NodeNames": node_names}
    body: dict[str, Any] = {"pod": pod}
    if node_list is not None:
        body["nodes"] = node_list
    if node_names is not None:
        body["nodenames"] = node_names
    return body


def preemption_body(
    pod: Document, victims: Mapping[str, Victims], *, by_uid: bool, lower_case: bool
) -> dict[str, Any]:
    """ExtenderPreemptionArgs; `by_uid` for extenders that know pods and nodes themselves."""
    pods_key, violations_key, uid_key = (
        ("pods", "numPDBViolations", "uid") if lower_case else ("Pods", "NumPDBViolations", "UID")
    )
    printed = {
        name: {
            pods_key: [{uid_key: pod.uid} if by_uid else pod_document(pod) for pod in pods],
            violations_key: n_violations,
        }
        for name, (pods, n_violations) in victims.items()
    }
    if lower_case:
        return {"pod": pod, "nodeNameToMetaVictims" if by_uid else "nodeToVictims": printed}
    return {
        "Pod": pod,
        "NodeNameToVictims": None if by_uid else printed,
        "NodeNameToMetaVictims": printed if by_uid else None,
    }


def binding_body(pod: Pod, node_name: str) -> dict[str, Any]:
    """ExtenderBindingArgs: the one type that never had JSON tags."""
    return {
        "PodName": pod.meta.name,
        "PodNamespace": pod.meta.namespace,
        "PodUID": pod.uid,
        "Node": node_name,
    }


# ---- answers


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """ExtenderFilterResult.

    Attributes
    ----------
    node_names : tuple of str or None
    nodes : tuple of mapping or None
        Node manifests.
    failed, failed_and_unresolvable : dict of str to str
        Node name -> why.
    """

    node_names: tuple[str, ...] | None
    nodes: tuple[Document, ...] | None
    failed: dict[str, str]
    failed_and_unresolvable: dict[str, str]
    error: str


def filter_answer(text: str) -> FilterAnswer:
    """Raises DecodeProblem."""
    result = decode("ExtenderFilterResult", read_value(text)) or {}
    names, nodes = result.get("NodeNames"), result.get("Nodes")
    return FilterAnswer(
        node_names=None if names is None else tuple(names),
        nodes=None if nodes is None else tuple(nodes.get("items") or ()),
        failed=result.get("FailedNodes") or {},
        failed_and_unresolvable=result.get("FailedAndUnresolvableNodes") or {},
        error=result.get("Error", ""),
    )


def prioritize_answer(text: str) -> list[tuple[str, int]]:
    """HostPriorityList: (node name, score) as they come. Raises DecodeProblem."""
    entries = decode("[HostPriority]", read_value(text)) or []
    return [(entry.get("Host", ""), entry.get("Score", 0)) for entry in entries]


def preemption_answer(text: str) -> dict[str, MetaVictims]:
    """NodeNameToMetaVictims, by node name. Raises DecodeProblem."""
    result = decode("ExtenderPreemptionResult", read_value(text)) or {}
    victims: dict[str, MetaVictims] = {}
    for name, entry in sorted((result.get("NodeNameToMetaVictims") or {}).items()):
        if entry is None or None in (entry.get("Pods") or ()):
            # The real scheduler crashes on it.
            raise DecodeProblem(f"NodeNameToMetaVictims[{name}]: null is not a list of victims")
        uids = tuple(pod.get("UID", "") for pod in entry.get("Pods") or ())
        victims[name] = (uids, entry.get("NumPDBViolations", 0))
    return victims


def binding_answer(text: str) -> str:
    """The error an extender reports of a binding, empty when it is bound. Raises DecodeProblem."""
    error: str = (decode("ExtenderBindingResult", read_value(text)) or {}).get("Error", "")
    return error
