"""Proof: a fresh run, in a process that never saw the first one, compared with what was recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from playground.clusters import jobs, wake
from playground.clusters.errors import NotFound
from playground.engine.entries import CycleRecord, explain_trace
from playground.engine.scenarios import FreshRun, RunStopped, ScenarioError, asked, load, run_fresh
from playground.scenarios.models import Comparison, RecordedCycle, Scenario, Verification
from playground.scenarios.services import recording
from scheduler_core.version import ENGINE_VERSION

NOTHING_DECIDED: Final = "Nothing to reproduce: this scheduler decided nothing in it"


def record_now(*, scenario_id: int) -> None:
    """Run a share for the first time and keep what it decided. Twice is once."""
    scenario = Scenario.objects.filter(pk=scenario_id, state=Scenario.State.QUEUED).first()
    if scenario is None:
        return
    problem = ""
    run: FreshRun | None = None
    try:
        run = run_fresh(bytes(scenario.document))
    except (ScenarioError, RunStopped) as error:
        problem = str(error)
    with transaction.atomic():
        locked = Scenario.objects.select_for_update(of=("self",)).get(pk=scenario_id)
        if locked.state != Scenario.State.QUEUED:
            return
        if run is None:
            locked.state, locked.problem = Scenario.State.FAILED, problem
            locked.save(update_fields=["state", "problem"])
            return
        recording.record(locked, run)
        verification = Verification.objects.create(scenario=locked)
        wake.on_commit("verify", verification_id=verification.pk)


def request_verification(*, scenario: Scenario) -> Verification:
    """Ask for a proof; the one that waits already if there is one."""
    with transaction.atomic():
        locked = Scenario.objects.select_for_update(of=("self",)).get(pk=scenario.pk)
        waiting = locked.verifications.filter(state=Verification.State.QUEUED).first()
        verification = waiting or Verification.objects.create(scenario=locked)
        wake.on_commit("verify", verification_id=verification.pk)
    return verification


def verify_now(*, verification_id: int) -> None:
    """Run the share again and write down whether its decisions are the recorded ones. Twice is once."""
    verification = (
        Verification.objects.filter(pk=verification_id, state=Verification.State.QUEUED)
        .select_related("scenario")
        .first()
    )
    if verification is None or verification.scenario.state != Scenario.State.RECORDED:
        return
    scenario = verification.scenario
    began = time.monotonic()
    try:
        run = run_fresh(bytes(scenario.document))
    except (ScenarioError, RunStopped) as error:
        verification.state = Verification.State.FAILED
        verification.sentence = f"It could not be run: {error}"
    else:
        verification.state = Verification.State.DONE
        _judge(verification, scenario, run)
    verification.engine_version = ENGINE_VERSION
    verification.took_ms = round(1000 * (time.monotonic() - began))
    verification.finished = timezone.now()
    verification.save()


def request_whole_cycle(*, scenario: Scenario, number: int) -> None:
    """Ask for every verdict and score of a cycle of which only the summary is kept.

    Raises
    ------
    NotFound
    """
    if not scenario.cycles.filter(number=number).exists():
        raise NotFound(f"cycle {number} not found", kind="Cycle", name=str(number))
    wake.send("whole_cycle", scenario_id=scenario.pk, number=number)


def keep_whole_cycle(*, scenario_id: int, number: int) -> None:
    """Decide a cycle again and keep its full trace, if it is the decision that was recorded. Twice is once."""
    row = RecordedCycle.objects.select_related("scenario").filter(scenario=scenario_id, number=number).first()
    if row is None or is_whole(readable(bytes(row.trace) if row.trace is not None else None)):
        return
    try:
        digest, trace = asked("trace", bytes(row.scenario.document), tuple[str, bytes], number=number)
    except (ScenarioError, RunStopped):
        return
    if digest == row.digest:
        RecordedCycle.objects.filter(pk=row.pk).update(trace=trace)


def is_whole(explanation: Mapping[str, Any] | None) -> bool:
    """Whether an explanation tells every verdict and score."""
    return explanation is not None and bool(explanation.get("full"))


def _judge(verification: Verification, scenario: Scenario, run: FreshRun) -> None:
    recorded = list(scenario.cycles.defer("trace").order_by("number"))
    told = load(bytes(scenario.document)).decisions
    claims = told.cycles if told else ()
    n_same = 0
    for row, cycle in zip(recorded, run.cycles, strict=False):
        if not _same(row, cycle) or (n_same < len(claims) and claims[n_same][:12] != cycle.digest[:12]):
            break
        n_same += 1
    verification.n_same = n_same
    verification.n_recorded = len(recorded)
    verification.n_expectations = len(run.findings)
    verification.n_held = sum(bool(finding["holds"]) for finding in run.findings)
    if n_same == len(recorded) == len(run.cycles):
        if claims and len(claims) != n_same:
            verification.differs_at = n_same + 1
            verification.sentence = (
                f"Reproduced {n_same} of {len(claims)} decisions: the document tells of {len(claims)} cycles."
            )
        elif scenario.claimed_digest and scenario.claimed_digest != run.decisions_digest:
            verification.differs_at = 0
            verification.sentence = (
                "The document carries the digest of other decisions"
                f" ({scenario.claimed_digest[:12]}, not {run.decisions_digest[:12]});"
                " which one differs first was not recorded in it."
            )
        else:
            verification.sentence = (
                f"Reproduced {n_same} of {n_same} decisions" if n_same else NOTHING_DECIDED
            )
        return
    number = n_same + 1
    verification.differs_at = number
    kept = recorded[n_same] if n_same < len(recorded) else None
    fresh = run.cycles[n_same] if n_same < len(run.cycles) else None
    claimed = claims[n_same][13:] if n_same < len(claims) else ""
    if kept is not None and claimed and claims[n_same][:12] != kept.digest[:12]:
        # Of a document's own claim only its words are known.
        verification.recorded = {"sentence": claimed, "explanation": None}
    else:
        verification.recorded = _told(kept)
    verification.fresh = _told(fresh)
    then = (verification.recorded or {}).get("sentence") or "nothing: the run was over"
    now = (verification.fresh or {}).get("sentence") or "nothing: the run is over"
    verification.sentence = (
        f"Cycle {number} differs: reproduced {n_same} of {len(recorded)} decisions."
        f" Recorded: {then.rstrip('.')}. Now: {now.rstrip('.')}."
    )


def _same(row: RecordedCycle, cycle: CycleRecord) -> bool:
    return (row.digest, row.pod, row.outcome, row.node) == (
        cycle.digest,
        f"{cycle.pod_namespace}/{cycle.pod_name}",
        cycle.outcome,
        cycle.node,
    )


def _told(cycle: RecordedCycle | CycleRecord | None) -> dict[str, Any] | None:
    """A cycle as the page of the proof shows it."""
    if cycle is None:
        return None
    told = {name: getattr(cycle, name) for name in ("sentence", "digest", "outcome", "node")}
    return told | {"explanation": readable(None if cycle.trace is None else bytes(cycle.trace))}


def readable(trace: bytes | None) -> Mapping[str, Any] | None:
    """The explanation of a stored trace; None if another engine wrote what this one cannot read."""
    if trace is None:
        return None
    try:
        return explain_trace(trace, full=True)
    except Exception:  # bytes of another engine may break this one's reader anywhere
        return None


def _problem(why: str) -> dict[str, Any]:
    return {"problem": why}


def _could_not_run(why: str) -> dict[str, Any]:
    return {"sentence": f"It could not be run: {why}", "finished": timezone.now()}


jobs.KINDS.update(
    {
        "scenario_id": jobs.of_rows(Scenario, "record", "scenario_id", failed=_problem, afterwards=True),
        "verification_id": jobs.of_rows(
            Verification, "verify", "verification_id", owner="scenario__owner_id", failed=_could_not_run
        ),
        "comparison_id": jobs.of_rows(Comparison, "compare", "comparison_id", failed=_problem),
    }
)
