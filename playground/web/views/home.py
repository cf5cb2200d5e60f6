"""Home: the clusters, and what this site is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.models import Cluster
from playground.clusters.selectors.home_cards import ClusterFigures, figures_of
from playground.web.access import visible_clusters
from playground.web.readme import known_differences

CARDS = 60
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


@require_safe
@vary_on_headers("HX-Request")
def home(request: HttpRequest) -> HttpResponse:
    """Every cluster as a card with live figures; the cards alone for htmx."""
    q = request.GET.get("q", "").strip()
    found = visible_clusters(request).order_by("-created")
    if q:
        found = found.filter(name__icontains=q)
    clusters = [*found[:CARDS]]
    figures = figures_of(clusters)
    cards = [_card(cluster, figures[cluster.pk]) for cluster in clusters]
    template = "home/cards.html" if request.htmx else "home/page.html"
    return render(request, template, {"cards": cards, "q": q, "topics": TOPICS})


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """Say what is emulated and where it is known to differ."""
    context: dict[str, Any] = {"differences": known_differences(_readme())}
    return render(request, "about/page.html", context)


def _readme() -> str:
    path = Path(settings.BASE_DIR) / "scheduler_core" / "README.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _card(cluster: Cluster, figures: ClusterFigures) -> Card:
    n = len(figures.usage)
    step = 100 / n if n else 100
    width = round(step * 0.82, 2)
    spark = [Spark(round(i * step, 2), 100 - share, width, share) for i, share in enumerate(figures.usage)]
    return Card(cluster, figures, spark, min(figures.usage, default=0), max(figures.usage, default=0))
