"""Compare scheduling decisions with what the real scheduler recorded (`ordinary` and sequence cases)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from scheduler_core.cli.conformance import Difference, differences, expected_differences, present, release_of
from scheduler_core.clock import SECOND_NS, Clock
from scheduler_core.events import ObjectChanged
from scheduler_core.extender.chain import ExtenderBinding
from scheduler_core.extender.transport import (
    ExtenderAnswer,
    ExtenderCall,
    ExtenderRequest,
    Transport,
    no_transport,
)
from scheduler_core.framework.interface import PostFilterResult
from scheduler_core.framework.preemption.trace import preemption_document
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.recording import record_body
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.objects.defaults import StoredPriorities, prepare, priority_class_from
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins import default_configuration, load_configuration
from scheduler_core.plugins.default_preemption import ineligible_reason
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release
from scheduler_core.schedule_one import Decision
from scheduler_core.scheduler import Scheduler, SchedulerOptions


class CaseCluster(Scheduler):
    """A cluster as a case describes it, and a scheduler over it that takes the first of ties.

    Parameters
    ----------
    objects : sequence of mapping
        Manifests, not prepared yet.
    config : mapping or None
        A KubeSchedulerConfiguration; None is the default one.
    transport : Transport, optional
        Carries what is asked of the configuration's extenders.
    release : Release, optional
        Whose scheduler it is.
    """

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]],
        config: Mapping[str, Any] | None,
        transport: Transport = no_transport,
        release: Release = OLDEST,
    ) -> None:
        super().__init__(
            default_configuration(release) if config is None else load_configuration(config, release=release),
            Clock(0),
            Randomness(0),
            options=SchedulerOptions(first_of_ties=True, all_preemption_candidates=True, full_traces=False),
            transport=transport,
        )
        self.priority_classes = StoredPriorities(
            priority_class_from(item) for item in objects if item.get("kind") == "PriorityClass"
        )
        self.begin_with(item for item in objects if item.get("kind") != "PriorityClass")

    @classmethod
    def of(cls, case: Mapping[str, Any]) -> Self:
        return cls(case["objects"], case.get("config"), release=release_of(case))

    def begin_with(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Let the scheduler see the objects."""
        for manifest in objects:
            if manifest.get("kind") != "ResourceClaimTemplate":
                kind, _, _, typed = parse(prepare(manifest, self.priority_classes))
                self.handle(ObjectChanged(kind, None, typed))

    def pending_pod(self, manifest: Mapping[str, Any]) -> Pod:
        return pod_from(prepare({"apiVersion": "v1", "kind": "Pod", **manifest}, self.priority_classes))

    def framework_for(self, pod: Pod) -> Framework:
        return self.profiles[pod.scheduler_name]

    def schedule(self, pod: Pod) -> Decision:
        return self.algorithm.schedule(self.framework_for(pod), pod, self.cache.snapshot())


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one ordinary case.

    Returns
    -------
    list of Difference
        Empty when every key of `expect` agrees.
    """
    cluster = CaseCluster.of(case)
    pod = cluster.pending_pod(case["pod"])
    return expected_differences(case["expect"], explain(cluster, pod))


def explain(cluster: CaseCluster, pod: Pod) -> dict[str, Any]:
    """Everything `expect` says of an ordinary case, computed."""
    framework = cluster.framework_for(pod)
    gate = framework.run_pre_enqueue(pod)
    if not gate.is_success:
        return {
            "preEnqueue": {"plugin": gate.plugin, "code": gate.code.name, "reasons": sorted(gate.reasons)},
        }
    decision = cluster.schedule(pod)
    return decision_body(decision)


def decision_body(decision: Decision) -> dict[str, Any]:
    """The recorded keys of one decision."""
    attempt = decision.attempt
    trace = CycleTrace(
        number=0, at_ns=0, pod=attempt.pod.key, uid=attempt.pod.uid, profile="", attempt=1,
        outcome="bound", node=decision.node_name, message=decision.message,
        n_nodes=len(attempt.snapshot.order), n_feasible=decision.n_feasible,
        n_evaluated=decision.n_evaluated, best_total=decision.best_total,
    )  # fmt: skip
    best = None
    if decision.n_feasible and decision.error is None:
        best = decision.ties or (decision.node_name or "",)
    record_body(attempt, trace, best, matrix=True)
    body = trace.explain()
    if decision.error is not None:
        body["error"] = decision.error
    body["fitError"] = decision.fit_error
    # A pod that names its node was recorded up to the fit error only.
    if decision.fit_error is not None and not attempt.pod.node_name:
        body["preemption"] = preemption_body(decision)
    return body


def preemption_body(decision: Decision) -> dict[str, Any]:
    """The recorded form of what PostFilter did."""
    # Without any PostFilter plugin the recording says what running none of them answers.
    result = decision.post_filter or PostFilterResult(Status(Code.Unschedulable))
    found = preemption_document(result, decision.message, full=True)
    body = {key: found[key] for key in ("code", "message", "nominatedNode", "victims", "event")}
    body["eligible"] = found["eligible"] if "eligible" in found else _is_eligible(decision)
    body["candidates"] = [
        {key: candidate[key] for key in ("node", "victims", "numPDBViolations")}
        for candidate in found.get("candidates", ())
    ]
    body["ambiguous"] = found.get("ambiguous", False)
    if body["ambiguous"]:
        body["tied"] = found["tied"]
    if found["clearsNomination"]:
        body["clearsNomination"] = True
    return body


def _is_eligible(decision: Decision) -> bool:
    """Whether the pod may preempt, where an error before DefaultPreemption kept it from being asked."""
    configured = any(plugin.name == "DefaultPreemption" for plugin in decision.attempt.framework.post_filter)
    return configured and not ineligible_reason(decision.attempt)


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
    return compare_cycles(case, CaseSequence(case, CaseCluster.of(case)), sequence_cycle)


def run_trace_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `trace`: a long sequence whose cycles are recorded in condensed form."""
    return compare_cycles(case, CaseSequence(case, CaseCluster.of(case)), _trace_cycle)


class CaseSequence:
    """The queue of a sequence case: one pod a cycle, without backoff or events.

    Attributes
    ----------
    nodes : dict of str to (str or None)
        Where each pod of the sequence stands now, by `namespace/name`.
    deleted : list of str
        Victims in order of deletion.
    """

    def __init__(self, case: Mapping[str, Any], cluster: CaseCluster) -> None:
        self.cluster = cluster
        pods = [self.cluster.pending_pod(manifest) for manifest in case["sequence"]]
        self._turn = {pod.uid: turn for turn, pod in enumerate(pods)}
        self._queue = self._in_order(pods)
        self._unschedulable: list[Pod] = []
        self._deleted_since_refill = False
        self.nodes: dict[str, str | None] = {pod.key: None for pod in pods}
        self.deleted: list[str] = []

    def cycles(self, describe: Callable[[Decision], Document]) -> Iterator[Document]:
        """Schedule until nothing changes any more: each decision in the recorded form, with what came of it."""
        number = 0
        while self._refilled():
            pod = self._queue.pop(0)
            decision = self.cluster.schedule(pod)
            yield describe(decision) | self._act(pod, decision, number)
            number += 1

    def _act(self, pod: Pod, decision: Decision, number: int) -> Document:
        """Bind the pod or find it no place; what a recording tells of that beside the decision."""
        if decision.node_name is not None:
            self._bind(pod, decision.node_name, number)
        else:
            self._find_no_place(pod, decision)
        return {}

    def ends(self) -> Document:
        """What a recording tells when all cycles are over."""
        return {"final": self.nodes, "deleted": self.deleted}

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


def compare_cycles(
    case: Mapping[str, Any], sequence: CaseSequence, describe: Callable[[Decision], Document]
) -> list[Difference]:
    """Compare cycles in order, then what there is when they are over."""
    expect = case["expect"]
    found: list[Difference] = []
    n_cycles = 0
    for body in sequence.cycles(describe):
        if n_cycles < len(expect["cycles"]):
            found += differences(present(expect["cycles"][n_cycles]), present(body), f"cycles.{n_cycles}")
        n_cycles += 1
        if n_cycles > len(expect["cycles"]):
            break
    if n_cycles != len(expect["cycles"]):
        found.append(Difference("cycles", len(expect["cycles"]), n_cycles))
    over = sequence.ends()
    return found + expected_differences({key: expect[key] for key in over if key in expect}, over)


SERVER = "http://extender.test"
CONTENT_TYPE = "application/json"
_MILLISECOND_NS = 1_000_000

_KEYS = ("filter", "feasible", "total", "best")


class ScriptedServer:
    """A transport that answers by a case's script.

    Parameters
    ----------
    script : mapping
        Path -> `{status, body | text, delayMs}`. Any other path is not found.
    """

    def __init__(self, script: Mapping[str, Mapping[str, Any]]) -> None:
        self.script = script

    def __call__(self, requests: Sequence[ExtenderRequest]) -> list[ExtenderAnswer]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: ExtenderRequest) -> ExtenderAnswer:
        said = self.script.get(request.url.removeprefix(SERVER))
        if said is None:
            return ExtenderAnswer(404, "404 page not found\n")
        delay_ns = int(said.get("delayMs", 0)) * _MILLISECOND_NS
        if delay_ns >= request.timeout_ns:
            return ExtenderAnswer(
                error=f'Post "{request.url}": context deadline exceeded', duration_ns=request.timeout_ns
            )
        text = said["text"] if "text" in said else json.dumps(said.get("body"))
        return ExtenderAnswer(said["status"], text, duration_ns=delay_ns)


def run_wire_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `extender-wire`: a whole scheduling attempt, binding included.

    Returns
    -------
    list of Difference
        Empty when every key of `expect` agrees. Words of errors that the HTTP or JSON library finds may differ.
    """
    cluster = CaseCluster(case["objects"], case["config"], ScriptedServer(case["script"]))
    pod = cluster.pending_pod(case["pod"])
    decision = cluster.schedule(pod)
    binding = ExtenderBinding(False)
    calls = list(decision.extender_calls)
    status = Status()
    if decision.node_name is not None:
        binding = cluster.extenders.bind(pod, decision.node_name)
        calls += binding.calls
        if not binding.handled:
            status = cluster.framework_for(pod).run_bind(pod, decision.node_name)
        elif binding.error is not None:
            status = Status(Code.Error, (binding.error,))
    body = decision_body(decision)
    got = {key: body.get(key) for key in _KEYS}
    got["requests"] = recorded_requests(calls)
    got["error"] = decision.error
    got["outcome"] = _outcome(decision, binding, status)
    expect = _with_our_words(case["expect"], got, calls)
    return expected_differences(expect, got)


def recorded_requests(calls: Sequence[ExtenderCall]) -> list[dict[str, Any]]:
    """Requests as recorded: lists of nodes by name, prioritize requests (sent together) by path."""
    requests = []
    together: list[dict[str, Any]] = []
    for call in calls:
        request = {
            "method": "POST",
            "path": call.request.url.removeprefix(SERVER),
            "contentType": CONTENT_TYPE,
            "body": _by_name(call.request.body),
        }
        if call.request.verb == "prioritize":
            together.append(request)
            continue
        requests += _by_path(together)
        together = []
        requests.append(request)
    return requests + _by_path(together)


def _by_path(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(requests, key=lambda request: str(request["path"]))


def _by_name(body: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(body)
    if result.get("NodeNames"):
        result["NodeNames"] = sorted(result["NodeNames"])
    if result.get("Nodes"):
        items = sorted(result["Nodes"]["items"], key=lambda node: str(node["metadata"].get("name", "")))
        result["Nodes"] = {**result["Nodes"], "items": items}
    return result


def _outcome(decision: Decision, binding: ExtenderBinding, status: Status) -> dict[str, Any]:
    outcome: dict[str, Any] = {"bound": None}
    if decision.node_name is not None and status.is_success:
        outcome["bound"] = decision.node_name
        outcome["boundBy"] = "extender" if binding.handled else "default"
    elif decision.node_name is not None:
        outcome["failure"] = {"code": status.code.name, "message": status.message, "nominatedNode": ""}
    elif decision.error is not None:
        outcome["failure"] = {"code": Code.Error.name, "message": decision.error, "nominatedNode": ""}
    else:
        result = decision.post_filter
        outcome["failure"] = {
            "code": Code.Unschedulable.name,
            "message": decision.message,
            "nominatedNode": None if result is None else result.nominated_node_name,
        }
        if result is not None and result.victims:
            outcome["preempted"] = sorted(victim.key for victim in result.victims)
    if len(decision.ties) > 1:
        outcome["ambiguous"] = True
    return outcome


def _with_our_words(
    expect: Mapping[str, Any], got: Mapping[str, Any], calls: Sequence[ExtenderCall]
) -> dict[str, Any]:
    """The expectations, with our words for what a library found where only those differ."""
    found = [call.error for call in calls if call.error is not None and _is_found_by_library(call)]
    result = dict(expect)
    result["error"] = _same_but_for(expect["error"], got["error"], found)
    failure = expect["outcome"].get("failure")
    ours = got["outcome"].get("failure")
    if failure is not None and ours is not None:
        message = _same_but_for(failure["message"], ours["message"], found)
        result["outcome"] = {**expect["outcome"], "failure": {**failure, "message": message}}
    return result


def _is_found_by_library(call: ExtenderCall) -> bool:
    return call.answer.error is not None or str(call.error).startswith("invalid answer from ")


def _same_but_for(expected: str | None, got: str | None, found: Sequence[str]) -> str | None:
    if expected is None or got is None:
        return expected
    for words in found:
        before, separator, after = got.partition(words)
        if (
            separator
            and len(expected) > len(before) + len(after)
            and expected.startswith(before)
            and expected.endswith(after)
        ):
            return got
    return expected
