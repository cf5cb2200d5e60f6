"""How often each end state of a share occurs with other seeds."""

from django.db import models

from playground.scenarios.models.scenario import Scenario


class Luck(models.Model):
    """One share run with many seeds. The same share and number of seeds give the same answer, so it is asked once."""

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    OPEN = (State.QUEUED,)

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="lucks")
    n_seeds = models.IntegerField()
    created = models.DateTimeField(auto_now_add=True)
    touched = models.DateTimeField(auto_now=True)  # wall time of the last sign of life
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    done = models.IntegerField(default=0)
    answer = models.JSONField(null=True, blank=True)  # `clusters.services.luck.answer_of`
    problem = models.TextField(blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scenario", "n_seeds"], name="luck_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "done", "failed", "cancelled"]),
                name="luck_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.n_seeds} seeds of {self.scenario_id}: {self.state}"


class LuckEnd(models.Model):
    """How one seed ended, kept until all are there."""

    luck = models.ForeignKey(Luck, on_delete=models.CASCADE, related_name="ends")
    seed = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    end = models.JSONField()  # `engine.seeds.end_of`

    class Meta:
        constraints = [models.UniqueConstraint(fields=["luck", "seed"], name="luck_seed_once")]

    def __str__(self) -> str:
        return f"seed {self.seed} of {self.luck_id}"
