"""Compare scheduling decisions with what the real scheduler recorded (`ordinary` and sequence cases)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler_core.cli.case_release import release_of
from scheduler_core.cli.difference import Difference
from scheduler_core.clock import Clock
from scheduler_core.cluster.cache import Cache
from scheduler_core.cluster.nominator import Nominator
from scheduler_core.config.load import LoadedConfiguration
from scheduler_core.extender.chain import extender_chain
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.interface import PostFilterResult
from scheduler_core.framework.preemption import preemption_document
from scheduler_core.framework.preemption_options import ChoiceOptions
from scheduler_core.framework.profile import SchedulerHandle, build_profiles
from scheduler_core.framework.record import CycleTrace
from scheduler_core.framework.recording import record_body
from scheduler_core.framework.runtime import Framework
from scheduler_core.framework.status import Code, Status
from scheduler_core.framework.waiting_pods import WaitingPods
from scheduler_core.objects.defaults import StoredPriorities, prepare, priority_class_from
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins import REGISTRY, default_configuration, load_configuration
from scheduler_core.plugins.default_preemption import ineligible_reason
from scheduler_core.randomness import Randomness
from scheduler_core.releases import OLDEST, Release
from scheduler_core.schedule_one import Algorithm, AlgorithmOptions, Decision


class CaseCluster:
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
        self.loaded: LoadedConfiguration = (
            default_configuration(release) if config is None else load_configuration(config, release=release)
        )
        self.cache = Cache()
        self.nominator = Nominator()
        self.clock = Clock(0)
        self.waiting_pods = WaitingPods()
        self.extenders = extender_chain(self.loaded, transport)
        handle = SchedulerHandle(
            self.cache,
            self.nominator,
            self.waiting_pods,
            self.clock,
            choices=ChoiceOptions(first_of_ties=True, all_preemption_candidates=True),
            extenders=self.extenders or None,
            release=release,
        )
        self.frameworks: dict[str, Framework] = build_profiles(self.loaded, REGISTRY, handle, self.cache)
        self.algorithm = Algorithm(AlgorithmOptions(first_of_ties=True), Randomness(0), self.extenders)
        self.priority_classes = StoredPriorities(
            priority_class_from(item) for item in objects if item.get("kind") == "PriorityClass"
        )
        for manifest in objects:
            self._load(manifest)

    def _load(self, manifest: Mapping[str, Any]) -> None:
        if manifest.get("kind") in ("PriorityClass", "ResourceClaimTemplate"):
            return
        kind, namespace, name, typed = parse(prepare(manifest, self.priority_classes))
        if kind == "Node":
            self.cache.set_node(typed)
        elif kind == "Pod":
            if typed.is_terminal:
                return
            if typed.node_name:
                self.cache.add_pod(typed)
            elif typed.nominated_node_name:
                self.nominator.add(typed)
        else:
            self.cache.listers.set(kind, namespace, name, typed)

    def pending_pod(self, manifest: Mapping[str, Any]) -> Pod:
        return pod_from(prepare({"apiVersion": "v1", "kind": "Pod", **manifest}, self.priority_classes))

    def framework_for(self, pod: Pod) -> Framework:
        return self.frameworks[pod.scheduler_name]

    def schedule(self, pod: Pod) -> Decision:
        return self.algorithm.schedule(self.framework_for(pod), pod, self.cache.snapshot())


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one ordinary case.

    Returns
    -------
    list of Difference
        Empty when every key of `expect` agrees.
    """
    cluster = CaseCluster(case["objects"], case.get("config"), release=release_of(case))
    pod = cluster.pending_pod(case["pod"])
    return list(differences(case["expect"], explain(cluster, pod)))


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


def differences(expect: Any, got: Any, path: str = "") -> Iterable[Difference]:
    """Every key of `expect` whose value is another in `got`; keys only `got` has do not count at the top."""
    for key, value in expect.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and isinstance(got.get(key), Mapping):
            yield from _same_keys(value, got[key], where)
        elif got.get(key) != value:
            yield Difference(where, value, got.get(key))


def _same_keys(expect: Mapping[str, Any], got: Mapping[str, Any], path: str) -> Iterable[Difference]:
    for key in [*expect, *(key for key in got if key not in expect)]:
        where = f"{path}.{key}"
        expected, computed = expect.get(key), got.get(key)
        if isinstance(expected, Mapping) and isinstance(computed, Mapping):
            yield from _same_keys(expected, computed, where)
        elif expected != computed:
            yield Difference(where, expected, computed)
