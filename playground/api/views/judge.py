"""Another scheduler: how far it decides as our engine does, and each decision beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.requests import next_page, whole_number
from playground.api.views.base import PlaygroundView
from playground.clusters import questions
from playground.clusters.foreign import agreement as foreign
from playground.clusters.foreign.agreement import schedulers_of
from playground.engine.entries import explain_trace
from playground.engine.verdict_words import why
from scheduler_core.objects.fields import format_seconds

if TYPE_CHECKING:
    from playground.clusters.row_types import ForeignDecision


def document(row: ForeignDecision, public_id: str) -> dict[str, Any]:
    """A decision as this API writes it."""
    ours = {
        "outcome": row.outcome,
        "node": row.our_node or None,
        "victims": row.our_victims,
        "points": row.points,
        "ourPoints": row.our_points,
        "nTied": row.n_tied,
        "nFeasible": row.n_feasible,
        "plugin": row.plugin or None,
        "score": row.score,
        "ourScore": row.our_score,
        "reasons": row.reasons,
    }
    return {
        "resourceVersion": str(row.seq),
        "kind": row.kind,
        "at": format_seconds(row.at_ns),
        "pod": row.pod,
        "schedulerName": row.scheduler,
        "author": row.author,
        "node": row.node or None,
        "victims": row.victims,
        "verdict": row.verdict or None,
        "ours": ours if row.verdict else None,
        "why": why(row) or None,
        "url": f"/api/v1/clusters/{public_id}/judge/{row.seq}/{row.kind}/",
    }


class Seen(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Whom pods name by spec.schedulerName, which programs bound, evicted or found no node over /k8s, who holds a
        scheduler's Lease, and how many pending pods wait for a scheduler that is not here. 200 of each at most."""
        found = schedulers_of(self.cluster(cluster_id))
        return Response(
            {
                "waiting": found.n_waiting,
                "items": [
                    {
                        "schedulerName": row.name,
                        "profile": row.is_profile,
                        "here": row.is_here,
                        "pods": row.n_pods,
                        "bound": row.n_bound,
                        "pending": row.n_pending,
                        "decisions": row.n_decisions,
                        "lastDecision": None if row.last_ns is None else format_seconds(row.last_ns),
                        "programs": list(row.programs),
                    }
                    for row in found.named
                ],
                "programs": [
                    {
                        "author": row.author,
                        "schedulerNames": list(row.names),
                        "binds": row.n_binds,
                        "preemptions": row.n_preemptions,
                        "noNode": row.n_no_node,
                        "lastDecision": format_seconds(row.last_ns),
                    }
                    for row in found.programs
                ],
                "leases": [
                    {
                        "namespace": row.namespace,
                        "name": row.name,
                        "holderIdentity": row.holder or None,
                        "renewTime": row.renewed or None,
                        "held": row.is_held,
                    }
                    for row in found.leases
                ],
            }
        )


class Judge(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Every bind, preemption and "no node" of other schedulers over /k8s, the newest first, each beside what our
        engine would have decided on that very state.

        Asking has what waits judged by a worker; ask again while `left` is above zero.
        """
        cluster = self.cluster(cluster_id)
        page = foreign.decisions(
            cluster,
            verdict=request.GET.get("verdict", ""),
            before=whole_number(request, "before"),
            limit=whole_number(request, "limit", default=50, least=1, most=500) or 50,
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
                {"plugin": plugin or None, "verdict": verdict, "number": n}
                for plugin, verdict, n in found.common
            ],
            "items": [document(row, cluster.public_id) for row in page.decisions],
            "next": next_page(request, before=page.next_before),
        }
        return Response(body, headers={"Retry-After": "1"} if found.left else None)


class OneDecision(PlaygroundView):
    def get(self, request: Request, cluster_id: str, seq: int, kind: str) -> Response:
        """The decision, and under `cycle` our whole cycle on the same state, with what every filter says of every
        node; null until it is judged."""
        cluster = self.cluster(cluster_id)
        row = foreign.decision(cluster, seq, kind)
        cycle = None if row.trace is None else explain_trace(bytes(row.trace), full=True)
        return Response(document(row, cluster.public_id) | {"cycle": cycle})
