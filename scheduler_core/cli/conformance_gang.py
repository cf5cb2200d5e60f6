"""Compare the scheduling of pod groups, step by step, with what the real scheduler did (family `gang`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scheduler_core.actions import Action, BindPod, EvictBeside, EvictPod, PatchPodGroupStatus, RecordEvent
from scheduler_core.cli.conformance import Difference, differences, release_of
from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.events import BindAnswered, ObjectChanged, PreemptionAnswered
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod, with_node
from scheduler_core.objects.policy import KIND

Document = dict[str, Any]
TICK_NS = 1_000
IDLE_CYCLES = 2
"""A run is over once so many cycles in a row changed nothing and no pod is active."""


def run_case(case: Mapping[str, Any]) -> list[Difference]:
    """Run one case of the family `gang`.

    Returns
    -------
    list of Difference
        Those of the first step that differs, as all later ones follow from it; else those of `final`.
    """
    run = GangRun(case)
    expected = case["expect"]["steps"]
    n_steps = 0
    for got in run.steps():
        wanted = expected[n_steps] if n_steps < len(expected) else {}
        found = list(differences(wanted, got, f"steps[{n_steps}]"))
        if found:
            return found
        n_steps += 1
    if n_steps != len(expected):
        return [Difference("steps", len(expected), n_steps)]
    return list(differences(case["expect"]["final"], run.final(), "final"))


class GangRun(CaseCluster):
    """A scheduler, and an API server that binds and deletes at once; pods' statuses never came back from it."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._pods: dict[str, Pod] = {}
        self._step: Document = {}
        self._created: list[str] = []
        self._operations = case["sequence"]
        # Evictions were carried out at once, so no preemptor is held back for want of their end.
        release = release_of(case).with_gates({"SchedulerAsyncPreemption": False})
        super().__init__(case["objects"], case.get("config"), release=release)

    def begin_with(self, objects: Iterable[Mapping[str, Any]]) -> None:
        for manifest in objects:
            self._create(manifest)

    def steps(self) -> Iterator[Document]:
        """What each operation and each cycle changed."""
        for operation in self._operations:
            # The real clock never stands still.
            self.clock.move_to(self.clock.now_ns + TICK_NS)
            if operation.get("run"):
                yield from self._run()
                continue
            self._step = {}
            name = self._create(operation)
            if operation["kind"] == "Pod":
                self._created.append(name)
                yield self._told("addPod", pod=name)
            else:
                yield self._told(f"add{operation['kind']}", group=name)
        yield from self._run()

    def final(self) -> Document:
        """Where the pods of the sequence are."""
        found = {}
        for key in self._created:
            pod = self._pods.get(key)
            found[key] = None if pod is None else pod.node_name or None
        return found

    def _run(self) -> Iterator[Document]:
        idle = 0
        queue = self.queue
        while queue.n_active or (idle < IDLE_CYCLES and queue.can_pop()):
            self.clock.move_to(self.clock.now_ns + TICK_NS)
            self._step = {} if queue.n_active else {"fromBackoff": True}
            self._perform(self.schedule_one())
            idle = 0 if self._step.keys() & {"bound", "deleted"} else idle + 1
            yield self._told("scheduleOne")

    def _create(self, manifest: Mapping[str, Any]) -> str:
        parsed = parse(prepare(manifest, self.priority_classes))
        if parsed.kind == "Pod":
            self._pods[parsed.typed.key] = parsed.typed
        self._perform(self.handle(ObjectChanged(parsed.kind, None, parsed.typed)))
        return f"{parsed.namespace}/{parsed.name}"

    def _change(self, old: Pod, new: Pod | None) -> None:
        if new is None:
            del self._pods[old.key]
        else:
            self._pods[old.key] = new
        self._perform(self.handle(ObjectChanged("Pod", old, new)))

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case BindPod(pod, node_name):
                    live = self._pods[pod.key]
                    spec = {**live.manifest["spec"], "nodeName": node_name}
                    self._step.setdefault("bound", {})[pod.key] = node_name
                    self._change(live, with_node(live, node_name, {**live.manifest, "spec": spec}))
                    self._perform(self.handle(BindAnswered(pod.uid)))
                case PatchPodGroupStatus(group, condition):
                    self._step.setdefault("podGroupConditions", []).append({"group": group.key, **condition})
                    manifest = {**group.manifest, "status": {"conditions": [condition]}}
                    self._perform(self.handle(ObjectChanged(KIND, group, parse(manifest).typed)))
                case EvictPod():
                    self._evict(action)
                case EvictBeside(uid, evictions):
                    for eviction in evictions:
                        self._evict(eviction)
                    self._perform(self.handle(PreemptionAnswered(uid)))
                case RecordEvent(pod, type_, reason, _, note):
                    self._tell(pod, type_, reason, note)

    def _evict(self, eviction: EvictPod) -> None:
        live = self._pods.get(eviction.pod.key)
        if live is None:
            return
        self._step.setdefault("deleted", []).append(live.key)
        self._tell(live, "Normal", "Preempted", eviction.message)
        self._change(live, None)

    def _tell(self, pod: Pod, type_: str, reason: str, note: str) -> None:
        event = {"pod": pod.key, "type": type_, "reason": reason, "note": note}
        self._step.setdefault("events", []).append(event)

    def _told(self, op: str, **subject: str) -> Document:
        queue = self.queue
        waiting = [*queue.active_pods(), *queue.backoff_pods(), *queue.error_backoff_pods()]
        unschedulable = queue.unschedulable_pods()
        told = {"op": op, **subject, **self._step}
        if "events" in told:
            told["events"] = sorted(told["events"], key=lambda event: json.dumps(event, sort_keys=True))
        if "deleted" in told:
            told["deleted"] = sorted(told["deleted"])
        told["queues"] = {
            "pending": sorted(info.key for info in (*waiting, *unschedulable)),
            "activeQ": queue.n_active,
            "backoffQ": len(waiting) - queue.n_active,
            "unschedulablePods": len(unschedulable),
        }
        return told
