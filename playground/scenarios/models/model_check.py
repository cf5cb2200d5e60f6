"""What the formal model says of every cycle of a cluster or a share."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models import Cluster
from playground.scenarios.models.scenario import Scenario


class ModelCheck(models.Model):
    """One check. The same run has the same answer, so it is asked once."""

    State = choices.WorkState
    OPEN = choices.OPEN

    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.CASCADE, related_name="model_checks"
    )
    scenario = models.ForeignKey(
        Scenario, null=True, blank=True, on_delete=models.CASCADE, related_name="model_checks"
    )
    generation = models.IntegerField(default=0)
    cycle = models.BigIntegerField()  # the last one that is checked
    created = models.DateTimeField(auto_now_add=True)
    touched = models.DateTimeField(auto_now=True)
    engine_version = models.CharField(max_length=40)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    problem = models.TextField(blank=True, default="")
    took_ms = models.IntegerField(null=True, blank=True)
    result = models.BinaryField(blank=True, default=b"")  # zlib of JSON (`engine.model.check_document`)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cluster__isnull=False, scenario__isnull=True)
                | models.Q(cluster__isnull=True, scenario__isnull=False),
                name="model_check_of_one",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "failed", "cancelled"]),
                name="model_check_state_known",
            ),
            models.UniqueConstraint(fields=["scenario"], name="model_check_of_scenario_once"),
            models.UniqueConstraint(
                fields=["cluster", "generation", "cycle"], name="model_check_of_cluster_once"
            ),
        ]

    def __str__(self) -> str:
        return f"model check up to cycle {self.cycle}: {self.state}"
