"""Kubernetes Events."""

from django.db import models

from playground.clusters.models.cluster import Cluster
from playground.clusters.packed import PackedJSONField


class Event(models.Model):
    """A v1 Event with the columns `kubectl get events` selects by.

    Its `resource_version` is a number of the cluster's log, which has no entry for it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="events", db_index=False)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    resource_version = models.BigIntegerField()
    type = models.CharField(max_length=16, default="Normal")
    reason = models.CharField(max_length=128, blank=True, default="")
    involved_kind = models.CharField(max_length=63, blank=True, default="")
    involved_namespace = models.CharField(max_length=253, blank=True, default="")
    involved_name = models.CharField(max_length=253, blank=True, default="")
    involved_uid = models.CharField(max_length=64, blank=True, default="")
    at_ns = models.BigIntegerField()
    labels = models.JSONField(default=dict)
    manifest = PackedJSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="event_once")]
        indexes = [
            models.Index(
                fields=["cluster", "involved_namespace", "involved_name", "resource_version"],
                name="event_involved",
            ),
            models.Index(fields=["cluster", "resource_version"], name="event_seq"),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.involved_name}"

    @property
    def message(self) -> str:
        """What it says."""
        return str(self.manifest.get("message") or "")
