"""Celery's side of clusters: each task is one service call.

`look` is the one message. All others are done by a worker's room (play/rooms.py), from a row: they return None when
they are done, True when more is left for another turn, or the seconds after which to go on.
"""

from celery import shared_task

from playground.accounts import housekeeping as accounts
from playground.clusters import drafts, jobs, lanes, questions, wake
from playground.clusters.drive import turns
from playground.clusters.history import redecide
from playground.clusters.log import housekeeping, quotas


@shared_task(name=lanes.LOOK)
def look(*, lane: str) -> None:
    """Have this worker's room look for work. Safe to run twice, or never: rooms look every few moments anyway."""
    jobs.POKES[lane].set()


@shared_task(name="playground.clusters.tasks.recompute_trace")
def recompute_trace(*, cluster_id: int, number: int) -> None:
    """Fill in the trace of a cycle that kept only its summary.

    Safe to run twice: it writes the same bytes, and only where none are.
    """
    redecide.recompute_trace(cluster_id=cluster_id, number=number)


@shared_task(name="playground.clusters.tasks.answer")
def answer(*, question_id: int) -> float | None:
    """Answer a question that was asked about decisions.

    Safe to run twice: a question that has an answer is left alone, and equal questions have equal answers.
    """
    state = questions.answer(question_id=question_id, reads=False)
    return questions.PUT_OFF_S if state == "queued" else None


@shared_task(name=wake.ANSWER_LONG)
def answer_long(*, question_id: int) -> None:
    """Answer a question of a kind that takes long. Safe to run twice, as `answer` is."""
    questions.answer(question_id=question_id)


@shared_task(name="playground.clusters.tasks.ready_engine")
def ready_engine(*, cluster_id: int) -> None:
    """Load the engine of a cluster a user is about to ask about.

    Safe to run twice, or never: it only saves the next task of this process the loading.
    """
    turns.ready_engine(cluster_id=cluster_id)


@shared_task(name="playground.clusters.tasks.run_seeds")
def run_seeds(*, question_id: int, seeds: list[int]) -> bool:
    """Run a cluster's log with some other seeds.

    Safe to run twice: a seed has one end, and it is kept once.
    """
    return questions.run_seeds(question_id=question_id, seeds=seeds, turn_s=lanes.TURN_S)


@shared_task(name=wake.SEEDS_LONG)
def run_seeds_long(*, question_id: int, seeds: list[int]) -> None:
    """Run a share with some other seeds. Safe to run twice, as `run_seeds` is."""
    questions.run_seeds(question_id=question_id, seeds=seeds)


@shared_task(name="playground.clusters.tasks.work_on_draft")
def work_on_draft(*, draft_id: int) -> None:
    """Look at a dump before it is imported, or import it.

    Safe to run twice: a draft that is done is left alone, and a cluster is made in the transaction that says so.
    """
    drafts.work_on(draft_id=draft_id)


@shared_task(name="playground.clusters.tasks.tidy")
def tidy() -> None:
    """Drop old traces, ended sessions and other things that can be made again or are of no use any more.

    Safe to run twice: what is gone stays gone, and the inputs in the log, from which all else comes, are never touched.
    """
    housekeeping.tidy()
    drafts.drop_old()
    quotas.measure_changed()
    accounts.tidy()
