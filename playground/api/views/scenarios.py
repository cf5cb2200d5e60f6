"""Scenarios: a document in, a link out; comparisons, our lessons, shared answers of plans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.response import Response

from playground.api.representations import shown
from playground.api.views.base import Call, accepted, django_request
from playground.api.views.clusters import answer
from playground.bodies import BodyTooLarge, read_body
from playground.clusters.errors import Forbidden, TooLarge
from playground.clusters.foreign.following import span_of
from playground.clusters.row_types import Cluster
from playground.engine.plugins import lacking
from playground.engine.scenarios import gallery_documents, read_scenario
from playground.scenarios import selectors
from playground.scenarios.choices import Visibility
from playground.scenarios.row_types import Comparison, Scenario, Verdict, Verification
from playground.scenarios.services import comparing, forking, gallery, shares, verdicts
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.gallery import gallery_scenario
from playground.scenarios.services.proof import request_verification
from playground.scenarios.services.shares import max_bytes


def _document(
    call: Call, scenario: Scenario, proof: Verification | None, forked_from: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """A share as this API writes it; what it was forked from is looked up if it is not given."""
    if forked_from is None:
        forked_from = selectors.forked_from([scenario], call.request.user)
    page = call.url(f"/s/{scenario.public_id}/")
    return shown(
        "Scenario",
        scenario,
        page=page,
        raw=f"{page.rstrip('/')}.yaml",
        lacking=lacking(scenario.plugins),
        forkedFrom=forked_from.get(scenario.pk) or None,
        proof=None if proof is None else shown("Proof", proof),
    )


def _run_later(
    call: Call, scenario: Scenario, proof: Verification | None, retry_after_s: int = 1
) -> Response:
    body = _document(call, scenario, proof)
    return accepted(body, f"/api/v1/scenarios/{scenario.public_id}/", retry_after_s=retry_after_s)


def scenarios_list(call: Call) -> Any:
    """List your shares, newest first; `proof` is in the answer for one share."""
    rows = selectors.my_scenarios(call.person, limit=call.query("limit", 100))
    lineage = selectors.forked_from(rows, call.request.user)
    return [_document(call, row, None, lineage) for row in rows]


def scenarios_share(call: Call) -> Any:
    """The document as it is (`curl --data-binary @scenario.yaml`); the answer has the link.

    It is run before the link exists: a document that cannot be run is refused, and nothing of it is kept.
    The same content and words with the same visibility are the same share (200); another title is another (201).
    """
    try:
        document = read_body(django_request(call.request), limit_bytes=max_bytes())
    except BodyTooLarge:
        raise TooLarge(f"a scenario that is shared has at most {max_bytes():,} bytes") from None
    shared = shares.share(
        document=document, owner=call.person, field_validation=call.field_validation, **_seen_by(call)
    )
    return shared_answer(call, shared)


def clusters_scenario_read(call: Call, cluster: Cluster) -> Any:
    """How the cluster began and what people did to it, as YAML: it can be replayed anywhere, or shared."""
    made = make_text(cluster=cluster, **_made(call, cluster))
    response = HttpResponse(made.text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{cluster.public_id}-scenario.yaml"'
    return response


def clusters_scenario_share(call: Call, cluster: Cluster) -> Any:
    """The same scenario as a link, with its lineage if the cluster was forked from another.

    What is asked stands in the query or in a JSON body, which goes before it.
    """
    wanted = call.body
    seen_by = _seen_by(call)
    if "days" in wanted:
        seen_by["expires"] = _expiry(wanted.pop("days"))
    said = ("visibility", "team", "note", "opens_at")
    seen_by |= {key: wanted.pop(key) for key in said if key in wanted}
    how = _made(call, cluster) | wanted
    made = make_text(cluster=cluster, **how)
    shared = forking.make_from_cluster(
        cluster=cluster, made=made, owner=call.person, cycle=how["cycle"], **seen_by
    )
    return shared_answer(call, shared)


_OTHERWISE: Final = ("more_like", "more_n", "weight_of", "weight", "priority_of", "priority")


def _made(call: Call, cluster: Cluster) -> dict[str, Any]:
    """How a scenario is made out of a cluster."""
    asked = {name: call.query(name) for name in ("cycle", "redact", "ours_decide", "test")}
    span = span_of(cluster, call.query("from"), call.query("to"))
    otherwise = {name: call.query(name) for name in _OTHERWISE}
    if any(otherwise[name] for name in ("more_like", "weight_of", "priority_of")):
        asked["what_if"] = forking.what_if_of(otherwise)[1]
    return asked | {"title": call.query("title").strip()[:300], "span": span}


def _seen_by(call: Call) -> dict[str, Any]:
    """Who sees a share, until when, and what its author says of it."""
    return {
        "visibility": call.query("visibility", Visibility.UNLISTED),
        "team": call.query("team"),
        "expires": _expiry(call.query("days")),
        "note": call.query("note"),
        "opens_at": call.query("opens_at"),
    }


def _expiry(days: int | None) -> datetime | None:
    return timezone.now() + timedelta(days=days) if days else None


def shared_answer(call: Call, shared: shares.Shared) -> Response:
    """A new share, with what is in no later answer: its delete code, and notes."""
    body = _document(call, shared.scenario, selectors.proofs_of(shared.scenario)[0]) | {
        "created": shared.created,
        "deleteCode": shared.delete_code,
        "notes": [*shared.notes, *shared.field_notes],
    }
    return call.made(body, body["page"], status=201 if shared.created else 200)


def scenarios_read(call: Call, scenario: Scenario) -> Any:
    """What it is and whether its decisions were reproduced; the document itself is at `raw`."""
    return _document(call, scenario, selectors.proofs_of(scenario)[0])


def scenarios_delete(call: Call, scenario: Scenario) -> None:
    """The link leads nowhere then; other shares of the same content stay."""
    shares.delete_share(scenario=scenario, user=call.person, code=call.query("code"))


def scenarios_verify(call: Call, scenario: Scenario) -> Any:
    """A worker runs it in a process that never saw it; read the scenario for its `proof`."""
    return _run_later(call, scenario, request_verification(scenario=scenario))


def scenarios_link_read(call: Call, scenario: Scenario) -> Any:
    """What follows the `#` is the scenario itself: no server sees it, and any playground opens it."""
    link = f"{call.url(reverse('scenarios:open'))}#{shares.carried_line(scenario=scenario)}"
    return {"link": link, "characters": len(link)}


def scenarios_replay_read(call: Call, scenario: Scenario) -> Any:
    """It opens from disk without a server, a network or this site, and proves its digests; at most 5 MiB."""
    page = shares.standalone_file(scenario=scenario, owner=call.person, address=call.url("/"))
    response = HttpResponse(page, content_type="text/html; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{scenario.public_id}.html"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


# ---- comparisons


def comparisons_list(call: Call) -> Any:
    """The newest hundred you asked for, without their results."""
    rows = selectors.my_comparisons(call.person, limit=100)
    return [comparisons_read(call, row) | {"result": None} for row in rows]


def comparisons_create(call: Call) -> Any:
    """Scenarios and clusters, at their end or after a cycle. It is yours: you say who reads it, and delete it."""
    asked = call.body
    comparison = comparing.request_comparison(
        a=asked["a"],
        b=asked["b"],
        more=asked.get("more") or [],
        owner=call.person,
        visibility=asked.get("visibility", ""),
        team=asked.get("team", ""),
        expires=_expiry(asked.get("expiresInDays")),
    )
    return comparisons_read(call, comparison)


def comparisons_read(call: Call, comparison: Comparison) -> Any:
    """Figures, the first diverging cycle with both score rows, pods that landed elsewhere."""
    return shown(
        "Comparison",
        comparison,
        page=call.url(f"/compare/{comparison.public_id}/"),
        url=f"/api/v1/comparisons/{comparison.public_id}/",
    )


def comparisons_delete(call: Call, comparison: Comparison) -> None:
    """Its link leads nowhere then; what it compares stays. An owner of the team that sees it may, too."""
    comparing.delete_comparison(comparison=comparison, user=call.person)


# ---- the gallery


def gallery_list(call: Call) -> Any:
    """In the order of their page, with what each teaches and its newest proof."""
    rows = selectors.gallery_rows()
    return [_lesson(name, document, rows.get(name)) for name, document in gallery_documents().items()]


_facts = cache(read_scenario)
"""Of the gallery's documents alone, which do not change."""


def _lesson(name: str, document: bytes, row: Any) -> dict[str, Any]:
    facts = _facts(document)
    return shown(
        "Lesson",
        facts.scenario,
        nodes=facts.n_nodes,
        pods=facts.n_pods,
        name=name,
        url=f"/api/v1/gallery/{name}/",
        scenario=row and row.public_id,
        reproduced=row and row.proof_same,
        recorded=row and row.proof_recorded,
    )


def gallery_read(call: Call, name: str) -> Any:
    """Its share: what it is and whether its decisions were reproduced."""
    return scenarios_read(call, gallery_scenario(name))


def gallery_open(call: Call, name: str) -> Any:
    """A new cluster of yours that begins as it does; its steps wait to be done one by one (`steps`)."""
    return answer(gallery.open_gallery_scenario(name=name, owner=call.person), 201)


def gallery_make_large(call: Call) -> Any:
    """The share of it, made if it is not there yet; a worker runs it then, which takes minutes."""
    scenario = gallery.share_lookalike()
    return _run_later(call, scenario, selectors.proofs_of(scenario)[0], retry_after_s=5)


# ---- shared answers of plans


def verdicts_read(call: Call, verdict: Verdict) -> Any:
    """It does not follow the cluster."""
    where = {"page": call.url(f"/v/{verdict.public_id}/"), "url": f"/api/v1/verdicts/{verdict.public_id}/"}
    return shown("FrozenAnswer", verdict, **where)


def verdicts_delete(call: Call, verdict: Verdict) -> None:
    """Its link leads nowhere then; who shared it may."""
    if verdict.owner_id != getattr(call.person, "pk", None):
        raise Forbidden("only who shared it may end the link", kind="Verdict", name=verdict.public_id)
    verdicts.end_verdict(verdict=verdict)


def verdicts_objects(call: Call, verdict: Verdict) -> Any:
    """The objects as a dump, of which `python -m scheduler_core plan --json` prints the same answer."""
    return Response(verdict.state)
