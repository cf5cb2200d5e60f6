"""Sums for /metrics, shared by all processes, and each cluster's own."""

from django.db import models

from playground.clusters.models.cluster import Cluster


class Metric(models.Model):
    """One time series of a counter, or one part of a histogram; only ever added to.

    Of a histogram there is ``NAME_sum``, and ``NAME_bucket`` with what fell into that bucket and no smaller one; what
    /metrics tells besides is summed up from these (selectors/metrics.py).
    """

    name = models.CharField(max_length=120)
    labels = models.CharField(max_length=300, blank=True, default="")  # as in the text format, sorted
    value = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "labels"], name="metric_once")]

    def __str__(self) -> str:
        return f"{self.name}{{{self.labels}}}"


class ClusterMetric(models.Model):
    """The same of one cluster; gone with it, while the sums over all stay as they are."""

    # Its constraint begins with the cluster; an index of it alone would only cost room.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="metrics", db_index=False)
    name = models.CharField(max_length=120)
    labels = models.CharField(max_length=300, blank=True, default="")
    value = models.FloatField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name", "labels"], name="cluster_metric_once")
        ]

    def __str__(self) -> str:
        return f"{self.name}{{{self.labels}}}"
