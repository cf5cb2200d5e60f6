"""Queue moves of a batch, kept for stories: bounded, the most telling first."""

from collections.abc import Callable, Sequence
from typing import Final

from playground.clusters.log.rows import insert_rows
from playground.clusters.models import Cluster, QueueMove
from playground.engine.entries import QueueMove as Move

MOST_OF_A_BATCH: Final = 1000
MOST_OF_A_CLUSTER: Final = 20_000
TRIM_EVERY: Final = 500
_COLUMNS: Final = (
    "cluster",
    "at_ns",
    "ran_seq",
    "pod_namespace",
    "pod_name",
    "pod_uid",
    "source",
    "target",
    "event",
    "cause",
    "plugin",
    "hint",
    "reason",
)


def keep_moves(cluster: Cluster, moves: Sequence[Move]) -> None:
    """Store the queue moves of pods; a pod's removal for a cycle is in the cycle.

    A batch with too many keeps first those that moved a pod that had been tried, then new pods, then events
    without effect; the oldest of the cluster go when there are too many.
    """
    telling = [move for move in moves if move.target not in ("inFlight", "gone")]
    for is_dispensable in (_without_effect, _of_a_new_pod):
        if len(telling) > MOST_OF_A_BATCH:
            telling = _thinned(telling, is_dispensable)
    kept = telling[:MOST_OF_A_BATCH]
    insert_rows(
        QueueMove,
        _COLUMNS,
        [
            (
                cluster.pk,
                move.at_ns,
                cluster.engine_seq,
                *move.pod.partition("/")[::2],
                move.uid,
                str(move.source),
                str(move.target),
                move.event[:64],
                move.cause[:64],
                move.plugin,
                move.hint[:16],
                move.reason[:300],
            )
            for move in kept
        ],
    )
    if kept and cluster.engine_seq % TRIM_EVERY < len(kept):
        _drop_oldest(cluster)


def _without_effect(move: Move) -> bool:
    return move.source == move.target


def _of_a_new_pod(move: Move) -> bool:
    return not move.source


def _thinned(moves: list[Move], is_dispensable: Callable[[Move], bool]) -> list[Move]:
    room = MOST_OF_A_BATCH - sum(not is_dispensable(move) for move in moves)
    kept = []
    for move in moves:
        if is_dispensable(move):
            room -= 1
            if room < 0:
                continue
        kept.append(move)
    return kept


def _drop_oldest(cluster: Cluster) -> None:
    first_to_go = (
        QueueMove.objects.filter(cluster=cluster)
        .order_by("-id")
        .values_list("id", flat=True)[MOST_OF_A_CLUSTER : MOST_OF_A_CLUSTER + 1]
        .first()
    )
    if first_to_go is not None:
        QueueMove.objects.filter(cluster=cluster, id__lte=first_to_go).delete()
