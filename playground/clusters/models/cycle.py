"""Scheduling cycles: a readable summary row, and the trace beside it."""

from django.db import models

from playground.clusters.models.cluster import Cluster


class Cycle(models.Model):
    """One scheduling cycle: one attempt to place one pod."""

    class Outcome(models.TextChoices):
        BOUND = "bound"
        UNSCHEDULABLE = "unschedulable"
        PREEMPTING = "preempting"
        WAITING = "waiting"
        ERROR = "error"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cycles")
    number = models.BigIntegerField()
    at_ns = models.BigIntegerField()
    pod_namespace = models.CharField(max_length=253)
    pod_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    profile = models.CharField(max_length=253, blank=True, default="")
    attempt = models.IntegerField(default=1)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    node = models.CharField(max_length=253, blank=True, default="")
    message = models.TextField(blank=True, default="")
    sentence = models.TextField(blank=True, default="")
    n_nodes = models.IntegerField(default=0)
    n_feasible = models.IntegerField(default=0)
    n_viable = models.IntegerField(null=True, blank=True)  # null: recorded before it was counted
    repeats = models.IntegerField(default=0)  # later attempts that ended the same way, no event between
    digest = models.CharField(max_length=64)
    engine_version = models.CharField(max_length=40, blank=True, default="")
    ran_seq = models.BigIntegerField(default=0)  # the `ran` entry of its batch
    trace_note = models.CharField(max_length=300, blank=True, default="")
    trace = models.BinaryField(null=True, blank=True)  # versioned, compressed; null = recomputed on demand

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "number"], name="cycle_number_once"),
            models.CheckConstraint(
                condition=models.Q(outcome__in=["bound", "unschedulable", "preempting", "waiting", "error"]),
                name="cycle_outcome_known",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "outcome", "number"], name="cycle_outcome_number"),
            models.Index(fields=["cluster", "pod_namespace", "pod_name", "number"], name="cycle_pod_number"),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.pod} {self.outcome}"

    @property
    def pod(self) -> str:
        """The pod as ``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"
