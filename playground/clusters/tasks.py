"""Celery's side of clusters: each task is one service call."""

from celery import shared_task

from playground.clusters import services


@shared_task(name="playground.clusters.tasks.advance")
def advance(*, cluster_id: int) -> None:
    """Look at one cluster and do what its rows ask for.

    Safe to run twice, late or at once from two workers: the lease lets one of them in, the rows say what is
    left to do, and what a killed worker had not committed never happened.
    """
    services.advance(cluster_id=cluster_id)


@shared_task(name="playground.clusters.tasks.sweep")
def sweep() -> None:
    """Wake every cluster that has work and nobody at it.

    Safe to run twice: it only sends wake-ups, and those are safe to send twice.
    """
    services.sweep()
