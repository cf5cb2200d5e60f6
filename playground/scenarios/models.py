"""Rows of scenarios; a share never changes, results about it are other rows."""

import secrets
from typing import Any

from django.db import models

from playground.accounts.models import Team, holds, index, once, one_of, optional, person
from playground.clusters.models import ALPHABET, Cluster, OfCycle
from playground.clusters.packed import PackedJSONField
from playground.scenarios.choices import ResultState, ScenarioState, Visibility


def new_share_id() -> str:
    """Twelve letters and digits (60 bits): not to be guessed, and never ending in what a chat cuts off a link."""
    return "".join(secrets.choice(ALPHABET) for _ in range(12))


class SharedRow(models.Model):
    """A row with a link: who made it, who may read it, and until when."""

    Visibility = Visibility

    public_id = models.CharField(max_length=24, unique=True, default=new_share_id, editable=False)
    owner = person("%(class)ss", on_delete=models.CASCADE)
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.UNLISTED)
    team = optional(Team, "%(class)ss", on_delete=models.CASCADE)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        constraints = [
            one_of("visibility", Visibility.values, "%(class)s_visibility_known"),
            holds(
                "%(class)s_team_if_team_only",
                models.Q(visibility="team", team__isnull=False)
                | (~models.Q(visibility="team") & models.Q(team__isnull=True)),
            ),
        ]
        indexes = [index("%(class)s_expires", "expires")]


class Scenario(SharedRow):
    """One share of one document.

    The id says nothing of the content, so that one share's deletion, expiry or team never touches or reveals
    another of the same content.
    """

    State = ScenarioState

    share_key = models.CharField(max_length=64, unique=True)  # SHA-256 of owner, digest, visibility and team
    delete_digest = models.CharField(max_length=64)  # SHA-256 of the delete code
    gallery_name = models.CharField(max_length=100, blank=True, default="")  # of our own teaching scenarios
    note = models.TextField(blank=True, default="")  # what its author says of it; not checked
    opens_at = models.IntegerField(null=True, blank=True)  # the cycle its author shows; null: the last one

    document = models.BinaryField()  # as it was given, UTF-8
    digest = models.CharField(max_length=64)  # of the canonical form
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    forked_from = models.CharField(
        max_length=24, blank=True, default=""
    )  # the parent's id, kept if it is deleted

    # Read from the document once.
    name = models.CharField(max_length=253, blank=True, default="")
    title = models.CharField(max_length=300, blank=True, default="")
    emulates = models.CharField(max_length=40)
    seed = models.BigIntegerField(default=0)
    start_ns = models.BigIntegerField()
    n_nodes = models.IntegerField(default=0)
    n_pods = models.IntegerField(default=0)
    n_steps = models.IntegerField(default=0)
    n_expectations = models.IntegerField(default=0)
    n_extenders = models.IntegerField(default=0)
    n_bytes = models.IntegerField(default=0)  # of the document
    recorded_bytes = models.BigIntegerField(default=0)  # of its recorded cycles
    lesson = models.TextField(blank=True, default="")
    path = models.JSONField(default=list)  # the guided path: [{cycle, focus, text}]
    has_cassette = models.BooleanField(default=False)
    plugins = models.JSONField(default=list)  # from outside the tree: name, package and version
    claimed_digest = models.CharField(max_length=64, blank=True, default="")  # the document's own `decisions`

    # What the first run here decided.
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    problem = models.TextField(blank=True, default="")
    engine_version = models.CharField(max_length=40, blank=True, default="")
    decisions_digest = models.CharField(max_length=64, blank=True, default="")
    n_cycles = models.IntegerField(default=0)
    figures = models.JSONField(default=dict)
    findings = models.JSONField(default=list)  # of every expectation
    notes = models.JSONField(default=list)
    stop = models.TextField(blank=True, default="")
    timeline = PackedJSONField(null=True, blank=True)  # `scheduler_core.sim.timeline.Timeline`

    class Meta:
        constraints = [
            *SharedRow.Meta.constraints,
            one_of("state", ScenarioState.values, "scenario_state_known"),
            once("scenario_gallery_once", "gallery_name", condition=~models.Q(gallery_name="")),
        ]
        indexes = [
            *SharedRow.Meta.indexes,
            index("scenario_owner_created", "owner", "-created"),
            index("scenario_digest", "digest"),
        ]

    def __str__(self) -> str:
        return f"{self.words} ({self.public_id})"

    @property
    def words(self) -> str:
        """What people call it."""
        return self.title or self.name or f"Scenario {self.digest[:8]}"


class RecordedCycle(OfCycle):
    """One cycle of the run that was recorded with the share; viewable however the engine moves on."""

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="cycles")
    sentence = models.TextField(blank=True, default="")

    class Meta:
        constraints = [once("recorded_cycle_once", "scenario", "number")]


class Verification(models.Model):
    """One fresh run of a share, compared with what was recorded."""

    State = ResultState

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="verifications")
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    engine_version = models.CharField(max_length=40, blank=True, default="")
    n_same = models.IntegerField(default=0)  # cycles from the first on that are as recorded
    n_recorded = models.IntegerField(default=0)
    differs_at = models.IntegerField(null=True, blank=True)  # the first cycle that is not
    recorded = models.JSONField(null=True, blank=True)  # that cycle then: {summary, explanation}
    fresh = models.JSONField(null=True, blank=True)  # and now
    n_expectations = models.IntegerField(default=0)
    n_held = models.IntegerField(default=0)
    sentence = models.TextField(blank=True, default="")
    took_ms = models.IntegerField(default=0)

    class Meta:
        constraints = [one_of("state", ResultState.values, "verification_state_known")]
        indexes = [index("verification_newest", "scenario", "-id")]

    @property
    def is_proof(self) -> bool:
        """Whether every decision was reproduced."""
        return self.state == self.State.DONE and self.differs_at is None


class Comparison(SharedRow):
    """Two sides or more, compared once; its link shows the same to who may see it, until it is deleted or expires.

    A side is ``{"kind": "scenario" | "cluster", "id": public id, "cycle": number or null}``; null is the end.
    """

    State = ResultState

    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.PRIVATE)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    a = models.JSONField()
    b = models.JSONField()
    more = models.JSONField(default=list, blank=True)  # sides after the second
    title = models.CharField(max_length=300, blank=True, default="")
    problem = models.TextField(blank=True, default="")
    figures = models.JSONField(default=dict)  # name -> a number a side
    result = PackedJSONField(null=True, blank=True)  # `comparing.compare_sides`

    class Meta:
        constraints = [
            *SharedRow.Meta.constraints,
            one_of("state", ResultState.values, "comparison_state_known"),
        ]
        indexes = [
            *SharedRow.Meta.indexes,
            index("comparison_owner_created", "owner", "-created"),
        ]

    @property
    def sides(self) -> list[dict[str, Any]]:
        """All of them, in order."""
        return [self.a, self.b, *self.more]


class Moment(models.Model):
    """What a cluster, or a scenario's run, looked like after one cycle: a cache, decided again when it is gone.

    `data` is the state that `engine.moments` reads, `brief` what a page draws of a large cluster
    (`services.recording`). Of a cluster it holds for one generation only.
    """

    cluster = optional(Cluster, "moments", on_delete=models.CASCADE)
    scenario = optional(Scenario, "moments", on_delete=models.CASCADE)
    generation = models.IntegerField(default=0)
    cycle = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    note = models.CharField(max_length=300, blank=True, default="")  # why there is no data
    data = PackedJSONField(null=True, blank=True)
    brief = PackedJSONField(null=True, blank=True)

    class Meta:
        constraints = [
            holds(
                "moment_of_one",
                models.Q(cluster__isnull=False, scenario__isnull=True)
                | models.Q(cluster__isnull=True, scenario__isnull=False),
            ),
            once(
                "moment_of_cluster_once",
                "cluster",
                "generation",
                "cycle",
                condition=models.Q(cluster__isnull=False),
            ),
            once("moment_of_scenario_once", "scenario", "cycle", condition=models.Q(scenario__isnull=False)),
        ]


class Origin(models.Model):
    """The share a cluster came from, or was last shared as, and whether it has changed since."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="share_origin")
    scenario = optional(Scenario, "origins")
    scenario_id_kept = models.CharField(max_length=24)  # stays when the share is deleted
    shared = models.BooleanField(default=False)  # shared as it, not forked from it
    generation = models.IntegerField(default=1)
    input_seq = models.BigIntegerField()  # the newest input then
    steps = models.JSONField(default=list)  # `engine.scenarios.Step`s still told one by one
    next_step = models.IntegerField(default=0)


class Verdict(SharedRow):
    """A shared answer; it does not follow the cluster and remains when the cluster is deleted."""

    cluster = optional(Cluster, "verdicts")
    cluster_name = models.CharField(max_length=100)
    seq = models.BigIntegerField()  # of the cluster's log as it was asked about
    engine_version = models.CharField(max_length=40)
    sentence = models.CharField(max_length=1000)
    digest = models.CharField(max_length=64)  # SHA-256 of the answer's bytes
    answer = PackedJSONField()  # `engine.advise.answer_plan`
    state = PackedJSONField(null=True, blank=True)  # a List of manifests; null: it had moved on
