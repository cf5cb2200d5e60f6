"""Celery's side of scenarios: each task is one service call."""

from celery import shared_task

from playground.scenarios.services import comparing, proof, storage
from playground.scenarios.services.gallery import compare_four_ways, share_gallery
from playground.scenarios.services.moments import compute_moments


@shared_task(name="playground.scenarios.tasks.record")
def record(*, scenario_id: int) -> None:
    """Run a share for the first time. Safe to run twice: only a share that was not recorded yet is."""
    proof.record_now(scenario_id=scenario_id)


@shared_task(name="playground.scenarios.tasks.verify")
def verify(*, verification_id: int) -> None:
    """Prove a share in a fresh process. Safe to run twice: a run has one outcome, and it is written once."""
    proof.verify_now(verification_id=verification_id)


@shared_task(name="playground.scenarios.tasks.moments")
def moments(
    *, cycle: int, cluster_id: int | None = None, scenario_id: int | None = None, generation: int = 0
) -> None:
    """Decide the past again up to a cycle. Safe to run twice: it fills a cache with the same bytes."""
    compute_moments(cluster_id=cluster_id, scenario_id=scenario_id, cycle=cycle, generation=generation)


@shared_task(name="playground.scenarios.tasks.compare")
def compare(*, comparison_id: int) -> None:
    """Compare two sides. Safe to run twice: both give the same, and only an open comparison is written."""
    comparing.compare_now(comparison_id=comparison_id)


@shared_task(name="playground.scenarios.tasks.whole_cycle")
def whole_cycle(*, scenario_id: int, number: int) -> None:
    """Keep every verdict and score of one cycle. Safe to run twice: both give the same bytes."""
    proof.keep_whole_cycle(scenario_id=scenario_id, number=number)


@shared_task(name="playground.scenarios.tasks.gallery")
def gallery() -> float | None:
    """Share our own teaching scenarios. Safe to run twice: the same document gives the same share.

    One a turn, and a pause between: a user who just started the playground wants the machine for that.
    """
    return 1.0 if share_gallery(at_most=1) else None


@shared_task(name="playground.scenarios.tasks.four_ways")
def four_ways() -> None:
    """Share the GPU use case in its four ways and compare them. Safe to run twice: the same makes the same."""
    compare_four_ways()


@shared_task(name="playground.scenarios.tasks.tidy")
def tidy() -> None:
    """Drop expired shares and what is not shown any more. Safe to run twice: what is gone stays gone."""
    storage.tidy()
