"""Sums for /metrics, shared by all processes."""

from django.db import models


class Metric(models.Model):
    """One time series of a counter, or one part of a histogram; only ever added to."""

    name = models.CharField(max_length=120)
    labels = models.CharField(max_length=300, blank=True, default="")  # as in the text format, sorted
    value = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "labels"], name="metric_once")]

    def __str__(self) -> str:
        return f"{self.name}{{{self.labels}}}"
