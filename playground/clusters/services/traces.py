"""Traces that were not kept: decided again from the nearest checkpoint when they are asked for.

Determinism makes them exact. If an engine of another version decides differently, the recorded summary stands
and the cycle says so.
"""

from django.db import transaction
from django.db.models import F

from playground.clusters import wake
from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle
from playground.clusters.services.advance import nearest, recorded, stretch
from playground.clusters.services.histories import HISTORIES
from playground.engine import engine_version
from playground.engine.drive import collector_paused
from playground.engine.entries import CycleRecord
from playground.engine.ports import Simulator
from playground.engine.simulator import default_simulator


def request_trace(*, cluster: Cluster, number: int) -> bool:
    """Ask a worker for the trace of a cycle; False if there is nothing to wait for (kept, or it differs).

    Raises
    ------
    NotFound
    """
    cycle = Cycle.objects.filter(cluster=cluster, number=number).defer("trace").first()
    if cycle is None:
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    missing = Cycle.objects.filter(pk=cycle.pk, trace__isnull=True).exists()
    if missing and not cycle.trace_note:
        # Asked again at the next look, should it not have been heard.
        wake.send(wake.RECOMPUTE_TRACE, cluster_id=cluster.pk, number=number)
        return True
    return False


def recompute_trace(*, cluster_id: int, number: int, simulator: Simulator | None = None) -> bool:
    """Replay the log up to a cycle's batch and keep its trace; True if it is kept now.

    Needs no lease: it reads only what is committed and changes nothing but the empty trace.
    """
    cycle = Cycle.objects.filter(cluster_id=cluster_id, number=number, trace__isnull=True).first()
    if cycle is None:
        return Cycle.objects.filter(cluster_id=cluster_id, number=number).exists()
    cluster = Cluster.objects.get(pk=cluster_id)
    with collector_paused():
        record = (HISTORIES.opened(cluster, cycle) if simulator is None else None) or _lived_through(
            cluster, cycle, simulator or default_simulator()
        )
        # The collector looks at what was read for it when the trace is there, not before.
        with transaction.atomic():
            empty = Cycle.objects.filter(pk=cycle.pk, trace__isnull=True)
            if record is not None and record.digest == cycle.digest:
                empty.update(trace=record.trace)
            else:
                empty.update(
                    trace_note=f"Engine {engine_version()} decides this cycle differently than the recorded"
                    f" {cycle.engine_version}; what was recorded is shown."
                )
            Cluster.objects.filter(pk=cluster_id).update(version=F("version") + 1)
    HISTORIES.tidy()
    return record is not None and record.digest == cycle.digest


def _lived_through(cluster: Cluster, cycle: Cycle, simulator: Simulator) -> CycleRecord | None:
    """The cycle as a replay of the log comes to it."""
    # The batch must be replayed whole, so the checkpoint has to lie before it.
    engine, engine_seq = nearest(cluster, cycle.ran_seq - 1, simulator)
    entries = stretch(cluster, engine, engine_seq, cycle.ran_seq)
    return engine.reopened(entries, cycle.number, cycle.ran_seq, recorded=recorded(cluster))
