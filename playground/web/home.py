"""Everything a person may be looking for, by a few words: pages, actions, nodes, pods, workloads, cycles, clusters."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.defaults import server_error

from playground.clusters.board.nodes import node_uses
from playground.clusters.board.overview import ClusterFigures, figures_of
from playground.clusters.board.pods import owners_named, pods_named
from playground.clusters.demo import create_demo
from playground.clusters.errors import NotFound
from playground.clusters.history.cycles import get_cycle
from playground.clusters.row_types import Cluster
from playground.clusters.trouble import cause_of
from playground.engine.releases import engine_readme, known_differences
from playground.web.board.nodes import matching
from playground.web.clusters.present import DUMP_LINE
from playground.web.pages import PAGES
from playground.web.requests import HtmxHttpRequest, digest_of, site_user, visible_clusters
from playground.web.scenarios.gallery import GROUPS

MOST: Final = 6
"""Of each kind."""

# (words, what happens, name of the path that is posted to, fields)
ACTIONS: Final = (
    ("Step one cycle", "the first pod of activeQ", "web:run", {"until": "cycle"}),
    ("Run until idle", "cycle after cycle, over timers", "web:run", {"until": "idle"}),
    ("Auto: let the clock run", "1x", "web:clock", {"mode": "realtime"}),
    ("Pause the clock", "", "web:clock", {"mode": "paused"}),
)


@dataclass(frozen=True)
class Found:
    """One thing that was found.

    Attributes
    ----------
    icon, title, detail
        As it is drawn.
    href
        Where it leads; of an action, where it is posted to.
    fields
        What is posted; empty for a link.
    """

    icon: str
    title: str
    detail: str
    href: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundGroup:
    """Things of one kind."""

    title: str
    items: tuple[Found, ...]

    @property
    def words(self) -> str:
        """The number of things, as it is read out."""
        kind = "actions" if self.title == "Do" else self.title.lower()
        return f"{len(self.items)} {kind.removesuffix('s') if len(self.items) == 1 else kind}"


def find_in_cluster(cluster: Cluster, words: str) -> list[FoundGroup]:
    """Things in a cluster that the words name; without words its pages and actions. Four queries."""
    one = [cluster.public_id]
    actions = [
        Found("play", title, detail, reverse(path, args=one), fields)
        for title, detail, path, fields in ACTIONS
    ]
    pages, site = _pages(one), _pages([])
    if not words:
        return _groups((("Do", actions), ("Pages", pages)))
    return _groups(
        (
            ("Do", [action for action in actions if _has(action, words)]),
            ("Nodes", _nodes(cluster, words)),
            ("Pods", _pods(cluster, words)),
            ("Workloads", _workloads(cluster, words)),
            ("Cycles", _cycles(cluster, words)),
            ("Pages", [page for page in (*pages, *site) if _has(page, words)]),
        )
    )


def _pages(args: list[str]) -> list[Found]:
    """The pages of a cluster, given what its paths take, or those of the site."""
    found = []
    for page in PAGES.values():
        if page.find and page.of_site != bool(args):
            found.append(Found("file", page.find, page.about, reverse(page.route, args=args)))
    return found


def find_in_site(clusters: Iterable[Cluster], words: str) -> list[FoundGroup]:
    """Pages of the site, and those of the clusters one may see whose names have the words."""
    site = _pages([])
    found = [
        Found("pool", item.name, "cluster", reverse("web:board", args=[item.public_id])) for item in clusters
    ]
    return _groups(
        (("Clusters", found), ("Pages", [page for page in site if not words or _has(page, words)]))
    )


def _groups(parts: Iterable[tuple[str, Sequence[Found]]]) -> list[FoundGroup]:
    most = {"Pages": len(PAGES)}
    return [FoundGroup(title, tuple(items[: most.get(title, MOST)])) for title, items in parts if items]


def _has(item: Found, words: str) -> bool:
    text = f"{item.title} {item.detail}".lower()
    return all(word in text for word in words.lower().split())


def _nodes(cluster: Cluster, words: str) -> list[Found]:
    """Nodes whose names have the words first, then those whose labels have them."""
    board = reverse("web:board", args=[cluster.public_id])
    found = matching(node_uses(cluster), words)
    named = [use for use in found if all(word in use.name for word in words.lower().split())]
    others = [use for use in found if use not in named] if len(named) < MOST else []
    return [
        Found(
            "grid",
            use.name,
            f"{use.n_pods} pod{'' if use.n_pods == 1 else 's'}",
            f"{board}?{urlencode({'node': use.name})}",
        )
        for use in (*named[:MOST], *others[:MOST])
    ]


def _pods(cluster: Cluster, words: str) -> list[Found]:
    return [
        Found("dot", name, namespace, reverse("web:pod", args=[cluster.public_id, namespace, name]))
        for namespace, name in pods_named(cluster, words, limit=MOST)
    ]


def _workloads(cluster: Cluster, words: str) -> list[Found]:
    pods = reverse("web:pods", args=[cluster.public_id])
    return [
        Found(
            "pool",
            name,
            f"{kind} in {namespace}",
            f"{pods}?{urlencode({'owner': name, 'namespace': namespace})}",
        )
        for kind, namespace, name in owners_named(cluster, words, limit=MOST)
    ]


def _cycles(cluster: Cluster, words: str) -> list[Found]:
    """``12``, ``#12`` and ``cycle 12`` are the same one."""
    number = words.lower().removeprefix("cycle").strip().removeprefix("#").replace(",", "")
    if not number.isdecimal() or len(number) > 12:
        return []
    try:
        row = get_cycle(cluster, int(number))
    except NotFound:
        return []
    return [
        Found(
            "step",
            f"Cycle {row.number:,}",
            f"{row.pod_name} {row.outcome}",
            reverse("web:cycle", args=[cluster.public_id, row.number]),
        )
    ]


CARDS = 60
BRANCHES = 5
"""That a card names, the newest; the others are a word."""
# What is another on every look, and is no news: whether it is read out, and how old the clusters are.
_CHANGING = re.compile(r'data-say="[^"]*"|<time.*?</time>|\s+')
TOPICS: Final = ("preemption", "scoring", "spreading", "permit", "extenders", "queue")
"""Groups of the gallery."""


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
        context = {
            "cards_html": html,
            "have": have,
            "q": q,
            "topics": [(key, *GROUPS[key]) for key in TOPICS],
            "dump_line": DUMP_LINE,
        }
        return render(request, "home/page.html", context)
    if had == have:
        return HttpResponse(status=204)
    return HttpResponse(html + render_to_string("home/have.html", {"have": have, "htmx": True}, request))


def watch(request: HttpRequest) -> HttpResponse:
    """Create a demo, whose board shows the first steps."""
    return redirect("web:board", create_demo(owner=site_user(request)).public_id)


def about(request: HttpRequest) -> HttpResponse:
    """Say what is emulated and where it is known to differ."""
    return render(request, "about/page.html", {"differences": known_differences(engine_readme())})


def _cards(clusters: Sequence[Cluster], figures: Mapping[int, ClusterFigures]) -> list[dict[str, Any]]:
    """One card per cluster; branches are listed on the card of their parent, where that is shown."""
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
    return [_card(root, figures[root.pk], below.get(root.pk, [])) for root in roots]


def _card(cluster: Cluster, figures: ClusterFigures, branches: list[Cluster]) -> dict[str, Any]:
    """A cluster's card; `spark` are the bars of its sparkline, in percent."""
    step = 100 / len(figures.usage) if figures.usage else 100
    width = round(step * 0.82, 2)
    return {
        "cluster": cluster,
        "figures": figures,
        "spark": [
            {"x": round(i * step, 2), "y": 100 - share, "width": width, "height": share}
            for i, share in enumerate(figures.usage)
        ],
        "lowest": min(figures.usage, default=0),
        "highest": max(figures.usage, default=0),
        "branches": branches[:BRANCHES],
        "n_more": max(0, len(branches) - BRANCHES),
    }


LONGEST = 200


def find(request: HtmxHttpRequest, cluster: Cluster | None = None) -> HttpResponse:
    """Find things by words, in a cluster or where none is open; the list alone for htmx.

    Enter (``go``) leads to the first link at once, whatever the list shows by then.
    """
    words = request.GET.get("q", "").strip()[:LONGEST]
    if cluster is not None:
        groups = find_in_cluster(cluster, words)
    else:
        there = visible_clusters(request).filter(name__icontains=words).order_by("-created")
        groups = find_in_site(there[:MOST], words)
    first = groups[0].items[0] if groups else None
    if first is not None and request.GET.get("go") and not first.fields:
        return redirect(first.href)
    context = {"groups": groups, "q": words, "tab": ""}
    return render(request, "find/list.html" if request.htmx else "find/page.html", context)


def failed(request: HttpRequest) -> HttpResponse:
    """Name what is amiss with the database or its disk; of anything else only that something broke."""
    error = sys.exc_info()[1]
    if not isinstance(error, OperationalError | InterfaceError):
        return server_error(request)
    html = render_to_string("trouble.html", {"cause": cause_of(error)})
    return HttpResponse(html, status=503, headers={"Retry-After": "2"})
