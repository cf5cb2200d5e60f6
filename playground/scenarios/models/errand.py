"""A short run of a scenario that a request waits for: asked by a web process, done by a worker."""

from django.conf import settings
from django.db import models


class Errand(models.Model):
    """A request to `engine.scenarios.ask_process`, and its answer; the row goes when that was taken.

    Both are zlib of JSON. A row that nothing waits for any more is tidied away.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        FAILED = "failed"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    created = models.DateTimeField(auto_now_add=True)
    request = models.BinaryField()
    limit_s = models.FloatField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    answer = models.BinaryField(blank=True, default=b"")
    problem = models.TextField(blank=True, default="")  # why there is none

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "done", "failed"]), name="errand_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"errand {self.pk}: {self.state}"
