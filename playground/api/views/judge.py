"""Another scheduler: how far it decides as our engine does, and each decision beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples
from playground.api.documentation import number, operation, query
from playground.api.pages import next_page
from playground.api.queries import whole_number
from playground.api.serializers.answers import Answer
from playground.api.serializers.cycles import CycleExplanation
from playground.api.serializers.shapes import text, texts, whole
from playground.api.views.base import PlaygroundView
from playground.clusters import questions
from playground.clusters.choices import JUDGED, Judgement
from playground.clusters.foreign import agreement as foreign
from playground.clusters.foreign.agreement import schedulers_of
from playground.engine.entries import explain_trace
from playground.engine.verdict_words import why
from scheduler_core.objects.fields import format_seconds

if TYPE_CHECKING:
    from playground.clusters.row_types import ForeignDecision


class OurDecision(Answer):
    outcome = text()
    node = text(allow_null=True)
    victims = texts()
    points = whole("Of the node that was chosen.", allow_null=True)
    ourPoints = whole(allow_null=True)
    nTied = whole()
    nFeasible = whole()
    plugin = text("That parts them most.", allow_null=True)
    score = whole(allow_null=True)
    ourScore = whole(allow_null=True)
    reasons = texts()


class InCommon(Answer):
    plugin = text("Or a criterion of preemption.", allow_null=True)
    verdict = text()
    number = whole()


class Decision(Answer):
    resourceVersion = serializers.CharField(help_text="Of the entry of the log that tells it.")
    kind = serializers.ChoiceField([str(kind) for kind in JUDGED])
    at = serializers.CharField(help_text="Virtual time.")
    pod = serializers.CharField(help_text="`namespace/name`.")
    schedulerName = serializers.CharField()
    author = serializers.CharField(help_text="User-Agent of the client.")
    node = serializers.CharField(allow_null=True)
    victims = serializers.ListField(child=serializers.CharField())
    verdict = serializers.ChoiceField(Judgement.values, allow_null=True, help_text="null: waits.")
    ours = OurDecision(allow_null=True)
    why = serializers.CharField(allow_null=True)
    url = serializers.CharField(help_text="With our whole cycle.")


class DecisionWithCycle(Decision):
    cycle = CycleExplanation(allow_null=True, help_text="Ours, on the same state.")


class Agreement(Answer):
    agreement = serializers.FloatField(allow_null=True, help_text="Per cent that agree or tie.")
    decisions = serializers.IntegerField(help_text="That have a verdict which counts.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="By verdict.")
    left = serializers.IntegerField(help_text="That wait: a worker judges them now.")
    authors = serializers.ListField(child=serializers.CharField())
    inCommon = InCommon(many=True, help_text="Of those that disagree.")
    items = Decision(many=True)
    next = serializers.CharField(allow_null=True)


class SeenName(Answer):
    schedulerName = serializers.CharField()
    profile = serializers.BooleanField(help_text="Whether a profile of the cluster's configuration has it.")
    here = serializers.BooleanField(
        help_text="Whether a profile, a program that decided, or a Lease that is held stands for it."
    )
    pods = serializers.IntegerField()
    bound = serializers.IntegerField()
    pending = serializers.IntegerField()
    decisions = serializers.IntegerField(help_text="Of other programs, among the newest 5,000.")
    lastDecision = serializers.CharField(allow_null=True, help_text="Virtual time.")
    programs = serializers.ListField(child=serializers.CharField())


class SeenProgram(Answer):
    author = serializers.CharField(help_text="User-Agent of the client.")
    schedulerNames = serializers.ListField(child=serializers.CharField())
    binds = serializers.IntegerField()
    preemptions = serializers.IntegerField()
    noNode = serializers.IntegerField()
    lastDecision = serializers.CharField(help_text="Virtual time.")


class SeenLease(Answer):
    namespace = serializers.CharField()
    name = serializers.CharField()
    holderIdentity = serializers.CharField(allow_null=True, help_text="null: given back.")
    renewTime = serializers.CharField(allow_null=True, help_text="As the holder wrote it.")
    held = serializers.BooleanField(help_text="Whether it is held now, by the wall clock.")


class SeenSchedulers(Answer):
    waiting = serializers.IntegerField(help_text="Pending pods that name a scheduler which is not here.")
    items = SeenName(many=True, help_text="By spec.schedulerName, the most pods first.")
    programs = SeenProgram(many=True, help_text="Who decided, the most decisions first.")
    leases = SeenLease(many=True, help_text="Those that are called after a scheduler.")


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
    @operation(
        "List the schedulers seen",
        id="schedulers_read",
        answers_={200: SeenSchedulers},
        errors=(404,),
        answer_example=examples.SCHEDULERS,
        tag="scheduling",
        reads=True,
    )
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
    @operation(
        "Compare another scheduler with ours",
        id="judge_read",
        answers_={200: Agreement},
        errors=(400, 404, 409),
        parameters=[
            number("limit", "How many decisions at most.", least=1, most=500),
            number("before", "Only decisions of an earlier entry."),
            query("verdict", "Only these.", enum=[*Judgement.values, "disagree"]),
        ],
        answer_example=examples.AGREEMENT,
        tag="scheduling",
        reads=True,
    )
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
    @operation(
        "Read another scheduler's decision beside ours",
        id="judge_decision",
        answers_={200: DecisionWithCycle},
        errors=(400, 404),
        answer_example=examples.DECISION | {"cycle": None},
        tag="scheduling",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, seq: int, kind: str) -> Response:
        """The decision, and under `cycle` our whole cycle on the same state, with what every filter says of every
        node; null until it is judged."""
        cluster = self.cluster(cluster_id)
        row = foreign.decision(cluster, seq, kind)
        cycle = None if row.trace is None else explain_trace(bytes(row.trace), full=True)
        return Response(document(row, cluster.public_id) | {"cycle": cycle})
