"""A queue as data, and back. This file is the one that looks inside a `SchedulingQueue`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scheduler_core.framework.cluster_event import ActionType, ClusterEvent
from scheduler_core.queue.queued_pod_info import Lane, QueuedPodInfo, info_document, info_from_document
from scheduler_core.queue.scheduling_queue import SchedulingQueue

CHECKPOINT_VERSION = 2


def queue_checkpoint(
    queue: SchedulingQueue, name_of: Callable[[Any], str | None] = lambda item: None
) -> dict[str, Any]:
    """The whole state as JSON-able data.

    Parameters
    ----------
    name_of : callable
        Names an object that the caller stores itself, in exactly this version; None embeds its manifest.
    """
    manifests: list[Any] = []
    # By what an object says, not by which it is: after a restore equal ones are no longer one.
    places: dict[str, int] = {}

    def stand_in(item: Any) -> Any:
        if item is None:
            return None
        name = name_of(item)
        if name is not None:
            return name
        place = places.setdefault(json.dumps(item.manifest, sort_keys=True), len(manifests))
        if place == len(manifests):
            manifests.append(item.manifest)
        return place

    def documents(infos: Iterable[QueuedPodInfo]) -> list[dict[str, Any]]:
        return [info_document(info, stand_in(info.pod)) for info in infos]

    return {
        "version": CHECKPOINT_VERSION,
        "flushOriginNs": queue._flush_origin_ns,
        "flushedNs": queue._flushed_ns,
        "cycle": queue._active.cycle,
        **({"nEntered": queue._n_entered} if queue._n_entered else {}),
        "active": documents(queue.active_pods()),
        "backoff": documents(queue.backoff_pods()),
        "errorBackoff": documents(queue.error_backoff_pods()),
        "unschedulable": documents(queue._unschedulable),
        "inFlight": [[stand_in(pod), seen] for pod, seen in queue._active.in_flight()],
        "events": [
            [event.resource, event.action.names, event.custom_label, stand_in(old), stand_in(new)]
            for _, event, old, new in queue._active.kept_events()
        ],
        "manifests": manifests,
    }


def restore_queue(
    queue: SchedulingQueue,
    document: Mapping[str, Any],
    *,
    parse: Callable[[Mapping[str, Any]], Any],
    named: Callable[[str], Any] | None = None,
) -> None:
    """Have a new queue take over the state of a checkpoint.

    Parameters
    ----------
    document : mapping
        What `queue_checkpoint` returned, possibly through JSON.
    parse : callable
        Makes an object of an embedded manifest.
    named : callable, optional
        Finds an object the caller stored itself by the name it gave.

    Raises
    ------
    ValueError
        The document is of another version, or this queue is in use.
    """
    if queue._infos or queue._active.cycle:
        raise ValueError("only a new queue can be restored")
    if document.get("version") != CHECKPOINT_VERSION:
        raise ValueError(f"queue checkpoint of version {document.get('version')!r} cannot be read")
    parsed = [parse(manifest) for manifest in document["manifests"]]

    def item(reference: Any) -> Any:
        if isinstance(reference, int):
            return parsed[reference]
        if reference is None or named is None:
            return None
        return named(reference)

    queue._flush_origin_ns = document["flushOriginNs"]
    queue._flushed_ns = document["flushedNs"]
    queue._active.cycle = document["cycle"]
    queue._n_entered = document.get("nEntered", 0)
    for lane, name in (
        (Lane.ACTIVE, "active"),
        (Lane.BACKOFF, "backoff"),
        (Lane.ERROR_BACKOFF, "errorBackoff"),
        (Lane.UNSCHEDULABLE, "unschedulable"),
    ):
        for entry in document[name]:
            info = info_from_document(entry, item(entry["pod"]))
            info.lane = lane
            queue._infos[info.key] = info
            if lane is Lane.ACTIVE:
                queue._active.add(info)
            elif lane is Lane.UNSCHEDULABLE:
                queue._unschedulable.restore(info)
            else:
                queue._backoff.add(info)
    queue._active.restore_in_flight(
        [(item(reference), seen) for reference, seen in document["inFlight"]],
        [
            (ClusterEvent(resource, _action(action), label), item(old), item(new))
            for resource, action, label, old, new in document["events"]
        ],
    )


def _action(written: Any) -> ActionType:
    """An action by the names of its flags."""
    action = ActionType.NONE
    for name in written:
        action |= ActionType.named(name)
    return action
