"""Rule: a Filter or a Score written as a CEL expression over a pod and a node. Not in any default profile.

A configuration names a rule `Rule/NAME` at filter or score and gives its expression as args:

    pluginConfig:
    - name: Rule/fast-disk
      args: {filter: 'node.metadata.labels.?disk.orValue("") == "ssd"', reason: node(s) had no fast disk}

What a rule sees (`docs/plugins.md` tells it with examples):

| name | what it is |
|---|---|
| `pod` | the Pod that is scheduled: `metadata` (name, namespace, labels, annotations, ownerReferences) and `spec` |
| `node` | the Node: `metadata`, `spec`, of its `status` allocatable, capacity, nodeInfo, conditions (type, status) |
| `pods` | the pods on the node, in order of arrival, each like `pod` |
| `requests` | what the pod asks for, by resource, in whole units: millicores of cpu, bytes, else counts |
| `allocatable`, `requested`, `free` | the same of the node: what it has, what its pods ask for, and the difference |

Labels, annotations and taints are there even where an object has none; a resource that is named is 0 then.
What happens depends on these alone, so a rule decides the same whenever it is asked.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from scheduler_core.cluster.node_table import NodeColumns, Rows
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.config.args import Errors, PluginArgs
from scheduler_core.errors import invalid, required
from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError, Path, calls
from scheduler_core.expressions.syntax import place as place_in
from scheduler_core.framework import interface as fw
from scheduler_core.framework.amounts import Amount, Comparison
from scheduler_core.framework.cluster_event import ClusterEventWithHint, on
from scheduler_core.framework.failure import PluginFailure, invalid_score
from scheduler_core.framework.status import Code, Verdicts
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import Pod
from scheduler_core.objects.quantity import QuantityError, read_quantity

LIMITS: Final = ExpressionLimits(length=4096)
RESOURCE_MAPS: Final = ("requests", "allocatable", "requested", "free")
VARIABLES: Final = ("pod", "node", "pods", *RESOURCE_MAPS)
_METADATA: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
_STATUS: Final = ("allocatable", "capacity", "nodeInfo")
_KEPT: Final = 50_000
"""Answers of one rule that are remembered at most."""
_TOLD: Final = 4
"""Values of what a rule reads that are told behind a rejection at most."""


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Expression:
    expression = Expression(text, LIMITS, VARIABLES)
    for call in calls(expression.tree):
        of = call.parts[0].value if call.value == "quantity" and call.parts else None
        if isinstance(of, str) and call.parts[0].kind == "literal":
            try:
                read_quantity(of)
            except QuantityError as error:
                raise ExpressionError(f'"{of}": {error}', *place_in(text, call.at)) from None
    return expression


@dataclass(frozen=True, slots=True)
class RuleArgs(PluginArgs):
    """A rule: what must hold of a pod and a node, what they score, or both.

    Attributes
    ----------
    filter : str
        True where the pod may run on the node.
    reason : str
        Told where it is not true.
    score : str
        A number from 0 to 100 for the pod on the node; any that is not negative with `normalize`.
    normalize : str
        Highest: the node with the highest number gets 100, the others in proportion. Lowest: the other way round.
    """

    filter: str = ""
    reason: str = ""
    score: str = ""
    normalize: Literal["None", "Highest", "Lowest"] = "None"

    def problems(self, path: str) -> Errors:
        errors: Errors = []
        if not self.filter.strip() and not self.score.strip():
            errors.append(required(f"{path}.filter", "a rule needs a filter or a score, a CEL expression"))
        for field, text in (("filter", self.filter), ("score", self.score)):
            if text.strip():
                try:
                    _compiled(text)
                except ExpressionError as error:
                    errors.append(invalid(f"{path}.{field}", text, str(error)))
        if len(self.reason) > 256:
            errors.append(invalid(f"{path}.reason", self.reason, "may have at most 256 characters"))
        return errors


class _Half:
    """The filter or the score of a rule: its expression, and what of the cluster goes into it.

    Attributes
    ----------
    of_pod, of_node : list of tuple of str
        Fields that are read; the empty path for everything.
    resources : dict
        Variable of `RESOURCE_MAPS` -> resources that are read, None for all.
    """

    def __init__(self, text: str) -> None:
        self.expression = _compiled(text)
        reads = self.expression.reads
        self.of_pod, self.of_node = (
            _shortest(reads[name]) if name in reads else None for name in ("pod", "node")
        )
        self.reads_pods = "pods" in reads
        self.resources: dict[str, tuple[str, ...] | None] = {
            name: None if () in reads[name] else tuple(sorted({path[0] for path in reads[name]}))
            for name in RESOURCE_MAPS
            if name in reads
        }
        self._known: dict[Hashable, Any] = {}
        self._nodes: dict[int, tuple[Node, Any, Hashable]] = {}

    @property
    def reads(self) -> fw.Reads:
        """What of the cluster an answer hangs on."""
        if self.reads_pods or "requested" in self.resources or "free" in self.resources:
            return fw.Reads.USAGE
        return fw.Reads.SPEC

    @property
    def reads_metadata(self) -> bool:
        """Whether it reads more of the pod than its spec and namespace."""
        allowed = ("metadata", "namespace")
        return any(path[:1] != ("spec",) and path[:2] != allowed for path in self.of_pod or ())

    def sign(self, pod: Pod) -> Hashable:
        return (
            None if self.of_pod is None else _key(_picked(pod_document(pod), self.of_pod)),
            tuple(sorted(pod.requests.items())) if self.resources else None,
        )

    def ask(self, pod: Pod, nodes: NodeColumns, rows: Rows) -> list[Any]:
        """What the expression is for each row; an ExpressionError where it fails."""
        document = None if self.of_pod is None else _picked(pod_document(pod), self.of_pod)
        given: dict[str, Any] = {} if document is None else {"pod": document}
        of_pod = self.sign(pod)
        return [self._one(given, of_pod, pod, nodes, row) for row in rows.tolist()]

    def _one(self, given: Mapping[str, Any], of_pod: Hashable, pod: Pod, nodes: NodeColumns, row: int) -> Any:
        variables = dict(given)
        key_of_node: Hashable = None
        if self.of_node is not None:
            variables["node"], key_of_node = self._node(nodes.node(row))
        amounts = []
        for name, wanted in self.resources.items():
            held = resource_map(name, wanted, pod, nodes, row)
            variables[name] = held
            amounts.append(tuple(held.items()))
        if self.reads_pods:
            variables["pods"] = [pod_document(nodes.pods[one]) for one in nodes.pods_on(row)]
            return self._run(variables)
        key = (of_pod, key_of_node, *amounts)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._run(variables)
        return self._known[key]

    def _run(self, variables: Mapping[str, Any]) -> Any:
        try:
            return self.expression.run(variables)
        except ExpressionError as error:
            return error

    def _node(self, node: Node) -> tuple[Any, Hashable]:
        """What is read of a node, and its key; the node itself is kept, so that its id stays its own."""
        known = self._nodes.get(id(node))
        if known is None:
            if len(self._nodes) >= _KEPT:
                self._nodes.clear()
            assert self.of_node is not None
            document = _picked(node_document(node), self.of_node)
            known = self._nodes[id(node)] = node, document, _key(document)
        return known[1:]


class Rule(fw.FilterPlugin[None], fw.ScorePlugin[None]):
    """What a user wrote on the configuration page: nodes that pass, or how many points they get.

    Examples
    --------
    >>> from scheduler_core.framework.example import verdicts
    >>> from scheduler_core.framework.registry import member_of
    >>> fast = member_of(Rule, "Rule/fast-disk")
    >>> args = RuleArgs(filter='node.metadata.labels.?disk.orValue("") == "ssd"', reason="node(s) had no fast disk")
    >>> ssd = {"labels": {"disk": "ssd"}}
    >>> verdicts(fast, {"containers": [{"name": "c"}]}, args=args, n1=ssd, n2={})
    {'n1': 'passes', 'n2': 'node(s) had no fast disk'}
    """

    name: ClassVar[str] = "Rule"
    is_family: ClassVar[bool] = True
    Args = RuleArgs

    def __init__(self, args: Any, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.args: RuleArgs = args
        self.reason = args.reason or f"node(s) didn't satisfy {self.name}"
        self.normalizes = args.normalize != "None"  # type: ignore[misc]
        self._filter = _Half(args.filter) if args.filter.strip() else None
        self._score = _Half(args.score) if args.score.strip() else None
        if self._filter is not None and not self._filter.reads_metadata:
            self.filter_reads = self._filter.reads  # type: ignore[misc]
        if self._score is not None:
            self.score_reads = self._score.reads  # type: ignore[misc]
        self._code = Code.UnschedulableAndUnresolvable
        if self._filter is not None and self._filter.reads is fw.Reads.USAGE:
            # It may hold once pods have left.
            self._code = Code.Unschedulable
        self._errors: dict[str, int] = {}

    def sign(self, pod: Pod) -> Hashable:
        return tuple(half.sign(pod) for half in (self._filter, self._score) if half is not None)

    def events(self) -> list[ClusterEventWithHint]:
        """A rule reads a node, the pods on it, and the pod itself."""
        return [on("Pod", "All"), on("Node", "All")]

    def filter(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> Verdicts:
        codes, details = np.zeros(len(rows), np.int8), np.zeros(len(rows), np.int64)
        if self._filter is None:
            return Verdicts(codes)
        for place, found in enumerate(self._filter.ask(pod, nodes, rows)):
            if found is True:
                continue
            if found is False:
                codes[place] = self._code
                continue
            said = f"{nodes.name(int(rows[place]))}: {_not_a_truth(found)}"
            codes[place] = Code.Error
            details[place] = self._errors.setdefault(said, len(self._errors))
        return Verdicts(codes, details)

    def reasons(
        self, state: None, pod: Pod, nodes: NodeColumns, row: int, code: Code, detail: int
    ) -> tuple[str, ...]:
        return (list(self._errors)[detail] if code is Code.Error else self.reason,)

    def compare(self, state: None, pod: Pod, snapshot: Snapshot) -> Iterable[Comparison]:
        """The values of what the filter reads."""
        half = self._filter
        if half is None:
            return
        rows, nodes = snapshot.rows, snapshot.nodes
        fails = np.isin(self.filter(state, pod, nodes, rows).codes, (self._code,))
        words: list[str | Amount] = []
        for name, wanted in half.resources.items():
            for resource in wanted or ():
                column = [resource_map(name, (resource,), pod, nodes, row)[resource] for row in rows.tolist()]
                words += [f", {name} {resource} ", Amount(np.array(column, np.int64), resource)]
        for path in half.of_node or ():
            texts: dict[str, int] = {}
            column = [_place(texts, node_document(nodes.node(row)), path) for row in rows.tolist()]
            if texts and path:
                words += [f", {path[-1]} ", Amount(np.array(column, np.int64), tuple(texts), "not there")]
        if words:
            words[0] = str(words[0])[2:]
            yield Comparison(fails, tuple(words[: 2 * _TOLD]))

    def score(self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows) -> fw.Scores:
        if self._score is None:
            return np.zeros(len(rows), np.int64)
        found = self._score.ask(pod, nodes, rows)
        scores: NDArray[np.int64] = np.zeros(len(rows), np.int64)
        for place, value in enumerate(found):
            scores[place] = self._whole(value, nodes, int(rows[place]))
        return scores

    def _whole(self, value: Any, nodes: NodeColumns, row: int) -> int:
        if isinstance(value, ExpressionError):
            raise self._failed(nodes, row, str(value))
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._failed(nodes, row, f"the score is {_shown(value)}, not a number")
        number = int(value)
        if self.normalizes and not 0 <= number < 2**53:
            raise self._failed(
                nodes, row, f"the score is {number}; what is normalized is from 0 to {2**53 - 1}"
            )
        if not self.normalizes and not 0 <= number <= 100:
            raise invalid_score(self, number)
        return number

    def _failed(self, nodes: NodeColumns, row: int, said: str) -> PluginFailure:
        said = f"{nodes.name(row)}: {said}"
        return PluginFailure(self.name, "Score", f'running Score plugin "{self.name}": {said}', said)

    def normalize(
        self, state: None, pod: Pod, nodes: NodeColumns, rows: Rows, scores: fw.Scores
    ) -> fw.Scores:
        if not self.normalizes:
            return scores
        return fw.default_normalize(scores, reverse=self.args.normalize == "Lowest")


def _not_a_truth(found: Any) -> str:
    return (
        str(found)
        if isinstance(found, ExpressionError)
        else f"the filter is {_shown(found)}, not true or false"
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- what a rule sees


def pod_document(pod: Pod) -> dict[str, Any]:
    """A pod as rules see it: what is the same before and after it is bound."""
    manifest = pod.manifest
    spec = {key: value for key, value in manifest.get("spec", {}).items() if key != "nodeName"}
    return {"metadata": _metadata(manifest), "spec": spec}


def node_document(node: Node) -> dict[str, Any]:
    """A node as rules see it."""
    manifest = node.manifest
    status = manifest.get("status") or {}
    kept: dict[str, Any] = {name: status[name] for name in _STATUS if name in status}
    kept["conditions"] = [{"type": kind, "status": value} for kind, value in node.conditions]
    return {
        "metadata": _metadata(manifest),
        "spec": {"taints": [], **(manifest.get("spec") or {})},
        "status": kept,
    }


def _metadata(manifest: Mapping[str, Any]) -> dict[str, Any]:
    held = manifest["metadata"]
    found = {name: held[name] for name in _METADATA if held.get(name) is not None}
    return {"labels": {}, "annotations": {}, **found}


def resource_map(
    name: str, wanted: tuple[str, ...] | None, pod: Pod, nodes: NodeColumns, row: int
) -> dict[str, int]:
    """One of `RESOURCE_MAPS`: whole units by resource, those that are `wanted` or all there are."""
    if name == "requests":
        return {one: pod.requests.get(one, 0) for one in (sorted(pod.requests) if wanted is None else wanted)}
    ids = nodes.vocabulary.resources
    if wanted is None:
        wanted = tuple(sorted({*nodes.node(row).allocatable, *pod.requests}))
    held: dict[str, int] = {}
    for one in wanted:
        place = ids.find(one)
        has = int(nodes.allocatable[place, row]) if 0 <= place < len(nodes.allocatable) else 0
        taken = int(nodes.requested[place, row]) if 0 <= place < len(nodes.requested) else 0
        if one == "pods":
            has, taken = int(nodes.allowed_pods[row]), int(nodes.n_pods[row])
        held[one] = {"allocatable": has, "requested": taken}.get(name, has - taken)
    return held


def _shortest(paths: Iterable[Path]) -> list[Path]:
    """Paths without those that lead into another."""
    found: list[Path] = []
    for path in sorted(paths):
        if not any(path[: len(known)] == known for known in found):
            found.append(path)
    return found


def _picked(document: Any, paths: Iterable[Path]) -> Any:
    """The fields of a document that some paths lead to, and what holds them."""
    picked: Any = {}
    for path in paths:
        if not path:
            return document
        into, held = picked, document
        for position, key in enumerate(path):
            if not isinstance(held, Mapping) or key not in held:
                break
            held = held[key]
            if position == len(path) - 1 or not isinstance(held, Mapping):
                into[key] = held
                break
            into = into.setdefault(key, {})
    return picked


def _key(document: Any) -> bytes:
    """Equal for equal documents; version 2 of the format tells nothing about who shares what."""
    return marshal.dumps(document, 2)


def _place(texts: dict[str, int], held: Any, path: Path) -> int:
    """Index of a field's value among the texts so far; -1 if it is absent or no plain value."""
    for key in path:
        if not isinstance(held, Mapping) or key not in held:
            return -1
        held = held[key]
    if isinstance(held, Mapping | list):
        return -1
    return texts.setdefault(str(held), len(texts))
