"""Undo of a cluster, with what is kept here of it: the scenario it came from, and how far its steps were done."""

from __future__ import annotations

from django.db import transaction

from playground.clusters import services as clusters
from playground.clusters.models import Cluster
from playground.scenarios.models import Draft


def undo(*, cluster: Cluster, seq: int | None = None) -> clusters.Undone:
    """As `clusters.services.undo`; a step of a scenario that is undone is still to be done.

    Raises
    ------
    Conflict
    """
    with transaction.atomic():
        undone = clusters.undo(cluster=cluster, seq=seq)
        draft = Draft.objects.select_for_update(of=("self",)).filter(cluster=cluster).first()
        if draft is not None:
            kept = undone.more.get("draft")
            if kept is not None:
                draft.next_step, draft.input_seq = kept["step"], kept["input"]
            if draft.generation == cluster.generation - 1:
                draft.generation = cluster.generation
                if draft.input_seq == undone.before_seq:  # it is again what was shared
                    draft.input_seq = undone.after_seq
            draft.save(update_fields=["next_step", "input_seq", "generation"])
    return undone


__all__ = ["undo"]
