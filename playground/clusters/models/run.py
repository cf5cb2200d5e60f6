"""A request to run the scheduler, and how far it got."""

from django.db import models

from playground.clusters.models.cluster import Cluster, new_public_id


class Run(models.Model):
    """One 'step', 'run until idle' or 'run for a duration'."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    class Until(models.TextChoices):
        CYCLE = "cycle"
        IDLE = "idle"
        TIME = "time"

    OPEN = (State.QUEUED, State.RUNNING)

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="runs")
    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    until = models.CharField(max_length=8, choices=Until.choices)
    duration_ns = models.BigIntegerField(null=True, blank=True)  # of `until = time`
    max_cycles = models.BigIntegerField(default=100_000)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    cancel_requested = models.BooleanField(default=False)
    cycles_done = models.BigIntegerField(default=0)
    pods_bound = models.BigIntegerField(default=0)
    pending_at_start = models.IntegerField(null=True, blank=True)  # in activeQ and backoffQ: to be tried
    pending_now = models.IntegerField(null=True, blank=True)  # unschedulable ones and those at Permit too
    start_ns = models.BigIntegerField(null=True, blank=True)  # virtual clock when it began
    until_ns = models.BigIntegerField(null=True, blank=True)
    clock_ns = models.BigIntegerField(null=True, blank=True)
    stop = models.CharField(max_length=16, blank=True, default="")  # idle, cycle, budget, time, cancelled
    message = models.TextField(blank=True, default="")
    attempts = models.IntegerField(default=0)  # batches begun, a killed worker's included

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "cancelled", "failed"]),
                name="run_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(until__in=["cycle", "idle"])
                | models.Q(until="time", duration_ns__isnull=False, duration_ns__gte=0),
                name="run_until_known",
            ),
            models.CheckConstraint(condition=models.Q(cycles_done__gte=0), name="run_cycles_not_negative"),
        ]
        indexes = [models.Index(fields=["cluster", "state", "id"], name="run_cluster_state")]

    def __str__(self) -> str:
        return f"{self.public_id} {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether more may still come of it."""
        return self.state in self.OPEN

    @property
    def progress(self) -> float | None:
        """Share done from 0 to 1; None while nothing can be said."""
        if self.state == self.State.DONE:
            return 1.0
        if self.until == self.Until.TIME and self.start_ns is not None and self.clock_ns is not None:
            whole = self.duration_ns or 0
            return 1.0 if whole <= 0 else max(0.0, min(1.0, (self.clock_ns - self.start_ns) / whole))
        if self.pending_at_start:
            return min(1.0, self.cycles_done / self.pending_at_start)
        return None
