"""Answers about a cluster that were shared: the question, the answer and the objects it was asked of, frozen."""

from django.conf import settings
from django.db import models

from playground.accounts.models import Team
from playground.clusters.models import Cluster
from playground.scenarios.choices import Visibility
from playground.scenarios.models.scenario import new_share_id
from playground.scenarios.models.visibility import visibility_constraints


class Verdict(models.Model):
    """One answer with a page of its own; it does not follow the cluster, and stays when the cluster is deleted."""

    public_id = models.CharField(max_length=24, unique=True, default=new_share_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="verdicts"
    )
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.UNLISTED)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE, related_name="verdicts")
    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.SET_NULL, related_name="verdicts"
    )
    cluster_name = models.CharField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)
    seq = models.BigIntegerField()  # of the cluster's log as it was asked about
    engine_version = models.CharField(max_length=40)
    sentence = models.CharField(max_length=1000)
    digest = models.CharField(max_length=64)  # SHA-256 of the answer's bytes
    answer = models.BinaryField()  # zlib of JSON (`engine.advise.answer_plan`)
    state = models.BinaryField(
        blank=True, default=b""
    )  # zlib of JSON: a List of manifests; empty when it had moved on

    class Meta:
        constraints = [*visibility_constraints("verdict")]
        indexes = [models.Index(fields=["expires"], name="verdict_expires")]

    def __str__(self) -> str:
        return self.sentence[:80]
