"""Object rows: the fold of the log.

Typed columns beside the manifest are what pages and the API filter and sum by; they are derived from the
manifest (clusters/columns.py) in the same write and never changed on their own, except a pod's queue state.
"""

from typing import Self

from django.db import models

from playground.clusters import choices
from playground.clusters.models.cluster import Cluster
from playground.clusters.packed import PackedJSONField
from playground.engine.columns import FINISHED


class ObjectRow(models.Model):
    """What every kind has. `resource_version` is the sequence number of the entry that wrote it."""

    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.BigIntegerField()
    labels = models.JSONField(default=dict)
    manifest = PackedJSONField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


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
            models.UniqueConstraint(fields=["cluster", "name"], name="node_once"),
            models.CheckConstraint(
                condition=models.Q(cpu_milli__gte=0, memory_bytes__gte=0, max_pods__gte=0),
                name="node_amounts_not_negative",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "zone", "name"], name="node_zone_name")]


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
    has_extended = models.BooleanField(default=False)
    owner_kind = models.CharField(max_length=63, blank=True, default="")  # the controlling owner
    owner_name = models.CharField(max_length=253, blank=True, default="")
    created_ns = models.BigIntegerField(default=0)
    waits_for = models.TextField(blank=True, default="")  # why it never schedules here, in words; else empty
    lane = models.CharField(max_length=16, choices=Lane.choices, blank=True, default="")
    # where the scheduler counts it before it is bound: at Permit, and until its Binding is heard of
    reserved_node = models.CharField(max_length=253, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="pod_once"),
            models.CheckConstraint(
                condition=models.Q(phase__in=["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
                name="pod_phase_known",
            ),
            models.CheckConstraint(
                condition=models.Q(cpu_milli__gte=0, memory_bytes__gte=0), name="pod_amounts_not_negative"
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "node_name", "phase"], name="pod_node"),
            # Wide enough that what nodes have in use is summed without touching the rows.
            models.Index(
                fields=["cluster", "node_name", "cpu_milli", "memory_bytes", "takes_room"],
                name="pod_use",
                condition=models.Q(takes_room=True),
            ),
            models.Index(fields=["cluster", "phase"], name="pod_phase"),
            # All three, so that the few pods not read yet are found among 60,000 without ANALYZE.
            models.Index(fields=["cluster", "lane", "node_name"], name="pod_lane"),
            models.Index(fields=["cluster"], name="pod_extended", condition=models.Q(has_extended=True)),
            models.Index(fields=["cluster", "priority"], name="pod_priority"),
            models.Index(fields=["cluster", "owner_kind", "owner_name"], name="pod_owner"),
        ]


class PriorityClass(ObjectRow):
    """A PriorityClass (scheduling.k8s.io/v1)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="priority_classes")
    value = models.IntegerField()
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=24, default="PreemptLowerPriority")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="priority_class_once"),
            models.CheckConstraint(
                condition=models.Q(preemption_policy__in=["PreemptLowerPriority", "Never"]),
                name="priority_class_policy_known",
            ),
        ]
        indexes = [models.Index(fields=["cluster", "-value"], name="priority_class_value")]


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
        constraints = [models.UniqueConstraint(fields=["cluster", "namespace", "name"], name="pdb_once")]
        indexes = [models.Index(fields=["cluster", "disruptions_allowed"], name="pdb_allowed")]


class Manifest(ObjectRow):
    """An object of any other kind the playground keeps."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="manifests")
    api_version = models.CharField(max_length=317)
    kind = models.CharField(max_length=317)  # of custom resources with the group: Kind.row_kind
    namespace = models.CharField(max_length=253, blank=True, default="")  # empty = cluster scoped

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="manifest_once")
        ]
