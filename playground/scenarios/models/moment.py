"""Clusters and scenarios at moments of their past, and what a cluster has to do with a share."""

from django.db import models

from playground.clusters.models import Cluster
from playground.scenarios.models.scenario import Scenario


class Moment(models.Model):
    """What a cluster, or a scenario's run, looked like after one cycle: a cache, decided again when it is gone.

    `data` is zlib of the JSON that `engine.moments` reads, `brief` of what a page draws of a large cluster
    (`scenarios.briefs`). Of a cluster it holds for one generation only.
    """

    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.CASCADE, related_name="moments"
    )
    scenario = models.ForeignKey(
        Scenario, null=True, blank=True, on_delete=models.CASCADE, related_name="moments"
    )
    generation = models.IntegerField(default=0)
    cycle = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    note = models.CharField(max_length=300, blank=True, default="")  # why there is no data
    data = models.BinaryField(blank=True, default=b"")
    brief = models.BinaryField(blank=True, default=b"")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cluster__isnull=False, scenario__isnull=True)
                | models.Q(cluster__isnull=True, scenario__isnull=False),
                name="moment_of_one",
            ),
            models.UniqueConstraint(
                fields=["cluster", "generation", "cycle"],
                condition=models.Q(cluster__isnull=False),
                name="moment_of_cluster_once",
            ),
            models.UniqueConstraint(
                fields=["scenario", "cycle"],
                condition=models.Q(scenario__isnull=False),
                name="moment_of_scenario_once",
            ),
        ]

    def __str__(self) -> str:
        return f"after cycle {self.cycle}"


class Origin(models.Model):
    """The share a cluster came from, or was last shared as, and whether it has changed since."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="share_origin")
    scenario = models.ForeignKey(
        Scenario, null=True, blank=True, on_delete=models.SET_NULL, related_name="origins"
    )
    scenario_id_kept = models.CharField(max_length=24)  # stays when the share is deleted
    shared = models.BooleanField(default=False)  # shared as it, not forked from it
    generation = models.IntegerField(default=1)
    input_seq = models.BigIntegerField()  # the newest input then
    steps = models.JSONField(default=list)  # `engine.scenarios.Step`s still told one by one
    next_step = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.cluster} of {self.scenario_id_kept}"
