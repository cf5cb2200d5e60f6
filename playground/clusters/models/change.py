"""What people did to a cluster, newest last: each may be undone."""

from django.db import models

from playground.clusters.models.cluster import Cluster


class Change(models.Model):
    """One edit, or one request for cycles: the log from `seq` on began with it.

    Attributes
    ----------
    seq
        The first sequence number that it took, or would have taken.
    words
        What was done, as a command: "cordon node n1".
    program
        The User-Agent of a client of the API; empty for pages.
    before
        What stood in the cluster's row and is not in the log (services/changes.py).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="changes", db_index=False)
    seq = models.BigIntegerField()
    words = models.CharField(max_length=300)
    program = models.CharField(max_length=200, blank=True, default="")
    before = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["cluster", "id"], name="change_newest")]

    def __str__(self) -> str:
        return f"{self.seq} {self.words}"


class EarlierCycle(models.Model):
    """A cycle as it was told before a later batch said how it went on: what an undo gives back.

    Attributes
    ----------
    replaced_seq
        The `ran` entry of the later batch.
    news
        The columns that it changed, but for the trace.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="earlier_cycles", db_index=False
    )
    number = models.BigIntegerField()
    replaced_seq = models.BigIntegerField()
    news = models.JSONField()
    trace = models.BinaryField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["cluster", "replaced_seq"], name="earlier_cycle_replaced")]

    def __str__(self) -> str:
        return f"#{self.number} until {self.replaced_seq}"
