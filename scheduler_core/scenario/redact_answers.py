"""Recorded extender answers without names: what the scheduler understands of them, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from scheduler_core.extender import wire
from scheduler_core.extender.go_json import DecodeProblem
from scheduler_core.scenario.mock_extender import HTTP_OK


class Renaming(Protocol):
    """Who knows the new names (`redact`)."""

    def name(self, what: str, value: Any) -> Any: ...

    def pod_name(self, value: Any) -> Any: ...

    def manifest(self, manifest: Mapping[str, Any]) -> dict[str, Any]: ...


NONSENSE = "not what an extender answers"
_FAILURES = (
    "context deadline exceeded", "connection refused", "connection reset by peer", "no such host", "i/o timeout", "EOF",
)  # fmt: skip
"""Ways to fail that give no name away."""


def redacted_call(call: Mapping[str, Any], renaming: Renaming) -> dict[str, Any]:
    """One entry of a cassette, as a document holds it. Its request is not kept: it changes with the names."""
    entry = {key: call[key] for key in ("extender", "verb", "status", "duration") if key in call}
    if "pod" in call:
        entry["pod"] = renaming.pod_name(call["pod"])
    if call.get("error"):
        return {**entry, "error": _failure(call["error"], renaming)}
    if call.get("status", HTTP_OK) != HTTP_OK:
        return entry
    text = call.get("text") or ("" if call.get("answer") is None else json.dumps(call["answer"]))
    try:
        return {**entry, "answer": _ANSWERS[call["verb"]](text, renaming)}
    except DecodeProblem:
        return {**entry, "text": NONSENSE}


def _failure(said: str, renaming: Renaming) -> Any:
    known = next((words for words in _FAILURES if words in said), None)
    return renaming.name("reason", said) if known is None else known


def _filter(text: str, renaming: Renaming) -> dict[str, Any]:
    said = wire.filter_answer(text)
    result: dict[str, Any] = {}
    if said.node_names is not None:
        result["NodeNames"] = [renaming.name("Node", name) for name in said.node_names]
    if said.nodes is not None:
        result["Nodes"] = {"items": [_node(node, renaming) for node in said.nodes]}
    for key, reasons in (
        ("FailedNodes", said.failed),
        ("FailedAndUnresolvableNodes", said.failed_and_unresolvable),
    ):
        if reasons:
            result[key] = {
                renaming.name("Node", node): renaming.name("reason", why) for node, why in reasons.items()
            }
    if said.error:
        result["Error"] = renaming.name("reason", said.error)
    return result


def _node(node: Mapping[str, Any], renaming: Renaming) -> dict[str, Any]:
    named = renaming.manifest({"apiVersion": "v1", "kind": "Node", **node})
    return {key: item for key, item in named.items() if key in node}


def _prioritize(text: str, renaming: Renaming) -> list[dict[str, Any]]:
    return [
        {"Host": renaming.name("Node", node), "Score": points}
        for node, points in wire.prioritize_answer(text)
    ]


def _preempt(text: str, renaming: Renaming) -> dict[str, Any]:
    victims = {
        renaming.name("Node", node): {
            "Pods": [{"UID": _uid(uid, renaming)} for uid in uids],
            "NumPDBViolations": n_violations,
        }
        for node, (uids, n_violations) in wire.preemption_answer(text).items()
    }
    return {"NodeNameToMetaVictims": victims}


def _uid(uid: str, renaming: Renaming) -> Any:
    """A run's own uids are the pod's key, `#2` and so on behind it for a later pod of that key."""
    if "/" not in uid:
        return renaming.name("uid", uid)
    key, mark, generation = uid.partition("#")
    return f"{renaming.pod_name(key)}{mark}{generation}"


def _bind(text: str, renaming: Renaming) -> dict[str, Any]:
    return {"Error": renaming.name("reason", wire.binding_answer(text))}


_ANSWERS = {"filter": _filter, "prioritize": _prioritize, "preempt": _preempt, "bind": _bind}
