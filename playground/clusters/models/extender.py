"""Calls of HTTP extenders as they went, and the playground's own rule-based extenders."""

from django.db import models

from playground.clusters.models.cluster import Cluster, new_public_id


class ExtenderCall(models.Model):
    """One call that was made, kept at once and for people: a killed worker's calls stay visible.

    The log holds what counted (entries of kind `extender`); these rows hold what happened. A bind call's row is
    committed before the call (`intended`), so that the next worker after a crash knows of it.
    """

    class State(models.TextChoices):
        INTENDED = "intended"
        ANSWERED = "answered"
        SKIPPED = "skipped"  # the pod was bound already, so nothing was sent

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="extender_calls")
    cycle = models.BigIntegerField(null=True, blank=True)
    pod_namespace = models.CharField(max_length=253, blank=True, default="")
    pod_name = models.CharField(max_length=253, blank=True, default="")
    pod_uid = models.CharField(max_length=64, blank=True, default="")
    verb = models.CharField(max_length=16)
    url = models.TextField()
    address = models.CharField(max_length=80, blank=True, default="")  # ip:port that was called
    state = models.CharField(max_length=10, choices=State.choices, default=State.ANSWERED)
    status = models.IntegerField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    took_ms = models.FloatField(null=True, blank=True)  # wall time
    request = models.BinaryField(null=True, blank=True)  # zlib of the JSON sent; null = too large to keep
    answer = models.BinaryField(null=True, blank=True)  # zlib of the body
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["intended", "answered", "skipped"]),
                name="extender_call_state_known",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "cycle"], name="extender_call_cycle"),
            models.Index(fields=["cluster", "state"], name="extender_call_state"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.pod_namespace}/{self.pod_name} {self.state}"


class MockExtender(models.Model):
    """An extender made of rules, served by the playground itself at ``/mock-extenders/{public_id}/{verb}``."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="mock_extenders")
    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=100, blank=True, default="")
    rules = models.JSONField(default=list)
    calls = models.JSONField(default=dict)  # verb -> how many were answered; rules may count
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.name or 'mock extender'} ({self.public_id})"
