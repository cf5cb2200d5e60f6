"""Work that waits in a lane, whose turn it was last, and when a lane was last seen to work."""

from django.db import models


class Job(models.Model):
    """A piece of work for a child process of a worker; the row goes when it is done, cancelled or given up.

    What it is about (a question, a share, ...) is a row of its own, which tells people how far it is. At most one
    worker is at a job: `claimed_until` is renewed while it is.
    """

    lane = models.CharField(max_length=8)
    task = models.CharField(max_length=100)
    params = models.JSONField(default=dict)  # of the task
    key = models.CharField(
        max_length=40, unique=True
    )  # SHA-1 of task and params: asked twice is waiting once
    person = models.CharField(max_length=40, blank=True, default="")  # whose turns it takes (`services.jobs`)
    bulk = models.BooleanField(default=False)  # stands behind the person's other work
    created = models.DateTimeField(auto_now_add=True)
    not_before = models.DateTimeField(null=True, blank=True)
    turn_at = models.DateTimeField(null=True, blank=True)  # when it was last at work
    deaths = models.IntegerField(default=0)  # processes that died at it
    holder = models.CharField(max_length=120, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["lane", "person"], name="job_lane_person")]

    def __str__(self) -> str:
        return f"{self.task} in {self.lane}"


class Turn(models.Model):
    """When a person last had a turn in a lane."""

    lane = models.CharField(max_length=8)
    person = models.CharField(max_length=40, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lane", "person"], name="turn_once")]

    def __str__(self) -> str:
        return f"{self.person or 'the site'} in {self.lane}"


class LanePulse(models.Model):
    """When the loop of a lane in a worker last gave a sign: it went round, and this row was committed."""

    lane = models.CharField(max_length=8)
    worker = models.CharField(max_length=255)
    process = models.CharField(max_length=120, blank=True, default="")  # machine and process id
    passed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lane", "worker"], name="lane_pulse_once")]

    def __str__(self) -> str:
        return f"{self.lane} by {self.worker} at {self.passed_at:%Y-%m-%d %H:%M:%S}"
