"""A text that is looked at before it becomes a cluster, or that a worker brings into one."""

from django.conf import settings
from django.db import models

from playground.clusters.models.cluster import Cluster, new_public_id


class Draft(models.Model):
    """A dump a person wants to import: what a worker found in it, before anything is made of it.

    Attributes
    ----------
    text
        zlib of what was posted.
    action
        ``preview``, or ``import``: make the cluster.
    wanted
        Of an import: ``name``, ``release`` and ``rebuildOwners``; ``into``, the id of a cluster that is there, if it
        goes into one, and then ``contentType``, ``fieldValidation`` and ``program`` (who wrote it), too.
    answer
        ``import`` (`services.drafts.summary_of`), ``facts`` (`engine.dumps.facts_of_dump`) and, once it is there,
        ``decided`` (`engine.dumps.decide_pending`).
    problems
        What is wrong with the text: message, path, line, kind and name of each.
    made
        The cluster an import made, or went into.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    OPEN = (State.QUEUED,)
    PREVIEW, IMPORT = "preview", "import"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    touched = models.DateTimeField(auto_now=True)  # wall time of the last sign of life
    text = models.BinaryField()
    action = models.CharField(max_length=8, default=PREVIEW)
    wanted = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    done = models.IntegerField(default=0)
    total = models.IntegerField(default=0)
    doing = models.CharField(max_length=120, blank=True, default="")
    answer = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    error = models.TextField(blank=True, default="")
    made = models.ForeignKey(Cluster, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "done", "failed", "cancelled"]),
                name="draft_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.public_id}: {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether more may still come."""
        return self.state in self.OPEN
