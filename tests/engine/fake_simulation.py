"""A tiny deterministic scheduler behind the driving port: first node with enough cpu, pods as they came.

It has what the pipeline must cope with (queue, timers, terminating pods, cycles with traces, checkpoints) and
nothing else, so that tests of log, lease and commit do not depend on scheduling.
"""

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

from playground.engine.entries import CycleRecord, Entry, MoveRecord, NewEntry, OutsideCall, QueueState

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class FakeDeadline:
    at_ns: int
    what: str


@dataclass(frozen=True)
class FakeReport:
    cycles: int
    stop: str
    clock_ns: int
    next_deadline: FakeDeadline | None
    message: str = ""

    def message_after(self, cycles: int) -> str:
        return self.message


def _milli(text: Any) -> int:
    text = str(text)
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def _request(manifest: dict[str, Any]) -> int:
    containers = manifest["spec"]["containers"]
    return sum(_milli(c.get("resources", {}).get("requests", {}).get("cpu", 0)) for c in containers)


class FakeSimulation:
    """First-fit by cpu. Pods are keyed ``namespace/name``."""

    def __init__(self, *, start_ns: int, seed: int = 0) -> None:
        self.now_ns = start_ns
        self.seed = seed
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.active: list[str] = []
        self.unschedulable: list[str] = []
        self.going: dict[str, int] = {}
        self.n_cycles = 0
        self.new_outcomes: list[NewEntry] = []
        self.new_cycles: list[CycleRecord] = []
        self.kept: bool | Container[int] = True

    # -- inputs

    def submit(self, change: Entry) -> None:
        if change.kind == "write":
            self._written(change.payload["manifest"])
        elif change.kind == "delete":
            self._deleted(change.payload)

    def _written(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Node":
            self.nodes[name] = manifest
            self.active += self.unschedulable
            self.unschedulable = []
        elif manifest["kind"] == "Pod":
            key = f"{manifest['metadata']['namespace']}/{name}"
            new = key not in self.pods
            self.pods[key] = manifest
            if new and not manifest["spec"].get("nodeName"):
                self.active.append(key)

    def _deleted(self, payload: dict[str, Any]) -> None:
        if payload["kind"] == "Node":
            self.nodes.pop(payload["name"], None)
        elif payload["kind"] == "Pod":
            key = f"{payload['namespace']}/{payload['name']}"
            if payload.get("gone", True):
                self._forget(key)
            else:
                self.pods[key] = payload["manifest"]
                self.going[key] = self.now_ns + payload["gracePeriodSeconds"] * SECOND_NS

    def _forget(self, key: str) -> None:
        self.pods.pop(key, None)
        self.going.pop(key, None)
        self.active = [pod for pod in self.active if pod != key]
        self.unschedulable = [pod for pod in self.unschedulable if pod != key]

    # -- running

    def step(self) -> FakeReport:
        self._fire()
        if not self.active:
            return self._report(0, "idle", "Nothing to do.")
        self._cycle()
        return self._report(1, "cycle")

    def run_until_idle(self, *, max_cycles: int, until_ns: int | None = None) -> FakeReport:
        cycles = 0
        while True:
            self._fire()
            if self.active:
                if cycles >= max_cycles:
                    return self._report(cycles, "budget")
                self._cycle()
                cycles += 1
            elif self.going:
                self.now_ns = max(self.now_ns, min(self.going.values()))
            else:
                return self._report(cycles, "idle", "Idle: nothing is left to do.")

    def advance(self, duration_ns: int, *, max_cycles: int) -> FakeReport:
        end_ns = self.now_ns + duration_ns
        cycles = 0
        while True:
            self._fire()
            if self.active and duration_ns:
                if cycles >= max_cycles:
                    return self._report(cycles, "budget")
                self._cycle()
                cycles += 1
                continue
            due = [at for at in self.going.values() if at <= end_ns]
            if not due or not duration_ns:
                break
            self.now_ns = max(self.now_ns, min(due))
        self.now_ns = max(self.now_ns, end_ns)
        return self._report(cycles, "time")

    def _fire(self) -> None:
        for key, at_ns in sorted(self.going.items(), key=lambda item: (item[1], item[0])):
            if at_ns > self.now_ns:
                break
            namespace, _, name = key.partition("/")
            payload = {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": namespace,
                "name": name,
                "reason": "Killed",
            }
            self._forget(key)
            self.new_outcomes.append(NewEntry("delete", at_ns, payload))
            self.active += self.unschedulable
            self.unschedulable = []

    def _cycle(self) -> None:
        key = self.active.pop(0)
        self.n_cycles += 1
        manifest = self.pods[key]
        node = self._first_fit(manifest)
        meta = manifest["metadata"]
        if node:
            bound = manifest | {
                "spec": manifest["spec"] | {"nodeName": node},
                "status": {"phase": "Running"},
            }
            self.pods[key] = bound
            self.new_outcomes.append(
                NewEntry("write", self.now_ns, {"manifest": bound, "reason": "Bound"}, self.n_cycles)
            )
        else:
            self.unschedulable.append(key)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.{self.n_cycles:x}", "namespace": meta["namespace"]},
            "involvedObject": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"]},
            "reason": "Scheduled" if node else "FailedScheduling",
            "message": node or "no fit",
        }
        self.new_outcomes.append(NewEntry("event", self.now_ns, {"manifest": event}, self.n_cycles))
        digest = hashlib.sha256(f"{key}/{node}/{self.n_cycles}".encode()).hexdigest()
        self.new_cycles.append(
            CycleRecord(
                number=self.n_cycles,
                at_ns=self.now_ns,
                pod_namespace=meta["namespace"],
                pod_name=meta["name"],
                pod_uid=meta["uid"],
                outcome="bound" if node else "unschedulable",
                digest=digest,
                node=node,
                message="" if node else f"0/{len(self.nodes)} nodes are available.",
                n_nodes=len(self.nodes),
                n_feasible=1 if node else 0,
                n_viable=1 if node else 0,
                trace=f"{key}->{node}".encode(),
            )
        )

    def _first_fit(self, manifest: dict[str, Any]) -> str:
        want = _request(manifest)
        for name, node in sorted(self.nodes.items()):
            used = sum(_request(pod) for pod in self.pods.values() if pod["spec"].get("nodeName") == name)
            if used + want <= _milli(node["status"]["allocatable"]["cpu"]):
                return name
        return ""

    # -- answers

    def next_deadline(self) -> FakeDeadline | None:
        if not self.going:
            return None
        key, at_ns = min(self.going.items(), key=lambda item: (item[1], item[0]))
        return FakeDeadline(at_ns, f"{key} terminates")

    def _report(self, cycles: int, stop: str, message: str = "") -> FakeReport:
        return FakeReport(cycles, stop, self.now_ns, self.next_deadline(), message)

    def checkpoint(self) -> dict[str, Any]:
        state = {
            name: getattr(self, name)
            for name in ("now_ns", "seed", "nodes", "pods", "active", "unschedulable", "going", "n_cycles")
        }
        copied: dict[str, Any] = json.loads(json.dumps(state))
        return copied


class FakeSimulator:
    """Makes fake simulations; `fail` makes the next run raise, `during` is called in the middle of a run."""

    version = "fake"

    def __init__(self) -> None:
        self.fail = ""
        self.during: Any = None
        self.n_restored = 0

    def new(
        self,
        *,
        config: dict[str, Any] | None,
        seed: int,
        start_ns: int,
        release: dict[str, Any] | None = None,
        transport: Any = None,
    ) -> FakeSimulation:
        return self._wired(FakeSimulation(start_ns=start_ns, seed=seed))

    def restore(self, document: dict[str, Any], *, transport: Any = None) -> FakeSimulation:
        self.n_restored += 1
        simulation = FakeSimulation(start_ns=0)
        for name, value in document.items():
            setattr(simulation, name, value)
        return self._wired(simulation)

    def _wired(self, simulation: FakeSimulation) -> FakeSimulation:
        run = simulation.run_until_idle

        def watched(*, max_cycles: int, until_ns: int | None = None) -> FakeReport:
            if self.fail:
                raise RuntimeError(self.fail)
            report = run(max_cycles=max_cycles, until_ns=until_ns)
            if self.during is not None:
                self.during()
            return report

        simulation.run_until_idle = watched  # type: ignore[method-assign]
        return simulation

    def change(self, entry: Entry) -> Entry:
        return entry

    def watch(self, simulation: FakeSimulation, times: Any) -> None:
        pass

    def cycle(self, simulation: FakeSimulation) -> int:
        return simulation.n_cycles + 1

    def calls(self, simulation: FakeSimulation) -> Sequence[OutsideCall]:
        return ()

    def manifest(
        self, simulation: FakeSimulation, kind: str, namespace: str, name: str
    ) -> dict[str, Any] | None:
        return simulation.nodes.get(name) if kind == "Node" else simulation.pods.get(f"{namespace}/{name}")

    def outcomes(self, simulation: FakeSimulation) -> Sequence[NewEntry]:
        drained, simulation.new_outcomes = simulation.new_outcomes, []
        return drained

    def cycles(
        self, simulation: FakeSimulation, wanted: Container[int] | None = None
    ) -> Sequence[CycleRecord]:
        drained, simulation.new_cycles = simulation.new_cycles, []
        drained = [
            cycle
            if isinstance(simulation.kept, bool) or cycle.number in simulation.kept or not cycle.node
            else replace(cycle, trace=None)
            for cycle in drained
        ]
        return [cycle for cycle in drained if wanted is None or cycle.number in wanted]

    def keep_full_traces(
        self, simulation: FakeSimulation, of: bool | Container[int], *, unplaced: bool = False
    ) -> None:
        simulation.kept = True if isinstance(of, bool) else of

    def follow(self, simulation: FakeSimulation, recorded: Any) -> None:
        """It decides every cycle."""

    def cycles_under_way(self, simulation: FakeSimulation) -> Sequence[int]:
        return ()

    def moves(self, simulation: FakeSimulation) -> Sequence[MoveRecord]:
        return ()

    def queue(self, simulation: FakeSimulation) -> dict[str, list[dict[str, Any]]]:
        return {
            "active": [{"pod": key} for key in simulation.active],
            "unschedulable": [{"pod": key, "reason": "no fit"} for key in simulation.unschedulable],
        }

    def queue_state(self, simulation: FakeSimulation, *, whole: bool) -> QueueState:
        return QueueState.of(self.queue(simulation))
