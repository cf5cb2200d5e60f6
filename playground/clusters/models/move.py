"""Moves of pods in the scheduling queue, kept for the pods' stories."""

from django.db import models

from playground.clusters.models.cluster import Cluster


class QueueMove(models.Model):
    """A pod went from one lane to another, or an event was weighed and left it there (`source` = `target`).

    Beside the log, not part of it: a replay tells the same moves again. The newest are kept (services/moves.py).
    """

    # Every index begins with the cluster; one of it alone would only cost room.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="moves", db_index=False)
    at_ns = models.BigIntegerField()
    ran_seq = models.BigIntegerField(default=0)  # the `ran` entry of its batch: its place in the log
    pod_namespace = models.CharField(max_length=253)
    pod_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    source = models.CharField(max_length=16, blank=True, default="")
    target = models.CharField(max_length=16, blank=True, default="")
    event = models.CharField(max_length=64)
    cause = models.CharField(max_length=64, blank=True, default="")
    plugin = models.CharField(max_length=253, blank=True, default="")
    hint = models.CharField(max_length=16, blank=True, default="")
    reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["cluster", "pod_namespace", "pod_name", "id"], name="move_of_pod"),
            models.Index(fields=["cluster", "id"], name="move_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.pod_namespace}/{self.pod_name}: {self.source} to {self.target} by {self.event}"
