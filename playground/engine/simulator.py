"""scheduler_core's simulation behind the driving port: log entries in, drafts of entries out."""

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from playground.engine.batch import Simulator
from playground.engine.entries import (
    HEAD_ITEMS,
    HOLDING,
    CycleRecord,
    Entry,
    MoveRecord,
    NewEntry,
    OutsideCall,
    QueueState,
)
from playground.engine.extender_answers import answer_of
from playground.engine.timing import ExtensionPointTimes
from scheduler_core.extender.transport import Transport, no_transport
from scheduler_core.framework.record import ERROR, CycleTrace
from scheduler_core.queue.moves import QueueMove
from scheduler_core.releases import release_from
from scheduler_core.schedule_one import Recorded
from scheduler_core.sim.changes import (
    BindCallAnswered,
    Change,
    DeleteObject,
    EventRecorded,
    ObjectWritten,
    Outcome,
    PermitDecision,
    SetAssumedPodExpiry,
    SetConfiguration,
    WriteObject,
)
from scheduler_core.sim.options import SimulationOptions
from scheduler_core.sim.simulation import Simulation
from scheduler_core.version import ENGINE_VERSION

_LANES: Final = {
    "activeQ": "active",
    "backoffQ": "backoff",
    "unschedulable": "unschedulable",
    "gated": "gated",
    "permit": "permit",
    "binding": "binding",
    "notSimulated": "foreign",
}


class CoreSimulator:
    """Makes `scheduler_core` simulations."""

    def __init__(self) -> None:
        self.version = ENGINE_VERSION

    def new(
        self,
        *,
        config: dict[str, Any] | None,
        seed: int,
        start_ns: int,
        release: Mapping[str, Any] | None = None,
        transport: Transport = no_transport,
    ) -> Simulation:
        """A fresh engine of an empty cluster."""
        options = SimulationOptions(extenders_post_bindings=True, default_tolerations=True)
        return Simulation(
            config,
            seed=seed,
            start_ns=start_ns,
            options=options,
            transport=transport,
            release=release_from(release),
        )

    def restore(self, document: dict[str, Any], *, transport: Transport = no_transport) -> Simulation:
        """An engine from what its `checkpoint` gave."""
        return Simulation.restore(document, transport=transport)

    def watch(self, simulation: Simulation, times: ExtensionPointTimes) -> None:
        """Have the simulation's extension points timed."""
        times.watch(simulation.scheduler)

    def cycle(self, simulation: Simulation) -> int:
        """Number of the cycle that runs, or of the next one."""
        return simulation.scheduler.cycle + 1

    def calls(self, simulation: Simulation) -> Sequence[OutsideCall]:
        """Bind calls it waits for, in order."""
        return [
            OutsideCall(call.pod.uid, call.pod.namespace, call.pod.name, call.node_name, call.request)
            for call in simulation.bind_calls()
        ]

    def change(self, entry: Entry) -> Change:
        """An input entry as the simulation takes it.

        Raises
        ------
        ValueError
            The entry is of no kind that is an input.
        """
        payload = entry.payload
        match entry.kind:
            case "write":
                return WriteObject(payload["manifest"], payload.get("reason"))
            case "delete":
                if not payload.get("gone", True):
                    # The row says already when it will be gone; the kubelet here keeps to the same moment.
                    return WriteObject(payload["manifest"])
                return DeleteObject(payload["kind"], payload.get("namespace") or "", payload["name"], 0)
            case "permit":
                return PermitDecision(
                    payload["namespace"],
                    payload["name"],
                    payload["decision"] == "allow",
                    payload.get("plugin"),
                    payload.get("reason") or "",
                )
            case "config":
                release = payload.get("release")
                return SetConfiguration(payload["document"], release and release_from(release))
            case "expiry":
                return SetAssumedPodExpiry(payload["afterNs"])
            case "extender":
                return BindCallAnswered(payload["call"]["pod"]["uid"], answer_of(payload))
        raise ValueError(f"an entry of kind {entry.kind!r} is no input of a simulation")

    def manifest(
        self, simulation: Simulation, kind: str, namespace: str, name: str
    ) -> Mapping[str, Any] | None:
        """An object as it is now."""
        stored = simulation.world.get(kind, namespace, name)
        return None if stored is None else stored.manifest

    def outcomes(self, simulation: Simulation) -> Sequence[NewEntry]:
        """Drain what the cluster did by itself, in order."""
        return [_draft(outcome) for outcome in simulation.drain_outcomes()]

    def cycles(self, simulation: Simulation, wanted: Container[int] | None = None) -> Sequence[CycleRecord]:
        """Drain the cycles, in order of their numbers; of one that went on only its last word.

        Putting a trace into bytes takes longer than the cycle: it is done for those of the `wanted` numbers alone.
        """
        traces = simulation.drain_cycles()
        newest = {trace.number: trace for trace in traces if wanted is None or trace.number in wanted}
        return [record_of(newest[number]) for number in sorted(newest)]

    def keep_full_traces(
        self, simulation: Simulation, of: bool | Container[int], *, unplaced: bool = False
    ) -> None:
        """Keep the bodies of all cycles' traces from now on, or of those of these numbers (and of unplaced pods)."""
        simulation.keep_full_traces(of, unplaced=unplaced)

    def follow(self, simulation: Simulation, recorded: Recorded | None) -> None:
        """From now on place pods as recorded, where that needs no deciding; None decides every cycle."""
        simulation.follow(recorded)

    def cycles_under_way(self, simulation: Simulation) -> Sequence[int]:
        """Numbers of the cycles whose binding goes on."""
        return simulation.cycles_under_way()

    def moves(self, simulation: Simulation) -> Sequence[MoveRecord]:
        """Drain the queue's moves, in order."""
        return [_move(move) for move in simulation.drain_moves()]

    def queue(self, simulation: Simulation) -> dict[str, list[dict[str, Any]]]:
        """The queue now, by lane."""
        view = simulation.queue_view()
        return _lanes(view)

    def queue_state(self, simulation: Simulation, *, whole: bool) -> QueueState:
        """The queue now, with every pod described or only the first of each lane."""
        view = simulation.queue_now()
        if whole:
            return QueueState.of(_lanes(view.entries()))
        head = _lanes(view.entries(HEAD_ITEMS))
        places: dict[str, tuple[str, str]] = {}
        for lane, pods in view.keys().items():
            places |= dict.fromkeys(pods, (_LANES[lane], ""))
        for lane in HOLDING:
            places |= {pod: (lane, node) for pod, node in view.nodes(lane)}
        return QueueState(places, head, view.rejectors())


def _lanes(view: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {_LANES[lane]: [_item(entry) for entry in entries] for lane, entries in view.items()}


def _move(move: QueueMove) -> MoveRecord:
    namespace, _, name = move.pod.partition("/")
    return MoveRecord(
        move.at_ns, namespace, name, move.uid, str(move.source), str(move.target), move.event, move.cause,
        move.plugin, move.hint, move.reason,
    )  # fmt: skip


def _draft(outcome: Outcome) -> NewEntry:
    cycle = outcome.cycle or None
    if isinstance(outcome, ObjectWritten):
        payload: dict[str, Any] = {"manifest": outcome.manifest, "reason": outcome.reason}
        return NewEntry("write", outcome.at_ns, payload, cycle)
    if isinstance(outcome, EventRecorded):
        return NewEntry("event", outcome.at_ns, {"manifest": outcome.manifest}, cycle)
    payload = {
        "apiVersion": outcome.api_version,
        "kind": outcome.kind,
        "namespace": outcome.namespace,
        "name": outcome.name,
        "reason": outcome.reason,
    }
    return NewEntry("delete", outcome.at_ns, payload, cycle)


def record_of(trace: CycleTrace) -> CycleRecord:
    """The summary of a cycle, with its trace."""
    namespace, _, name = trace.pod.partition("/")
    return CycleRecord(
        number=trace.number,
        at_ns=trace.at_ns,
        pod_namespace=namespace,
        pod_name=name,
        pod_uid=trace.uid,
        outcome=trace.outcome,
        digest=trace.digest,
        node=trace.node or "",
        message=trace.message or trace.error or "",
        profile=trace.profile,
        attempt=trace.attempt,
        n_nodes=trace.n_nodes,
        n_evaluated=trace.n_evaluated,
        n_feasible=trace.n_feasible,
        n_viable=trace.n_viable,
        best_total=trace.best_total,
        failed_point=trace.failed_point or "",
        failed_plugin=trace.failed_plugin or "",
        nominated_node=trace.nominated_node or "",
        n_victims=trace.n_victims,
        permit_waits=tuple(
            ("allowed" if item["decision"] == "allow" else "rejected", float(item["afterS"]))
            for item in trace.permit
            if "afterS" in item
        ),
        # What a summary says is in the columns; bytes of it alone would say it twice.
        trace=trace.to_bytes() if trace.is_full or trace.outcome == ERROR or trace.awaited else None,
    )


def _item(entry: Mapping[str, Any]) -> dict[str, Any]:
    item = {
        "pod": entry["pod"],
        "uid": entry.get("uid"),
        "priority": entry.get("priority"),
        "priority_class": entry.get("priorityClass"),
        "attempts": entry.get("attempts"),
        "since_ns": entry.get("sinceNs"),
        "until_ns": entry.get("leavesNs"),
        "reason": entry.get("reason"),
        "node": entry.get("node") or entry.get("nominatedNode"),
        "plugin": ", ".join(entry.get("plugins") or ()) or entry.get("gate"),
        "event": entry.get("movedBy"),
        "event_reason": entry.get("moveReason"),
    }
    deadlines = entry.get("deadlinesNs")
    if deadlines:
        item |= {"until_ns": min(deadlines.values()), "plugin": ", ".join(deadlines), "deadlines": deadlines}
    return {key: value for key, value in item.items() if value not in (None, "")}


# ---- The real simulator: scheduler_core's simulation behind the port, and the translation to log entries


@lru_cache(maxsize=1)
def default_simulator() -> Simulator:
    """The one simulator of this process."""
    return CoreSimulator()
