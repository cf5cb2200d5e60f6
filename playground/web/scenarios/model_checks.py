"""The formal model of scheduling, checked on every cycle of a cluster or a share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError, Forbidden
from playground.engine.model import MODEL_DEPARTURES
from playground.scenarios import services
from playground.scenarios.models import ModelCheck
from playground.scenarios.services.model_checks import model_result
from playground.web.access import get_cluster
from playground.web.numbers import positive_int
from playground.web.scenarios.shares import STOP_POLLING, get_share
from playground.web.scenarios.sharing import site_user

A_PAGE: Final = 50
PROPERTIES: Final = (
    (
        "order",
        "Order",
        "The pod taken is the first of those that wait: the highest priority, then who waits longest.",
    ),
    ("placement", "Placement", "Its node is feasible, and viable: no feasible node scores higher."),
    (
        "casualty",
        "Minimal casualty",
        "Where no node is feasible, no other set of lower pods, on any node, would make room at a smaller loss.",
    ),
)
STATUSES: Final = (
    ("fails", "violated", "bad", "no"),
    ("leaves", "left on purpose", "warn", "info"),
    ("notComputed", "not computed", "", "dash"),
    ("holds", "holds", "ok", "ok"),
)
"""Status, words, how it is coloured and drawn; the most telling first."""


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_cluster(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """What the model says of a cluster's cycles."""
    cluster = get_cluster(request, cluster_id)
    here = reverse("scenarios:cluster-model", args=[cluster.public_id])
    rows = ModelCheck.objects.filter(cluster=cluster, generation=cluster.generation)
    context = {
        "cluster": cluster,
        "tab": "cycles",
        "last_cycle": cluster.next_cycle - 1,
        "whose": cluster.name,
    }
    return _answer(request, here, rows, context, {"cluster": cluster})


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_scenario(request: HttpRequest, share_id: str) -> HttpResponse:
    """What the model says of a share's cycles. Read without an account, asked for with one."""
    share = get_share(request, share_id)
    here = reverse("scenarios:model", args=[share.public_id])
    rows = ModelCheck.objects.filter(scenario=share)
    context = {"share": share, "last_cycle": share.n_cycles, "whose": share.words}
    return _answer(request, here, rows, context, {"scenario": share})


def _answer(
    request: HttpRequest, here: str, rows: Any, context: dict[str, Any], of: dict[str, Any]
) -> HttpResponse:
    if request.method == "POST":
        try:
            if site_user(request) is None and not settings.EMBEDDED:
                raise Forbidden("checking the model wants a login")
            if "cancel" in request.POST:
                services.cancel(rows)
                return redirect(here)
            services.request_model_check(**of)
        except ClusterError as error:
            messages.error(request, error.message)
        return redirect(here)
    newest = rows.order_by("-pk").first()
    context |= {
        "check": newest,
        "here": here,
        "properties": PROPERTIES,
        "departures": MODEL_DEPARTURES.items(),
    }
    if newest is not None:
        context["is_open"] = newest.state in ModelCheck.OPEN
        found = model_result(newest)
        if found is not None:
            context |= _shown(request, found)
    if request.htmx and not context.get("is_open"):
        # Who waited gets the whole answer.
        response = HttpResponse(status=STOP_POLLING)
        response["HX-Refresh"] = "true"
        return response
    return render(request, "scenarios/model_wait.html" if request.htmx else "scenarios/model.html", context)


def _shown(request: HttpRequest, found: Mapping[str, Any]) -> dict[str, Any]:
    show = request.GET.get("show", "")
    known = {status for status, *_ in STATUSES}
    cycles = [_row(cycle) for cycle in found["cycles"]]
    n_by_status = {status: sum(status in row["statuses"] for row in cycles) for status in known}
    if show in known:
        cycles = [row for row in cycles if show in row["statuses"]]
    page = Paginator(cycles, A_PAGE).get_page(positive_int(request.GET.get("page")) or 1)
    counts = [
        {
            "key": key,
            "name": name,
            "meaning": meaning,
            "statuses": [
                {"words": words, "css": css, "icon": icon, "count": found["counts"][key][status]}
                for status, words, css, icon in STATUSES
                if found["counts"][key][status]
            ],
        }
        for key, name, meaning in PROPERTIES
    ]
    return {
        "found": found,
        "counts": counts,
        "page": page,
        "show": show if show in known else "",
        "filters": [
            {"status": status, "words": words, "count": n_by_status[status]}
            for status, words, *_ in STATUSES
            if n_by_status[status]
        ],
        "n_told": len(found["cycles"]),
    }


def _row(cycle: Mapping[str, Any]) -> dict[str, Any]:
    """A cycle with a cell a property; its sentence is that of the most telling verdict."""
    verdicts: Sequence[Mapping[str, Any]] = cycle["verdicts"]
    look = {status: (words, css, icon) for status, words, css, icon in STATUSES}
    by_property = {verdict["property"]: verdict for verdict in verdicts}
    cells = []
    for key, name, _ in PROPERTIES:
        verdict = by_property.get(key)
        words, css, icon = look[verdict["status"]] if verdict else ("", "", "")
        cells.append({"name": name, "words": words, "css": css, "icon": icon, "verdict": verdict})
    rank = [status for status, *_ in STATUSES]
    telling = sorted(verdicts, key=lambda verdict: rank.index(verdict["status"]))
    other = [verdict["sentence"] for verdict in telling if verdict["status"] != "holds"]
    return {
        **cycle,
        "cells": cells,
        "counterexamples": [
            json.dumps(verdict["counterexample"], indent=1, ensure_ascii=False)
            for verdict in verdicts
            if verdict["status"] == "fails" and verdict.get("counterexample")
        ],
        "sentences": other or [verdict["sentence"] for verdict in verdicts[-1:]],
        "statuses": {verdict["status"] for verdict in verdicts},
    }
