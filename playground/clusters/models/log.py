"""The log of a cluster: what happened, in order."""

from django.db import models

from playground.clusters import choices
from playground.clusters.models.cluster import Cluster
from playground.clusters.packed import PackedJSONField


class LogEntry(models.Model):
    """One input (source api) or outcome (source engine); `seq` is metadata.resourceVersion.

    Entries are never changed. Inputs are dropped by an undo and a reset alone (services/undo.py); outcomes that a
    later entry superseded may be (services/compaction.py). Events take numbers of the same sequence, but are rows only
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
            models.UniqueConstraint(fields=["cluster", "seq"], name="log_seq_once"),
            models.CheckConstraint(
                condition=models.Q(source__in=["api", "engine", "kept"]), name="log_source_known"
            ),
            models.CheckConstraint(
                condition=models.Q(
                    kind__in=[
                        "write",
                        "delete",
                        "permit",
                        "config",
                        "clock",
                        "expiry",
                        "extender",
                        "ran",
                        "undo",
                    ]
                ),
                name="log_kind_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster", "source", "seq"], name="log_source_seq", condition=models.Q(source="api")
            ),
            models.Index(
                fields=["cluster", "object_kind", "object_namespace", "object_name", "seq"],
                name="log_object_seq",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.source} {self.kind}"
