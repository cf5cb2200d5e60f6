"""Home: the clusters, and what this site is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.demo import create_demo
from playground.clusters.errors import ClusterError
from playground.clusters.selectors.home_cards import ClusterFigures, figures_of
from playground.web.access import visible_clusters
from playground.web.fragments import digest_of
from playground.web.htmx import HtmxHttpRequest
from playground.web.import_preview import DUMP_LINE
from playground.web.readme import known_differences

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

CARDS = 60
BRANCHES = 5
"""That a card names, the newest; the others are a word."""
# What is another on every look, and is no news: whether it is read out, and how old the clusters are.
_CHANGING = re.compile(r'data-say="[^"]*"|<time.*?</time>|\s+')
# Group of the gallery, title, words.
TOPICS = (
    (
        "filtering",
        "Filtering",
        "Which nodes are even possible: taints that keep ordinary pods off GPU nodes.",
    ),
    ("spreading", "Spreading", "Topology spread and affinity, and the surprises in both."),
    ("preemption", "Preemption", "Who has to go: disruption budgets, and every tie-break of the six."),
    ("permit", "Permit", "Chosen, and still waiting: a gang that starts together, a person who approves."),
    ("extenders", "Extenders", "A webhook has a say: vetoes, favourites, and one that times out."),
    ("queue", "Queue", "When a pod gets its turn: backoff, hints, and the five-minute flush."),
)


@dataclass(frozen=True)
class Spark:
    """One bar of a card's sparkline, in percent."""

    x: float
    y: int
    width: float
    height: int


@dataclass(frozen=True)
class Card:
    """A cluster's card."""

    cluster: Cluster
    figures: ClusterFigures
    spark: list[Spark]
    lowest: int
    highest: int
    branches: tuple[Cluster, ...] = ()
    n_more: int = 0


@require_safe
@vary_on_headers("HX-Request")
def home(request: HtmxHttpRequest) -> HttpResponse:
    """Every cluster as a card with live figures; the cards alone for htmx, 204 if they are on the page already."""
    q = request.GET.get("q", "").strip()
    found = visible_clusters(request).order_by("-created")
    if q:
        found = found.filter(name__icontains=q)
    clusters = [*found[:CARDS]]
    figures = figures_of(clusters)
    cards = _cards(clusters, figures)
    had = request.GET.get("have")
    # What a poll brings is not read out; it may be something every few seconds.
    html = render_to_string("home/cards.html", {"cards": cards, "q": q, "polled": had is not None}, request)
    have = digest_of(f"{q} {_CHANGING.sub('', html)}")
    if not request.htmx:
        context = {"cards_html": html, "have": have, "q": q, "topics": TOPICS, "dump_line": DUMP_LINE}
        return render(request, "home/page.html", context)
    if had == have:
        return HttpResponse(status=204)
    return HttpResponse(html + render_to_string("home/have.html", {"have": have, "htmx": True}, request))


@require_POST
def watch(request: HttpRequest) -> HttpResponse:
    """The first door: a fresh demo, on whose board the first steps are told."""
    owner = request.user if request.user.is_authenticated else None
    try:
        cluster = create_demo(owner=owner)
    except ClusterError as error:
        messages.error(request, error.message)
        return redirect("web:home")
    return redirect("web:board", cluster.public_id)


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """Say what is emulated and where it is known to differ."""
    context: dict[str, Any] = {"differences": known_differences(_readme())}
    return render(request, "about/page.html", context)


def _readme() -> str:
    path = Path(settings.BASE_DIR) / "scheduler_core" / "README.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _cards(clusters: Sequence[Cluster], figures: Mapping[int, ClusterFigures]) -> list[Card]:
    """A card a cluster; a branch stands below what it is a branch of, where that is among them."""
    here = {cluster.pk: cluster for cluster in clusters}
    below: dict[int, list[Cluster]] = {}
    roots = []
    for cluster in clusters:
        root = cluster
        while root.parent_id in here and root.parent_id != cluster.pk:
            root = here[root.parent_id]
        if root is cluster:
            roots.append(cluster)
        else:
            below.setdefault(root.pk, []).append(cluster)
    cards = []
    for root in roots:
        branches = below.get(root.pk, [])
        card = _card(root, figures[root.pk])
        cards.append(
            replace(card, branches=tuple(branches[:BRANCHES]), n_more=max(0, len(branches) - BRANCHES))
        )
    return cards


def _card(cluster: Cluster, figures: ClusterFigures) -> Card:
    n = len(figures.usage)
    step = 100 / n if n else 100
    width = round(step * 0.82, 2)
    spark = [Spark(round(i * step, 2), 100 - share, width, share) for i, share in enumerate(figures.usage)]
    return Card(cluster, figures, spark, min(figures.usage, default=0), max(figures.usage, default=0))
