"""Runs side by side, and the best placement there would have been."""

from typing import Any

from django.conf import settings
from django.db import models

from playground.accounts.models import Team
from playground.clusters import choices
from playground.clusters.models import Cluster
from playground.scenarios.choices import Visibility
from playground.scenarios.models.scenario import Scenario, new_share_id
from playground.scenarios.models.visibility import visibility_constraints


class Comparison(models.Model):
    """Two sides or more, compared once; its link shows the same to who may see it, until it is deleted or expires.

    A side is ``{"kind": "scenario" | "cluster", "id": public id, "cycle": number or null}``; null is the end.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        FAILED = "failed"

    public_id = models.CharField(max_length=24, unique=True, default=new_share_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="comparisons"
    )
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.PRIVATE)
    team = models.ForeignKey(
        Team, null=True, blank=True, on_delete=models.CASCADE, related_name="comparisons"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    a = models.JSONField()
    b = models.JSONField()
    more = models.JSONField(default=list, blank=True)  # sides after the second
    title = models.CharField(max_length=300, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    figures = models.JSONField(default=dict)  # name -> a number a side
    result = models.BinaryField(blank=True, default=b"")  # zlib of JSON (`comparing.compare_sides`)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "done", "failed"]), name="comparison_state_known"
            ),
            *visibility_constraints("comparison"),
        ]
        indexes = [
            models.Index(fields=["owner", "-created"], name="comparison_owner_created"),
            models.Index(fields=["expires"], name="comparison_expires"),
        ]

    def __str__(self) -> str:
        return self.title or self.public_id

    @property
    def sides(self) -> list[dict[str, Any]]:
        """All of them, in order."""
        return [self.a, self.b, *self.more]


class Optimum(models.Model):
    """How far a small cluster's one-by-one placement is from the best joint one."""

    State = choices.WorkState
    OPEN = choices.OPEN

    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.CASCADE, related_name="optima"
    )
    scenario = models.ForeignKey(
        Scenario, null=True, blank=True, on_delete=models.CASCADE, related_name="optima"
    )
    generation = models.IntegerField(default=0)
    cycle = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    time_limit_s = models.IntegerField(default=30)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    step = models.CharField(max_length=200, blank=True, default="")  # what is being solved, for people
    progress = models.FloatField(default=0.0)
    problem = models.TextField(blank=True, default="")
    result = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cluster__isnull=False, scenario__isnull=True)
                | models.Q(cluster__isnull=True, scenario__isnull=False),
                name="optimum_of_one",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "failed", "cancelled"]),
                name="optimum_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"optimum after cycle {self.cycle}: {self.state}"
