"""Rows as this API writes them. Names are in camelCase, as Kubernetes and the explanations write theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from playground.clusters.board.overview import ClusterSummary
from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive.extender_calls import WireCall, matched
from playground.clusters.extenders.mock import mock_extender_url
from playground.clusters.history.queue import QueueItem
from playground.clusters.history.story import PodStory
from playground.clusters.trouble import why_run_waits
from scheduler_core.objects.fields import format_time_ns

if TYPE_CHECKING:
    from playground.accounts.row_types import AccessToken
    from playground.clusters.row_types import Cluster, Cycle, MockExtender, Run
    from playground.scenarios.row_types import RecordedCycle, Scenario


def cluster(summary: ClusterSummary) -> dict[str, Any]:
    row = summary.cluster
    return {
        "id": row.public_id,
        "name": row.name,
        "createdAt": row.created,
        "url": f"/api/v1/clusters/{row.public_id}/",
        "page": f"/c/{row.public_id}/",
        "kubernetes": f"/k8s/{row.public_id}",
        "resourceVersion": str(row.last_seq),
        "seed": row.seed,
        "kubernetesRelease": row.kubernetes_release,
        "featureGates": row.feature_gates,
        "nodes": summary.n_nodes,
        "pods": summary.n_pods,
        "bound": summary.n_bound,
        "pending": summary.n_pending,
        "cycles": summary.n_cycles,
        "running": summary.running,
        "parked": row.parked_reason or None,
        "clock": clock(row),
    }


def clock(row: Cluster) -> dict[str, Any]:
    deadline = None
    if row.next_deadline_ns is not None:
        deadline = {"at": format_time_ns(row.next_deadline_ns), "what": row.next_deadline_what}
    return {
        "mode": row.clock_mode,
        "rate": row.rate,
        "now": format_time_ns(virtual_now_ns(row)),
        "startedAt": format_time_ns(row.start_ns),
        "nextDeadline": deadline,
        "note": row.clock_note or None,
        "offered": row.clock_offer == "open",
    }


def run(row: Run, cluster_id: str) -> dict[str, Any]:
    duration = None if row.duration_ns is None else f"{row.duration_ns / 1e9:g}s"
    return {
        "id": row.public_id,
        "url": f"/api/v1/clusters/{cluster_id}/runs/{row.public_id}/",
        "until": duration or row.until,
        "maxCycles": row.max_cycles,
        "state": row.state,
        "cancelRequested": row.cancel_requested,
        "progress": row.progress,
        "cyclesDone": row.cycles_done,
        "podsBound": row.pods_bound,
        "pendingAtStart": row.pending_at_start,
        "pendingNow": row.pending_now,
        "clock": None if row.clock_ns is None else format_time_ns(row.clock_ns),
        "stop": row.stop or None,
        "message": row.message or why_run_waits(row) or None,
        "createdAt": row.created,
        "startedAt": row.started,
        "finishedAt": row.finished,
    }


def cycle(row: Cycle, cluster_id: str) -> dict[str, Any]:
    return _decided(row, f"clusters/{cluster_id}", row.repeats, row.engine_version)


def recorded_cycle(row: RecordedCycle, scenario: Scenario) -> dict[str, Any]:
    """A cycle of a share, as one of a cluster."""
    return _decided(row, f"scenarios/{scenario.public_id}", 0, scenario.engine_version)


def _decided(row: Cycle | RecordedCycle, of: str, repeats: int, engine: str) -> dict[str, Any]:
    return {
        "cycle": row.number,
        "url": f"/api/v1/{of}/cycles/{row.number}/",
        "at": format_time_ns(row.at_ns),
        "pod": row.pod,
        "uid": row.pod_uid,
        "profile": row.profile,
        "attempt": row.attempt,
        "outcome": row.outcome,
        "node": row.node or None,
        "sentence": row.sentence,
        "message": row.message or None,
        "nodes": row.n_nodes,
        "nFeasible": row.n_feasible,
        "nViable": row.n_viable,
        "repeats": repeats,
        "digest": row.digest,
        "engine": engine,
    }


def extender_calls(told: Sequence[Mapping[str, Any]], made: Sequence[WireCall]) -> list[dict[str, Any]]:
    """The calls of a cycle's record with the time each took, then its bind calls, which were made after it."""
    found, binds = matched([(call["verb"], call["url"]) for call in told], made)
    calls = [
        {**call, "tookMs": None if wire is None else wire.took_ms}
        for call, wire in zip(told, found, strict=True)
    ]
    return calls + [
        {
            "url": wire.url,
            "verb": wire.verb,
            "request": json.loads(wire.request) if wire.request else None,
            "answer": wire.answer,
            "status": wire.status,
            "durationMs": None,
            "error": wire.error or None,
            "ignored": False,
            "tookMs": wire.took_ms,
        }
        for wire in binds
    ]


def queue_item(item: QueueItem) -> dict[str, Any]:
    return {
        "pod": item.pod,
        "position": item.position,
        "priority": item.priority,
        "priorityClass": item.priority_class or None,
        "attempts": item.attempts,
        "secondsLeft": item.left_s,
        "reason": item.reason or None,
        "node": item.node or None,
        "plugin": item.plugin or None,
        "event": item.event or None,
        "read": item.read,
    }


def story(found: PodStory) -> dict[str, Any]:
    traces = found.traces
    pod = traces.pod
    return {
        "pod": f"{traces.namespace}/{traces.name}",
        "exists": pod is not None,
        "phase": pod.phase if pod else None,
        "node": (pod.node_name or None) if pod else None,
        "waitsFor": (pod.waits_for or None) if pod else None,
        "queue": {"lane": found.queue.lane, **queue_item(found.queue)} if found.queue else None,
        "story": [
            {
                "at": format_time_ns(step.at_ns),
                "what": step.what,
                "title": step.title,
                "detail": step.detail or None,
                "cycle": step.cycle,
                "outcome": step.outcome or None,
                "plugin": step.asked or None,
                "hint": step.hint or None,
                "reason": step.why or None,
                "withoutEffect": [
                    {
                        "at": format_time_ns(move.at_ns),
                        "event": move.event,
                        "plugin": move.plugin or None,
                        "hint": move.hint or None,
                        "reason": move.reason or None,
                    }
                    for move in step.quiet
                ],
            }
            for step in found.steps
        ],
    }


def mock_extender(row: MockExtender, cluster_id: str) -> dict[str, Any]:
    return {
        "id": row.public_id,
        "url": f"/api/v1/clusters/{cluster_id}/mock-extenders/{row.public_id}/",
        "name": row.name,
        "urlPrefix": mock_extender_url(row),
        "rules": row.rules,
        "calls": row.calls,
        "createdAt": row.created,
    }


def token(row: AccessToken) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "hint": row.hint,
        "scope": row.scope,
        "cluster": row.cluster or None,
        "createdAt": row.created,
        "expiresAt": row.expires,
        "lastUsedAt": row.last_used,
    }
