"""Decisions of other schedulers: what was decided, by whom, and beside it what our engine would have decided."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models.cluster import Cluster


class ForeignDecision(models.Model):
    """One decision that a client of the Kubernetes API took about a pod.

    Attributes
    ----------
    seq
        Of the log entry that tells it.
    judged_seq
        Of the first entry that belongs to it: it was taken in the state just before.
    burst_seq, place
        Of the first of a row of decisions that one author took one after another, and its place among them, from 0:
        a scheduler posts its Bindings beside its next cycles, so they come in another order than they were decided in.
    node
        Where the pod was bound or nominated to; of an eviction, where the victim was.
    author
        User-Agent of the client.
    scheduler
        The pod's spec.schedulerName.
    victims
        ``namespace/name`` of pods that the author evicted for it.
    verdict
        Empty until it is judged (services/foreign.py).
    reasons, our_victims
        Lists of text.
    """

    Kind = choices.DecisionKind

    Verdict = choices.Judgement

    JUDGED = choices.JUDGED

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="foreign", db_index=False)
    seq = models.BigIntegerField()
    judged_seq = models.BigIntegerField()
    burst_seq = models.BigIntegerField(default=0)
    place = models.IntegerField(default=0)
    at_ns = models.BigIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    pod_namespace = models.CharField(max_length=253)
    pod_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    scheduler = models.CharField(max_length=253, blank=True, default="")
    node = models.CharField(max_length=253, blank=True, default="")
    author = models.CharField(max_length=200)
    message = models.TextField(blank=True, default="")
    victims = models.JSONField(default=list)

    verdict = models.CharField(max_length=10, choices=Verdict.choices, blank=True, default="")
    outcome = models.CharField(max_length=16, blank=True, default="")
    our_node = models.CharField(max_length=253, blank=True, default="")
    points = models.BigIntegerField(null=True, blank=True)
    our_points = models.BigIntegerField(null=True, blank=True)
    n_tied = models.IntegerField(default=0)
    n_feasible = models.IntegerField(default=0)
    plugin = models.CharField(max_length=253, blank=True, default="")
    score = models.BigIntegerField(null=True, blank=True)
    our_score = models.BigIntegerField(null=True, blank=True)
    reasons = models.JSONField(default=list)
    our_victims = models.JSONField(default=list)
    engine_version = models.CharField(max_length=40, blank=True, default="")
    trace = models.BinaryField(null=True, blank=True)  # of our cycle

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "seq", "kind"], name="foreign_decision_once"),
        ]
        indexes = [
            models.Index(fields=["cluster", "verdict", "seq"], name="foreign_verdict_seq"),
            models.Index(fields=["cluster", "burst_seq", "place"], name="foreign_burst_place"),
            models.Index(fields=["cluster", "pod_namespace", "pod_name", "seq"], name="foreign_pod_seq"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind} {self.pod} {self.verdict}"

    @property
    def pod(self) -> str:
        """``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"

    @property
    def program(self) -> str:
        """The author without his platform: ``bin-packer/v0.9``."""
        return self.author.partition(" ")[0] or "unknown"
