"""Job: pods until so many of them have succeeded.

Source: pkg/controller/job/job_controller.go, indexed_job_utils.go, v1.34
Differs: no pod failure or success policies, no backoff between failures, no deadlines. A pod here ends by itself
only when it is annotated with a duration.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scheduler_core.clock import SECOND_NS
from scheduler_core.objects.fields import boolean, format_seconds, integer, mapping, optional_integer, string
from scheduler_core.objects.pod import Pod
from scheduler_core.sim.controllers.base import Site, WorkloadController
from scheduler_core.sim.controllers.workload import Workload
from scheduler_core.sim.pod_index import PodGroup, condition_of
from scheduler_core.sim.world import Noticed, with_condition

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
DEFAULT_BACKOFF_LIMIT = 6
TTL = "job-expires"


class JobController(WorkloadController):
    """Finished pods stay until their Job goes."""

    kind: ClassVar[str] = "Job"
    watches: ClassVar[tuple[str, ...]] = ("Job", "PriorityClass")
    watches_pods_of: ClassVar[tuple[str, ...]] = ("Job",)
    timer_names: ClassVar[tuple[str, ...]] = (TTL,)
    adopts: ClassVar[bool] = False

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._finished: dict[tuple[str, str, str], dict[str, str]] = {}
        """Job -> names of its finished pods and their phase."""

    def _pod_noticed(self, change: Noticed) -> None:
        super()._pod_noticed(change)
        stored = change.new or change.old
        assert stored is not None
        pod: Pod = stored.typed
        reference = pod.meta.controller
        if reference is None or reference.kind != self.kind:
            return
        counts = self._finished.setdefault((reference.kind, pod.namespace, reference.uid), {})
        if change.new is not None and pod.is_terminal:
            counts[pod.name] = pod.phase
        else:
            counts.pop(pod.name, None)

    def sync_one(self, workload: Workload) -> None:
        if _is_finished(workload):
            return
        group = self.pods.of_owner(workload.owner)
        succeeded, failed = self._counts(workload)
        completions = optional_integer(workload.spec, "completions", "spec")
        parallelism = optional_integer(workload.spec, "parallelism", "spec")
        parallelism = 1 if parallelism is None else max(parallelism, 0)
        limit = integer(workload.spec, "backoffLimit", "spec", DEFAULT_BACKOFF_LIMIT)
        if failed > limit:
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
        if group.n_active < wanted:
            indexes = self._free_indexes(workload, group) if _is_indexed(workload) else None
            for _ in range(wanted - group.n_active):
                if indexes is None:
                    self._make(workload, None)
                elif indexes:
                    self._make(workload, indexes.pop(0))

    def _free_indexes(self, workload: Workload, group: PodGroup) -> list[int]:
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
        if index is None:
            self.site.factory.create(workload, labels)
            return
        labels[INDEX_ANNOTATION] = str(index)
        name = self.site.factory.free_name(workload.namespace, f"{workload.name}-{index}-")
        self.site.factory.create(workload, labels, name=name, annotations={INDEX_ANNOTATION: str(index)})

    def _counts(self, workload: Workload) -> tuple[int, int]:
        """(succeeded, failed) pods; of an indexed Job succeeded indexes."""
        phases = self._finished.get(workload.owner, {})
        failed = sum(1 for phase in phases.values() if phase == "Failed")
        succeeded = len(phases) - failed
        if succeeded and _is_indexed(workload):
            pods = self.pods.of_owner(workload.owner).pods
            succeeded = len(
                {
                    _index(pods[name])
                    for name, phase in phases.items()
                    if phase == "Succeeded" and name in pods
                }
            )
        return succeeded, failed

    # ---- status

    def status_of(self, workload: Workload) -> dict[str, Any]:
        group = self.pods.of_owner(workload.owner)
        succeeded, failed = self._counts(workload)
        now = format_seconds(self.world.clock.now_ns)
        numbers = {"active": group.n_active, "ready": group.n_ready, "succeeded": succeeded, "failed": failed}
        status = {
            name: value
            for name, value in (workload.manifest.get("status") or {}).items()
            if name not in numbers
        }
        status |= {name: number for name, number in numbers.items() if number}
        status.setdefault("startTime", now)
        if _is_finished(workload):
            return status
        completions = optional_integer(workload.spec, "completions", "spec")
        limit = integer(workload.spec, "backoffLimit", "spec", DEFAULT_BACKOFF_LIMIT)
        done = succeeded >= completions if completions is not None else succeeded > 0 and not group.n_active
        if failed > limit:
            message = "Job has reached the specified backoff limit"
            status["conditions"] = _finish(status, "Failed", now, "BackoffLimitExceeded", message)
        elif done and not group.n_active:
            status["conditions"] = _finish(
                status, "Complete", now, "CompletionsReached", "Reached expected number of succeeded pods"
            )
            status["completionTime"] = now
        if _done(status):
            ttl_s = optional_integer(workload.spec, "ttlSecondsAfterFinished", "spec")
            if ttl_s is not None:
                at_ns = self.world.clock.now_ns + max(ttl_s, 0) * SECOND_NS
                self.timers.add(at_ns, TTL, workload.namespace, workload.name, workload.meta.uid)
        return status

    def timer(self, what: str, subject: tuple[str, ...]) -> None:
        namespace, name, uid = subject
        workload = self.workloads.get((namespace, name))
        if workload is not None and workload.meta.uid == uid:
            self.world.remove("Job", namespace, name, "ttlSecondsAfterFinished")


def _finish(status: dict[str, Any], type_: str, now: str, reason: str, message: str) -> list[dict[str, Any]]:
    condition = {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }
    return with_condition(status, condition)


def _is_finished(workload: Workload) -> bool:
    for type_ in ("Complete", "Failed"):
        condition = condition_of(workload.manifest, type_)
        if condition is not None and condition.get("status") == "True":
            return True
    return False


def _done(status: dict[str, Any]) -> bool:
    return any(condition_of({"status": status}, type_) is not None for type_ in ("Complete", "Failed"))


def _is_indexed(workload: Workload) -> bool:
    indexed = string(workload.spec, "completionMode", "spec") == "Indexed"
    return indexed and optional_integer(workload.spec, "completions", "spec") is not None


def _index(pod: Pod) -> int:
    text = (mapping(pod.manifest["metadata"], "annotations", "metadata")).get(INDEX_ANNOTATION, "-1")
    return int(text) if str(text).isdecimal() else -1
