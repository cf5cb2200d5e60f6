"""'Why not this node?': every filter's verdict with the values behind it, and score by score why it lost.

All filters are asked, also past the first that rejects the node: each alone, with its own PreFilter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler_core.advice.edits import amount_words
from scheduler_core.advice.node_edits import volume_places
from scheduler_core.advice.node_values import REQUESTS, PodOnNode, Value, values_of
from scheduler_core.advice.pod_edits import marked_by
from scheduler_core.advice.sandbox import Sandbox
from scheduler_core.cluster.node_table import Rows
from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.interface import FilterPlugin, PreFilterPlugin
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Node, Taint
from scheduler_core.objects.pod import Pod
from scheduler_core.schedule_one import Decision

PASS, FAILS, SKIPPED = "pass", "fails", "skipped"


class UnknownNode(LookupError):
    """The cluster has no node of that name."""


@dataclass(frozen=True, slots=True)
class NodeFilterAnswer:
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

    def document(self) -> dict[str, Any]:
        return {
            "plugin": self.plugin,
            "state": self.state,
            "stopped": self.stopped,
            "code": self.code,
            "reasons": list(self.reasons),
            "values": [value.document() for value in self.values],
        }


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """One score plugin about the node and the winner; points are the normalised score times the weight."""

    plugin: str
    weight: int
    raw: int
    score: int
    winner_raw: int
    winner_score: int

    def document(self) -> dict[str, Any]:
        return {
            "plugin": self.plugin,
            "weight": self.weight,
            "raw": self.raw,
            "score": self.score,
            "points": self.score * self.weight,
            "winnerRaw": self.winner_raw,
            "winnerScore": self.winner_score,
            "winnerPoints": self.winner_score * self.weight,
            "lost": (self.winner_score - self.score) * self.weight,
        }


@dataclass(slots=True)
class WhyNot:
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

    @property
    def margin(self) -> int | None:
        return None if self.total is None or self.winner_total is None else self.winner_total - self.total

    def document(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "pod": self.pod,
            "node": self.node,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "rejectedBy": self.rejected_by,
            "filters": [item.document() for item in self.filters],
            "needs": list(self.needs),
            "scores": [item.document() for item in self.scores],
            "total": self.total,
            "winner": self.winner,
            "winnerTotal": self.winner_total,
            "margin": self.margin,
            "rank": self.rank,
            "nFeasible": self.n_feasible,
            "nominated": list(self.nominated),
        }


def why_not(sandbox: Sandbox, pod: Pod, node_name: str) -> WhyNot:
    """Say why a cycle for `pod`, run now, would not choose a node, or that it would.

    Raises
    ------
    UnknownNode
    """
    snapshot = sandbox.snapshot
    row = snapshot.nodes.row_of.get(node_name, -1)
    if row < 0 or not snapshot.nodes.alive[row]:
        raise UnknownNode(node_name)
    decision = sandbox.decide(pod)
    attempt = decision.attempt
    nominator = sandbox.scheduler.nominator
    nominated = tuple(
        other
        for other in nominator.pods_for(node_name)
        if other.priority >= pod.priority and other.uid != pod.uid
    )
    place = PodOnNode(pod, snapshot, row, nominated)
    stop, told = _stop(attempt, row, beside_nominated=bool(nominated))
    answers = [
        _filter_answer(plugin, attempt.framework, place, stopped=plugin.name == stop, told=told)
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
    plugin: FilterPlugin[Any], framework: Framework, place: PodOnNode, *, stopped: bool, told: tuple[str, ...]
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
    verdicts = plugin.filter(state, pod, snapshot.nodes, np.array([place.row], np.int64))
    code = Code(int(verdicts.codes[0]))
    values = tuple(values_of(plugin, place, state))
    if code is Code.Success:
        # It passes as the node is, but not with the pods nominated to it.
        if stopped:
            return NodeFilterAnswer(plugin.name, FAILS, True, Code.Unschedulable.name, told, values)
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
        worst = max(result.scores, key=lambda item: (item.winner_score - item.score) * item.weight)
        lost = (worst.winner_score - worst.score) * worst.weight
        most = f"; most of it, {lost}, by {worst.plugin}" if lost > 0 else ""
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


# ---- what the scheduler's message implies


def causes_of(sandbox: Sandbox, pod: Pod) -> list[str]:
    """What the message only implies, one sentence each: a domain no pod can enter, one node alone, a far volume."""
    return [
        *_one_node(sandbox, pod),
        *_closed_domains(sandbox, pod),
        *_far_volumes(sandbox, pod),
    ]


def _one_node(sandbox: Sandbox, pod: Pod) -> Iterator[str]:
    owner, cache = pod.meta.controller, sandbox.scheduler.cache
    names = pod.required_node_affinity.pre_filter_node_names()
    if owner is None or owner.kind != "DaemonSet" or names is None or len(names) != 1:
        return
    name = next(iter(names))
    begin = f"{pod.key} is for node {name} alone: DaemonSet {owner.name} makes one pod for each node"
    if cache.node(name) is None:
        yield f"{begin}, and {name} is not there."
        return
    decision = sandbox.decide(pod)
    row = cache.nodes.row_of[name]
    stop, _ = _stop(decision.attempt, row, beside_nominated=False)
    near = ", ".join(_missing_words(sandbox, pod, row)) if stop == "NodeResourcesFit" else ""
    yield f"{begin}. {name} is refused by {stop}{f': {near}' if near else ''}." if stop else f"{begin}."


def _closed_domains(sandbox: Sandbox, pod: Pod) -> Iterator[str]:
    """Domains of a hard spread that hold the fewest pods and that the pod cannot enter, with what their nodes are."""
    attempt = sandbox.attempt(pod)
    state = attempt.filter_states.get("PodTopologySpread")
    if not attempt.pre_filter_status.is_success or state is None:
        return
    snapshot = sandbox.snapshot
    for constraint in state.constraints:
        domains, refused = constraint.domains, constraint.codes(snapshot.nodes, snapshot.order) != 0
        if constraint.few_domains or not refused.any():
            continue
        emptiest = {
            int(domain)
            for domain in domains.present.tolist()
            if constraint.counts[domain] == constraint.minimum
        }
        values = snapshot.nodes.vocabulary.label_values[constraint.key].values
        closed: dict[str, list[str]] = {}
        for domain in sorted(emptiest):
            rows = np.flatnonzero(domains.of_row == domain).tolist()
            found = {_closed_words(pod, snapshot.nodes.node(row)) for row in rows}
            if "" in found:
                break  # The pod may go there for all that its nodes are: something else is in the way.
            closed.setdefault(" and ".join(sorted(found)), []).append(str(values[domain]))
        else:
            for words, names in closed.items():
                yield _closed_sentence(constraint, words, names)


def _closed_sentence(constraint: Any, words: str, names: list[str]) -> str:
    shown = f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
    adjective = "emptiest" if constraint.minimum else "empty"
    which, there = (
        (f"The {adjective} domain", "is a node that is")
        if len(names) == 1
        else (f"The {adjective} domains", "are nodes that are")
    )
    most = constraint.minimum + constraint.max_skew
    return (
        f"{which} of the spread over {constraint.key}, {shown}, {there} {words}: no pod can go there,"
        f" so every other domain may hold {most} at most."
    )


def _closed_words(pod: Pod, node: Node) -> str:
    """Why a pod cannot go to a node whatever room it has; empty where it can."""
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not pod.tolerates(taint):
            marks = marked_by(taint)
            known = {"cordoned nodes": "cordoned", "the control plane": "of the control plane"}
            return known.get(marks) or marks.removeprefix("nodes that are ") or f"tainted {taint}"
    if node.unschedulable and not pod.tolerates(Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")):
        return "cordoned"
    return ""


def _far_volumes(sandbox: Sandbox, pod: Pod) -> Iterator[str]:
    nodes = nodes_here(sandbox)
    for words, options in volume_places(sandbox, pod):
        if any(option.items() <= node.meta.labels.items() for node in nodes for option in options):
            continue
        where = " or ".join(
            ", ".join(f"{key}={value}" for key, value in option.items()) for option in options[:3]
        )
        yield f"{words[0].upper()}{words[1:]} is tied to {where}, where there is no node."


def nodes_here(sandbox: Sandbox) -> list[Node]:
    """All nodes, in evaluation order."""
    return [sandbox.snapshot.nodes.node(row) for row in sandbox.snapshot.order.tolist()]


# ---- every node


@dataclass(frozen=True, slots=True)
class Distance:
    """How far one node is from taking the pod.

    Attributes
    ----------
    plugins : tuple of str
        Filter plugins that fail there.
    words : str
    missing : float
        The largest missing share of a request, 0 to 1.
    """

    node: str
    plugins: tuple[str, ...]
    words: str
    missing: float

    def document(self) -> dict[str, Any]:
        return {
            "node": self.node, "plugins": list(self.plugins), "words": self.words, "missing": self.missing,
        }  # fmt: skip


def distances(sandbox: Sandbox, pod: Pod, *, limit: int = 50) -> tuple[list[Distance], int]:
    """The nodes nearest to taking the pod, and how many nodes there are in all.

    Nearest is where the fewest plugins fail, then where the smallest share of a request is missing.
    """
    snapshot, framework = sandbox.snapshot, sandbox.framework(pod)
    rows = snapshot.order
    n_fails = np.zeros(len(rows), np.int64)
    missing = np.zeros(len(rows), np.float64)
    failing: list[tuple[FilterPlugin[Any], Any, Any]] = []
    for plugin in framework.filter:
        state: Any = None
        if isinstance(plugin, PreFilterPlugin) and plugin in framework.pre_filter:
            found = plugin.pre_filter(pod, snapshot)
            if not found.status.is_success:
                continue
            state = found.state
        verdicts = plugin.filter(state, pod, snapshot.nodes, rows)
        n_fails += verdicts.codes != 0
        failing.append((plugin, state, verdicts))
        if plugin.compares == REQUESTS:
            missing = _missing_shares(sandbox, pod, rows)
    places = np.lexsort((np.arange(len(rows)), missing, n_fails))[:limit]
    result = []
    for place in places.tolist():
        row = int(rows[place])
        words, names = [], []
        for plugin, state, verdicts in failing:
            code = Code(int(verdicts.codes[place]))
            if code is Code.Success:
                continue
            names.append(plugin.name)
            detail = 0 if verdicts.details is None else int(verdicts.details[place])
            if plugin.compares == REQUESTS:
                words += _missing_words(sandbox, pod, row)
            else:
                words += plugin.reasons(state, pod, snapshot.nodes, row, code, detail)
        result.append(
            Distance(
                snapshot.nodes.name(row), tuple(names), ", ".join(words) or "fits", float(missing[place])
            )
        )
    return result, len(rows)


def _missing_shares(sandbox: Sandbox, pod: Pod, rows: Rows) -> Any:
    nodes = sandbox.snapshot.nodes
    worst = (nodes.n_pods[rows] >= nodes.allowed_pods[rows]).astype(np.float64)
    for name, amount in pod.requests.items():
        if amount <= 0 or name == "pods":
            continue
        resource_id = nodes.vocabulary.resources.id(name)
        if resource_id >= len(nodes.allocatable):
            return np.ones(len(rows))
        free = nodes.allocatable[resource_id, rows] - nodes.requested[resource_id, rows]
        worst = np.maximum(worst, np.clip((amount - free) / amount, 0, 1))
    return worst


def _missing_words(sandbox: Sandbox, pod: Pod, row: int) -> list[str]:
    words = []
    for name, amount in pod.requests.items():
        if amount <= 0 or name == "pods":
            continue
        short = amount - sandbox.free(name, row)
        if short > 0:
            none = sandbox.allocatable(name, row) == 0
            short_name = name.rsplit("/", 1)[-1]
            words.append(f"no {short_name}" if none else f"{amount_words(name, short)} short")
    if sandbox.free("pods", row) <= 0:
        words.append("no room for a pod")
    return words
