"""Scheduling cycles: a summary in columns, and the trace beside it. Words are made of the columns."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models.cluster import Cluster
from playground.clusters.packed import HexField
from playground.engine.words import headline, sentence


class Cycle(models.Model):
    """One scheduling cycle: one attempt to place one pod.

    Attributes
    ----------
    failed_point, failed_plugin
        The extension point that ended it, and the plugin where it was one; empty where the pod got a node.
    """

    Outcome = choices.CycleOutcome

    TOLD = (
        "pod_namespace",
        "pod_name",
        "outcome",
        "node",
        "message",
        "n_nodes",
        "n_feasible",
        "n_viable",
        "best_total",
        "failed_point",
        "nominated_node",
        "n_victims",
    )
    """The columns that `sentence` is made of."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cycles", db_index=False)
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
    n_nodes = models.IntegerField(default=0)
    n_evaluated = models.IntegerField(default=0)
    n_feasible = models.IntegerField(default=0)
    n_viable = models.IntegerField(null=True, blank=True)
    best_total = models.BigIntegerField(null=True, blank=True)
    failed_point = models.CharField(max_length=20, blank=True, default="")
    failed_plugin = models.CharField(max_length=253, blank=True, default="")
    nominated_node = models.CharField(max_length=253, blank=True, default="")
    n_victims = models.IntegerField(default=0)
    repeats = models.IntegerField(default=0)  # later attempts that ended the same way, no event between
    digest = HexField()
    engine_version = models.CharField(max_length=40, blank=True, default="")
    ran_seq = models.BigIntegerField(default=0)  # the `ran` entry of its batch
    trace_note = models.CharField(max_length=300, blank=True, default="")
    trace = models.BinaryField(null=True, blank=True)  # versioned, compressed; null = recomputed on demand

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "number"], name="cycle_number_once"),
            models.CheckConstraint(
                condition=models.Q(
                    outcome__in=[
                        "bound",
                        "unschedulable",
                        "preempting",
                        "waiting",
                        "binding",
                        "expired",
                        "error",
                    ]
                ),
                name="cycle_outcome_known",
            ),
        ]
        indexes = [
            # Most cycles bind their pod, and those are found by their numbers.
            models.Index(
                fields=["cluster", "outcome", "number"],
                name="cycle_outcome_number",
                condition=~models.Q(outcome="bound"),
            ),
            models.Index(
                fields=["cluster", "number"], name="cycle_tied_number", condition=models.Q(n_viable__gt=1)
            ),
            models.Index(fields=["cluster", "pod_namespace", "pod_name", "number"], name="cycle_pod_number"),
        ]

    def __str__(self) -> str:
        return f"#{self.number} {self.pod} {self.outcome}"

    dry_run = False

    @property
    def n_tied(self) -> int:
        """Nodes that shared the best total; 0 where it was not shared."""
        return self.n_viable if self.n_viable and self.n_viable > 1 else 0

    @property
    def error(self) -> str | None:
        """What ended an attempt that is neither a success nor a rejection."""
        return self.message if self.outcome == self.Outcome.ERROR else None

    @property
    def sentence(self) -> str:
        """How it ended, in one sentence."""
        return sentence(self)

    @property
    def headline(self) -> str:
        """The sentence without the scheduler's message."""
        return headline(self)

    @property
    def pod(self) -> str:
        """The pod as ``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"
