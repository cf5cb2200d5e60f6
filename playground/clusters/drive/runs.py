"""Asking for cycles: runs are requested and cancelled here; the worker does them (advance.py)."""

from typing import Final

from django.db.models import F
from django.utils import timezone

from playground.clusters import kinds, wake
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.log.quotas import check_bytes
from playground.clusters.log.rows import existing
from playground.clusters.log.writer import check_not_followed, writing
from playground.clusters.models import Cluster, LogEntry, Pod, Run
from scheduler_core.objects import duration
from scheduler_core.scenario.bounds import DAY_NS, MAX_VIRTUAL_NS

MAX_OPEN_RUNS: Final = 20


def parse_duration_ns(text: str) -> int:
    """``1h30m``, ``30s``, ``1.5s``, ``500ms`` in nanoseconds, as far as a run may last.

    Raises
    ------
    InvalidInput
    """
    words = 'until is "cycle", "idle" or a duration like 30s, 5m or 1h30m'
    try:
        total_ns = duration.parse_duration_ns(text.strip()) if len(text) <= 40 else -1
    except ValueError:
        total_ns = -1
    if total_ns < 0:
        raise InvalidInput(words, field="until", value=text)
    if total_ns > MAX_VIRTUAL_NS:
        raise InvalidInput(
            f"a run may last {MAX_VIRTUAL_NS // DAY_NS} days of virtual time at most",
            field="until",
            value=text,
        )
    return total_ns


def request_run(*, cluster: Cluster, until: str = "idle", max_cycles: int = 100_000) -> Run:
    """Ask for cycles; a worker runs them and the returned row tells how far it is.

    Parameters
    ----------
    cluster
        Which one.
    until
        ``cycle`` (one cycle), ``idle``, or a duration of virtual time like ``30s``.
    max_cycles
        Bound, 1 to 1,000,000.

    Raises
    ------
    InvalidInput
    Conflict
        The cluster is parked, or too many runs wait already.
    QuotaExceeded
        Who made the cluster stores as much as one person may.
    """
    if not isinstance(until, str):
        raise InvalidInput('until is "cycle", "idle" or a duration like 30s', field="until", value=str(until))
    if isinstance(max_cycles, bool) or not isinstance(max_cycles, int) or not 1 <= max_cycles <= 1_000_000:
        raise InvalidInput("max_cycles must be from 1 to 1000000", field="max_cycles", value=str(max_cycles))
    goal, duration_ns = until, None
    if until not in (Run.Until.CYCLE, Run.Until.IDLE):
        goal, duration_ns = Run.Until.TIME, parse_duration_ns(until)
    with writing(cluster) as writer:
        check_not_followed(writer.cluster)
        if writer.cluster.is_parked:
            raise Conflict(f"the cluster is parked: {writer.cluster.parked_reason}", kind="Cluster")
        if Run.objects.filter(cluster=cluster, state__in=Run.OPEN).count() >= MAX_OPEN_RUNS:
            raise Conflict(f"{MAX_OPEN_RUNS} runs wait already", kind="Run")
        check_bytes(writer.cluster.creator)
        writer.words = {Run.Until.CYCLE: "run one cycle", Run.Until.IDLE: "run until idle"}.get(
            Run.Until(goal), f"run for {until}"
        )
        run = Run.objects.create(
            cluster=writer.cluster, until=goal, duration_ns=duration_ns, max_cycles=max_cycles
        )
        wake.cluster_on_commit(writer.cluster)
    return run


def cancel_run(*, run: Run) -> Run:
    """Stop a run after its current batch; one not begun yet is cancelled at once. Twice is once.

    What the run has done stays done.
    """
    with writing(run.cluster) as writer:
        now = timezone.now()
        queued = Run.objects.filter(pk=run.pk, state=Run.State.QUEUED)
        n_cancelled = queued.update(
            state=Run.State.CANCELLED,
            cancel_requested=True,
            finished=now,
            stop="cancelled",
            message="Cancelled before it began.",
        )
        if not n_cancelled:
            Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(cancel_requested=True)
        wake.cluster_on_commit(writer.cluster)
    run.refresh_from_db()
    return run


def decide_permit(
    *,
    cluster: Cluster,
    namespace: str,
    name: str,
    decision: str,
    plugin: str | None = None,
    reason: str = "",
) -> LogEntry:
    """Allow or reject a pod that waits at Permit.

    Parameters
    ----------
    decision
        ``allow`` or ``reject``.
    plugin
        One plugin's wait; None = every plugin it waits for.
    reason
        Words for the event of a rejection.

    Raises
    ------
    InvalidInput, NotFound
    Conflict
        The pod does not wait at Permit (as of the engine's last commit).
    """
    if decision not in ("allow", "reject"):
        raise InvalidInput('the decision is "allow" or "reject"', field="decision", value=decision)
    with writing(cluster) as writer:
        pod = existing(writer.cluster, kinds.named("Pod"), namespace, name)
        if pod.lane != Pod.Lane.PERMIT:
            raise Conflict(
                f'pod "{name}" does not wait at Permit', kind="Pod", namespace=namespace, name=name
            )
        payload = {
            "namespace": namespace,
            "name": name,
            "plugin": plugin,
            "decision": decision,
            "reason": reason[:1000],
        }
        seq = writer.append(LogEntry.Source.API, LogEntry.Kind.PERMIT, payload)
        wake.cluster_on_commit(writer.cluster)
    return LogEntry.objects.get(cluster=cluster, seq=seq)


def unpark_cluster(*, cluster: Cluster) -> Cluster:
    """Let a parked cluster's engine try again."""
    Cluster.objects.filter(pk=cluster.pk).exclude(parked_reason="").update(
        parked_reason="", failures=0, last_error="", lease_expires=None, version=F("version") + 1
    )
    cluster.refresh_from_db()
    wake.cluster_on_commit(cluster)
    return cluster
