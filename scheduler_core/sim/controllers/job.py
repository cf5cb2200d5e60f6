"""Job: pods until so many of them have succeeded.

A pod here ends by itself a while after it started: what `playground.dev/duration` says in the pod template, else on
the Job, else on its Namespace, else on the Namespace kube-system, else `DEFAULT_DURATION`. The pod carries it, so that
one can see it. `playground.dev/ends-as: Failed` works on a Job, too.

Source: pkg/controller/job/job_controller.go, indexed_job_utils.go, backoff_utils.go, v1.34
Differs: no pod failure or success policies, no backoffLimitPerIndex, one state of `uncountedTerminatedPods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import (
    boolean,
    format_seconds,
    integer,
    mapping,
    optional_integer,
    parse_time_ns,
    string,
)
from scheduler_core.objects.meta import condition_of
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.controllers.base import Workload, WorkloadController
from scheduler_core.sim.kubelet import DURATION, ENDS_AS
from scheduler_core.sim.world import OwnedPods, annotations_of, condition

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
DEFAULT_BACKOFF_LIMIT = 6
DEFAULT_DURATION = "1m"
CLUSTER_NAMESPACE = "kube-system"
"""The Namespace whose annotation `playground.dev/duration` is the cluster's."""
TTL, DEADLINE, BACKOFF = "job-expires", "job-deadline", "job-backs-off"
BACKOFF_S, LONGEST_BACKOFF_S = 10, 600


class JobController(WorkloadController):
    """Finished pods stay until their Job goes."""

    kind: ClassVar[str] = "Job"
    watches: ClassVar[tuple[str, ...]] = ("Job", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("Job",)
    timer_names: ClassVar[tuple[str, ...]] = (TTL, DEADLINE, BACKOFF)
    adopts: ClassVar[bool] = False

    def sync_one(self, workload: Workload) -> None:
        if _is_finished(workload):
            return
        group = self.pods.of_owner(workload.owner)
        succeeded, failed = _counts(workload, group)
        completions = optional_integer(workload.spec, "completions", "spec")
        parallelism = optional_integer(workload.spec, "parallelism", "spec")
        parallelism = 1 if parallelism is None else max(parallelism, 0)
        limit = integer(workload.spec, "backoffLimit", "spec", DEFAULT_BACKOFF_LIMIT)
        if self._is_over_deadline(workload) or failed > limit:
            for pod in group.active():
                self.delete_pod(pod, "job failed")
            return
        if boolean(workload.spec, "suspend", "spec"):
            wanted = 0
        elif completions is None:
            wanted = group.n_active if succeeded else parallelism
        else:
            wanted = max(min(parallelism, completions - succeeded), 0)
        if group.n_active > wanted:
            # Pods that have not been started are missed least.
            active = sorted(
                group.active(), key=lambda pod: (bool(pod.node_name), -(pod.meta.creation_ns or 0), pod.name)
            )
            for pod in active[: group.n_active - wanted]:
                self.delete_pod(pod, "job needs fewer pods")
        if group.n_active < wanted and not self._backs_off(workload, group):
            indexes = self._free_indexes(workload, group) if _is_indexed(workload) else None
            for _ in range(wanted - group.n_active):
                if indexes is None:
                    self._make(workload, None)
                elif indexes:
                    self._make(workload, indexes.pop(0))

    def _free_indexes(self, workload: Workload, group: OwnedPods) -> list[int]:
        taken = {
            _index(pod) for pod in group.pods.values() if pod.phase != "Failed" and not pod.is_terminating
        }
        return [index for index in range(integer(workload.spec, "completions", "spec")) if index not in taken]

    def _make(self, workload: Workload, index: int | None) -> None:
        uid = workload.meta.uid
        labels = {
            "batch.kubernetes.io/controller-uid": uid.replace("/", "."),
            "batch.kubernetes.io/job-name": workload.name,
            "controller-uid": uid.replace("/", "."),
            "job-name": workload.name,
        }
        annotations = self._lasting(workload)
        if index is None:
            self.make_pod(workload, labels, **({"annotations": annotations} if annotations else {}))
            return
        labels[INDEX_ANNOTATION] = str(index)
        name = self.context.factory.free_name(workload.namespace, f"{workload.name}-{index}-")
        self.make_pod(workload, labels, name=name, annotations={INDEX_ANNOTATION: str(index), **annotations})

    def _lasting(self, workload: Workload) -> dict[str, str]:
        """What a pod is given to end by, beside its template's own annotations."""
        said = mapping(mapping(workload.template, "metadata", "spec.template"), "annotations", "")
        own = mapping(workload.manifest["metadata"], "annotations", "metadata")
        given: dict[str, str] = {}
        if DURATION not in said:
            given[DURATION] = str(own.get(DURATION) or self._default_duration(workload.namespace))
        if ENDS_AS not in said and ENDS_AS in own:
            given[ENDS_AS] = str(own[ENDS_AS])
        return given

    def _default_duration(self, namespace: str) -> str:
        for name in (namespace, CLUSTER_NAMESPACE):
            stored = self.world.get("Namespace", "", name)
            if stored is not None and (said := annotations_of(stored.manifest).get(DURATION)):
                return str(said)
        return DEFAULT_DURATION

    def _is_over_deadline(self, workload: Workload) -> bool:
        """Whether it has been active for as long as it may; sets the timer that looks again when it has."""
        limit_s = optional_integer(workload.spec, "activeDeadlineSeconds", "spec")
        started = (workload.manifest.get("status") or {}).get("startTime")
        if limit_s is None or boolean(workload.spec, "suspend", "spec"):
            return False
        # Its status comes at the end of this moment.
        started_ns = self.world.clock.now_ns if not started else parse_time_ns(str(started))
        at_ns = started_ns + limit_s * SECOND_NS
        if at_ns <= self.world.clock.now_ns:
            return True
        self._look_later(workload, at_ns, DEADLINE)
        return False

    def _backs_off(self, workload: Workload, group: OwnedPods) -> bool:
        """Whether new pods have to wait, as the last ones failed: 10 s, 20 s, ..., 10 min after the last failure."""
        finished = _finished(group)
        if not any(pod.phase == "Failed" for pod in finished):
            return False
        ended = sorted((_ended_ns(pod), pod.phase == "Succeeded") for pod in finished)
        n_failed = next((n for n, (_, good) in enumerate(reversed(ended)) if good), len(ended))
        if not n_failed:
            return False
        delay_s = min(BACKOFF_S << min(n_failed - 1, 10), LONGEST_BACKOFF_S)
        at_ns = ended[-1][0] + delay_s * SECOND_NS
        if at_ns <= self.world.clock.now_ns:
            return False
        self._look_later(workload, at_ns, BACKOFF)
        return True

    def _look_later(self, workload: Workload, at_ns: int, what: str) -> None:
        self.timers.add(at_ns, what, workload.namespace, workload.name, workload.meta.uid)

    # ---- status

    def status_of(self, workload: Workload) -> dict[str, Any]:
        group = self.pods.of_owner(workload.owner)
        succeeded, failed = _counts(workload, group)
        now = format_seconds(self.world.clock.now_ns)
        numbers = {"active": group.n_active, "ready": group.n_ready, "succeeded": succeeded, "failed": failed}
        status = workload.status_with(numbers)
        del status["observedGeneration"]
        suspended = boolean(workload.spec, "suspend", "spec")
        if _is_indexed(workload):
            status["completedIndexes"] = _spans(sorted(_done_indexes(group)))
        was = (condition_of(workload.manifest, "Suspended") or {}).get("status") == "True"
        if not _is_finished(workload) and suspended != was:
            reason, message = ("Suspended", "Job suspended") if suspended else ("Resumed", "Job resumed")
            status = self._with(status, condition("Suspended", suspended, f"Job{reason}", message))
            self.tell(workload.manifest, reason, message)
        if suspended:
            status.pop("startTime", None)
        else:
            status.setdefault("startTime", now)
        if _is_finished(workload):
            return status
        completions = optional_integer(workload.spec, "completions", "spec")
        limit = integer(workload.spec, "backoffLimit", "spec", DEFAULT_BACKOFF_LIMIT)
        done = succeeded >= completions if completions is not None else succeeded > 0 and not group.n_active
        if self._is_over_deadline(workload):
            message = "Job was active longer than specified deadline"
            status = self._failed(workload, status, "DeadlineExceeded", message)
        elif failed > limit:
            message = "Job has reached the specified backoff limit"
            status = self._failed(workload, status, "BackoffLimitExceeded", message)
        elif done and not group.n_active:
            words = ("CompletionsReached", "Reached expected number of succeeded pods")
            ended = [condition(type_, True, *words) for type_ in ("SuccessCriteriaMet", "Complete")]
            status = {**self._with(status, *ended), "completionTime": now}
            self.tell(workload.manifest, "Completed", "Job completed")
        if _done(status):
            ttl_s = optional_integer(workload.spec, "ttlSecondsAfterFinished", "spec")
            if ttl_s is not None:
                self._look_later(workload, self.world.clock.now_ns + max(ttl_s, 0) * SECOND_NS, TTL)
            for what in (DEADLINE, BACKOFF):
                self.timers.cancel(what, workload.namespace, workload.name, workload.meta.uid)
        return status

    def _with(self, status: Mapping[str, Any], *conditions: Mapping[str, Any]) -> dict[str, Any]:
        return self.world.status_with({"status": status}, *conditions)

    def _failed(
        self, workload: Workload, status: Mapping[str, Any], reason: str, message: str
    ) -> dict[str, Any]:
        self.warn(workload.manifest, reason, message)
        return self._with(
            status, *(condition(type_, True, reason, message) for type_ in ("FailureTarget", "Failed"))
        )

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        namespace, name, uid = subject
        workload = self.workloads.get((namespace, name))
        if workload is None or workload.meta.uid != uid:
            return
        if what != TTL:
            self.look_at((namespace, name))
        else:
            self.world.remove("Job", namespace, name, "ttlSecondsAfterFinished")


def _finished(group: OwnedPods) -> list[Pod]:
    return [pod for pod in group.pods.values() if pod.is_terminal]


def _done_indexes(group: OwnedPods) -> set[int]:
    return {_index(pod) for pod in group.pods.values() if pod.phase == "Succeeded"}


def _counts(workload: Workload, group: OwnedPods) -> tuple[int, int]:
    """(succeeded, failed) pods; of an indexed Job succeeded indexes."""
    finished = _finished(group)
    failed = sum(pod.phase == "Failed" for pod in finished)
    succeeded = len(_done_indexes(group)) if _is_indexed(workload) else len(finished) - failed
    return succeeded, failed


def finished_as(manifest: Mapping[str, Any]) -> str:
    """`Complete` or `Failed`; empty for a Job that goes on."""
    for type_ in ("Complete", "Failed"):
        if (condition_of(manifest, type_) or {}).get("status") == "True":
            return type_
    return ""


def _is_finished(workload: Workload) -> bool:
    return bool(finished_as(workload.manifest))


def _ended_ns(pod: Pod) -> int:
    """When its last container ended; when it was made, of one that never started."""
    ends = [
        parse_time_ns(text)
        for item in (pod.manifest.get("status") or {}).get("containerStatuses") or ()
        if (text := ((item.get("state") or {}).get("terminated") or {}).get("finishedAt"))
    ]
    return max(ends, default=pod.meta.creation_ns or 0)


def _spans(numbers: list[int]) -> str:
    """`0-3,5`, as completedIndexes has them."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(
        str(low) if low == high else f"{low}{',' if high == low + 1 else '-'}{high}" for low, high in spans
    )


def _done(status: dict[str, Any]) -> bool:
    return any(condition_of({"status": status}, type_) is not None for type_ in ("Complete", "Failed"))


def _is_indexed(workload: Workload) -> bool:
    indexed = string(workload.spec, "completionMode", "spec") == "Indexed"
    return indexed and optional_integer(workload.spec, "completions", "spec") is not None


def _index(pod: Pod) -> int:
    text = annotations_of(pod.manifest).get(INDEX_ANNOTATION, "-1")
    return int(text) if str(text).isdecimal() else -1
