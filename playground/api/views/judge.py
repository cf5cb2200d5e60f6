"""Another scheduler: how far it decides as our engine does, and each decision beside ours."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from playground.api.representations import shown
from playground.api.views.base import Call
from playground.clusters import questions
from playground.clusters.foreign import agreement as foreign
from playground.clusters.foreign.words import why
from playground.clusters.row_types import Cluster, ForeignDecision
from playground.engine.entries import explain_trace


def _document(row: ForeignDecision, public_id: str) -> dict[str, Any]:
    """A decision as this API writes it."""
    ours = shown("OurDecision", row) if row.verdict else None
    url = f"/api/v1/clusters/{public_id}/judge/{row.seq}/{row.kind}/"
    return shown("Decision", row, ours=ours, why=why(row) or None, url=url)


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
