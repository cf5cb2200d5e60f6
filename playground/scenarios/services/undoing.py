"""Undo of a cluster, with what is kept here of it: the scenario it came from, and how far its steps were done."""

from __future__ import annotations

from django.db import transaction

from playground.clusters.history.undo import Undone
from playground.clusters.history.undo import undo as undo_cluster
from playground.clusters.models import Cluster
from playground.scenarios.models import Origin


def undo(*, cluster: Cluster, seq: int | None = None) -> Undone:
    """As `clusters.services.undo`; a step of a scenario that is undone is still to be done.

    Raises
    ------
    Conflict
    """
    with transaction.atomic():
        undone = undo_cluster(cluster=cluster, seq=seq)
        origin = Origin.objects.select_for_update(of=("self",)).filter(cluster=cluster).first()
        if origin is not None:
            kept = undone.more.get("draft")
            if kept is not None:
                origin.next_step, origin.input_seq = kept["step"], kept["input"]
            if origin.generation == cluster.generation - 1:
                origin.generation = cluster.generation
                if origin.input_seq == undone.before_seq:  # it is again what was shared
                    origin.input_seq = undone.after_seq
            origin.save(update_fields=["next_step", "input_seq", "generation"])
    return undone


__all__ = ["undo"]
