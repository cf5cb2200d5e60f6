"""Scenarios: a document in, a link out; comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.authentication import MayEnter
from playground.api.documentation import FIELD_VALIDATION, number, operation, query
from playground.api.queries import flag, one_of, whole_number
from playground.api.serializers import scenarios as answers
from playground.api.serializers.answers import MANIFEST
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.bodies import BodyTooLarge, read_body
from playground.clusters.errors import TooLarge
from playground.clusters.objects.admission import MODES
from playground.engine.plugins import lacking
from playground.scenarios import selectors, services
from playground.scenarios.choices import Visibility
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.shares import max_bytes

if TYPE_CHECKING:
    from playground.scenarios.row_types import Comparison, Scenario, Verification

EXAMPLE = """\
apiVersion: scheduling.playground/v1
kind: Scenario
title: One pod, two nodes
objects:
- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "2", pods: "10"}}}
- {apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "4", pods: "10"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web}
  spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
expect:
- {pod: web, node: b}
"""
_PROOF = {
    "state": "done",
    "reproduced": 1,
    "recorded": 1,
    "differsAt": None,
    "expectationsHeld": 1,
    "expectations": 1,
    "sentence": "Reproduced 1 of 1 decisions",
    "engine": "1.0.0",
}
ANSWER = {
    "id": "k3fq9abc2mxy",
    "page": "https://playground.example/s/k3fq9abc2mxy/",
    "raw": "https://playground.example/s/k3fq9abc2mxy.yaml",
    "title": "One pod, two nodes",
    "visibility": "unlisted",
    "digest": "6f1c0b7e92d4a85f3c1e7d09b4a2865e0fd37c91ab5e4428d06c9f7712e3ab54",
    "decisionsDigest": "0a1c0b7e92d4a85f3c1e7d09b4a2865e0fd37c91ab5e4428d06c9f7712e3ab54",
    "state": "recorded",
    "problem": None,
    "cycles": 1,
    "nodes": 2,
    "pods": 1,
    "seed": 0,
    "note": "Cycle 1 is the one to look at.",
    "opensAt": 1,
    "emulates": "v1.34",
    "plugins": ["NightShift (night-shift==1.2)"],
    "lacking": [
        "The plugin NightShift is not installed here; it comes with the package: pip install night-shift==1.2"
    ],
    "engine": "1.0.0",
    "createdAt": "2026-01-02T00:00:00Z",
    "expiresAt": None,
    "forkedFrom": None,
    "proof": _PROOF,
}
SHARED = ANSWER | {"created": True, "deleteCode": "t0Ld-0nce", "notes": []}
COMPARISON: dict[str, Any] = {
    "id": "m8r4wxyz7abc",
    "page": "https://playground.example/compare/m8r4wxyz7abc/",
    "url": "/api/v1/comparisons/m8r4wxyz7abc/",
    "state": "queued",
    "problem": None,
    "a": {"kind": "scenario", "id": "k3fq9abc2mxy", "cycle": None},
    "b": {"kind": "cluster", "id": "fk5pq8t2ab", "cycle": 12},
    "more": [],
    "visibility": "private",
    "team": None,
    "createdAt": "2026-01-02T00:00:00Z",
    "expiresAt": None,
    "result": None,
}

SEEN_BY = [
    query("visibility", "public, unlisted (who has the link), team or private."),
    query("team", "Name of the team, for who is in several."),
    number("days", "It expires after so many days.", least=1, most=3660),
    query("note", "What you say of it to the reader: plain text, at most 2,000 letters."),
    number("opens_at", "The cycle it is opened at; not said: the last one.", least=1),
]
MADE = [
    number("cycle", "Only up to this cycle.", least=1),
    query("redact", "Without names, deciding the same.", type=OpenApiTypes.BOOL),
    query("title", "One line for people."),
    query("ours_decide", "Our scheduler decides what another one decided.", type=OpenApiTypes.BOOL),
]


def scenario_document(
    request: Request,
    scenario: Scenario,
    proof: Verification | None,
    forked_from: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """A share as this API writes it; what it was forked from is looked up if it is not given."""
    if forked_from is None:
        forked_from = selectors.forked_from([scenario], request.user)
    page = request.build_absolute_uri(f"/s/{scenario.public_id}/")
    return {
        "id": scenario.public_id,
        "page": page,
        "raw": f"{page.rstrip('/')}.yaml",
        "title": scenario.words,
        "visibility": scenario.visibility,
        "digest": scenario.digest,
        "decisionsDigest": scenario.decisions_digest or None,
        "state": scenario.state,
        "problem": scenario.problem or None,
        "cycles": scenario.n_cycles,
        "nodes": scenario.n_nodes,
        "pods": scenario.n_pods,
        "seed": scenario.seed,
        "note": scenario.note,
        "opensAt": scenario.opens_at,
        "emulates": scenario.emulates,
        "plugins": scenario.plugins,
        "lacking": lacking(scenario.plugins),
        "engine": scenario.engine_version,
        "createdAt": scenario.created,
        "expiresAt": scenario.expires,
        "forkedFrom": forked_from.get(scenario.pk) or None,
        "proof": None if proof is None else _proof(proof),
    }


def _proof(proof: Verification) -> dict[str, Any]:
    return {
        "state": proof.state,
        "reproduced": proof.n_same,
        "recorded": proof.n_recorded,
        "differsAt": proof.differs_at,
        "expectationsHeld": proof.n_held,
        "expectations": proof.n_expectations,
        "sentence": proof.sentence,
        "engine": proof.engine_version,
    }


class Reads(PlaygroundView):
    """Reading wants no account; everything else does, on a served site."""

    def get_permissions(self) -> list[Any]:
        return [AllowAny()] if self.request.method in ("GET", "HEAD", "OPTIONS") else [MayEnter()]

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        if request.method in ("GET", "HEAD") and not request.headers.get("Authorization"):
            final.headers["Access-Control-Allow-Origin"] = "*"
            final.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return final


class Scenarios(PlaygroundView):
    told_once = True
    parser_classes: list[Any] = []

    @operation(
        "List your scenarios",
        id="scenarios_list",
        answers_={200: answers.Scenarios},
        errors=(400,),
        parameters=[number("limit", "How many at most.", least=1, most=500)],
        answer_example={"items": [ANSWER | {"proof": None}]},
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """What you shared, newest first; `proof` is told by each alone."""
        limit = whole_number(request, "limit", default=100, least=1, most=500) or 100
        rows = selectors.my_scenarios(self.person, limit=limit)
        lineage = selectors.forked_from(rows, request.user)
        return Response({"items": [scenario_document(request, row, None, lineage) for row in rows]})

    @operation(
        "Share a scenario",
        id="scenarios_share",
        request={"application/yaml": OpenApiTypes.STR, "application/json": MANIFEST},
        answers_={201: answers.SharedScenario, 200: answers.SharedScenario},
        errors=(400, 404, 413, 415),
        parameters=[
            *SEEN_BY,
            FIELD_VALIDATION,
        ],
        example=EXAMPLE,
        example_media_type="application/yaml",
        answer_example=SHARED,
        tag="scenarios",
    )
    def post(self, request: Request) -> Response:
        """The document as it is (`curl --data-binary @scenario.yaml`); the answer has the link.

        It is run before the link exists: a document that cannot be run is refused, and nothing of it is kept.
        The same content and words with the same visibility are the same share (200); another title is another (201).
        """
        try:
            document = read_body(django_request(request), limit_bytes=max_bytes())
        except BodyTooLarge:
            raise TooLarge(f"a scenario that is shared has at most {max_bytes():,} bytes") from None
        return shared_answer(
            request,
            services.share(
                document=document,
                owner=self.person,
                field_validation=one_of(request, "fieldValidation", MODES, default="Warn"),
                **_seen_by(request),
            ),
        )


class ClusterScenario(PlaygroundView):
    told_once = True

    @operation(
        "Read a cluster as a scenario",
        id="clusters_scenario_read",
        answers_={(200, "application/yaml"): OpenApiTypes.STR},
        errors=(400, 404, 409),
        parameters=MADE,
        answer_example=EXAMPLE,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> HttpResponse:
        """How the cluster began and what people did to it, as YAML: it can be replayed anywhere, or shared."""
        made = make_text(cluster=self.cluster(cluster_id), **_made(request))
        response = HttpResponse(made.text, content_type="application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{cluster_id}-scenario.yaml"'
        return response

    @operation(
        "Share a cluster as a scenario",
        id="clusters_scenario_share",
        request=answers.ShareOfCluster,
        answers_={201: answers.SharedScenario, 200: answers.SharedScenario},
        errors=(400, 403, 404, 409, 413, 415),
        example={"title": "Two web pods share a node", "days": 30},
        parameters=[*MADE, *SEEN_BY],
        answer_example=SHARED,
        tag="scenarios",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """The same scenario as a link, with its lineage if the cluster was forked from another.

        What is asked stands in the query or in a JSON body, which goes before it.
        """
        cluster = self.cluster(cluster_id)
        asked = answers.ShareOfCluster(data=dict(request.data))
        asked.is_valid(raise_exception=True)
        wanted = dict(asked.validated_data)
        seen_by = _seen_by(request)
        if "days" in wanted:
            seen_by["expires"] = _expiry(wanted.pop("days"))
        said = ("visibility", "team", "note", "opens_at")
        seen_by |= {key: wanted.pop(key) for key in said if key in wanted}
        made = services.make_from_cluster(
            cluster=cluster, owner=self.person, **_made(request) | wanted, **seen_by
        )
        return shared_answer(request, made)


def _made(request: Request) -> dict[str, Any]:
    """How a scenario is made out of a cluster."""
    return {
        "cycle": whole_number(request, "cycle", least=1),
        "redact": flag(request, "redact"),
        "title": request.GET.get("title", "").strip()[:300],
        "ours_decide": flag(request, "ours_decide"),
    }


def _seen_by(request: Request) -> dict[str, Any]:
    """Who sees a share, until when, and what its author says of it."""
    return {
        "visibility": request.GET.get("visibility") or Visibility.UNLISTED,
        "team": request.GET.get("team", ""),
        "expires": _expiry(whole_number(request, "days", least=1, most=3660)),
        "note": request.GET.get("note", ""),
        "opens_at": whole_number(request, "opens_at", least=1),
    }


def _expiry(days: int | None) -> datetime | None:
    return timezone.now() + timedelta(days=days) if days else None


def shared_answer(request: Request, shared: services.Shared) -> Response:
    page = selectors.scenario_page(shared.scenario)
    body = scenario_document(request, shared.scenario, page.proof) | {
        "created": shared.created,
        "deleteCode": shared.delete_code,
        "notes": [*shared.notes, *shared.field_notes],
    }
    return Response(body, status=201 if shared.created else 200, headers={"Location": body["page"]})


class OneScenario(Reads):
    @operation(
        "Read a scenario",
        id="scenarios_read",
        answers_={200: answers.Scenario},
        errors=(400, 404),
        answer_example=ANSWER,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, scenario_id: str) -> Response:
        """What it is and whether its decisions were reproduced; the document itself is at `raw`."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        return Response(scenario_document(request, scenario, selectors.scenario_page(scenario).proof))

    @operation(
        "Delete a scenario",
        id="scenarios_delete",
        answers_={204: None},
        errors=(400, 403, 404),
        parameters=[query("code", "The delete code, for who is not its owner.")],
        tag="scenarios",
    )
    def delete(self, request: Request, scenario_id: str) -> Response:
        """The link leads nowhere then; other shares of the same content stay."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        services.delete_share(scenario=scenario, user=self.person, code=request.GET.get("code", ""))
        return Response(status=204)


class Verify(PlaygroundView):
    @operation(
        "Prove a scenario again",
        id="scenarios_verify",
        answers_={202: answers.Scenario},
        errors=(400, 404),
        answer_example=ANSWER | {"proof": _PROOF | {"state": "queued", "sentence": ""}},
        tag="scenarios",
    )
    def post(self, request: Request, scenario_id: str) -> Response:
        """A worker runs it in a process that never saw it; read the scenario for its `proof`."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        proof = services.request_verification(scenario=scenario)
        where = f"/api/v1/scenarios/{scenario.public_id}/"
        return accepted(scenario_document(request, scenario, proof), where)


class Comparisons(PlaygroundView):
    @operation(
        "List your comparisons",
        id="comparisons_list",
        answers_={200: answers.Comparisons},
        answer_example={"items": [COMPARISON]},
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """The newest hundred you asked for, without their results."""
        rows = selectors.my_comparisons(self.person, limit=100)
        return Response({"items": [_comparison(request, row, with_result=False) for row in rows]})

    @operation(
        "Compare two runs or more",
        id="comparisons_create",
        request=answers.ComparisonRequest,
        answers_={202: answers.Comparison},
        errors=(400, 403, 404, 413, 415),
        example={
            "a": {"kind": "scenario", "id": "k3fq9abc2mxy"},
            "b": {"kind": "cluster", "id": "fk5pq8t2ab", "cycle": 12},
        },
        answer_example=COMPARISON,
        tag="scenarios",
    )
    def post(self, request: Request) -> Response:
        """Scenarios and clusters, at their end or after a cycle. It is yours: you say who reads it, and delete it."""
        asked = answers.ComparisonRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        more = asked.validated_data.get("more") or []
        days = asked.validated_data.get("expiresInDays")
        comparison = services.request_comparison(
            a=asked.validated_data["a"],
            b=asked.validated_data["b"],
            more=more,
            owner=self.person,
            visibility=asked.validated_data.get("visibility", ""),
            team=asked.validated_data.get("team", ""),
            expires=timezone.now() + timedelta(days=days) if days else None,
        )
        body = _comparison(request, comparison)
        return accepted(body, body["url"])


class OneComparison(Reads):
    @operation(
        "Read a comparison",
        id="comparisons_read",
        answers_={200: answers.Comparison},
        errors=(400, 404),
        answer_example=COMPARISON,
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, comparison_id: str) -> Response:
        """Figures, the first diverging cycle with both score rows, pods that landed elsewhere."""
        comparison = selectors.get_comparison(comparison_id, request.user)
        return Response(_comparison(request, comparison))

    @operation(
        "Delete a comparison",
        id="comparisons_delete",
        answers_={204: None},
        errors=(400, 403, 404),
        tag="scenarios",
    )
    def delete(self, request: Request, comparison_id: str) -> Response:
        """Its link leads nowhere then; what it compares stays. An owner of the team that sees it may, too."""
        comparison = selectors.get_comparison(comparison_id, request.user)
        services.delete_comparison(comparison=comparison, user=self.person)
        return Response(status=204)


def _comparison(request: Request, comparison: Comparison, *, with_result: bool = True) -> dict[str, Any]:
    return {
        "id": comparison.public_id,
        "page": request.build_absolute_uri(f"/compare/{comparison.public_id}/"),
        "url": f"/api/v1/comparisons/{comparison.public_id}/",
        "state": comparison.state,
        "problem": comparison.problem or None,
        "a": comparison.a,
        "b": comparison.b,
        "more": comparison.more,
        "visibility": comparison.visibility,
        "team": comparison.team.name if comparison.team else None,
        "createdAt": comparison.created,
        "expiresAt": comparison.expires,
        "result": comparison.result if with_result else None,
    }
