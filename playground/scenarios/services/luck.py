"""How much of a share's outcome is luck: run with many seeds, by a group of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from playground.clusters import wake as cluster_wake
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.luck import answer_of, drawn_in
from playground.engine.scenarios import RunStopped, ScenarioProblem, run_seeds
from playground.engine.seeds import LAST_SEED
from playground.scenarios import wake
from playground.scenarios.models import Luck, LuckEnd, Scenario
from scheduler_core.version import ENGINE_VERSION

N_SEEDS: Final = 50
SEEDS_A_TASK: Final = 5
MOST_CYCLES: Final = 100_000
"""Cycles times seeds that one asking may cost."""


def request_luck(*, scenario: Scenario, n_seeds: int = N_SEEDS) -> Luck:
    """Ask how often each end state of a share occurs, or find it asked already (of this very engine).

    Raises
    ------
    InvalidInput, Conflict
    """
    if not 2 <= n_seeds <= N_SEEDS:
        raise InvalidInput(f"seeds is a whole number from 2 to {N_SEEDS}", field="seeds", value=n_seeds)
    if scenario.state != Scenario.State.RECORDED:
        raise Conflict("the scenario was not run yet", kind="Scenario", name=scenario.public_id)
    if scenario.n_cycles * n_seeds > MOST_CYCLES:
        most = MOST_CYCLES // scenario.n_cycles
        raise InvalidInput(
            f"a run has {scenario.n_cycles:,} cycles; {n_seeds} seeds of it are more than {MOST_CYCLES:,} cycles to"
            f" decide. Ask for {most} seeds.",
            field="seeds",
            value=n_seeds,
        )
    rows = Luck.objects.filter(scenario=scenario, n_seeds=n_seeds)
    found = rows.first()
    if found is not None and (
        found.state in (Luck.State.FAILED, Luck.State.CANCELLED) or _is_of_another_engine(found)
    ):
        found.delete()
        found = None
    if found is None:
        try:
            with transaction.atomic():
                found = Luck.objects.create(scenario=scenario, n_seeds=n_seeds)
                transaction.on_commit(lambda: _scatter(found), robust=True)
        except IntegrityError:  # another request asked the same this moment
            return rows.get()
    return found


def _is_of_another_engine(luck: Luck) -> bool:
    return luck.answer is not None and luck.answer.get("engine") != ENGINE_VERSION


def _scatter(luck: Luck) -> None:
    cluster_wake.send_group(wake.LUCK, parts_of(luck))


def parts_of(luck: Luck) -> list[dict[str, Any]]:
    """The seeds in pieces of work; those all of whose seeds have an end are left out, except the last of all."""
    there = set(luck.ends.values_list("seed", flat=True))
    seeds = seeds_of(luck)
    parts = [list(seeds[at : at + SEEDS_A_TASK]) for at in range(0, len(seeds), SEEDS_A_TASK)]
    left = [part for part in parts if not there.issuperset(part)]
    return [{"luck_id": luck.pk, "seeds": part} for part in left or parts[-1:]]


def seeds_of(luck: Luck) -> range:
    """The share's own seed and those after it."""
    first = min(luck.scenario.seed, LAST_SEED - luck.n_seeds + 1)
    return range(first, first + luck.n_seeds)


def run_luck(*, luck_id: int, seeds: Sequence[int]) -> None:
    """Run some of the seeds; the last one of all puts the answer together. Twice is once: a seed has one end."""
    luck = Luck.objects.select_related("scenario").filter(pk=luck_id, state=Luck.State.QUEUED).first()
    if luck is None:
        return
    there = set(luck.ends.values_list("seed", flat=True))
    left = [seed for seed in seeds if seed not in there]
    rows = Luck.objects.filter(pk=luck.pk, state=Luck.State.QUEUED)
    try:
        found = run_seeds(bytes(luck.scenario.document), left) if left else ()
    except (ScenarioProblem, RunStopped) as error:
        rows.update(state=Luck.State.FAILED, problem=str(error)[:500])
        return
    LuckEnd.objects.bulk_create(
        [LuckEnd(luck=luck, seed=one.seed, digest=one.digest, end=dict(one.end)) for one in found],
        ignore_conflicts=True,
    )
    done = luck.ends.count()
    rows.update(done=done, touched=timezone.now())
    if done >= luck.n_seeds:
        cycles = luck.scenario.cycles
        answer = answer_of(list(luck.ends.order_by("seed")), lambda pod: drawn_in(cycles, pod))
        rows.update(state=Luck.State.DONE, answer=answer | {"engine": ENGINE_VERSION})
        luck.ends.all().delete()
