"""Another scheduler: how far it decides as our engine does, and each decision beside ours."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.response import Response

from playground.api.representations import shown
from playground.api.views.base import Call
from playground.clusters import questions
from playground.clusters.foreign import agreement as foreign
from playground.clusters.foreign import following
from playground.clusters.foreign.words import cause, why
from playground.clusters.row_types import Cluster, FollowedCluster, ForeignDecision
from playground.engine.entries import explain_trace
from scheduler_core.incident.verdicts import cause_document
from scheduler_core.objects.fields import format_time_ns


def following_read(call: Call, cluster: Cluster) -> Any:
    """How far the follower is, what cannot be known, and the pending pods by workload and the live scheduler's reason.

    Of the 2,000 pods that wait longest.
    """
    return _following(cluster, following.followed_of(cluster))


def following_begin(call: Call, cluster: Cluster) -> Any:
    """A new session of a follower, in a cluster that was created with `live`; the one before is over."""
    asked = call.body
    return _session(
        following.begin(
            cluster=cluster,
            source=asked["source"],
            program=asked.get("program", ""),
            redacted=asked["redacted"],
        )
    )


def following_take(call: Call, cluster: Cluster) -> Any:
    """A batch of changes and judged decisions, taken whole or not at all; empty ones say that the follower lives.

    409 says that the session is over, or which batch is expected.
    """
    asked = call.body
    return _session(
        following.take(
            cluster=cluster,
            session=asked["session"],
            number=asked["number"],
            changes=asked.get("changes", ()),
            decisions=asked.get("decisions", ()),
            not_known=asked.get("notKnown"),
            is_listed=asked["listed"],
            lag_ms=asked["lagMs"],
        )
    )


def following_stop(call: Call, cluster: Cluster) -> Any:
    """The follower is refused from now on, and ends; what was seen stays."""
    return _following(cluster, following.stop(cluster=cluster))


def following_pause(call: Call, cluster: Cluster) -> Any:
    """Decisions that are taken from now on are not judged, or are again; objects are followed all the while."""
    return _following(cluster, following.pause(cluster=cluster, paused=call.body["paused"]))


def _session(row: FollowedCluster) -> dict[str, Any]:
    page = f"/c/{row.cluster.public_id}/followed/"
    return {"session": row.session, "number": row.number, "page": page, "paused": row.is_paused}


def _following(cluster: Cluster, row: FollowedCluster) -> dict[str, Any]:
    figures = following.figures_of(cluster)
    return {
        "source": row.source,
        "program": row.program,
        "state": following.state_of(row),
        "began": row.began.isoformat(),
        "heard": row.heard.isoformat(),
        "lagMs": row.lag_ms,
        "redacted": row.is_redacted,
        "keptFrom": format_time_ns(following.begins_ns(cluster, row)),
        "keepDays": settings.PLAYGROUND_FOLLOW_DAYS,
        "changes": row.n_changes,
        "decisions": sum(figures.counts.values()),
        "counts": figures.counts,
        "judged": figures.n_judged,
        "behind": figures.n_behind,
        "causes": {cause or "unknown": n for cause, n in figures.causes.items()},
        "pending": [
            {
                "kind": one.kind,
                "name": one.name,
                "pod": "/".join(one.pod),
                "pods": one.n,
                "reason": one.reason,
                "message": one.message,
                "plugin": one.plugin,
                "since": format_time_ns(one.since_ns),
            }
            for one in following.pending(cluster)
        ],
        "notKnown": row.not_known,
    }


def _document(row: ForeignDecision, public_id: str) -> dict[str, Any]:
    """A decision as this API writes it."""
    ours = shown("OurDecision", row) if row.verdict else None
    found = cause(row)
    url = f"/api/v1/clusters/{public_id}/judge/{row.seq}/{row.kind}/"
    return shown(
        "Decision", row, ours=ours, why=why(row) or None, cause=found and cause_document(found), url=url
    )


def schedulers_read(call: Call, cluster: Cluster) -> Any:
    """Whom pods name by spec.schedulerName, which programs bound, evicted or found no node over /k8s, who holds a
    scheduler's Lease, and how many pending pods wait for a scheduler that is not here. 200 of each at most."""
    return shown("SeenSchedulers", foreign.schedulers_of(cluster))


def judge_read(call: Call, cluster: Cluster) -> Any:
    """Every bind, preemption and "no node" of other schedulers over /k8s, the newest first, each beside what our
    engine would have decided on that very state.

    Asking has what waits judged by a worker; ask again while `left` is above zero.
    """
    page, before = foreign.decisions(
        cluster, verdict=call.query("verdict"), before=call.query("before"), limit=call.query("limit", 50)
    )
    found = foreign.agreement(cluster)
    if found.left:
        questions.ask_for_verdicts(cluster)
    body = {
        "agreement": found.per_cent,
        "decisions": found.total,
        "counts": dict(found.counts),
        "left": found.left,
        "authors": list(found.authors),
        "inCommon": [
            {"plugin": plugin or None, "verdict": verdict, "number": n} for plugin, verdict, n in found.common
        ],
        "items": [_document(row, cluster.public_id) for row in page],
        "next": call.next(before=before),
    }
    return Response(body, headers={"Retry-After": "1"} if found.left else None)


def judge_decision(call: Call, cluster: Cluster, seq: int, kind: str) -> Any:
    """The decision, and under `cycle` our whole cycle on the same state, with what every filter says of every
    node; null until it is judged."""
    row = foreign.decision(cluster, seq, kind)
    cycle = None if row.trace is None else explain_trace(bytes(row.trace), full=True)
    return _document(row, cluster.public_id) | {"cycle": cycle}
