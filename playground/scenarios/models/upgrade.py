"""What another release of Kubernetes would decide otherwise in a cluster or a share."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models import Cluster
from playground.scenarios.models.scenario import Scenario


class Upgrade(models.Model):
    """One preview: the same, decided by two releases. It changes nothing of the cluster."""

    State = choices.WorkState
    OPEN = choices.OPEN

    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.CASCADE, related_name="upgrades"
    )
    scenario = models.ForeignKey(
        Scenario, null=True, blank=True, on_delete=models.CASCADE, related_name="upgrades"
    )
    generation = models.IntegerField(default=0)
    cycle = models.BigIntegerField()  # the last one of the cluster when it was asked
    before = models.JSONField()  # releases as `Cluster.release` has them
    after = models.JSONField()
    created = models.DateTimeField(auto_now_add=True)
    engine_version = models.CharField(max_length=40)
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    step = models.CharField(max_length=200, blank=True, default="")  # what is being run, for people
    progress = models.FloatField(default=0.0)
    problem = models.TextField(blank=True, default="")
    took_ms = models.IntegerField(null=True, blank=True)
    result = models.BinaryField(blank=True, default=b"")  # zlib of JSON (`engine.upgrades.upgrade_document`)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cluster__isnull=False, scenario__isnull=True)
                | models.Q(cluster__isnull=True, scenario__isnull=False),
                name="upgrade_of_one",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "failed", "cancelled"]),
                name="upgrade_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"upgrade to {self.after.get('name')}: {self.state}"
