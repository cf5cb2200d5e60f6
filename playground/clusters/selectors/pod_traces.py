"""The raw material of a pod's page: its cycles, its events, and every manifest that was written of it."""

from dataclasses import dataclass, field
from typing import Any

from playground.clusters.models import Cluster, Cycle, Event, ForeignDecision, LogEntry, Pod, QueueMove
from playground.clusters.selectors.foreign import decisions_about

STORY_LIMIT = 200


@dataclass(frozen=True)
class PodTraces:
    """What is known; `pod` is None when the pod is gone and only its traces are left."""

    namespace: str
    name: str
    pod: Pod | None
    manifest: dict[str, Any] | None
    cycles: list[Cycle]
    events: list[Event]
    entries: list[LogEntry]
    moves: list[QueueMove] = field(default_factory=list)
    decisions: list[ForeignDecision] = field(default_factory=list)


def find_pod(cluster: Cluster, namespace: str, name: str) -> Pod | None:
    """A pod as it is now, None if there is none. One query."""
    return Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).first()


def pod_traces(cluster: Cluster, namespace: str, name: str) -> PodTraces:
    """Return the newest `STORY_LIMIT` of each kind of trace, oldest first: six queries."""
    pod = find_pod(cluster, namespace, name)
    cycles = Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name).defer("trace")
    events = Event.objects.filter(
        cluster=cluster, involved_kind="Pod", involved_namespace=namespace, involved_name=name
    )
    entries = LogEntry.objects.filter(
        cluster=cluster, object_kind="Pod", object_namespace=namespace, object_name=name
    )
    moves = QueueMove.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name)
    found = [*entries.order_by("-seq")[:STORY_LIMIT]][::-1]
    manifest = pod.manifest if pod else _last_manifest(found)
    return PodTraces(
        namespace=namespace,
        name=name,
        pod=pod,
        manifest=manifest,
        cycles=[*cycles.order_by("-number")[:STORY_LIMIT]][::-1],
        events=[*events.order_by("-resource_version")[:STORY_LIMIT]][::-1],
        entries=found,
        decisions=decisions_about(cluster, namespace, name),
        moves=[*moves.order_by("-id")[:STORY_LIMIT]][::-1],
    )


def _last_manifest(entries: list[LogEntry]) -> dict[str, Any] | None:
    for entry in reversed(entries):
        manifest = entry.payload.get("manifest")
        if manifest:
            return dict(manifest)
    return None
