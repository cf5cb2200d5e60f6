"""Rows of a cluster. Models hold data and constraints; nothing else in this package holds a table."""

import json
import secrets
import zlib
from dataclasses import replace
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from playground.accounts.models import Team, holds, index, once, one_of, optional, person
from playground.clusters import choices
from playground.clusters.packed import HexField, PackedJSONField
from playground.engine.columns import FINISHED
from playground.engine.entries import CycleWords
from scheduler_core.sim.changes import Act, ControllerRun, Mention
from scheduler_core.sim.controllers.deployment import deployment_behind

ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: ids are read aloud and typed


def new_public_id() -> str:
    """Ten characters (about 50 bits) that are safe in a path and in a Kubernetes name."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def new_seed() -> int:
    """A seed for the named random streams of a new cluster."""
    return secrets.randbelow(2**31)


class Row(models.Model):
    """A row, named by its table and number."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.pk}"


class Cluster(Row):
    """One playground cluster.

    Its row is the lock of everything below it: a writer of the log or of an object row holds it.

    Notes
    -----
    Virtual time is int nanoseconds since the Unix epoch (`*_ns`); columns without a unit are wall time.
    """

    ClockMode = choices.ClockMode

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=100)
    owner = person("clusters", on_delete=models.CASCADE)
    team = optional(Team, "clusters", on_delete=models.CASCADE)
    creator = person("clusters_made")
    created = models.DateTimeField(auto_now_add=True)
    # What it is a branch or a copy of, and after how many of its cycles.
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="branches"
    )
    parent_cycle = models.BigIntegerField(null=True, blank=True)
    parent_share = models.CharField(max_length=24, blank=True, default="")  # its id, instead of a parent
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
    # Superseded outcomes up to here are being dropped from the log, and were dropped (log/housekeeping.py).
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
    # log/quotas.py.
    stored_bytes = models.BigIntegerField(default=0)
    measured_seq = models.BigIntegerField(default=1)
    measured_at = models.DateTimeField(null=True, blank=True)
    entry_bytes = models.IntegerField(default=3000)  # all rows, for each entry of the log

    class Meta:
        constraints = [
            one_of("clock_mode", choices.ClockMode.values, "cluster_clock_mode_known"),
            holds(
                "cluster_realtime_has_anchors",
                models.Q(clock_mode__in=["paused", "live"])
                | models.Q(wall_anchor__isnull=False, virtual_anchor_ns__isnull=False),
            ),
            holds("cluster_rate_positive", rate__gt=0),
            holds(
                "cluster_of_a_person_or_a_team", models.Q(owner__isnull=True) | models.Q(team__isnull=True)
            ),
            holds("cluster_counters_positive", next_seq__gte=1, next_cycle__gte=1),
            holds("cluster_cursor_within_log", cursor_seq__lt=models.F("next_seq")),
        ]
        indexes = [
            index("cluster_owner_created", "owner", "-created"),
            index("cluster_lease_expires", "lease_expires"),
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

    def fence(self) -> None:
        """Let no engine that is at work on it commit any more; what failed before is forgotten. Not saved."""
        self.generation += 1
        self.lease_token += 1
        self.lease_holder, self.lease_expires = "", None
        self.failures, self.last_error, self.parked_reason = 0, "", ""

    @property
    def is_followed(self) -> bool:
        """Whether it mirrors a live cluster: nothing here decides, and only the follower writes."""
        return self.clock_mode == choices.ClockMode.LIVE

    @property
    def is_parked(self) -> bool:
        """Whether the engine was set aside after repeated failures."""
        return bool(self.parked_reason)

    @property
    def last_seq(self) -> int:
        """The newest sequence number; resourceVersion of a List of this cluster."""
        return self.next_seq - 1


# ---- A request to run the scheduler, and how far it got


class Work(Row):
    """What was asked for and a worker does."""

    State = choices.WorkState
    OPEN = choices.OPEN

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        """Whether something may still come of it."""
        return self.state in self.OPEN


class Run(Work):
    """One 'step', 'run until idle' or 'run for a duration'."""

    class Until(models.TextChoices):
        CYCLE = "cycle"
        IDLE = "idle"
        TIME = "time"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="runs")
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    until = models.CharField(max_length=8, choices=Until.choices)
    duration_ns = models.BigIntegerField(null=True, blank=True)  # of `until = time`
    max_cycles = models.BigIntegerField(default=100_000)
    cancel_requested = models.BooleanField(default=False)
    cycles_done = models.BigIntegerField(default=0)
    pods_bound = models.BigIntegerField(default=0)
    pending_at_start = models.IntegerField(null=True, blank=True)  # in activeQ and backoffQ: to be tried
    pending_now = models.IntegerField(null=True, blank=True)  # unschedulable ones and those at Permit too
    start_ns = models.BigIntegerField(null=True, blank=True)  # virtual clock when it began
    clock_ns = models.BigIntegerField(null=True, blank=True)
    stop = models.CharField(
        max_length=16, blank=True, default=""
    )  # idle, cycle, budget, time, acting, cancelled
    message = models.TextField(blank=True, default="")
    attempts = models.IntegerField(default=0)  # batches begun, a killed worker's included

    class Meta:
        constraints = [
            one_of("state", choices.WorkState.values, "run_state_known"),
            holds(
                "run_until_known",
                models.Q(until__in=["cycle", "idle"])
                | models.Q(until="time", duration_ns__isnull=False, duration_ns__gte=0),
            ),
            holds("run_cycles_not_negative", cycles_done__gte=0),
        ]
        indexes = [index("run_cluster_state", "cluster", "state", "id")]

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


# ---- The log of a cluster: what happened, in order


class LogEntry(Row):
    """One input (source api) or outcome (source engine); `seq` is metadata.resourceVersion.

    Entries are never changed. Inputs are dropped by an undo and a reset alone (history/undo.py); outcomes that a
    later entry superseded may be (log/housekeeping.py). Events take numbers of the same sequence, but are rows only
    (event.py). Payloads by kind:

    What is kept of objects that play no part in the simulation has a source of its own: the engine reads none of it,
    and a replay does without.

    ======= ======== =======================================================================
    source  kind     payload
    ======= ======== =======================================================================
    api     write    ``{manifest}`` the whole object after admission; `by` names another scheduler that wrote it
    api     delete   ``{apiVersion, kind, namespace, name, gracePeriodSeconds, gone, manifest}`` and `by`; a pod that
                     still terminates is not gone: `manifest` is the object with its deletionTimestamp
    api     permit   ``{namespace, name, plugin, decision, reason}``
    api     config   ``{document, before}``; of another release also ``{release, releaseBefore}``, and the document
                     is the one before
    api     clock    ``{mode, rate}`` the clock was paused or let run; the engine first catches up with at_ns
    api     expiry   ``{afterNs}`` how long assumed pods are believed from now on; 0 is for ever
    api     undo     ``{words, from, to, cycles}`` the log from one number to another is gone: what was undone
    api     extender ``{call, answer}``; with a cycle: an answer within that cycle, just before the `ran` entry of
                     its batch and never read on its own; without: the answer of a bind call
    kept    write    ``{manifest}`` of a kind that is not interpreted
    kept    delete   as of source api
    engine  write    ``{manifest, reason}``
    engine  delete   ``{apiVersion, kind, namespace, name, reason, manifest}``
    engine  ran      ``{read, calls, cycles, clock_ns, stop}`` (see engine/README.md)
    ======= ======== =======================================================================
    """

    Source = choices.EntrySource

    Kind = choices.EntryKind

    # Every index begins with the cluster; one of it alone would only cost room.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="log", db_index=False)
    seq = models.BigIntegerField()
    source = models.CharField(max_length=8, choices=Source.choices)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    at_ns = models.BigIntegerField()
    cycle = models.BigIntegerField(null=True, blank=True)
    # The object a write or delete is about, for watches and pod stories; empty for other entries.
    object_kind = models.CharField(max_length=317, blank=True, default="")
    object_namespace = models.CharField(max_length=253, blank=True, default="")
    object_name = models.CharField(max_length=253, blank=True, default="")
    created = models.BooleanField(default=False)  # a write that created the object (watch: ADDED)
    payload = PackedJSONField()

    class Meta:
        constraints = [
            once("log_seq_once", "cluster", "seq"),
            one_of("source", choices.EntrySource.values, "log_source_known"),
            one_of("kind", choices.EntryKind.values, "log_kind_known"),
        ]
        indexes = [
            index("log_source_seq", "cluster", "source", "seq", condition=models.Q(source="api")),
            index("log_object_seq", "cluster", "object_kind", "object_namespace", "object_name", "seq"),
        ]


class OfPod(models.Model):
    """What says which pod it is about, and when."""

    at_ns = models.BigIntegerField()
    pod_namespace = models.CharField(max_length=253)
    pod_name = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=300)

    class Meta:
        abstract = True

    @property
    def pod(self) -> str:
        """``namespace/name``."""
        return f"{self.pod_namespace}/{self.pod_name}"


class OfCycle(OfPod):
    """The columns that a cycle of a cluster and one that was recorded with a share have alike."""

    number = models.BigIntegerField()
    profile = models.CharField(max_length=253, blank=True, default="")
    attempt = models.IntegerField(default=1)
    outcome = models.CharField(max_length=16, choices=choices.CycleOutcome.choices)
    node = models.CharField(max_length=253, blank=True, default="")
    message = models.TextField(blank=True, default="")
    n_nodes = models.IntegerField(default=0)
    n_feasible = models.IntegerField(default=0)
    n_viable = models.IntegerField(null=True, blank=True)
    digest = HexField()
    trace = models.BinaryField(null=True, blank=True)  # versioned, compressed; null = recomputed on demand

    class Meta:
        abstract = True


# ---- Scheduling cycles: a summary in columns, and the trace beside it. Words are made of the columns


class Cycle(CycleWords, OfCycle, Row):
    """One scheduling cycle: one attempt to place one pod.

    Attributes
    ----------
    failed_point, failed_plugin
        The extension point that ended it, and the plugin where it was one; empty where the pod got a node.
    """

    Outcome = choices.CycleOutcome

    TOLD = (
        "pod_namespace",
        "pod_name",
        "outcome",
        "node",
        "message",
        "n_nodes",
        "n_feasible",
        "n_viable",
        "best_total",
        "failed_point",
        "nominated_node",
        "n_victims",
    )
    """The columns that `sentence` is made of."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cycles", db_index=False)
    n_evaluated = models.IntegerField(default=0)
    best_total = models.BigIntegerField(null=True, blank=True)
    failed_point = models.CharField(max_length=20, blank=True, default="")
    failed_plugin = models.CharField(max_length=253, blank=True, default="")
    nominated_node = models.CharField(max_length=253, blank=True, default="")
    n_victims = models.IntegerField(default=0)
    repeats = models.IntegerField(default=0)  # later attempts that ended the same way, no event between
    engine_version = models.CharField(max_length=40, blank=True, default="")
    ran_seq = models.BigIntegerField(default=0)  # the `ran` entry of its batch
    trace_note = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        constraints = [
            once("cycle_number_once", "cluster", "number"),
            one_of("outcome", choices.CycleOutcome.values, "cycle_outcome_known"),
        ]
        indexes = [
            # Most cycles bind their pod, and those are found by their numbers.
            index(
                "cycle_outcome_number", "cluster", "outcome", "number", condition=~models.Q(outcome="bound")
            ),
            index("cycle_tied_number", "cluster", "number", condition=models.Q(n_viable__gt=1)),
            index("cycle_pod_number", "cluster", "pod_namespace", "pod_name", "number"),
        ]


# ---- Moves of pods in the scheduling queue, kept for the pods' stories


class QueueMove(OfPod, Row):
    """A pod went from one lane to another, or an event was weighed and left it there (`source` = `target`).

    Beside the log, not part of it: a replay tells the same moves again. The newest are kept (drive/commit.py).
    """

    # Every index begins with the cluster; one of it alone would only cost room.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="moves", db_index=False)
    ran_seq = models.BigIntegerField(default=0)  # the `ran` entry of its batch: its place in the log
    source = models.CharField(max_length=16, blank=True, default="")
    target = models.CharField(max_length=16, blank=True, default="")
    event = models.CharField(max_length=64)
    cause = models.CharField(max_length=64, blank=True, default="")
    plugin = models.CharField(max_length=253, blank=True, default="")
    hint = models.CharField(max_length=16, blank=True, default="")
    reason = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        indexes = [
            index("move_of_pod", "cluster", "pod_namespace", "pod_name", "id"),
            index("move_newest", "cluster", "id"),
        ]


# ---- What controllers decided, kept for their page and the stories of pods and nodes


class ControllerRecord(Row):
    """A run of a controller that decided something else than the one before.

    Beside the log, as queue moves are: a replay decides the same again. The newest are kept (drive/commit.py).

    Attributes
    ----------
    did
        Each act as ``[parts, why, plugin, effect, facts]``, an object among the parts as ``[kind, key]``.
    mentions
        Objects that it acted on, or left for another reason than before: one a line, also before the first.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="controller_records", db_index=False
    )
    ran_seq = models.BigIntegerField()  # the `ran` entry of its batch: its place in the log
    at_ns = models.BigIntegerField()
    controller = models.CharField(max_length=100)
    subject = models.CharField(max_length=600, blank=True, default="")
    effect = models.CharField(max_length=8)
    did = PackedJSONField()
    why_not = PackedJSONField()
    mentions = models.TextField(blank=True, default="")

    class Meta:
        indexes = [index("controller_newest", "cluster", "id")]

    @property
    def run(self) -> ControllerRun:
        """As the core has it; its news are all that it mentions."""
        return replace(self.brief, why_not=self.why_not)

    @property
    def brief(self) -> ControllerRun:
        """The same without its reasons, which are not read."""
        acts = tuple(
            Act(tuple(part if isinstance(part, str) else Mention(*part) for part in what), *more)
            for what, *more in self.did
        )
        news = tuple(self.mentions.split("\n")[1:-1])
        return ControllerRun(self.at_ns, self.controller, self.subject, acts, {}, news)


# ---- Kubernetes Events


class Event(Row):
    """A v1 Event with the columns `kubectl get events` selects by.

    Its `resource_version` is a number of the cluster's log, which has no entry for it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="events", db_index=False)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    resource_version = models.BigIntegerField()
    type = models.CharField(max_length=16, default="Normal")
    reason = models.CharField(max_length=128, blank=True, default="")
    involved_kind = models.CharField(max_length=63, blank=True, default="")
    involved_namespace = models.CharField(max_length=253, blank=True, default="")
    involved_name = models.CharField(max_length=253, blank=True, default="")
    involved_uid = models.CharField(max_length=64, blank=True, default="")
    at_ns = models.BigIntegerField()
    labels = models.JSONField(default=dict)
    manifest = PackedJSONField()

    class Meta:
        constraints = [once("event_once", "cluster", "namespace", "name")]
        indexes = [
            index("event_involved", "cluster", "involved_namespace", "involved_name", "resource_version"),
            index("event_seq", "cluster", "resource_version"),
        ]

    @property
    def message(self) -> str:
        """What it says."""
        return str(self.manifest.get("message") or "")


# ---- The engine's state at a point of the log, and the queue as pages see it


class Checkpoint(Row):
    """The whole engine after the `ran` entry `engine_seq`, having read inputs up to `cursor_seq`."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="checkpoints")
    engine_seq = models.BigIntegerField()
    cursor_seq = models.BigIntegerField()
    now_ns = models.BigIntegerField()
    engine_version = models.CharField(max_length=40, blank=True, default="")
    data = models.BinaryField()  # zlib of canonical JSON
    took_ms = models.IntegerField(default=0)  # what making it cost; the next one is put off if that was much
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [once("checkpoint_once", "cluster", "engine_seq")]


class QueueSnapshot(Row):
    """The scheduling queue after the engine's last commit.

    `head` is ``{lanes: {name: {count, items}}, at_ns, rejectors: {plugin: pods}}`` with the first items of each
    lane and, of all unschedulable pods, how many each plugin rejected; `full` is ``{name: items}``, every item,
    zlib of JSON, as it was after the `ran` entry `full_seq`: within a run only the head is written anew.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="queue")
    engine_seq = models.BigIntegerField()
    at_ns = models.BigIntegerField()
    head = models.JSONField()
    full = models.BinaryField()
    full_seq = models.BigIntegerField(null=True)  # None = `engine_seq`


# ---- What people did to a cluster, newest last: each may be undone


class Change(Row):
    """One edit, or one request for cycles: the log from `seq` on began with it.

    Attributes
    ----------
    seq
        The first sequence number that it took, or would have taken.
    words
        What was done, as a command: "cordon node n1".
    program
        The User-Agent of a client of the API; empty for pages.
    before
        What stood in the cluster's row and is not in the log (log/changes.py).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="changes", db_index=False)
    seq = models.BigIntegerField()
    words = models.CharField(max_length=300)
    program = models.CharField(max_length=200, blank=True, default="")
    before = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [index("change_newest", "cluster", "id")]


class EarlierCycle(Row):
    """A cycle before a later batch changed it; an undo restores it.

    Attributes
    ----------
    replaced_seq
        The `ran` entry of the later batch.
    news
        The columns that it changed, but for the trace.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="earlier_cycles", db_index=False
    )
    number = models.BigIntegerField()
    replaced_seq = models.BigIntegerField()
    news = models.JSONField()
    trace = models.BinaryField(null=True, blank=True)

    class Meta:
        indexes = [index("earlier_cycle_replaced", "cluster", "replaced_seq")]


# ---- Object rows: the fold of the log
#
# Typed columns beside the manifest are what pages and the API filter and sum by; they are derived from the
# manifest (engine/columns.py) in the same write and never changed on their own, except a pod's queue state.


class ObjectRow(Row):
    """What every kind has. `resource_version` is the sequence number of the entry that wrote it."""

    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField()
    labels = models.JSONField(default=dict)
    manifest = PackedJSONField()

    class Meta:
        abstract = True


class Node(ObjectRow):
    """A Node. Amounts are allocatable: millicores, bytes, counts."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    zone = models.CharField(max_length=253, blank=True, default="")
    unschedulable = models.BooleanField(default=False)
    ready = models.BooleanField(default=True)
    cpu_milli = models.BigIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    max_pods = models.BigIntegerField(default=0)
    extended = models.JSONField(default=dict)  # {resource name: int}, ephemeral-storage included
    taints = models.JSONField(default=list)

    class Meta:
        constraints = [
            once("node_once", "cluster", "name"),
            holds("node_amounts_not_negative", cpu_milli__gte=0, memory_bytes__gte=0, max_pods__gte=0),
        ]
        indexes = [index("node_zone_name", "cluster", "zone", "name")]


class PodQuerySet(models.QuerySet["Pod"]):
    """Pods, and which of them count where pods are counted."""

    def unfinished(self) -> Self:
        """That have neither succeeded nor failed."""
        return self.exclude(phase__in=FINISHED)

    def pending(self) -> Self:
        """On no node, and not finished."""
        return self.unfinished().filter(node_name="")

    def placed(self) -> Self:
        """On a node, and not finished: what nodes have in use."""
        return self.filter(takes_room=True)


class Pod(ObjectRow):
    """A Pod. Amounts are what the scheduler counts as its requests: millicores, bytes.

    `lane` says where the scheduler keeps a pending pod, as of the engine's last commit; empty = bound,
    finished, or not read by the engine yet.
    """

    Lane = choices.Lane

    objects = PodQuerySet.as_manager()

    # Every index begins with the cluster; one of it alone would only cost room.
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods", db_index=False)
    namespace = models.CharField(max_length=253)
    phase = models.CharField(max_length=20, default="Pending")
    node_name = models.CharField(max_length=253, blank=True, default="")
    takes_room = models.BooleanField(default=False)  # on a node, and not finished
    nominated_node = models.CharField(max_length=253, blank=True, default="")
    priority = models.IntegerField(default=0)
    priority_class = models.CharField(max_length=253, blank=True, default="")
    scheduler_name = models.CharField(max_length=253, default="default-scheduler")
    terminating = models.BooleanField(default=False)
    cpu_milli = models.BigIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    extended = models.JSONField(default=dict)
    owner_kind = models.CharField(max_length=63, blank=True, default="")  # the controlling owner
    owner_name = models.CharField(max_length=253, blank=True, default="")
    created_ns = models.BigIntegerField(default=0)
    waits_for = models.TextField(blank=True, default="")  # why it never schedules here, in words; else empty
    lane = models.CharField(max_length=16, choices=Lane.choices, blank=True, default="")
    # where the scheduler counts it before it is bound: at Permit, and until its Binding is heard of
    reserved_node = models.CharField(max_length=253, blank=True, default="")

    @property
    def workload(self) -> tuple[str, str]:
        """(kind, name) of its controlling owner, or of the Deployment behind a ReplicaSet."""
        return deployment_behind(self.owner_kind, self.owner_name, self.labels)

    class Meta:
        constraints = [
            once("pod_once", "cluster", "namespace", "name"),
            one_of("phase", ["Pending", "Running", "Succeeded", "Failed", "Unknown"], "pod_phase_known"),
            holds("pod_amounts_not_negative", cpu_milli__gte=0, memory_bytes__gte=0),
        ]
        indexes = [
            index("pod_node", "cluster", "node_name", "phase"),
            # Wide enough that what nodes have in use is summed without touching the rows.
            index(
                "pod_use",
                "cluster",
                "node_name",
                "cpu_milli",
                "memory_bytes",
                "takes_room",
                condition=models.Q(takes_room=True),
            ),
            index("pod_phase", "cluster", "phase"),
            # All three, so that the few pods not read yet are found among 60,000 without ANALYZE.
            index("pod_lane", "cluster", "lane", "node_name"),
            index("pod_priority", "cluster", "priority"),
            index("pod_owner", "cluster", "owner_kind", "owner_name"),
        ]


class PriorityClass(ObjectRow):
    """A PriorityClass (scheduling.k8s.io/v1)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="priority_classes")
    value = models.IntegerField()
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=24, default="PreemptLowerPriority")

    class Meta:
        constraints = [
            once("priority_class_once", "cluster", "name"),
            one_of("preemption_policy", ["PreemptLowerPriority", "Never"], "priority_class_policy_known"),
        ]
        indexes = [index("priority_class_value", "cluster", "-value")]


class PodDisruptionBudget(ObjectRow):
    """A PodDisruptionBudget (policy/v1).

    `min_available` and `max_unavailable` are as written, ``2`` or ``50%``; empty = not set. `selector` is None for
    one that selects nothing. The counts are of its status: zero until they were counted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="budgets")
    namespace = models.CharField(max_length=253)
    min_available = models.CharField(max_length=20, blank=True, default="")
    max_unavailable = models.CharField(max_length=20, blank=True, default="")
    selector = models.JSONField(null=True, default=None)
    unhealthy_pod_eviction_policy = models.CharField(max_length=24, blank=True, default="")
    expected_pods = models.IntegerField(default=0)
    current_healthy = models.IntegerField(default=0)
    desired_healthy = models.IntegerField(default=0)
    disruptions_allowed = models.IntegerField(default=0)
    disrupted_pods = models.JSONField(default=list)  # names of those the API server has let go already
    counted = models.BooleanField(default=False)  # the status says how many disruptions are allowed
    given = models.BooleanField(default=False)  # that status came with the manifest and is not computed here
    failure = models.TextField(blank=True, default="")  # why it could not be counted, in words

    class Meta:
        constraints = [once("pdb_once", "cluster", "namespace", "name")]
        indexes = [index("pdb_allowed", "cluster", "disruptions_allowed")]


class Manifest(ObjectRow):
    """An object of any other kind the playground keeps."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="manifests")
    api_version = models.CharField(max_length=317)
    kind = models.CharField(max_length=317)  # of custom resources with the group: Kind.row_kind
    namespace = models.CharField(max_length=253, blank=True, default="")  # empty = cluster scoped

    class Meta:
        constraints = [once("manifest_once", "cluster", "kind", "namespace", "name")]


# ---- Calls of HTTP extenders as they went, and the playground's own rule-based extenders


class ExtenderCall(Row):
    """One call that was made, kept at once and for people: a killed worker's calls stay visible.

    The log holds what counted (entries of kind `extender`); these rows hold what happened. A bind call's row is
    committed before the call (`intended`), so that the next worker after a crash knows of it.
    """

    class State(models.TextChoices):
        INTENDED = "intended"
        ANSWERED = "answered"
        SKIPPED = "skipped"  # the pod was bound already, so nothing was sent

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="extender_calls")
    cycle = models.BigIntegerField(null=True, blank=True)
    pod_namespace = models.CharField(max_length=253, blank=True, default="")
    pod_name = models.CharField(max_length=253, blank=True, default="")
    pod_uid = models.CharField(max_length=64, blank=True, default="")
    verb = models.CharField(max_length=16)
    url = models.TextField()
    address = models.CharField(max_length=80, blank=True, default="")  # ip:port that was called
    state = models.CharField(max_length=10, choices=State.choices, default=State.ANSWERED)
    status = models.IntegerField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    took_ms = models.FloatField(null=True, blank=True)  # wall time
    request = models.BinaryField(null=True, blank=True)  # zlib of the JSON sent; null = too large to keep
    answer = models.BinaryField(null=True, blank=True)  # zlib of the body
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            one_of("state", ["intended", "answered", "skipped"], "extender_call_state_known"),
        ]
        indexes = [
            index("extender_call_cycle", "cluster", "cycle"),
            index("extender_call_state", "cluster", "state"),
        ]

    @property
    def is_open(self) -> bool:
        """Whether it is about to be made, or its answer is awaited."""
        return self.state == self.State.INTENDED

    @property
    def request_text(self) -> str:
        """What was sent, indented where it is JSON; empty where it is not kept."""
        return _indented(self.request)

    @property
    def answer_text(self) -> str:
        """What came back, likewise."""
        return _indented(self.answer)


def _indented(data: Any) -> str:
    if data is None:
        return ""
    text = zlib.decompress(bytes(data)).decode()
    try:
        return json.dumps(json.loads(text), indent=2)
    except ValueError:
        return text


class MockExtender(Row):
    """An extender made of rules, served by the playground itself at ``/mock-extenders/{public_id}/{verb}``."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="mock_extenders")
    public_id = models.CharField(max_length=24, unique=True, default=new_public_id, editable=False)
    name = models.CharField(max_length=100, blank=True, default="")
    rules = models.JSONField(default=list)
    calls = models.JSONField(default=dict)  # verb -> how many were answered; rules may count
    created = models.DateTimeField(auto_now_add=True)


# ---- Decisions of other schedulers: what was decided, by whom, and beside it what our engine would have decided


class ForeignDecision(OfPod, Row):
    """One decision that a client of the Kubernetes API took about a pod.

    Attributes
    ----------
    seq
        Of the log entry that tells it.
    judged_seq
        Of the first entry that belongs to it: it was taken in the state just before.
    burst_seq, place
        Of the first of a row of decisions that one author took one after another, and its place among them, from 0:
        a scheduler posts its Bindings beside its next cycles, so they come in another order than they were decided in.
    node
        Where the pod was bound or nominated to; of an eviction, where the victim was.
    author
        User-Agent of the client.
    scheduler
        The pod's spec.schedulerName.
    victims
        ``namespace/name`` of pods that the author evicted for it.
    verdict
        Empty until it is judged (foreign/decisions.py).
    reasons, our_victims
        Lists of text.
    cause, cause_facts
        Why it differs, as `incident.verdicts.cause_document` has it without its `kind`; empty: not known. The facts
        are None where no cause was looked for.
    """

    Kind = choices.DecisionKind

    Verdict = choices.Judgement

    JUDGED = choices.JUDGED

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="foreign", db_index=False)
    seq = models.BigIntegerField()
    judged_seq = models.BigIntegerField()
    burst_seq = models.BigIntegerField(default=0)
    place = models.IntegerField(default=0)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    scheduler = models.CharField(max_length=253, blank=True, default="")
    node = models.CharField(max_length=253, blank=True, default="")
    author = models.CharField(max_length=200)
    message = models.TextField(blank=True, default="")
    victims = models.JSONField(default=list)

    verdict = models.CharField(max_length=10, choices=Verdict.choices, blank=True, default="")
    outcome = models.CharField(max_length=16, blank=True, default="")
    our_node = models.CharField(max_length=253, blank=True, default="")
    points = models.BigIntegerField(null=True, blank=True)
    our_points = models.BigIntegerField(null=True, blank=True)
    n_tied = models.IntegerField(default=0)
    n_feasible = models.IntegerField(default=0)
    plugin = models.CharField(max_length=253, blank=True, default="")
    score = models.BigIntegerField(null=True, blank=True)
    our_score = models.BigIntegerField(null=True, blank=True)
    reasons = models.JSONField(default=list)
    our_victims = models.JSONField(default=list)
    cause = models.CharField(max_length=8, blank=True, default="")
    cause_facts = models.JSONField(null=True, blank=True)
    engine_version = models.CharField(max_length=40, blank=True, default="")
    trace = models.BinaryField(null=True, blank=True)  # of our cycle

    class Meta:
        constraints = [once("foreign_decision_once", "cluster", "seq", "kind")]
        indexes = [
            index("foreign_verdict_seq", "cluster", "verdict", "seq"),
            index("foreign_burst_place", "cluster", "burst_seq", "place"),
            index("foreign_pod_seq", "cluster", "pod_namespace", "pod_name", "seq"),
        ]

    @property
    def program(self) -> str:
        """The author without his platform: ``bin-packer/v0.9``."""
        return self.author.partition(" ")[0] or "unknown"


class FollowedCluster(Row):
    """What a follower says of the live cluster that a cluster mirrors, and how far it is (foreign/following.py).

    Attributes
    ----------
    source, program
        Which live cluster, by its own name; who reads it, and where.
    session, number
        Of the follower that writes now, and of its last batch: one that comes twice is taken once.
    is_listed
        Whether the cluster was listed whole since the session began.
    is_paused
        Decisions that are taken from now on are not judged; objects are followed.
    lag_ms
        How old the newest change of the last batch was when it was sent.
    not_known
        Facts that cannot be read: ``{kind, resource, group, what}``.
    kept_from_ns
        What was before is dropped: objects that were there then are kept as of that moment; 0 = nothing is dropped.
    n_changes, n_dropped
        Changes taken, and of these dropped by now.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="followed")
    source = models.CharField(max_length=253)
    program = models.CharField(max_length=200, blank=True, default="")
    is_redacted = models.BooleanField(default=False)
    session = models.BigIntegerField(default=0)
    number = models.BigIntegerField(default=0)
    is_listed = models.BooleanField(default=False)
    is_stopped = models.BooleanField(default=False)
    is_paused = models.BooleanField(default=False)
    began = models.DateTimeField(auto_now_add=True)
    heard = models.DateTimeField(default=timezone.now)
    lag_ms = models.IntegerField(default=0)
    not_known = models.JSONField(default=list)
    kept_from_ns = models.BigIntegerField(default=0)
    n_changes = models.BigIntegerField(default=0)
    n_dropped = models.BigIntegerField(default=0)


# ---- Asked questions: what would it take, why not there, try, weights, luck. A row is the answer's cache


class WorkRow(Work):
    """Work that says how far it is, and what came of it."""

    done = models.IntegerField(default=0)
    total = models.IntegerField(default=0)
    doing = models.CharField(max_length=120, blank=True, default="")
    error = models.TextField(blank=True, default="")
    touched = models.DateTimeField(auto_now=True)  # wall time of the last sign of life

    class Meta:
        abstract = True

    @property
    def progress(self) -> float | None:
        """Share done from 0 to 1; None while nothing can be said."""
        if self.state == self.State.DONE:
            return 1.0
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def percent(self) -> int:
        """Whole percent done; 0 while nothing can be said."""
        return round(100 * (self.progress or 0))

    @property
    def is_at_work(self) -> bool:
        """Whether a worker has begun."""
        return self.state == self.State.RUNNING or bool(self.doing)

    def change(self, **columns: Any) -> bool:
        """Write columns of the row unless it is over; whether it was open."""
        rows = type(self)._default_manager.filter(pk=self.pk, state__in=self.OPEN)
        return bool(rows.update(**columns, touched=timezone.now()))

    def end(self, state: str, **columns: Any) -> bool:
        """It is over; whether it was open."""
        return self.change(state=state, doing="", **columns)


class Question(WorkRow):
    """One question about a cluster at one moment of its log, or about a share, and its answer once a worker has it."""

    Kind = choices.QuestionKind

    cluster = optional(Cluster, "questions", on_delete=models.CASCADE)
    share = models.CharField(max_length=24, blank=True, default="")  # public id; shares are of an app above
    person = models.CharField(max_length=40, blank=True, default="")  # whose turns it takes (`person_of`)
    generation = models.IntegerField(default=1)
    seq = models.BigIntegerField(default=0)  # of the log as it was asked about; 0: about the past
    kind = models.CharField(max_length=20, choices=Kind.choices)
    params = models.JSONField(default=dict)
    key = models.CharField(max_length=40)  # of kind and params
    answer = PackedJSONField(null=True, blank=True)
    engine_version = models.CharField(max_length=40, blank=True, default="")
    attempts = models.IntegerField(default=0)
    took_ms = models.IntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            once("question_asked_once", "cluster", "generation", "seq", "key"),
            once("question_of_share_once", "share", "key", condition=~models.Q(share="")),
            one_of("state", choices.WorkState.values, "question_state_known"),
        ]
        indexes = [
            index("question_cluster_state", "cluster", "state"),
            index("question_share_kind", "share", "kind"),
        ]


class SeedEnd(Row):
    """How a run ended with one seed: a part of the answer to `seeds` and `luck`."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="seeds")
    seed = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    end = models.JSONField()  # placement, pending, draws, cycles

    class Meta:
        constraints = [once("seed_run_once", "question", "seed")]


# ---- Work that waits in a lane, whose turn it was last, and when a lane was last seen to work


class Job(Row):
    """A piece of work for a child process of a worker; the row goes when it is done, cancelled or given up.

    What it is about (a question, a share, ...) is a row of its own, which tells people how far it is. At most one
    worker is at a job: `claimed_until` is renewed while it is.
    """

    lane = models.CharField(max_length=8)
    task = models.CharField(max_length=100)
    params = models.JSONField(default=dict)  # of the task
    key = models.CharField(max_length=40, unique=True)  # SHA-1 of task and params: asked twice waits once
    person = models.CharField(max_length=40, blank=True, default="")  # whose turns it takes (`person_of`)
    bulk = models.BooleanField(default=False)  # stands behind the person's other work
    created = models.DateTimeField(auto_now_add=True)
    not_before = models.DateTimeField(null=True, blank=True)
    turn_at = models.DateTimeField(null=True, blank=True)  # when it was last at work
    deaths = models.IntegerField(default=0)  # processes that died at it
    holder = models.CharField(max_length=120, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [index("job_lane_person", "lane", "person")]


class Turn(Row):
    """When a person last had a turn in a lane."""

    lane = models.CharField(max_length=8)
    person = models.CharField(max_length=40, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [once("turn_once", "lane", "person")]


class LanePulse(Row):
    """When the loop of a lane in a worker last gave a sign: it went round, and this row was committed."""

    lane = models.CharField(max_length=8)
    worker = models.CharField(max_length=255)
    process = models.CharField(max_length=120, blank=True, default="")  # machine and process id
    passed_at = models.DateTimeField()

    class Meta:
        constraints = [once("lane_pulse_once", "lane", "worker")]


# ---- A text that is looked at before it becomes a cluster, or that a worker brings into one


class Draft(WorkRow):
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

    PREVIEW, IMPORT = "preview", "import"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    text = models.BinaryField()
    action = models.CharField(max_length=8, default=PREVIEW)
    wanted = models.JSONField(default=dict)
    answer = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    made = optional(Cluster, "+")

    class Meta:
        constraints = [one_of("state", choices.WorkState.values, "draft_state_known")]


# ---- Sums for /metrics, shared by all processes, and each cluster's own


class Metric(Row):
    """One time series of a counter, or one part of a histogram; only ever added to.

    Of a histogram there is ``NAME_sum``, and ``NAME_bucket`` with what fell into that bucket and no smaller one; what
    /metrics tells besides is summed up from these (metrics.py).

    Attributes
    ----------
    cluster
        What is counted of one is gone with it, while the sums over all, which have none, stay as they are.
    """

    # Its constraint begins with the cluster; an index of it alone would only cost room.
    cluster = models.ForeignKey(
        Cluster, null=True, on_delete=models.CASCADE, related_name="metrics", db_index=False
    )
    name = models.CharField(max_length=120)
    labels = models.CharField(max_length=300, blank=True, default="")  # as in the text format, sorted
    value = models.FloatField(default=0)

    class Meta:
        constraints = [
            once("metric_once", "name", "labels", condition=models.Q(cluster=None)),
            once("cluster_metric_once", "cluster", "name", "labels"),
        ]
