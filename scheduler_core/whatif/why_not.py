"""'Why not this node?': every filter's verdict with the values behind it, and score by score why it lost.

All filters are asked, also past the first that rejects the node: each alone, with its own PreFilter. The values are
words about what the pod asks and what the node has; whether a node passes is always the plugin's own verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler_core.cluster.node_table import normal_port
from scheduler_core.cluster.snapshot import Snapshot
from scheduler_core.errors import CannotAnswer
from scheduler_core.fork import Fork
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.interface import FilterPlugin, Plugin, PreFilterPlugin
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import AffinityTerm, Pod
from scheduler_core.objects.resources import amount_text
from scheduler_core.records import Documented
from scheduler_core.schedule_one import Decision
from scheduler_core.whatif.cluster_edits import is_about
from scheduler_core.whatif.fixes import amount_words
from scheduler_core.whatif.pod_edits import CORDON, KEEPS_OFF, REQUIRED, requirement_words

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Value(Documented):
    """One comparison.

    Attributes
    ----------
    about : str
        What is compared where a plugin compares several things: a resource, a label key; else empty.
    asks, has : str
    ok : bool or None
        None where it does not decide by itself (one of several alternatives).
    short : str
        What is missing, in words; empty when nothing is or it is no amount.
    with_nominated : str
        `has` with nominated pods of equal or higher priority counted; empty when there are none.
    """

    about: str
    asks: str
    has: str
    ok: bool | None
    short: str = ""
    with_nominated: str = ""


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod, a node, and who else is nominated to the node.

    Attributes
    ----------
    nominated : tuple of Pod
        Of equal or higher priority, the pod itself left out.
    """

    pod: Pod
    snapshot: Snapshot
    row: int
    nominated: tuple[Pod, ...] = ()

    @property
    def node(self) -> Node:
        return self.snapshot.nodes.node(self.row)


def values_of(plugin: Plugin, place: PodOnNode, state: Any) -> list[Value]:
    """What `plugin` compared; empty where this module has no words for what it declares (`Plugin.compares`)."""
    words = _WORDS.get(plugin.compares)
    return [] if words is None else list(words(place, state))


def _unschedulable(place: PodOnNode, state: Any) -> Iterator[Value]:
    cordoned = place.node.unschedulable
    tolerates = place.pod.tolerates(CORDON)
    asks = "tolerates cordoned nodes" if tolerates else "no toleration for cordoned nodes"
    yield Value("", asks, f"spec.unschedulable: {str(cordoned).lower()}", tolerates or not cordoned)


def _node_name(place: PodOnNode, state: Any) -> Iterator[Value]:
    wanted = place.pod.node_name
    yield Value(
        "",
        f"spec.nodeName: {wanted}" if wanted else "no spec.nodeName",
        place.node.name,
        wanted in ("", place.node.name),
    )


def _taints(place: PodOnNode, state: Any) -> Iterator[Value]:
    hard = [taint for taint in place.node.taints if taint.effect in KEEPS_OFF]
    for taint in hard:
        matching = next((item for item in place.pod.tolerations if item.tolerates(taint)), None)
        if matching is None:
            asks = "no matching toleration"
        else:
            key = matching.key or "every taint"
            asks = f"tolerates {key}={matching.value}" if matching.value else f"tolerates {key}"
        yield Value(taint.key, asks, str(taint), matching is not None)
    if not hard:
        yield Value("", _tolerated(place.pod), "no taints that keep pods off", True)


def _tolerated(pod: Pod) -> str:
    names = [item.key or "every taint" for item in pod.tolerations]
    return f"tolerates {', '.join(dict.fromkeys(names))}" if names else "no tolerations"


def _affinity(place: PodOnNode, state: Any) -> Iterator[Value]:
    labels, spec = place.node.meta.labels, place.pod.manifest.get("spec") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield Value(key, f"{key}={value}", _label(labels, key), labels.get(key) == value)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or []
    for index, term in enumerate(terms):
        number = f"term {index + 1} of {len(terms)}: " if len(terms) > 1 else ""
        for requirement in term.get("matchExpressions") or ():
            key = str(requirement.get("key"))
            yield Value(key, number + requirement_words(requirement), _label(labels, key), None)
        for requirement in term.get("matchFields") or ():
            yield Value(
                str(requirement.get("key")), number + requirement_words(requirement), place.node.name, None
            )


def _label(labels: Mapping[str, str], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else f"no label {key}"


def _ports(place: PodOnNode, state: Any) -> Iterator[Value]:
    nodes = place.snapshot.nodes
    holders: dict[tuple[str, int], list[str]] = {}
    for pod_id in nodes.pods_on(place.row):
        for port in nodes.pods[pod_id].host_ports:
            holders.setdefault((port.protocol, port.port), []).append(nodes.pods[pod_id].name)
    for wanted in place.pod.host_ports:
        used = holders.get((wanted.protocol, wanted.port), [])
        port = normal_port(wanted)
        asks = f"{port.port}/{port.protocol}" + ("" if port.ip == "0.0.0.0" else f" on {port.ip}")
        yield Value(
            asks, f"host port {asks}", f"used by {_some(used)}" if used else "free", None if used else True
        )


def _resources(place: PodOnNode, state: Any) -> Iterator[Value]:
    nodes = place.snapshot.nodes
    n_nominated = len(place.nominated)

    def has(resource: str, free: int, total: int, taken: int, asked: int, asks: str) -> Value:
        missing = asked - free
        shown = f"{amount_text(resource, free)} free of {amount_text(resource, total)}"
        with_nominated = f"{amount_text(resource, free - taken)} free" if n_nominated and taken else ""
        return Value(
            resource,
            asks,
            shown,
            missing <= 0,
            amount_words(resource, missing) if missing > 0 else "",
            with_nominated,
        )

    for resource_id, amount, name in zip(state.resource_ids, state.amounts, state.names, strict=True):
        known = resource_id < len(nodes.allocatable)
        total = int(nodes.allocatable[resource_id, place.row]) if known else 0
        free = total - int(nodes.requested[resource_id, place.row]) if known else 0
        taken = sum(other.requests.get(name, 0) for other in place.nominated)
        yield has(name, free, total, taken, amount, amount_words(name, amount))
    total = int(nodes.allowed_pods[place.row])
    yield has("pods", total - int(nodes.n_pods[place.row]), total, n_nominated, 1, "1 pod")


def _spread(place: PodOnNode, state: Any) -> Iterator[Value]:
    labels = place.node.meta.labels
    for constraint in state.constraints:
        key = constraint.key
        own = int(place.snapshot.nodes.label_column(key)[place.row])
        if own < 0:
            yield Value(key, f"a domain of {key}", _label(labels, key), False)
            continue
        count, least = int(constraint.counts[own]), constraint.minimum
        allowed = constraint.max_skew
        counts_itself = allowed - constraint.limit
        skew = count + counts_itself - least
        yield Value(
            key,
            f"maxSkew {allowed} over {key}",
            f"{labels.get(key)} holds {count}, the emptiest domain {least}: with this pod a skew of {skew}",
            count <= constraint.limit + least,
            f"{skew - allowed} too many" if skew > allowed else "",
        )


def _pod_affinity(place: PodOnNode, state: Any) -> Iterator[Value]:
    pod = place.pod
    terms = [(term, "beside") for term in pod.required_affinity]
    for term, where in [*terms, *((term, "away from") for term in pod.required_anti_affinity)]:
        found = _matching(place, term)
        has = f"{_some(found)} in the domain" if found else "none in the domain"
        selected = str(term.selector) or ("no pod" if term.selector.is_nothing else "any pod")
        ok = not found if where == "away from" else True if found else None
        yield Value(term.topology_key, f"{where} {selected}, by {term.topology_key}", has, ok)
    against = _against(place)
    if against:
        yield Value("", "to be where no pod keeps it away", f"{_some(against)} keep away pods like it", False)


def _matching(place: PodOnNode, term: AffinityTerm) -> list[str]:
    """Pods in the node's domain that a term of the pod is about."""
    snapshot = place.snapshot
    nodes, column = snapshot.nodes, snapshot.nodes.label_column(term.topology_key)
    own = int(column[place.row])
    rows = [] if own < 0 else snapshot.rows[column[snapshot.rows] == own].tolist()
    pods = (nodes.pods[pod_id] for row in rows for pod_id in nodes.pods_on(row))
    return [other.name for other in pods if is_about(term, other, snapshot.listers)]


def _against(place: PodOnNode) -> list[str]:
    """Pods in the node's domains that keep the pod away by a term of theirs."""
    snapshot = place.snapshot
    pods, found = snapshot.pods, dict[str, None]()
    for pod_id in np.flatnonzero(pods.row >= 0).tolist():
        other = pods[pod_id]
        for term in other.required_anti_affinity if other.has_required_anti_affinity else ():
            column = snapshot.nodes.label_column(term.topology_key)
            near = 0 <= column[place.row] == column[pods.row[pod_id]]
            if near and is_about(term, place.pod, snapshot.listers):
                found[other.name] = None
    return list(found)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


_WORDS: Mapping[str, Callable[[PodOnNode, Any], Iterator[Value]]] = {
    "cordon": _unschedulable,
    "node name": _node_name,
    "taints": _taints,
    "node affinity": _affinity,
    "host ports": _ports,
    "requests": _resources,
    "spread": _spread,
    "pod affinity": _pod_affinity,
}
"""By `Plugin.compares`."""

# ---- one node

PASS, FAILS, SKIPPED = "pass", "fails", "skipped"


class UnknownNode(CannotAnswer):
    """The cluster has no node of that name."""


@dataclass(frozen=True, slots=True)
class NodeFilterAnswer(Documented):
    """One filter plugin about one node.

    Attributes
    ----------
    state : str
        `pass`, `fails`, or `skipped` (its PreFilter says that this pod does not concern it).
    stopped : bool
        The scheduler stopped here: it is the first that fails, plugins after it do not run.
    code : str
        Of a failure.
    values : list of Value
    """

    plugin: str
    state: str
    stopped: bool = False
    code: str = ""
    reasons: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreAnswer(Documented):
    """One score plugin about the node and the winner; points are the normalised score times the weight."""

    plugin: str
    weight: int
    raw: int
    score: int
    winner_raw: int
    winner_score: int

    SHOWN = ("points", "winner_points", "lost")

    @property
    def points(self) -> int:
        return self.score * self.weight

    @property
    def winner_points(self) -> int:
        return self.winner_score * self.weight

    @property
    def lost(self) -> int:
        return self.winner_points - self.points


@dataclass(slots=True)
class WhyNot(Documented):
    """The answer about one node.

    Attributes
    ----------
    verdict : str
        `rejected`, `lost` (feasible, but another has more points), `tied` (as many points, another was drawn) or
        `chosen`.
    sentence : str
    rejected_by : str
        The plugin that stopped it, or `PreFilter`, or `Extender`.
    needs : tuple of str
        What the node would need, one sentence each.
    margin : int or None
        Points between it and the winner.
    nominated : tuple of str
        Pods of equal or higher priority that are nominated to the node.
    """

    pod: str
    node: str
    verdict: str
    sentence: str
    rejected_by: str = ""
    filters: list[NodeFilterAnswer] = field(default_factory=list)
    needs: tuple[str, ...] = ()
    scores: list[ScoreAnswer] = field(default_factory=list)
    total: int | None = None
    winner: str | None = None
    winner_total: int | None = None
    rank: int | None = None
    n_feasible: int = 0
    nominated: tuple[str, ...] = ()

    SHOWN = ("margin",)

    @property
    def margin(self) -> int | None:
        return None if self.total is None or self.winner_total is None else self.winner_total - self.total


def why_not(fork: Fork, pod: Pod, node_name: str) -> WhyNot:
    """Say why a cycle for `pod`, run now, would not choose a node, or that it would.

    Raises
    ------
    UnknownNode
    """
    snapshot = fork.snapshot
    row = snapshot.nodes.row_of.get(node_name, -1)
    if row < 0 or not snapshot.nodes.alive[row]:
        raise UnknownNode(f"There is no node {node_name}.")
    decision = fork.decide(pod)
    attempt = decision.attempt
    nominator = fork.scheduler.nominator
    nominated = tuple(
        other
        for other in nominator.pods_for(node_name)
        if other.priority >= pod.priority and other.uid != pod.uid
    )
    place = PodOnNode(pod, snapshot, row, nominated)
    stop, words = _stop(attempt, row, beside_nominated=bool(nominated))
    answers = [
        _filter_answer(plugin, attempt.framework, place, stopped=plugin.name == stop, words=words)
        for plugin in attempt.framework.filter
    ]
    feasible = row in attempt.feasible.tolist()
    result = WhyNot(
        pod.key,
        node_name,
        "rejected",
        "",
        filters=answers,
        n_feasible=decision.n_feasible,
        nominated=tuple(other.key for other in nominated),
        winner=decision.node_name,
    )
    if feasible and decision.node_name is not None:
        _compare(result, decision, row)
    else:
        _say_rejection(result, decision, stop)
    result.needs = tuple(_needs(answers))
    return result


def _stop(attempt: Attempt, row: int, *, beside_nominated: bool) -> tuple[str, tuple[str, ...]]:
    """The plugin at which the scheduler stopped for this row, and what was said if asking it again would not tell."""
    if not attempt.pre_filter_status.is_success:
        return "", ()
    places = np.flatnonzero(attempt.rows == row)
    said = attempt.verdict(int(places[0])) if len(places) else None
    if said is None:
        return "", ()
    return said[0], said[2] if beside_nominated or row in attempt.explicit else ()


def _filter_answer(
    plugin: FilterPlugin[Any],
    framework: Framework,
    place: PodOnNode,
    *,
    stopped: bool,
    words: tuple[str, ...],
) -> NodeFilterAnswer:
    snapshot, pod = place.snapshot, place.pod
    state: Any = None
    if isinstance(plugin, PreFilterPlugin) and plugin in framework.pre_filter:
        found = plugin.pre_filter(pod, snapshot)
        if found.status.is_skip:
            return NodeFilterAnswer(plugin.name, SKIPPED)
        if not found.status.is_success:
            return NodeFilterAnswer(
                plugin.name, FAILS, stopped, found.status.code.name, tuple(found.status.reasons)
            )
        state = found.state
    verdicts = plugin.filter(state, pod, snapshot.nodes, np.array([place.row], np.intp))
    code = Code(int(verdicts.codes[0]))
    values = tuple(values_of(plugin, place, state))
    if code is Code.Success:
        # It passes as the node is, but not with the pods nominated to it.
        if stopped:
            return NodeFilterAnswer(plugin.name, FAILS, True, Code.Unschedulable.name, words, values)
        return NodeFilterAnswer(plugin.name, PASS, values=values)
    detail = 0 if verdicts.details is None else int(verdicts.details[0])
    reasons = plugin.reasons(state, pod, snapshot.nodes, place.row, code, detail)
    return NodeFilterAnswer(plugin.name, FAILS, stopped, code.name, reasons, values)


def _compare(result: WhyNot, decision: Decision, row: int) -> None:
    """Score by score, against the winner."""
    attempt = decision.attempt
    rows = attempt.feasible.tolist()
    own, best = rows.index(row), [attempt.name_of(item) for item in rows].index(decision.node_name or "")
    if result.node == decision.node_name:
        result.verdict = "chosen"
    if len(rows) == 1:
        result.sentence = f"{result.pod} would go to {result.node}: the only feasible node."
        return
    attempt.gather_scores()
    totals = attempt.total
    result.total, result.winner_total = int(totals[own]), int(totals[best])
    result.rank = 1 + int((totals > totals[own]).sum())
    for plugin in attempt.framework.score:
        if plugin.name in attempt.scores:
            raw, scores = attempt.raw_scores[plugin.name], attempt.scores[plugin.name]
            result.scores.append(
                ScoreAnswer(
                    plugin.name,
                    attempt.framework.weights[plugin.name],
                    int(raw[own]),
                    int(scores[own]),
                    int(raw[best]),
                    int(scores[best]),
                )
            )
    margin = result.margin or 0
    if result.verdict == "chosen":
        result.sentence = f"{result.pod} would go to {result.node}, with {result.total} points."
    elif margin == 0:
        result.verdict = "tied"
        result.sentence = f"{result.node} has as many points as {result.winner}, which was drawn."
    else:
        result.verdict = "lost"
        worst = max(result.scores, key=lambda item: item.lost)
        most = f"; most of it, {worst.lost}, by {worst.plugin}" if worst.lost > 0 else ""
        result.sentence = (
            f"{result.node} is feasible, but has {margin} points less than {result.winner}{most}."
        )


def _say_rejection(result: WhyNot, decision: Decision, stop: str) -> None:
    attempt = decision.attempt
    status = attempt.pre_filter_status
    if decision.error is not None:
        result.sentence = f"The cycle ends in an error: {decision.error}"
        return
    if not status.is_success:
        result.rejected_by = status.plugin or "PreFilter"
        result.sentence = (
            f"{result.rejected_by} refuses the pod before any node is looked at: {status.message}"
        )
        return
    if stop:
        answer = next(item for item in result.filters if item.plugin == stop)
        result.rejected_by = stop
        result.sentence = f"{result.node} is rejected by {stop}: {', '.join(answer.reasons)}."
    elif attempt.node_names is not None and result.node not in attempt.node_names:
        result.rejected_by = "PreFilter"
        result.sentence = f"{result.node} is not among the nodes PreFilter left: {attempt.narrowed_reason}."
    else:
        result.rejected_by = "Extender"
        result.sentence = f"{result.node} passes every filter plugin and was taken out by an extender."


def _needs(answers: list[NodeFilterAnswer]) -> list[str]:
    """One sentence for each thing that is in the way."""
    needs = []
    for answer in answers:
        if answer.state != FAILS:
            continue
        missing = [value for value in answer.values if value.ok is False]
        if not missing:
            needs.append(f"{answer.plugin}: {', '.join(answer.reasons)}")
        for value in missing:
            if value.short:
                needs.append(f"{value.short} more: it asks {value.asks}, {value.has}")
            else:
                needs.append(f"{answer.plugin}: {value.asks}, but {value.has}")
        if answer.code == Code.UnschedulableAndUnresolvable.name:
            needs[-1] += "; evicting pods would not help"
    return needs


# ---- devices

MAX_NODES = 200
"""Nodes that are listed one by one."""
_BRIEF = ("node", "verdict", "reason", "refusals", "nDevices")


def devices_of(fork: Fork, pod: Pod, node_name: str = "") -> dict[str, Any] | None:
    """The search for a pod's devices, were its cycle now; None for a pod that wants none.

    Parameters
    ----------
    node_name : str
        The node to open up; empty = the one the pod would go to, else one with the most devices.

    Returns
    -------
    dict
        `pod`, `plugin`; `refused`: what PreFilter said before any node was looked at, or empty; `nodes`: verdict,
        reason and refusals by check of up to 200 nodes, in evaluation order; `nNodes`, `nAllocated`; `open`: one
        node (`dynamic_resources.story`), or None.

    Raises
    ------
    UnknownNode
    """
    snapshot = fork.snapshot
    rows = snapshot.order.tolist()
    row_of = {snapshot.nodes.name(row): row for row in rows}
    if node_name and node_name not in row_of:
        raise UnknownNode(f"There is no node {node_name}.")
    for plugin in fork.framework(pod).filter:
        if not isinstance(plugin, PreFilterPlugin) or not plugin.gives_devices:
            continue
        found = plugin.pre_filter(pod, snapshot)
        if found.status.is_skip:
            return None
        answer: dict[str, Any] = {
            "pod": pod.key, "plugin": plugin.name, "refused": "", "nodes": [], "nNodes": len(rows),
            "nAllocated": 0, "open": None,
        }  # fmt: skip
        if not found.status.is_success:
            return {**answer, "refused": found.status.message}
        for row in rows[:MAX_NODES]:
            on_node = plugin.devices(found.state, pod, snapshot.nodes.node(row))
            if on_node is not None:
                answer["nodes"].append({key: on_node[key] for key in _BRIEF})
        answer["nAllocated"] = sum(item["verdict"] == "allocated" for item in answer["nodes"])
        chosen = node_name or fork.decide(pod).node_name or ""
        if not chosen and answer["nodes"]:
            chosen = max(answer["nodes"], key=lambda item: item["nDevices"])["node"]
        if chosen:
            answer["open"] = plugin.devices(found.state, pod, snapshot.nodes.node(row_of[chosen]))
        return answer
    return None
