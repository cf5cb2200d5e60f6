"""Queue moves of a batch, kept for stories: bounded, the most telling first."""

from collections.abc import Callable, Sequence
from typing import Final

from playground.clusters.log.rows import insert_rows, keep_newest
from playground.clusters.models import Cluster, QueueMove
from playground.engine.entries import QueueMove as Move

MOST_OF_A_BATCH: Final = 1000
MOST_OF_A_CLUSTER: Final = 20_000
TRIM_EVERY: Final = 500


def keep_moves(cluster: Cluster, moves: Sequence[Move]) -> None:
    """Store the queue moves of pods; a pod's removal for a cycle is in the cycle.

    A batch with too many keeps first those that moved a pod that had been tried, then new pods, then events
    without effect; the oldest of the cluster go when there are too many.
    """
    telling = [move for move in moves if move.target not in ("inFlight", "gone")]
    for is_dispensable in (lambda move: move.source == move.target, lambda move: not move.source):
        if len(telling) > MOST_OF_A_BATCH:
            telling = _thinned(telling, is_dispensable)
    kept = telling[:MOST_OF_A_BATCH]
    insert_rows(
        QueueMove,
        [
            {
                "cluster": cluster.pk,
                "at_ns": move.at_ns,
                "ran_seq": cluster.engine_seq,
                "pod_namespace": move.pod.partition("/")[0],
                "pod_name": move.pod.partition("/")[2],
                "pod_uid": move.uid,
                "source": str(move.source),
                "target": str(move.target),
                "event": move.event[:64],
                "cause": move.cause[:64],
                "plugin": move.plugin,
                "hint": move.hint[:16],
                "reason": move.reason[:300],
            }
            for move in kept
        ],
    )
    if kept and cluster.engine_seq % TRIM_EVERY < len(kept):
        keep_newest(QueueMove.objects.filter(cluster=cluster), MOST_OF_A_CLUSTER)


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
