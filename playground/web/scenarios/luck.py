"""How much of a share's outcome is luck."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from playground.clusters.choices import WorkState
from playground.clusters.errors import ClusterError, Forbidden
from playground.scenarios import selectors, services
from playground.scenarios.choices import ScenarioState
from playground.scenarios.services.luck import N_SEEDS
from playground.web.questions.present import view_luck
from playground.web.requests import HtmxHttpRequest, positive_int, site_user
from playground.web.scenarios.shares import STOP_POLLING, get_share


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def luck(request: HtmxHttpRequest, share_id: str) -> HttpResponse:
    """How often each end state of a share occurs with other seeds. Read without an account, asked for with one."""
    share = get_share(request, share_id)
    here = reverse("scenarios:luck", args=[share.public_id])
    if request.method == "POST":
        try:
            if site_user(request) is None and not settings.EMBEDDED:
                raise Forbidden("running the seeds wants a login")
            if "cancel" in request.POST:
                services.cancel(selectors.asked_for("luck", scenario=share))
                return redirect(here)
            services.request_luck(scenario=share, n_seeds=positive_int(request.POST.get("seeds")) or N_SEEDS)
        except ClusterError as error:
            messages.error(request, error.message)
        return redirect(here)
    row = selectors.asked_for("luck", scenario=share).order_by("-touched", "-pk").first()
    context: dict[str, Any] = {
        "share": share,
        "row": row,
        "here": here,
        "most_seeds": N_SEEDS,
        "n_ties": None,
    }
    if row is not None:
        context["percent"] = round(100 * row.done / row.n_seeds)
    if request.htmx:
        if row is not None and row.state == WorkState.QUEUED:
            return render(request, "scenarios/luck_progress.html", context)
        # A page that waited gets the whole answer.
        response = HttpResponse(status=STOP_POLLING)
        response["HX-Refresh"] = "true"
        return response
    context |= {
        "recorded": share.state == ScenarioState.RECORDED,
        "luck": view_luck(row.answer) if row is not None and row.answer is not None else None,
    }
    return render(request, "scenarios/luck.html", context)
