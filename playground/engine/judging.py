"""Judging other schedulers' decisions, from checkpoints and log entries as the site keeps them."""

from playground.engine.drive import checkpoint_document
from scheduler_core.sim.checkpoint import manifests_of
from scheduler_core.whatif.judge import Asked, Judged, Start, judged

__all__ = ["Asked", "Judged", "Start", "judged", "start_of"]


def start_of(checkpoint: bytes, seq: int) -> Start:
    """The cluster as a checkpoint that was taken after the entry `seq` has it.

    Raises
    ------
    CheckpointError
    """
    document = checkpoint_document(checkpoint)
    simulation = document["simulation"]
    return Start(
        seq=seq,
        read_seq=document["readSeq"],
        config=simulation["config"],
        release=simulation.get("release"),
        objects=tuple(manifests_of(simulation)),
    )
