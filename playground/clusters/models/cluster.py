"""The cluster row: name, clock, counters and the lease of its one engine."""

import secrets
from typing import Any

from django.conf import settings
from django.db import models

from playground.clusters import choices

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: ids are read aloud and typed


def new_public_id() -> str:
    """Ten characters (about 50 bits) that are safe in a path and in a Kubernetes name."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def new_seed() -> int:
    """A seed for the named random streams of a new cluster."""
    return secrets.randbelow(2**31)


class Cluster(models.Model):
    """One playground cluster.

    Its row is the lock of everything below it: a writer of the log or of an object row holds it.

    Notes
    -----
    Virtual time is int nanoseconds since the Unix epoch (`*_ns`); columns without a unit are wall time.
    """

    ClockMode = choices.ClockMode

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="clusters"
    )
    team = models.ForeignKey(  # of its members, by their roles; then it has no owner of its own
        "accounts.Team", null=True, blank=True, on_delete=models.CASCADE, related_name="clusters"
    )
    creator = models.ForeignKey(  # for whose quotas it counts; a team may own it
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="clusters_made",
    )
    created = models.DateTimeField(auto_now_add=True)
    # What it is a branch or a copy of, and after how many of its cycles.
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="branches"
    )
    parent_cycle = models.BigIntegerField(null=True, blank=True)
    parent_share = models.CharField(
        max_length=24, blank=True, default=""
    )  # instead of a parent: the share's id
    parent_seq = models.BigIntegerField(null=True, blank=True)  # the newest input of the parent it knows
    opening_seq = models.BigIntegerField(default=0)  # up to here its log is how it began, and no edit
    seed = models.BigIntegerField(default=new_seed)
    config = models.JSONField(null=True, blank=True)  # KubeSchedulerConfiguration; null = the default one

    # Which Kubernetes it follows; rows from before there was a choice are of 1.34.
    kubernetes_release = models.CharField(max_length=20, default="1.34")
    feature_gates = models.JSONField(default=dict, blank=True)  # those that are switched, by name
    # How long a pod is assumed on its node without news of its Binding; 0 for ever, as kube-scheduler.
    assumed_expiry_ns = models.BigIntegerField(default=0)

    # host:port of extenders inside the network that its person lets this server call (embedded mode)
    extender_hosts = models.JSONField(default=list, blank=True)

    # The cluster's own clock.
    clock_mode = models.CharField(max_length=10, choices=ClockMode.choices, default=ClockMode.PAUSED)
    start_ns = models.BigIntegerField()
    now_ns = models.BigIntegerField()
    wall_anchor = models.DateTimeField(null=True, blank=True)
    virtual_anchor_ns = models.BigIntegerField(null=True, blank=True)
    rate = models.FloatField(default=1.0)
    clock_note = models.CharField(max_length=200, blank=True, default="")
    # "open" = kubectl wrote while the clock was paused, and the board offers to let it run; "closed" = answered
    clock_offer = models.CharField(max_length=6, blank=True, default="")
    next_deadline_ns = models.BigIntegerField(null=True, blank=True)
    next_deadline_what = models.CharField(max_length=200, blank=True, default="")

    # Counters. `next_seq` is the next metadata.resourceVersion.
    next_seq = models.BigIntegerField(default=1)
    next_cycle = models.BigIntegerField(default=1)
    generation = models.IntegerField(default=1)  # goes up on reset, so that no remembered engine survives it
    version = models.BigIntegerField(default=1)  # goes up with every visible change; ETags and live pages

    # Newest entry about a CustomResourceDefinition; 0 = never one, and the kinds are Kubernetes' own.
    kinds_seq = models.BigIntegerField(default=0)

    # Where the engine stands: the last input it has read, and its own last `ran` entry.
    last_input_seq = models.BigIntegerField(default=0)
    cursor_seq = models.BigIntegerField(default=0)
    engine_seq = models.BigIntegerField(default=0)
    entries_since_checkpoint = models.IntegerField(default=0)
    # Superseded outcomes up to here are being dropped from the log, and were dropped (services/compaction.py).
    compacting_seq = models.BigIntegerField(default=0)
    compacted_seq = models.BigIntegerField(default=0)

    # The lease. `lease_token` only ever goes up: it is the fencing token.
    lease_holder = models.CharField(max_length=120, blank=True, default="")
    lease_token = models.BigIntegerField(default=0)
    lease_expires = models.DateTimeField(null=True, blank=True)
    driven_at = models.DateTimeField(null=True, blank=True)  # when it was last given back; turns go by it
    failures = models.IntegerField(default=0)  # claims since the last commit
    last_error = models.TextField(blank=True, default="")
    parked_reason = models.TextField(blank=True, default="")

    # What its rows take, as it was measured when `next_seq` was `measured_seq`, and what people wrote since; see
    # services/quotas.py.
    stored_bytes = models.BigIntegerField(default=0)
    measured_seq = models.BigIntegerField(default=1)
    measured_at = models.DateTimeField(null=True, blank=True)
    entry_bytes = models.IntegerField(default=3000)  # all rows, for each entry of the log

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(clock_mode__in=["paused", "realtime"]), name="cluster_clock_mode_known"
            ),
            models.CheckConstraint(
                condition=models.Q(clock_mode="paused")
                | models.Q(wall_anchor__isnull=False, virtual_anchor_ns__isnull=False),
                name="cluster_realtime_has_anchors",
            ),
            models.CheckConstraint(condition=models.Q(rate__gt=0), name="cluster_rate_positive"),
            models.CheckConstraint(
                condition=models.Q(owner__isnull=True) | models.Q(team__isnull=True),
                name="cluster_of_a_person_or_a_team",
            ),
            models.CheckConstraint(
                condition=models.Q(next_seq__gte=1, next_cycle__gte=1), name="cluster_counters_positive"
            ),
            models.CheckConstraint(
                condition=models.Q(cursor_seq__lt=models.F("next_seq")), name="cluster_cursor_within_log"
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-created"], name="cluster_owner_created"),
            models.Index(fields=["lease_expires"], name="cluster_lease_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def release(self) -> dict[str, Any]:
        """The release and its switched gates as one document, as the engine and the log have it."""
        return {"name": self.kubernetes_release, "switched": self.feature_gates}

    @property
    def origin(self) -> "Cluster | None":
        """What it is a branch of, if that is there and belongs to the same person or team."""
        if self.parent is None or (self.parent.owner_id, self.parent.team_id) != (
            self.owner_id,
            self.team_id,
        ):
            return None
        return self.parent

    @property
    def is_parked(self) -> bool:
        """Whether the engine was set aside after repeated failures."""
        return bool(self.parked_reason)

    @property
    def last_seq(self) -> int:
        """The newest sequence number; resourceVersion of a List of this cluster."""
        return self.next_seq - 1
