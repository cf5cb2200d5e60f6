"""What another release of Kubernetes would decide otherwise, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError, Forbidden
from playground.engine.releases import release_names, title_of
from playground.scenarios import services
from playground.scenarios.models import Upgrade
from playground.scenarios.services.upgrades import upgrade_result
from playground.web.access import get_cluster
from playground.web.scenarios.shares import STOP_POLLING, get_share
from playground.web.scenarios.sharing import site_user

SHOWN: Final = 100
"""Differences of one cause on the page."""
FIGURES: Final = (
    ("moved", "Land elsewhere"),
    ("newlyPending", "Newly pending"),
    ("newlyPlaced", "Newly placed"),
    ("newlyEvicted", "Newly evicted"),
    ("otherWords", "Other message"),
    ("otherCourse", "Same end, other way"),
)


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_cluster(request: HttpRequest, cluster_id: str) -> HttpResponse:
    """What another release would change in a cluster; it changes nothing."""
    cluster = get_cluster(request, cluster_id)
    here = reverse("scenarios:cluster-upgrade", args=[cluster.public_id])
    rows = Upgrade.objects.filter(cluster=cluster, generation=cluster.generation)
    context = {"cluster": cluster, "tab": "config", "sub": "release", "whose": cluster.name}
    return _answer(request, here, rows, context, {"cluster": cluster})


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
def of_scenario(request: HttpRequest, share_id: str) -> HttpResponse:
    """What another release would change in a share. Read without an account, asked for with one."""
    share = get_share(request, share_id)
    here = reverse("scenarios:upgrade", args=[share.public_id])
    rows = Upgrade.objects.filter(scenario=share)
    return _answer(request, here, rows, {"share": share, "whose": share.words}, {"scenario": share})


def _answer(
    request: HttpRequest, here: str, rows: Any, context: dict[str, Any], of: dict[str, Any]
) -> HttpResponse:
    if request.method == "POST":
        try:
            if site_user(request) is None and not settings.EMBEDDED:
                raise Forbidden("a preview wants a login")
            if "cancel" in request.POST:
                for asked in rows.filter(state__in=Upgrade.OPEN):
                    services.cancel_upgrade(upgrade=asked)
            else:
                services.request_upgrade(name=request.POST.get("release", ""), gates=_gates(request), **of)
        except ClusterError as error:
            messages.error(request, error.message)
        return redirect(here)
    newest = rows.order_by("-pk").first()
    context |= {"upgrade": newest, "here": here, "releases": release_names()}
    if newest is not None:
        context["is_open"] = newest.state in Upgrade.OPEN
        context |= {"before": title_of(newest.before), "after": title_of(newest.after)}
        found = upgrade_result(newest)
        if found is not None:
            counts = found["counts"]
            context |= {
                "found": found,
                "figures": [(words, counts[kind]) for kind, words in FIGURES],
                "causes": [_shown(cause) for cause in found["causes"]],
            }
    if request.htmx and not context.get("is_open"):
        # Who waited gets the whole answer.
        response = HttpResponse(status=STOP_POLLING)
        response["HX-Refresh"] = "true"
        return response
    template = "scenarios/upgrade_wait.html" if request.htmx else "scenarios/upgrade.html"
    return render(request, template, context)


def _shown(cause: Mapping[str, Any]) -> dict[str, Any]:
    words = dict(FIGURES)
    differences = [{**one, "how": words[one["kind"]].lower()} for one in cause["differences"][:SHOWN]]
    return {**cause, "differences": differences}


def _gates(request: HttpRequest) -> dict[str, bool]:
    """Gates as the release page posts them: `gate:NAME` is on or off, empty leaves it at its default."""
    return {
        name.removeprefix("gate:"): value == "on"
        for name, value in request.POST.items()
        if name.startswith("gate:") and value in ("on", "off")
    }
