"""How far one pod at a time is from the best joint placement."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError
from playground.scenarios import services
from playground.scenarios.models import Optimum
from playground.web.access import get_cluster
from playground.web.numbers import positive_int
from playground.web.scenarios.shares import get_share
from playground.web.scenarios.sharing import wants_login

SHOWN = 100


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_cluster(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """The best joint placement of a cluster's pods."""
    cluster = get_cluster(request, cluster_id)
    here = reverse("scenarios:cluster-optimum", args=[cluster.public_id])
    rows = Optimum.objects.filter(cluster=cluster, generation=cluster.generation)
    return _answer(request, here, rows, {"cluster": cluster, "tab": "share", "last_cycle": cluster.next_cycle - 1},
                   {"cluster": cluster})  # fmt: skip


@wants_login
@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_scenario(request: HttpRequest, share_id: str) -> HttpResponse:
    """The best joint placement of a share's pods."""
    share = get_share(request, share_id)
    here = reverse("scenarios:optimum", args=[share.public_id])
    rows = Optimum.objects.filter(scenario=share)
    return _answer(request, here, rows, {"share": share, "last_cycle": share.n_cycles}, {"scenario": share})


def _answer(
    request: HttpRequest, here: str, rows: Any, context: dict[str, Any], of: dict[str, Any]
) -> HttpResponse:
    if request.method == "POST":
        if "cancel" in request.POST:
            services.cancel(rows)
            return redirect(here)
        try:
            services.request_optimum(
                **of,
                cycle=positive_int(request.POST.get("cycle")),
                time_limit_s=positive_int(request.POST.get("limit")) or 30,
            )
        except ClusterError as error:
            messages.error(request, error.message)
        return redirect(here)
    newest = rows.order_by("-pk").first()
    context |= {"optimum": newest, "here": here}
    if newest is not None and newest.state == Optimum.State.DONE:
        context["gap"] = f"{100 * newest.result.get('gap', 0):.2g}"
        context["pods"] = [item for item in newest.result["pods"] if item["now"] != item["best"]][:SHOWN]
    template = "scenarios/optimum_result.html" if request.htmx else "scenarios/optimum.html"
    return render(request, template, context)
