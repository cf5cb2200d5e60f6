"""Compare whole runs, pod after pod, with what the real scheduler did (families `sequence` and `trace`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from scheduler_core.cli.case_release import release_of
from scheduler_core.cli.conformance_scheduling import CaseCluster
from scheduler_core.cli.difference import Difference
from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.pod import Pod
from scheduler_core.schedule_one import Decision

FIRST_START_NS = parse_time_ns("2026-01-02T00:00:00Z")
"""When a pod bound in the first cycle starts; each further cycle is a second later."""

Document = dict[str, Any]


def run_sequence_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `sequence`.

    Returns
    -------
    list of Difference
        Empty when every cycle, the deleted pods and the final nodes agree.
    """
    return _compare(case, sequence_cycle)


def run_trace_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `trace`: a long sequence whose cycles are recorded in condensed form."""
    return _compare(case, _trace_cycle)


class Sequence:
    """The queue of a sequence case: one pod a cycle, without backoff or events.

    Attributes
    ----------
    nodes : dict of str to (str or None)
        Where each pod of the sequence stands now, by `namespace/name`.
    deleted : list of str
        Victims in order of deletion.
    """

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.cluster = self.make_cluster(case)
        pods = [self.cluster.pending_pod(manifest) for manifest in case["sequence"]]
        self._turn = {pod.uid: turn for turn, pod in enumerate(pods)}
        self._queue = self._in_order(pods)
        self._unschedulable: list[Pod] = []
        self._deleted_since_refill = False
        self.nodes: dict[str, str | None] = {pod.key: None for pod in pods}
        self.deleted: list[str] = []

    def make_cluster(self, case: Mapping[str, Any]) -> CaseCluster:
        return CaseCluster(case["objects"], case.get("config"), release=release_of(case))

    def cycles(self) -> Iterator[Decision]:
        """Schedule until nothing changes any more; what a decision leads to happens when the next one is asked for."""
        number = 0
        while self._refilled():
            pod = self._queue.pop(0)
            decision = self.cluster.schedule(pod)
            yield decision
            if decision.node_name is not None:
                self._bind(pod, decision.node_name, number)
            else:
                self._find_no_place(pod, decision)
            number += 1

    def _in_order(self, pods: list[Pod]) -> list[Pod]:
        return sorted(pods, key=lambda pod: (-pod.priority, self._turn[pod.uid]))

    def _refilled(self) -> bool:
        if not self._queue and self._deleted_since_refill:
            self._queue, self._unschedulable = self._in_order(self._unschedulable), []
            self._deleted_since_refill = False
        return bool(self._queue)

    def _bind(self, pod: Pod, node_name: str, number: int) -> None:
        start_ns = FIRST_START_NS + number * SECOND_NS
        self.cluster.nominator.remove(pod.uid)
        self.cluster.cache.add_pod(
            replace(pod, node_name=node_name, start_ns=start_ns, nominated_node_name="")
        )
        self.nodes[pod.key] = node_name

    def _find_no_place(self, pod: Pod, decision: Decision) -> None:
        result = decision.post_filter
        if result is None or not result.status.is_success or not result.nominated_node_name:
            clears = decision.error is not None or (result is not None and result.nominated_node_name == "")
            self._unschedulable.append(self._nominated(pod, "") if clears else pod)
            return
        for victim in result.victims:
            self.cluster.cache.remove_pod(victim.uid)
            self.deleted.append(victim.key)
            self._deleted_since_refill = True
            if victim.key in self.nodes:
                self.nodes[victim.key] = None
        cleared = {other.uid for other in result.cleared}
        for pods in (self._queue, self._unschedulable):
            pods[:] = [self._nominated(other, "") if other.uid in cleared else other for other in pods]
        for other in result.cleared:
            self.cluster.nominator.remove(other.uid)
        self._queue.insert(0, self._nominated(pod, result.nominated_node_name))

    def _nominated(self, pod: Pod, node_name: str) -> Pod:
        pod = replace(pod, nominated_node_name=node_name)
        self.cluster.nominator.add(pod)
        return pod


def sequence_cycle(decision: Decision) -> Document:
    result = decision.post_filter
    body: Document = {"pod": decision.attempt.pod.key, "node": decision.node_name}
    if decision.node_name is not None:
        body["best"] = sorted(decision.ties or (decision.node_name,))
        if decision.n_feasible > 1:
            nodes, attempt = decision.attempt.snapshot.nodes, decision.attempt
            body["total"] = {
                nodes.name(row): total
                for row, total in zip(attempt.feasible.tolist(), attempt.total.tolist(), strict=True)
            }
    body["fitError"] = decision.fit_error
    body["error"] = decision.error
    if result is not None:
        found = result.trace.explain() if result.trace is not None else {}
        body["message"] = "" if result.status.is_success else result.status.message
        body["nominatedNode"] = result.nominated_node_name
        body["victims"] = [victim.key for victim in result.victims]
        body["ambiguous"] = found.get("ambiguous")
        body["tied"] = found.get("tied")
    return body


def _trace_cycle(decision: Decision) -> Document:
    result = decision.post_filter
    body: Document = {"pod": decision.attempt.pod.key, "node": decision.node_name}
    if decision.node_name is not None:
        body["bestCount"] = max(1, len(decision.ties))
        if decision.n_feasible > 1:
            body["feasible"] = decision.n_feasible
            body["bestTotal"] = decision.best_total
    body["fitError"] = decision.fit_error
    body["error"] = decision.error
    if result is not None and not result.status.is_success:
        body["message"] = result.status.message
    return body


def _compare(case: Mapping[str, Any], describe: Callable[[Decision], Document]) -> list[Difference]:
    sequence = Sequence(case)
    bodies = (describe(decision) for decision in sequence.cycles())
    return compare_cycles(case, bodies, lambda: {"final": sequence.nodes, "deleted": sequence.deleted})


def compare_cycles(
    case: Mapping[str, Any], bodies: Iterator[Document], ends: Callable[[], Document]
) -> list[Difference]:
    """Compare cycles in order, then what `ends` says when they are over."""
    expect = case["expect"]
    found: list[Difference] = []
    n_cycles = 0
    for body in bodies:
        if n_cycles < len(expect["cycles"]):
            wanted, got = _present(expect["cycles"][n_cycles]), _present(body)
            found += [
                Difference(f"cycles.{n_cycles}.{key}", wanted.get(key), got.get(key))
                for key in sorted({*wanted, *got})
                if wanted.get(key) != got.get(key)
            ]
        n_cycles += 1
        if n_cycles > len(expect["cycles"]):
            break
    if n_cycles != len(expect["cycles"]):
        found.append(Difference("cycles", len(expect["cycles"]), n_cycles))
    found += [
        Difference(key, expect[key], got)
        for key, got in ends().items()
        if key in expect and expect[key] != got
    ]
    return found


def _present(cycle: Mapping[str, Any]) -> Document:
    """A cycle without what is null or empty: it may be left out."""
    return {key: value for key, value in cycle.items() if value not in (None, "", [], {}, False)}
