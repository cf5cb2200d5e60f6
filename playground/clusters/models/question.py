"""Asked questions: what would it take, why not there, try, weights, luck. A row is the answer's cache."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models.cluster import Cluster, new_public_id


class Question(models.Model):
    """One question about one cluster at one moment of its log, and its answer once a worker has it."""

    Kind = choices.QuestionKind

    State = choices.WorkState

    OPEN = choices.OPEN

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="questions")
    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    generation = models.IntegerField(default=1)
    seq = models.BigIntegerField(default=0)  # of the log as it was asked about; 0: about a past cycle
    kind = models.CharField(max_length=20, choices=Kind.choices)
    params = models.JSONField(default=dict)
    key = models.CharField(max_length=40)  # of kind and params
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    done = models.IntegerField(default=0)
    total = models.IntegerField(default=0)
    doing = models.CharField(max_length=120, blank=True, default="")
    answer = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    attempts = models.IntegerField(default=0)
    took_ms = models.IntegerField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    touched = models.DateTimeField(auto_now=True)  # wall time of the last sign of life

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "generation", "seq", "key"], name="question_asked_once"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "failed", "cancelled"]),
                name="question_state_known",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "state"], name="question_cluster_state")]

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id} {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether an answer may still come."""
        return self.state in self.OPEN

    @property
    def progress(self) -> float | None:
        """Share done from 0 to 1; None while nothing can be said."""
        if self.state == self.State.DONE:
            return 1.0
        return min(1.0, self.done / self.total) if self.total else None


class SeedEnd(models.Model):
    """How a cluster's log ended with one seed: a part of the answer to `seeds`."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="seeds")
    seed = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    end = models.JSONField()  # placement, pending, draws, cycles

    class Meta:
        constraints = [models.UniqueConstraint(fields=["question", "seed"], name="seed_run_once")]

    def __str__(self) -> str:
        return f"seed {self.seed} of {self.question_id}"
