"""A small rule-based extender: what it answers to filter, prioritize, preempt and bind, from rules a person writes.

`MockExtender.reply` is the engine and knows no transport: the playground's own HTTP extender and the transport of
a replay (`MockTransport`) both call it, so a rule means the same in either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_core.extender.transport import ExtenderAnswer, ExtenderRequest
from scheduler_core.scenario.form import declare

VERBS = ("filter", "prioritize", "preempt", "bind")
HTTP_OK = 200
LabelsOf = Callable[[str], Mapping[str, str] | None]
"""Labels of a node by name, or of a pod by uid; None for an unknown one."""


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Which pods a rule is about; all that is written must hold."""

    pods: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)

    def holds(self, pod: Mapping[str, Any]) -> bool:
        """Whether a pod's manifest is meant."""
        meta = pod.get("metadata") or {}
        key = f"{meta.get('namespace') or 'default'}/{meta.get('name', '')}"
        return (not self.pods or key in self.pods) and carries(meta.get("labels"), self.labels)


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """Which nodes an action is about; all that is written must hold."""

    nodes: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)

    def means(self, name: str, labels_of: LabelsOf) -> bool:
        """Whether a node is meant."""
        return (not self.nodes or name in self.nodes) and (
            not self.labels or carries(labels_of(name), self.labels)
        )


@dataclass(frozen=True, slots=True)
class Deny(NodeMatch):
    """Filter: these nodes do not pass."""

    reason: str = "denied by the mock extender"
    unresolvable: bool = False


@dataclass(frozen=True, slots=True)
class ScoreRule(NodeMatch):
    """Prioritize: points these nodes get, added up over rules."""

    points: int = 10


@dataclass(frozen=True, slots=True)
class Drop(NodeMatch):
    """Preempt: candidate nodes taken back, or victims spared."""

    victims: PodMatch | None = None


@dataclass(frozen=True, slots=True)
class BindRule:
    """Bind: what is answered."""

    error: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Any verb: an HTTP status that is no success, or no answer at all."""

    status: int = 500
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Slow:
    """Any verb: the answer takes virtual time; longer than the extender's httpTimeout is a timeout."""

    by_ns: int = 0


@dataclass(frozen=True, slots=True)
class Nonsense:
    """Any verb: status 200 and a body that means nothing."""

    text: str = "<html>It works!</html>"


ACTIONS = ("deny", "score", "drop", "bind", "fail", "slow", "nonsense")
_VERB_OF = {"deny": "filter", "score": "prioritize", "drop": "preempt", "bind": "bind"}


@dataclass(frozen=True, slots=True)
class MockRule:
    """One rule: when it holds, and one thing it does."""

    verbs: tuple[str, ...] = ()
    pod: PodMatch | None = None
    after: int = 0
    times: int | None = None
    deny: Deny | None = None
    score: ScoreRule | None = None
    drop: Drop | None = None
    bind: BindRule | None = None
    fail: Fail | None = None
    slow: Slow | None = None
    nonsense: Nonsense | None = None

    @staticmethod
    def problem(document: Mapping[str, Any]) -> str | None:
        n_actions = sum(name in document for name in ACTIONS)
        return None if n_actions == 1 else f"a rule does exactly one of {', '.join(ACTIONS)}, not {n_actions}"

    def holds(self, verb: str, pod: Mapping[str, Any] | None, call: int) -> bool:
        """Whether the rule is about the `call`th call (from 0) of this verb."""
        own = next((wanted for name, wanted in _VERB_OF.items() if getattr(self, name) is not None), verb)
        if own != verb or (self.verbs and verb not in self.verbs) or call < self.after:
            return False
        if self.times is not None and call >= self.after + self.times:
            return False
        return self.pod is None or pod is None or self.pod.holds(pod)


@dataclass(frozen=True, slots=True)
class MockReply:
    """What is sent back, and when.

    Attributes
    ----------
    error : str
        Instead of an answer the connection fails with these words.
    """

    status: int = HTTP_OK
    text: str = ""
    error: str = ""
    delay_ns: int = 0


@dataclass(frozen=True, slots=True)
class MockExtender:
    """An extender made of rules, in order; the first rule that fails or talks nonsense ends it."""

    extender: int = 0
    rules: tuple[MockRule, ...] = ()

    def reply(
        self,
        verb: str,
        body: Mapping[str, Any],
        call: int = 0,
        *,
        node_labels: LabelsOf | None = None,
        pod_of_uid: Callable[[str], Mapping[str, Any] | None] | None = None,
    ) -> MockReply:
        """Answer one request.

        Parameters
        ----------
        verb : {"filter", "prioritize", "preempt", "bind"}
        body : mapping
            The request's JSON; its keys are found in any case (the Policy era's requests too).
        call : int
            How many calls of this verb came before.
        node_labels : callable, optional
            Labels of nodes the request only names (nodeCacheCapable extenders).
        pod_of_uid : callable, optional
            Manifests of pods the request only names by uid.
        """
        fields = {key.lower(): value for key, value in body.items()}
        pod = fields.get("pod")
        if pod is None and verb == "bind" and pod_of_uid is not None:
            pod = pod_of_uid(str(fields.get("poduid", "")))
        rules = [rule for rule in self.rules if rule.holds(verb, pod, call)]
        delay_ns = sum(rule.slow.by_ns for rule in rules if rule.slow is not None)
        for rule in rules:
            if rule.fail is not None:
                return MockReply(
                    0 if rule.fail.error else rule.fail.status, rule.fail.text, rule.fail.error, delay_ns
                )
            if rule.nonsense is not None:
                return MockReply(HTTP_OK, rule.nonsense.text, "", delay_ns)
        known = _nodes_of(fields)

        def labels_of(name: str) -> Mapping[str, str] | None:
            if name in known:
                found: Mapping[str, str] = (known[name].get("metadata") or {}).get("labels") or {}
                return found
            return None if node_labels is None else node_labels(name)

        match verb:
            case "filter":
                answer: Any = _filter(rules, fields, known, labels_of)
            case "prioritize":
                answer = _prioritize(rules, fields, known, labels_of)
            case "preempt":
                answer = _preempt(rules, fields, labels_of, pod_of_uid)
            case _:
                answer = {"Error": next((rule.bind.error for rule in rules if rule.bind is not None), "")}
        return MockReply(HTTP_OK, json.dumps(answer, separators=(",", ":")), "", delay_ns)


def _nodes_of(fields: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    items = (fields.get("nodes") or {}).get("items") or ()
    return {str(item["metadata"]["name"]): item for item in items}


def _names_of(fields: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    return list(known) or [str(name) for name in fields.get("nodenames") or ()]


def _filter(
    rules: Sequence[MockRule], fields: Mapping[str, Any], known: Mapping[str, Any], labels_of: LabelsOf
) -> dict[str, Any]:
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    left = []
    for name in _names_of(fields, known):
        deny = next(
            (rule.deny for rule in rules if rule.deny is not None and rule.deny.means(name, labels_of)),
            None,
        )
        if deny is None:
            left.append(name)
        else:
            (unresolvable if deny.unresolvable else failed)[name] = deny.reason
    answer: dict[str, Any] = {"Nodes": None, "NodeNames": None}
    if fields.get("nodes") is not None:
        answer["Nodes"] = {"items": [known[name] for name in left]}
    else:
        answer["NodeNames"] = left
    return {**answer, "FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable, "Error": ""}


def _prioritize(
    rules: Sequence[MockRule], fields: Mapping[str, Any], known: Mapping[str, Any], labels_of: LabelsOf
) -> list[dict[str, Any]]:
    return [
        {
            "Host": name,
            "Score": sum(
                rule.score.points
                for rule in rules
                if rule.score is not None and rule.score.means(name, labels_of)
            ),
        }
        for name in _names_of(fields, known)
    ]


def _preempt(
    rules: Sequence[MockRule],
    fields: Mapping[str, Any],
    labels_of: LabelsOf,
    pod_of_uid: Callable[[str], Mapping[str, Any] | None] | None,
) -> dict[str, Any]:
    candidates = fields.get("nodenametovictims") or fields.get("nodetovictims") or {}
    candidates = candidates or fields.get("nodenametometavictims") or {}
    drops = [rule.drop for rule in rules if rule.drop is not None]
    result: dict[str, Any] = {}
    for name, victims in candidates.items():
        if any((drop.nodes or drop.labels) and drop.means(name, labels_of) for drop in drops):
            continue
        entry = {key.lower(): value for key, value in victims.items()}
        kept = []
        for pod in entry.get("pods") or ():
            uid = str(pod.get("UID") or pod.get("uid") or (pod.get("metadata") or {}).get("uid") or "")
            manifest = pod if "metadata" in pod else None if pod_of_uid is None else pod_of_uid(uid)
            spared = manifest is not None and any(
                drop.victims is not None and drop.victims.holds(manifest) for drop in drops
            )
            if not spared:
                kept.append({"UID": uid})
        result[name] = {"Pods": kept, "NumPDBViolations": entry.get("numpdbviolations", 0)}
    return {"NodeNameToMetaVictims": result}


def carries(labels: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    """Whether all wanted labels are there."""
    return all((labels or {}).get(key) == value for key, value in wanted.items())


class MockTransport:
    """Extenders of rules as `extender.Transport`; time passes only in the answers' durations.

    Parameters
    ----------
    extenders : sequence of MockExtender
    node_labels, pod_of_uid : callable, optional
        See `MockExtender.reply`.
    """

    def __init__(
        self,
        extenders: Sequence[MockExtender],
        node_labels: LabelsOf | None = None,
        pod_of_uid: Callable[[str], Mapping[str, Any] | None] | None = None,
    ) -> None:
        self._extenders = {extender.extender: extender for extender in extenders}
        self._node_labels = node_labels
        self._pod_of_uid = pod_of_uid
        self._calls: dict[tuple[int, str], int] = {}

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        return [self.answer(request) for request in requests]

    def knows(self, extender_index: int) -> bool:
        return extender_index in self._extenders

    def answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        extender = self._extenders.get(request.extender_index)
        if extender is None:
            return ExtenderAnswer(error=f'Post "{request.url}": dial tcp: connect: connection refused')
        key = (request.extender_index, request.verb)
        call = self._calls.get(key, 0)
        self._calls[key] = call + 1
        reply = extender.reply(
            request.verb, request.body, call, node_labels=self._node_labels, pod_of_uid=self._pod_of_uid
        )
        if reply.delay_ns >= request.timeout_ns > 0:
            said = f'Post "{request.url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            return ExtenderAnswer(error=said, duration_ns=request.timeout_ns)
        if reply.error:
            return ExtenderAnswer(error=f'Post "{request.url}": {reply.error}', duration_ns=reply.delay_ns)
        return ExtenderAnswer(reply.status, reply.text, None, reply.delay_ns)


for _part in (PodMatch, Deny, ScoreRule, Drop, BindRule, Fail, Slow, Nonsense, MockRule, MockExtender):  # fmt: skip
    declare(_part)
