"""The story of one pod: what happened to it, in order."""

from dataclasses import dataclass
from typing import Any

from playground.clusters.errors import NotFound
from playground.clusters.models import Cluster, Cycle, Event, LogEntry, Pod
from playground.clusters.selectors.queue import QueueItem, lanes_of


@dataclass(frozen=True, slots=True)
class StoryItem:
    """One thing that happened.

    Attributes
    ----------
    at_ns
        Virtual time.
    seq
        Order among things at the same time.
    what
        ``written``, ``deleted``, ``cycle`` or ``event``.
    title, detail
        Words.
    cycle
        Number of the cycle, where there is one.
    """

    at_ns: int
    seq: int
    what: str
    title: str
    detail: str = ""
    cycle: int | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class PodStory:
    """A pod and everything that happened to it, oldest first.

    `pod` is None for one that is gone; `queue` is where it waits now, if it does.
    """

    namespace: str
    name: str
    pod: Pod | None
    queue: QueueItem | None
    items: list[StoryItem]
    cycles: list[Cycle]


def pod_story(cluster: Cluster, namespace: str, name: str, *, limit: int = 500) -> PodStory:
    """The story of a pod, there or gone. Six queries.

    Raises
    ------
    NotFound
        There never was one of that name.
    """
    pod = Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).first()
    entries = list(
        LogEntry.objects.filter(
            cluster=cluster,
            object_kind="Pod",
            object_namespace=namespace,
            object_name=name,
        ).order_by("seq")[:limit]
    )
    if pod is None and not entries:
        raise NotFound(f'pods "{name}" not found', kind="Pod", namespace=namespace, name=name)
    cycles = list(
        Cycle.objects.filter(cluster=cluster, pod_namespace=namespace, pod_name=name)
        .defer("trace")
        .order_by("number")[:limit]
    )
    events = Event.objects.filter(
        cluster=cluster, involved_kind="Pod", involved_namespace=namespace, involved_name=name
    ).order_by("resource_version")[:limit]
    items = [_of_entry(entry) for entry in entries]
    items += [
        StoryItem(
            at_ns=cycle.at_ns,
            seq=0,
            what="cycle",
            title=cycle.sentence or f"Cycle {cycle.number}: {cycle.outcome}",
            detail=cycle.message,
            cycle=cycle.number,
            outcome=cycle.outcome,
        )
        for cycle in cycles
    ]
    items += [
        StoryItem(event.at_ns, event.resource_version, "event", event.reason, event.message)
        for event in events
    ]
    items.sort(key=lambda item: (item.at_ns, item.seq))
    return PodStory(namespace, name, pod, _queued(cluster, pod), items, cycles)


def _queued(cluster: Cluster, pod: Pod | None) -> QueueItem | None:
    if pod is None or pod.node_name:
        return None
    wanted = f"{pod.namespace}/{pod.name}"
    lanes, _ = lanes_of(cluster, full=True)
    return next((item for items in lanes.values() for item in items if item.pod == wanted), None)


def _of_entry(entry: LogEntry) -> StoryItem:
    who = "a client" if entry.source == LogEntry.Source.API else "the scheduler"
    reason = str(entry.payload.get("reason") or "")
    manifest: dict[str, Any] = entry.payload.get("manifest") or {}
    node = (manifest.get("spec") or {}).get("nodeName")
    if entry.kind == LogEntry.Kind.DELETE:
        gone = entry.payload.get("gone", True)
        return StoryItem(
            entry.at_ns, entry.seq, "deleted", "Deleted" if gone else "Asked to terminate", reason
        )
    if entry.created:
        title = "Created" + (f" on {node}" if node else "")
    else:
        title = reason or f"Changed by {who}"
    return StoryItem(entry.at_ns, entry.seq, "written", title, "" if title == reason else reason, entry.cycle)


def find_pod(cluster: Cluster, namespace: str, name: str) -> Pod | None:
    """A pod as it is now, None if there is none. One query."""
    return Pod.objects.filter(cluster=cluster, namespace=namespace, name=name).first()
