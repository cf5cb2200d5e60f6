"""The engine's state at a point of the log, and the queue as pages see it."""

from django.db import models

from playground.clusters.models.cluster import Cluster


class Checkpoint(models.Model):
    """The whole engine after the `ran` entry `engine_seq`, having read inputs up to `cursor_seq`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="checkpoints")
    engine_seq = models.BigIntegerField()
    cursor_seq = models.BigIntegerField()
    now_ns = models.BigIntegerField()
    engine_version = models.CharField(max_length=40, blank=True, default="")
    data = models.BinaryField()  # zlib of canonical JSON
    took_ms = models.IntegerField(default=0)  # what making it cost; the next one is put off if that was much
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "engine_seq"], name="checkpoint_once"),
        ]

    def __str__(self) -> str:
        return f"checkpoint at {self.engine_seq}"


class QueueSnapshot(models.Model):
    """The scheduling queue after the engine's last commit.

    `head` is ``{lanes: {name: {count, items}}, at_ns, rejectors: {plugin: pods}}`` with the first items of each
    lane and, of all unschedulable pods, how many each plugin rejected; `full` is ``{name: items}``, every item,
    zlib of JSON, as it was after the `ran` entry `full_seq`: within a run only the head is written anew.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="queue")
    engine_seq = models.BigIntegerField()
    at_ns = models.BigIntegerField()
    head = models.JSONField()
    full = models.BinaryField()
    full_seq = models.BigIntegerField(null=True)  # None = `engine_seq`

    def __str__(self) -> str:
        return f"queue at {self.engine_seq}"
