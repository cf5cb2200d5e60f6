"""Find: one field for everything, on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from playground.web.access import get_cluster, visible_clusters
from playground.web.find import MOST, FoundGroup, find_in_cluster, find_in_site
from playground.web.htmx import HtmxHttpRequest

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

LONGEST = 200


@require_safe
@vary_on_headers("HX-Request")
def in_cluster(request: HtmxHttpRequest, cluster_id: str) -> HttpResponse:
    """What the words mean in a cluster."""
    cluster = get_cluster(request, cluster_id)
    return _answer(request, find_in_cluster(cluster, _words(request)), cluster)


@require_safe
@vary_on_headers("HX-Request")
def in_site(request: HtmxHttpRequest) -> HttpResponse:
    """What the words mean where no cluster is open."""
    words = _words(request)
    clusters = visible_clusters(request).filter(name__icontains=words).order_by("-created")[:MOST]
    return _answer(request, find_in_site(clusters, words), None)


def _words(request: HttpRequest) -> str:
    return request.GET.get("q", "").strip()[:LONGEST]


def _answer(request: HtmxHttpRequest, groups: list[FoundGroup], cluster: Cluster | None) -> HttpResponse:
    """The list alone for htmx; Enter (``go``) leads to the first link at once, whatever the list shows by then."""
    first = groups[0].items[0] if groups else None
    if first is not None and request.GET.get("go") and not first.fields:
        return redirect(first.href)
    context = {"cluster": cluster, "groups": groups, "q": _words(request), "tab": ""}
    return render(request, "find/list.html" if request.htmx else "find/page.html", context)
