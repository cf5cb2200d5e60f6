"""Scenarios: a document in, a link out; comparisons, our own teaching scenarios, shared answers of plans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.authentication import MayEnter
from playground.api.requests import flag, one_of, whole_number
from playground.api.views.base import PlaygroundView, accepted, django_request
from playground.api.views.clusters import answer
from playground.bodies import BodyTooLarge, read_body
from playground.clusters.errors import Forbidden, TooLarge
from playground.clusters.objects.admission import MODES
from playground.engine.plugins import lacking
from playground.engine.scenarios import gallery_documents, read_scenario
from playground.scenarios import selectors, services
from playground.scenarios.choices import Visibility
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.gallery import gallery_scenario
from playground.scenarios.services.shares import max_bytes

if TYPE_CHECKING:
    from playground.scenarios.row_types import Comparison, Scenario, Verification


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

    def get(self, request: Request) -> Response:
        """List your shares, newest first; `proof` is in the answer for one share."""
        limit = whole_number(request, "limit", default=100, least=1, most=500) or 100
        rows = selectors.my_scenarios(self.person, limit=limit)
        lineage = selectors.forked_from(rows, request.user)
        return Response({"items": [scenario_document(request, row, None, lineage) for row in rows]})

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

    def get(self, request: Request, cluster_id: str) -> HttpResponse:
        """How the cluster began and what people did to it, as YAML: it can be replayed anywhere, or shared."""
        made = make_text(cluster=self.cluster(cluster_id), **_made(request))
        response = HttpResponse(made.text, content_type="application/yaml; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{cluster_id}-scenario.yaml"'
        return response

    def post(self, request: Request, cluster_id: str) -> Response:
        """The same scenario as a link, with its lineage if the cluster was forked from another.

        What is asked stands in the query or in a JSON body, which goes before it.
        """
        cluster = self.cluster(cluster_id)
        wanted = self.body("ShareOfCluster")
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
    def get(self, request: Request, scenario_id: str) -> Response:
        """What it is and whether its decisions were reproduced; the document itself is at `raw`."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        return Response(scenario_document(request, scenario, selectors.scenario_page(scenario).proof))

    def delete(self, request: Request, scenario_id: str) -> Response:
        """The link leads nowhere then; other shares of the same content stay."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        services.delete_share(scenario=scenario, user=self.person, code=request.GET.get("code", ""))
        return Response(status=204)


class Verify(PlaygroundView):
    def post(self, request: Request, scenario_id: str) -> Response:
        """A worker runs it in a process that never saw it; read the scenario for its `proof`."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        proof = services.request_verification(scenario=scenario)
        where = f"/api/v1/scenarios/{scenario.public_id}/"
        return accepted(scenario_document(request, scenario, proof), where)


class Comparisons(PlaygroundView):
    def get(self, request: Request) -> Response:
        """The newest hundred you asked for, without their results."""
        rows = selectors.my_comparisons(self.person, limit=100)
        return Response({"items": [_comparison(request, row, with_result=False) for row in rows]})

    def post(self, request: Request) -> Response:
        """Scenarios and clusters, at their end or after a cycle. It is yours: you say who reads it, and delete it."""
        asked = self.body("ComparisonRequest")
        more = asked.get("more") or []
        days = asked.get("expiresInDays")
        comparison = services.request_comparison(
            a=asked["a"],
            b=asked["b"],
            more=more,
            owner=self.person,
            visibility=asked.get("visibility", ""),
            team=asked.get("team", ""),
            expires=timezone.now() + timedelta(days=days) if days else None,
        )
        body = _comparison(request, comparison)
        return accepted(body, body["url"])


class OneComparison(Reads):
    def get(self, request: Request, comparison_id: str) -> Response:
        """Figures, the first diverging cycle with both score rows, pods that landed elsewhere."""
        comparison = selectors.get_comparison(comparison_id, request.user)
        return Response(_comparison(request, comparison))

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


class Link(Reads):
    def get(self, request: Request, scenario_id: str) -> Response:
        """What follows the `#` is the scenario itself: no server sees it, and any playground opens it."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        line = services.carried_line(scenario=scenario)
        link = f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}"
        return Response({"link": link, "characters": len(link)})


class Replay(PlaygroundView):
    def get(self, request: Request, scenario_id: str) -> HttpResponse:
        """It opens from disk without a server, a network or this site, and proves its digests; at most 5 MiB."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        page = services.standalone_file(
            scenario=scenario, owner=self.person, address=request.build_absolute_uri("/")
        )
        response = HttpResponse(page, content_type="text/html; charset=utf-8")
        response.headers["Content-Disposition"] = f'attachment; filename="{scenario.public_id}.html"'
        response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response


class Gallery(Reads):
    def get(self, request: Request) -> Response:
        """In the order of their page, with what each teaches and its newest proof."""
        rows = selectors.gallery_rows()
        return Response(
            {
                "items": [
                    _lesson(name, document, rows.get(name)) for name, document in gallery_documents().items()
                ]
            }
        )


def _lesson(name: str, document: bytes, row: Any) -> dict[str, Any]:
    facts = read_scenario(document)
    return {
        "name": name,
        "url": f"/api/v1/gallery/{name}/",
        "group": facts.group,
        "title": facts.title,
        "lesson": facts.lesson,
        "nodes": facts.n_nodes,
        "pods": facts.n_pods,
        "scenario": row.public_id if row is not None else None,
        "reproduced": row.proof_same if row is not None else None,
        "recorded": row.proof_recorded if row is not None else None,
    }


class OneLesson(Reads):
    def get(self, request: Request, name: str) -> Response:
        """Its share: what it is and whether its decisions were reproduced."""
        scenario = gallery_scenario(name)
        return Response(scenario_document(request, scenario, selectors.scenario_page(scenario).proof))


class OpenLesson(Reads):
    def post(self, request: Request, name: str) -> Response:
        """A new cluster of yours that begins as it does; its steps wait to be done one by one (`steps`)."""
        return answer(services.open_gallery_scenario(name=name, owner=self.person), 201)


class AtScale(Reads):
    def post(self, request: Request) -> Response:
        """The share of it, made if it is not there yet; a worker runs it then, which takes minutes."""
        scenario = services.share_lookalike()
        body = scenario_document(request, scenario, selectors.scenario_page(scenario).proof)
        where = f"/api/v1/scenarios/{scenario.public_id}/"
        return accepted(body, where, retry_after_s=5)


class OneVerdict(Reads):
    def get(self, request: Request, verdict_id: str) -> Response:
        """It does not follow the cluster."""
        found = selectors.get_verdict(verdict_id, request.user)
        return Response(
            {
                "id": found.public_id,
                "page": request.build_absolute_uri(f"/v/{found.public_id}/"),
                "url": f"/api/v1/verdicts/{found.public_id}/",
                "sentence": found.sentence,
                "digest": found.digest,
                "engine": found.engine_version,
                "createdAt": found.created,
                "answer": found.answer,
            }
        )

    def delete(self, request: Request, verdict_id: str) -> Response:
        """Its link leads nowhere then; who shared it may."""
        found = selectors.get_verdict(verdict_id, request.user)
        if found.owner_id != getattr(self.person, "pk", None):
            raise Forbidden("only who shared it may end the link", kind="Verdict", name=verdict_id)
        services.end_verdict(verdict=found)
        return Response(status=204)


class VerdictObjects(Reads):
    def get(self, request: Request, verdict_id: str) -> Response:
        """The objects as a dump, of which `python -m scheduler_core plan --json` prints the same answer."""
        return Response(selectors.get_verdict(verdict_id, request.user).state)
