"""What must hold after a round, whatever happened in it."""

from __future__ import annotations

from typing import Any

from tests.clusters.builders import folded, same_objects, stored


def violations(cluster: Any, posted: set[str], deleted: set[str]) -> list[str]:
    """Everything that is wrong with a cluster at rest."""
    return [
        *_lost(cluster, posted, deleted),
        *_bound_twice(cluster),
        *_does_not_fit(cluster),
        *([] if same_objects(folded(cluster), stored(cluster)) else ["the log's fold is not the rows"]),
        *_log_has_gaps(cluster),
    ]


def end_of(cluster: Any) -> dict[str, Any]:
    """Where a run ended, without what counts attempts: uids and versions depend on sequence numbers."""
    from playground.clusters.models import Cycle, Pod

    pods = Pod.objects.filter(cluster=cluster).order_by("namespace", "name")
    cycles = Cycle.objects.filter(cluster=cluster).order_by("number")
    return {
        "pods": list(pods.values_list("name", "node_name", "phase", "lane", "terminating")),
        "cycles": list(cycles.values_list("number", "pod_name", "outcome", "node", "message", "at_ns")),
        "clock": cluster.now_ns,
    }


def _lost(cluster: Any, posted: set[str], deleted: set[str]) -> list[str]:
    """Pods that are neither there nor were taken away on purpose."""
    from playground.clusters.models import LogEntry, Pod

    there = set(Pod.objects.filter(cluster=cluster).values_list("name", flat=True))
    taken = set(
        LogEntry.objects.filter(cluster=cluster, kind="delete", object_kind="Pod").values_list(
            "object_name", flat=True
        )
    )
    return [f"pod {name} is lost" for name in sorted(posted - deleted - there - taken)]


def _bound_twice(cluster: Any) -> list[str]:
    from playground.clusters.models import LogEntry

    found = []
    nodes: dict[str, str] = {}
    entries = LogEntry.objects.filter(cluster=cluster, kind="write", object_kind="Pod").order_by("seq")
    for payload in entries.values_list("payload", flat=True):
        manifest = payload["manifest"]
        uid, node = manifest["metadata"]["uid"], manifest["spec"].get("nodeName", "")
        before = nodes.get(uid, "")
        if before and node != before:
            found.append(
                f"pod {manifest['metadata']['name']} was on {before} and then on {node or 'no node'}"
            )
        nodes[uid] = node
    scheduled: dict[str, int] = {}
    for payload in LogEntry.objects.filter(cluster=cluster, kind="event").values_list("payload", flat=True):
        event = payload["manifest"]
        if event.get("reason") == "Scheduled":
            uid = event["involvedObject"]["uid"]
            scheduled[uid] = scheduled.get(uid, 0) + 1
    found += [f"pod {uid} was scheduled {n} times" for uid, n in scheduled.items() if n > 1]
    return found


def _does_not_fit(cluster: Any) -> list[str]:
    from playground.clusters.models import Node, Pod

    found = []
    room = {node.name: node.cpu_milli for node in Node.objects.filter(cluster=cluster)}
    used: dict[str, int] = {}
    for pod in (
        Pod.objects.filter(cluster=cluster).exclude(node_name="").exclude(phase__in=["Succeeded", "Failed"])
    ):
        used[pod.node_name] = used.get(pod.node_name, 0) + pod.cpu_milli
    for name, milli in used.items():
        if name in room and milli > room[name]:
            found.append(f"node {name} holds {milli}m of {room[name]}m")
    return found


def _log_has_gaps(cluster: Any) -> list[str]:
    from playground.clusters.models import LogEntry

    seqs = list(LogEntry.objects.filter(cluster=cluster).order_by("seq").values_list("seq", flat=True))
    return [] if seqs == list(range(1, len(seqs) + 1)) else ["sequence numbers have gaps or repeat"]
