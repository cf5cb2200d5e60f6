"""What a worker's room asks about the rows of this app: is it still wanted, whose turn is it, and tell it the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.utils import timezone

from playground.clusters import jobs
from playground.clusters.jobs import Subject, SubjectKind, person_of
from playground.scenarios import wake
from playground.scenarios.models import (
    Comparison,
    Errand,
    Luck,
    ModelCheck,
    Optimum,
    Scenario,
    Upgrade,
    Verification,
)
from playground.scenarios.services.luck import parts_of


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


def _of_cluster_or_share(model: Any, pk: int) -> Subject | None:
    row = model.objects.filter(pk=pk).values_list(
        "state", "cluster__owner_id", "cluster__team_id", "scenario__owner_id"
    ).first()  # fmt: skip
    if row is None:
        return None
    state, owner_id, team_id, sharer_id = row
    return Subject(person_of(owner_id or sharer_id, team_id), state in model.OPEN)


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


def _open_lucks() -> list[tuple[str, dict[str, Any]]]:
    lucks = Luck.objects.filter(state=Luck.State.QUEUED).select_related("scenario").order_by("pk")[:100]
    return [(wake.LUCK, part) for luck in lucks for part in parts_of(luck)]


def register() -> None:
    """Make these rows known to the lanes."""
    jobs.KINDS.update(
        {
            "errand_id": SubjectKind(
                _finder(Errand, "owner_id", ("queued",)),
                _ender(Errand),
                _open(Errand, wake.ERRAND, "errand_id"),
            ),
            "scenario_id": SubjectKind(
                _scenario, _scenario_ends, _open(Scenario, wake.RECORD, "scenario_id")
            ),
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
            "optimum_id": SubjectKind(
                partial(_of_cluster_or_share, Optimum),
                _ender(Optimum, step=""),
                _open(Optimum, wake.OPTIMUM, "optimum_id", *Optimum.OPEN),
            ),
            "check_id": SubjectKind(
                partial(_of_cluster_or_share, ModelCheck),
                _ender(ModelCheck),
                _open(ModelCheck, wake.MODEL, "check_id", *ModelCheck.OPEN),
            ),
            "upgrade_id": SubjectKind(
                partial(_of_cluster_or_share, Upgrade),
                _ender(Upgrade, step=""),
                _open(Upgrade, wake.UPGRADE, "upgrade_id", *Upgrade.OPEN),
            ),
            "luck_id": SubjectKind(
                _finder(Luck, "scenario__owner_id", ("queued",)), _ender(Luck), _open_lucks
            ),
        }
    )
