"""A run after any of its cycles: pages of a share, read with the link and without an account, and of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from playground.accounts.teams import teams_of
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.row_types import Cluster
from playground.engine.plugins import lacking
from playground.engine.scenarios import opening_of, with_decisions
from playground.scenarios import selectors
from playground.scenarios.choices import ScenarioState, Visibility
from playground.scenarios.row_types import Scenario
from playground.scenarios.services import moments, shares
from playground.scenarios.services.proof import is_whole, request_verification, request_whole_cycle
from playground.web.cycles.present import view_cycle
from playground.web.looks import View
from playground.web.problems import problems_of
from playground.web.requests import HtmxHttpRequest, done, positive_int, site_user
from playground.web.scenarios import past_board
from playground.web.scenarios.past_board import nothing_new


def view_focus(document: Mapping[str, Any], node: str, plugin: str) -> View:
    """Collect what the cycle says of a node, of a plugin, or of both; no facts if it knows no such node or plugin."""
    facts: list[tuple[str, str]] = []
    rejected = document.get("filter") or {}
    scores, weights = document.get("scores") or {}, document.get("weights") or {}
    totals = document.get("total") or {}
    if node:
        verdict = rejected.get(node)
        if verdict is not None:
            facts.append(("Filter", f"{verdict['plugin']}: {'; '.join(verdict['reasons'])}"))
        elif node in (document.get("feasible") or ()):
            facts.append(("Filter", "feasible"))
        if node in totals:
            chosen = " It was chosen." if document.get("node") == node else ""
            facts.append(("Total", f"{totals[node]:,} points.{chosen}"))
    elif plugin:
        names = [name for name, verdict in rejected.items() if verdict.get("plugin") == plugin]
        if names:
            facts.append(("Rejected", _names(names)))
        elif plugin in (document.get("filterPlugins") or ()):
            facts.append(("Filter", "rejected no node first"))
    for name, by_node in scores.items():
        if plugin and name != plugin:
            continue
        weight = weights.get(name, 1)
        if node and node in by_node:
            facts.append((name, f"{by_node[node]} × {weight} = {by_node[node] * weight:,}"))
        elif not node and plugin:
            best = max(by_node.values(), default=0)
            top = [one for one, score in by_node.items() if score == best]
            facts.append(("Score", f"weight {weight}; the highest is {best}, of {_names(top)}"))
    if node and plugin:
        by_plugin = (document.get("filterByPlugin") or {}).get(plugin) or {}
        if node in by_plugin:
            verdict = by_plugin[node]
            reasons = verdict.get("reasons") if isinstance(verdict, Mapping) else verdict
            facts.append((plugin, "; ".join(map(str, reasons or ("rejects",)))))
    return {"node": node, "plugin": plugin, "facts": facts}


def _names(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


STOP_POLLING = 286
DELETE_CODES = "delete_codes"
"""In the session of who shared: share -> the code that takes it back. The site itself keeps a digest alone."""
MOST_CODES = 50


def mine(request: HttpRequest) -> HttpResponse:
    """The shares of the user."""
    user = site_user(request)
    found = selectors.my_scenarios(user) if user is not None or settings.EMBEDDED else []
    return render(request, "scenarios/mine.html", {"scenarios": found})


def new(request: HttpRequest) -> HttpResponse:
    """Share a document that was written by hand."""
    text, problems, status = request.POST.get("text", ""), [], 200
    if request.method == "POST":
        user = site_user(request)
        try:
            shared = shares.share(
                document=text,
                owner=user,
                **seen_by(request),
                **said_by(request),
            )
        except ClusterError as error:
            problems, status = problems_of(error, text), error.status
        else:
            return shared_page(request, shared)
    context = {
        "text": text,
        "problems": problems,
        "visibilities": visibilities_for(request),
        "note": request.POST.get("note", ""),
        "opens_at": request.POST.get("opens_at", ""),
    }
    return render(request, "scenarios/new.html", context, status=status)


def shared_page(request: HttpRequest, shared: shares.Shared) -> HttpResponse:
    """Redirect to the share, with messages shown once."""
    words = "Shared." if shared.created else "You had shared this already; here it is."
    if shared.delete_code:
        codes = {**request.session.get(DELETE_CODES, {}), shared.scenario.public_id: shared.delete_code}
        request.session[DELETE_CODES] = dict([*codes.items()][-MOST_CODES:])
        words += " This browser shows its delete code on this page."
    messages.success(request, words)
    for note in shared.notes:
        messages.warning(request, note)
    return redirect("scenarios:page", shared.scenario.public_id)


def page(request: HtmxHttpRequest, share: Scenario) -> HttpResponse:
    """A share as of one of its cycles; the moment alone for htmx."""
    return _page(
        request, share, moment_context(request, share, request.GET.get("cycle") or opening_cycle(share))
    )


def opening_cycle(share: Scenario) -> str | None:
    """First cycle shown: the author's choice or a lesson's first; None = the last one."""
    if share.opens_at is not None:
        return str(share.opens_at)
    stops = _path(share)
    if stops:
        return str(stops[0]["cycle"])
    return "1" if share.gallery_name else None


def _page(
    request: HtmxHttpRequest, share: Scenario, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    context["branch_url"] = reverse("scenarios:branch", args=[share.public_id])
    if nothing_new(request, context):
        return readable(HttpResponse(status=204), share)
    template = "scenarios/moment.html" if request.htmx else "scenarios/page.html"
    if not request.htmx:
        context |= _page_context(request, share)
    return readable(render(request, template, context, status=status), share)


def moment_context(request: HttpRequest, share: Scenario, cycle: str | None) -> dict[str, Any]:
    """Context of `scenarios/moment.html` and of a frame."""
    here = reverse("scenarios:page", args=[share.public_id])
    drawn = past_board.moment_context(request, selectors.ticks_of(share.cycles), cycle, scenario=share)
    return drawn | {"here": here, "cycle_url": f"{here}cycles/"}


def _page_context(request: HttpRequest, share: Scenario) -> dict[str, Any]:
    proof, last_proof = selectors.proofs_of(share)
    differing = None
    if last_proof is not None and not last_proof.is_proof:
        differing = selectors.differing_proof(share)
    return {
        "proof": proof,
        "last_proof": last_proof,
        "lacking": lacking(share.plugins),
        "differing": differing,
        "sides": _sides(differing),
        "link": request.build_absolute_uri(reverse("scenarios:page", args=[share.public_id])),
        "is_local": settings.EMBEDDED,
        "is_mine": _is_mine(request, share),
        "delete_code": _delete_code(request, share),
        "parent": selectors.visible_parent(share, request.user),
        "n_failed": sum(not finding["holds"] for finding in share.findings),
        "comparable": [
            one for one in selectors.my_scenarios(site_user(request), limit=30) if one.pk != share.pk
        ],
    }


def _sides(proof: Any) -> list[tuple[str, Any, View | None]]:
    """Title, what was recorded, and its cycle as it is drawn; of a proof that differs."""
    if proof is None or not proof.differs_at:
        return []
    sides = []
    for title, side in (("As recorded", proof.recorded), ("As decided now", proof.fresh)):
        explanation = (side or {}).get("explanation")
        sides.append((title, side, view_cycle(explanation, part=None, page=1) if explanation else None))
    return sides


def _is_mine(request: HttpRequest, share: Scenario) -> bool:
    if settings.EMBEDDED:
        return share.owner_id is None and not share.gallery_name
    return request.user.is_authenticated and share.owner_id == request.user.pk


def proof(request: HttpRequest, share: Scenario) -> HttpResponse:
    """The badge alone, for htmx to ask for while a proof is under way."""
    proof, last_proof = selectors.proofs_of(share)
    return render(
        request,
        "scenarios/proof.html",
        {"share": share, "proof": proof, "last_proof": last_proof, "polled": True},
    )


def raw(request: HttpRequest, share: Scenario) -> HttpResponse:
    """The document, byte for byte; with ``?decisions=1`` with what was decided written into it."""
    data = bytes(share.document)
    if request.GET.get("decisions") and share.state == ScenarioState.RECORDED:
        lines = tuple(
            " ".join(filter(None, (digest[:12], f"{namespace}/{name}", outcome, node)))
            for digest, namespace, name, outcome, node in share.cycles.order_by("number").values_list(
                "digest", "pod_namespace", "pod_name", "outcome", "node"
            )[:2000]
        )
        if share.n_cycles <= len(lines):
            data = with_decisions(data, share.decisions_digest, share.engine_version, lines).encode()
    response = HttpResponse(data, content_type="application/yaml; charset=utf-8")
    kind = "attachment" if request.GET.get("download") else "inline"
    response.headers["Content-Disposition"] = f'{kind}; filename="{share.name or share.public_id}.yaml"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["ETag"] = f'"{share.public_id}-{len(data)}"'
    return readable(response, share)


def readable(response: HttpResponse, share: Scenario) -> HttpResponse:
    """Pages elsewhere may read what everybody with the link may; nothing of it depends on who asks."""
    if share.visibility in (Visibility.PUBLIC, Visibility.UNLISTED):
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if share.visibility != Visibility.PUBLIC:
        response.headers["X-Robots-Tag"] = "noindex"
    return response


def cycle(request: HtmxHttpRequest, share: Scenario, number: int) -> HttpResponse:
    """One recorded cycle opened up; ``?node=`` and ``?plugin=`` look at one place in it."""
    row, document = selectors.recorded_cycle(share, number)
    if request.htmx and "wait" in request.GET and is_whole(document):
        # A page that waited gets the whole share.
        response = HttpResponse(status=STOP_POLLING)
        response["HX-Refresh"] = "true"
        return response
    node, plugin = request.GET.get("node", ""), request.GET.get("plugin", "")
    context: dict[str, Any] = {
        "row": row,
        "view": view_cycle(
            document, part=request.GET.get("part"), page=positive_int(request.GET.get("page")) or 1
        )
        if document
        else None,
        "whole": is_whole(document),
        "is_run_by_others": document is None and row.trace is not None,
        "waits": positive_int(request.GET.get("wait")),
        "focus": view_focus(document, node, plugin) if document and (node or plugin) else None,
        "previous": number - 1 if number > 1 else None,
        "next": number + 1 if number < share.n_cycles else None,
        "stop": next((stop for stop in _path(share) if stop["cycle"] == number), None),
    }
    return readable(render(request, "scenarios/cycle.html", context), share)


def whole_cycle(request: HttpRequest, share: Scenario, number: int) -> HttpResponse:
    """Ask a worker for every verdict and score of a cycle; the page waits for it."""
    request_whole_cycle(scenario=share, number=number)
    return redirect(f"{reverse('scenarios:cycle', args=[share.public_id, number])}?wait=1")


def _path(share: Scenario) -> list[dict[str, Any]]:
    stops = share.path
    return [
        {**stop, "place": i, "before": stops[: i - 1][-1:], "after": stops[i : i + 1]}
        for i, stop in enumerate(stops, 1)
    ]


def fork(request: HttpRequest, share: Scenario) -> HttpResponse:
    """Open it in a new cluster, at the moment its author chose."""
    cluster = moments.fork(scenario=share, owner=site_user(request))
    after = f" after cycle {share.opens_at}" if share.opens_at else ""
    messages.success(request, f'Starts from the scenario "{share.words}"{after}.')
    for url in opening_of(bytes(share.document)).recorded if share.n_extenders else ():
        messages.warning(
            request,
            f"Its scheduler asks the extender at {url}, which answers for itself here;"
            " the recorded answers stay with the share.",
        )
    return redirect("web:board", cluster.public_id)


def branch(request: HtmxHttpRequest, share: Scenario) -> HttpResponse:
    """Create a cluster in the state after a cycle, with an edit if one was written."""
    number, edit = positive_int(request.POST.get("cycle")) or 1, request.POST.get("edit", "")
    try:
        cluster = moments.branch(scenario=share, cycle=number, owner=site_user(request), edit=edit)
    except ClusterError as error:
        context = moment_context(request, share, str(number))
        context |= {"edit": edit, "problems": problems_of(error, edit)}
        return _page(request, share, context, error.status)
    words = f'Starts from "{share.words}" after cycle {number}.'
    return done(request, words, "web:board", cluster.public_id)


def verify(request: HttpRequest, share: Scenario) -> HttpResponse:
    """Ask for a fresh proof."""
    request_verification(scenario=share)
    return redirect("scenarios:page", share.public_id)


def delete(request: HttpRequest, share: Scenario) -> HttpResponse:
    """Take the share back."""
    if request.method == "POST":
        shares.delete_share(scenario=share, user=site_user(request), code=request.POST.get("code", ""))
        return done(request, "The share is deleted; its link leads nowhere now.", "scenarios:mine")
    context = {
        "share": share,
        "is_mine": _is_mine(request, share),
        "delete_code": _delete_code(request, share),
    }
    return render(request, "scenarios/delete.html", context)


def _delete_code(request: HttpRequest, share: Scenario) -> str:
    """The code that this browser was given when it shared; empty for others."""
    return str(request.session.get(DELETE_CODES, {}).get(share.public_id, ""))


# ---- time travel in a cluster


def replay(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """The cluster after one of its cycles; the moment alone for htmx."""
    return _replay(request, cluster, request.GET.get("cycle"))


def _replay(
    request: HtmxHttpRequest,
    cluster: Cluster,
    cycle: str | None,
    edit: str = "",
    problems: Sequence[View] = (),
    status: int = 200,
) -> HttpResponse:
    context = past_board.moment_context(request, selectors.cluster_ticks(cluster), cycle, cluster=cluster) | {
        "here": reverse("scenarios:replay", args=[cluster.public_id]),
        "cycle_url": reverse("web:cycles", args=[cluster.public_id]),
        "branch_url": reverse("scenarios:replay-branch", args=[cluster.public_id]),
        "edit": edit,
        "problems": problems,
    }
    if nothing_new(request, context):
        return HttpResponse(status=204)
    template = "scenarios/moment.html" if request.htmx else "scenarios/replay.html"
    return render(request, template, context, status=status)


def branch_of_cluster(request: HtmxHttpRequest, cluster: Cluster) -> HttpResponse:
    """A new cluster that begins as this one was after a cycle, with an edit if one was written."""
    number, edit = positive_int(request.POST.get("cycle")) or 1, request.POST.get("edit", "")
    try:
        made = moments.branch(cluster=cluster, cycle=number, owner=site_user(request), edit=edit)
    except ClusterError as error:
        return _replay(request, cluster, str(number), edit, problems_of(error, edit), error.status)
    if edit.strip():
        request_run(cluster=made)
    words = f"Starts from {cluster.name} after cycle {number}."
    return done(request, words, "web:difference", made.public_id)


# ---- what forms of sharing have


def visibilities_for(request: HttpRequest) -> list[tuple[str, str]]:
    """Audiences of a share or a comparison: what a form posts, and words for it."""
    words = [("unlisted", "people who have the link"), ("public", "all people, listed")]
    user = site_user(request)
    if user is None:
        return words
    teams = [(f"team/{team.name}", f"team {team.name} only") for team in teams_of(user)]
    return [*words, *teams, ("private", "only you")]


def seen_by(request: HttpRequest, *, otherwise: str = "unlisted") -> dict[str, Any]:
    """The audience and expiry in the form, as `services.share` takes them.

    Raises
    ------
    InvalidInput
    """
    visibility, _, team = request.POST.get("visibility", otherwise).partition("/")
    return {"visibility": visibility, "team": team, "expires": _expiry_of(request.POST.get("days", ""))}


def said_by(request: HttpRequest) -> dict[str, Any]:
    """The author's note and moment in the form, as `services.share` takes them.

    Raises
    ------
    InvalidInput
    """
    text = request.POST.get("opens_at", "").strip()
    opens_at = positive_int(text) if text else None
    if text and opens_at is None:
        raise InvalidInput("the cycle it opens at is a number from 1 on", field="opens_at", value=text[:20])
    return {"note": request.POST.get("note", ""), "opens_at": opens_at}


def _expiry_of(days: str) -> datetime | None:
    """When a share that lives so many days expires; never if nothing is said.

    Raises
    ------
    InvalidInput
    """
    text = days.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 3660:
        raise InvalidInput(
            "a share lives 1 to 3660 days, or until it is deleted", field="days", value=text[:20]
        )
    return timezone.now() + timedelta(days=int(text))


def release_of(share: Scenario) -> str:
    """The release it follows, as ``1.36``."""
    return share.emulates.removeprefix("v")
