"""Proof: a fresh run, in a process that never saw the first one, compared with what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from playground.clusters import jobs
from playground.clusters import wake as cluster_wake
from playground.clusters.errors import NotFound
from playground.clusters.jobs import Subject, SubjectKind, person_of
from playground.engine.entries import CycleRecord, explain_trace
from playground.engine.scenarios import (
    FreshRun,
    RunStopped,
    ScenarioError,
    asked,
    load,
    run_fresh,
)
from playground.scenarios import wake
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
        wake.on_commit(wake.VERIFY, verification_id=verification.pk)


def request_verification(*, scenario: Scenario) -> Verification:
    """Ask for a proof; the one that waits already if there is one."""
    with transaction.atomic():
        locked = Scenario.objects.select_for_update(of=("self",)).get(pk=scenario.pk)
        waiting = locked.verifications.filter(state=Verification.State.QUEUED).first()
        verification = waiting or Verification.objects.create(scenario=locked)
        wake.on_commit(wake.VERIFY, verification_id=verification.pk)
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
    cluster_wake.send(wake.WHOLE_CYCLE, scenario_id=scenario.pk, number=number)


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
    verification.recorded = _side_of_row(
        kept, claimed if kept is not None and _claim_differs(kept, claims) else ""
    )
    verification.fresh = _side(fresh)
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


def _claim_differs(row: RecordedCycle, claims: tuple[str, ...]) -> bool:
    return row.number <= len(claims) and claims[row.number - 1][:12] != row.digest[:12]


def _side_of_row(row: RecordedCycle | None, claimed: str) -> dict[str, Any] | None:
    """The recorded cycle as the page shows it; of a document's own claim only its words are known."""
    if row is None:
        return None
    if claimed:
        return {"sentence": claimed, "explanation": None}
    trace = RecordedCycle.objects.values_list("trace", flat=True).get(pk=row.pk)
    return _told(row.sentence, row.digest, row.outcome, row.node, bytes(trace) if trace is not None else None)


def _side(cycle: CycleRecord | None) -> dict[str, Any] | None:
    if cycle is None:
        return None
    return _told(cycle.sentence, cycle.digest, cycle.outcome, cycle.node, cycle.trace)


def _told(sentence: str, digest: str, outcome: str, node: str, trace: bytes | None) -> dict[str, Any]:
    return {
        "sentence": sentence,
        "digest": digest,
        "outcome": outcome,
        "node": node,
        "explanation": readable(trace),
    }


def readable(trace: bytes | None) -> Mapping[str, Any] | None:
    """The explanation of a stored trace; None if another engine wrote what this one cannot read."""
    if trace is None:
        return None
    try:
        return explain_trace(trace, full=True)
    except Exception:  # bytes of another engine may break this one's reader anywhere
        return None


def _scenario(pk: int) -> Subject | None:
    # Of a share that was recorded its moments and whole cycles are wanted too.
    row = Scenario.objects.filter(pk=pk).values_list("owner_id").first()
    return None if row is None else Subject(person_of(row[0]), True)


def _scenario_ends(pk: int, why: str) -> None:
    Scenario.objects.filter(pk=pk, state=Scenario.State.QUEUED).update(
        state=Scenario.State.FAILED, problem=why
    )


def _finder(model: Any, owner: str, open_states: tuple[str, ...]) -> Callable[[int], Subject | None]:
    def find(pk: int) -> Subject | None:
        row = model.objects.filter(pk=pk).values_list("state", owner).first()
        return None if row is None else Subject(person_of(row[1]), row[0] in open_states)

    return find


def _ender(model: Any, **also: Any) -> Callable[[int, str], None]:
    def give_up(pk: int, why: str) -> None:
        rows = model.objects.filter(pk=pk).exclude(state__in=("done", "cancelled"))
        rows.update(state="failed", problem=why, **also)

    return give_up


def _verification_ends(pk: int, why: str) -> None:
    Verification.objects.filter(pk=pk, state=Verification.State.QUEUED).update(
        state=Verification.State.FAILED, sentence=f"It could not be run: {why}", finished=timezone.now()
    )


def _open(model: Any, task: str, name: str, *states: str) -> Callable[[], list[tuple[str, dict[str, Any]]]]:
    def unattended() -> list[tuple[str, dict[str, Any]]]:
        keys = (
            model.objects.filter(state__in=states or ("queued",)).order_by("pk").values_list("pk", flat=True)
        )
        return [(task, {name: pk}) for pk in keys[:1000]]

    return unattended


jobs.KINDS.update(
    {
        "scenario_id": SubjectKind(_scenario, _scenario_ends, _open(Scenario, wake.RECORD, "scenario_id")),
        "verification_id": SubjectKind(
            _finder(Verification, "scenario__owner_id", ("queued",)),
            _verification_ends,
            _open(Verification, wake.VERIFY, "verification_id"),
        ),
        "comparison_id": SubjectKind(
            _finder(Comparison, "owner_id", ("queued",)),
            _ender(Comparison),
            _open(Comparison, wake.COMPARE, "comparison_id"),
        ),
    }
)
