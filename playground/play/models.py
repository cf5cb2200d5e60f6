from django.db import models


class WorkerHeartbeat(models.Model):
    """When a worker last said that it lives; one row a worker, written by its own timer."""

    worker = models.CharField(max_length=255, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.worker} at {self.seen_at:%Y-%m-%d %H:%M:%S}"
