"""Two runs side by side, under a link of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError, Forbidden, NotFound
from playground.clusters.selectors.board_nodes import PodUse
from playground.scenarios import selectors, services
from playground.scenarios import wake as tasks
from playground.scenarios.models import Comparison, Visibility
from playground.scenarios.services.comparing import may_delete, result_of
from playground.web.access import visible_clusters
from playground.web.bars import Bar, bar
from playground.web.numbers import positive_int
from playground.web.priorities import PriorityScale
from playground.web.scenarios.nudge import nudge
from playground.web.scenarios.sharing import expiry_of, seen_by, site_user, visibilities_for, wants_login

MOVED_SHOWN = 40

# name -> (words, unit, which way is better: 1 more, -1 less, 0 neither)
_FIGURES = {
    "bound": ("Pods bound", "", 1),
    "pending": ("Pods without a node", "", -1),
    "preemptions": ("Preemptions", "", -1),
    "budgetViolations": ("Budget violations", "", -1),
    "cpuUtilisation": ("cpu requested", "%", 0),
    "memoryUtilisation": ("Memory requested", "%", 0),
    "gpuUtilisation": ("gpu requested", "%", 0),
    "cpuImbalance": ("cpu imbalance", "pt", 0),
    "memoryImbalance": ("Memory imbalance", "pt", 0),
    "cpuFragmentation": ("cpu fragmentation", "%", -1),
    "memoryFragmentation": ("Memory fragmentation", "%", -1),
    "gpuFragmentation": ("gpu fragmentation", "%", -1),
    "nodesUsed": ("Nodes with a pod", "%", 0),
    "largestShare": ("Pods on the fullest node", "%", 0),
    "cycles": ("Cycles", "", 0),
}
_ONLY_IF_ANY = ("gpuUtilisation", "gpuFragmentation", "budgetViolations")


@dataclass(frozen=True)
class Figure:
    """One number of both sides."""

    words: str
    a: str
    b: str
    difference: str
    verdict: str


@dataclass(frozen=True)
class PackedNode:
    """One node on both sides."""

    name: str
    a: Bar | None
    b: Bar | None


@wants_login
@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest) -> HttpResponse:
    """Choose two sides."""
    user = site_user(request)
    if request.method == "POST":
        if user is None and not settings.EMBEDDED:
            raise Http404("Comparing wants a login.")
        try:
            sides = [_side(request, name) for name in ("a", "b")]
            comparison = services.request_comparison(
                a=sides[0],
                b=sides[1],
                owner=user,
                **seen_by(request, otherwise=""),
                expires=expiry_of(request.POST.get("days", "")),
            )
        except ClusterError as error:
            messages.error(request, error.message)
            return redirect("scenarios:compare-ask")
        return redirect("scenarios:compare", comparison.public_id)
    clusters = list(visible_clusters(request).order_by("-created")[:100])
    shares = selectors.my_scenarios(user) if user is not None or settings.EMBEDDED else []
    context = {
        "clusters": clusters,
        "shares": shares,
        "gallery": sorted(selectors.gallery_rows().values(), key=lambda row: row.words),
        "a": request.GET.get("a", ""),
        "b": request.GET.get("b", ""),
        "comparisons": selectors.my_comparisons(user),
        "is_local": settings.EMBEDDED,
        "visibilities": [("", "those who see both sides now"), *visibilities_for(request)],
    }
    return render(request, "scenarios/compare_ask.html", context)


def _side(request: HttpRequest, name: str) -> dict[str, Any]:
    """The side a form names, as far as whoever asks may see it."""
    what, _, public_id = request.POST.get(name, "").strip().partition("/")
    other = request.POST.get(f"{name}-link", "").strip().rstrip("/")
    if other:
        what, public_id = "scenario", other.rpartition("/")[2].removesuffix(".yaml")
    if what == "cluster":
        if not visible_clusters(request).filter(public_id=public_id).exists():
            raise NotFound("choose a cluster or a scenario for both sides", kind="Cluster")
    else:
        selectors.get_scenario(public_id, request.user)
    return {"kind": what, "id": public_id, "cycle": positive_int(request.POST.get(f"{name}-cycle"))}


@require_safe
@vary_on_headers("HX-Request")
def page(request: HttpRequest, comparison_id: str) -> HttpResponse:
    """What was found."""
    comparison = _get(request, comparison_id)
    nudge(comparison, tasks.COMPARE, comparison_id=comparison.pk)
    found = result_of(comparison)
    context: dict[str, Any] = {
        "comparison": comparison,
        "found": found,
        "may_delete": may_delete(comparison, site_user(request)),
        "is_local": settings.EMBEDDED,
    }
    if found is not None:
        if found["divergence"] is not None:
            found["divergence"]["table"] = _score_table(found["divergence"])
        scale = PriorityScale([tuple(item) for item in found["classes"]])
        context |= {
            "figures": _figures(found["figures"]),
            "headline": _headline(found),
            "nodes": [_packed(row, scale) for row in found["packing"]],
            "legend": scale.legend(),
            "moved": [
                item | {"mark": scale.mark(item["priority"], item["priorityClass"])}
                for item in found["moved"][: None if request.GET.get("all") else MOVED_SHOWN]
            ],
            "shown_all": bool(request.GET.get("all")) or found["nMoved"] <= MOVED_SHOWN,
            "swap": f"a={_ref(comparison.b)}&b={_ref(comparison.a)}",
        }
    response = render(request, "scenarios/compare.html", context)
    if comparison.visibility != Visibility.PUBLIC:
        response.headers["X-Robots-Tag"] = "noindex"
    return response


@wants_login
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, comparison_id: str) -> HttpResponse:
    """Delete a comparison; its link leads nowhere then."""
    comparison = _get(request, comparison_id)
    if request.method == "POST":
        try:
            services.delete_comparison(comparison=comparison, user=site_user(request))
        except Forbidden as error:
            raise PermissionDenied(error.message) from None
        messages.success(request, "The comparison is deleted; its link leads nowhere now.")
        return redirect("scenarios:compare-ask")
    return render(request, "scenarios/compare_delete.html", {"comparison": comparison})


def _get(request: HttpRequest, comparison_id: str) -> Comparison:
    """The comparison, or 404: what was deleted, has expired or is another's looks the same."""
    try:
        return selectors.get_comparison(comparison_id, request.user)
    except NotFound as error:
        raise Http404(error.message) from None


def _score_table(divergence: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a node: points of each plugin and the total, of A and then of B."""
    rows = []
    for row in divergence["rows"]:
        cells: list[dict[str, Any]] = []
        for place, plugins in enumerate(divergence["plugins"]):
            points = row["points"][place] or {}
            cells += [{"value": points.get(plugin["name"], "")} for plugin in plugins]
            total = row["totals"][place]
            cells.append(
                {"value": "" if total is None else total, "total": True, "chosen": row["chosen"][place]}
            )
        rows.append({"node": row["node"], "cells": cells})
    return rows


def _ref(side: dict[str, Any]) -> str:
    return f"{side['kind']}/{side['id']}"


def _figures(numbers: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for name, (words, unit, better) in _FIGURES.items():
        if name not in numbers or (name in _ONLY_IF_ANY and not any(numbers[name])):
            continue
        a, b = (100 * number if unit else number for number in numbers[name])
        difference = b - a
        verdict = "same" if round(difference, 1) == 0 else ""
        if not verdict and better:
            verdict = "better" if difference * better > 0 else "worse"
        if name == "bound" and "pods" in numbers and numbers["pods"][0] == numbers["pods"][1]:
            words = f"Pods bound of {numbers['pods'][0]:.0f}"
        figures.append(
            Figure(
                words, _number(a, unit), _number(b, unit), _signed(difference, "pt" if unit else ""), verdict
            )
        )
    return figures


def _number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if unit and abs(value) >= 10 else f"{value:,.1f}".removesuffix(".0")
    return f"{text} {unit}" if unit else text


def _signed(value: float, unit: str) -> str:
    text = _number(abs(value), unit)
    return f"+{text}" if value > 0 else f"−{text}"


def _headline(found: dict[str, Any]) -> tuple[str, str, str]:
    """What matters most, in one sentence with one part to stress."""
    bound = found["figures"].get("bound", [0, 0])
    a, b = (side["words"] for side in found["sides"])
    difference = round(bound[1] - bound[0])
    if found["divergence"] is None:
        return ("Both make ", "the same decisions", f", all {found['nSame']} of them.")
    if difference:
        more = "more" if difference > 0 else "fewer"
        n = abs(difference)
        pods = "pod" if n == 1 else "pods"
        return (
            f"B, {b}, binds ",
            f"{n} {more} {pods}",
            f": {bound[1]:.0f}, against {bound[0]:.0f} of A, {a}.",
        )
    if found["nMoved"]:
        n = found["nMoved"]
        return ("As many pods are bound, but ", f"{n} of them {'is' if n == 1 else 'are'} elsewhere", ".")
    return ("The decisions differ, and yet ", "every pod ends in the same place", ".")


def _packed(row: dict[str, Any], scale: PriorityScale) -> PackedNode:
    bars = []
    for cpu_milli, there, pods in zip(row["cpuMilli"], row["there"], row["pods"], strict=True):
        uses = [
            PodUse(
                namespace=pod["namespace"],
                name=pod["name"],
                node=row["node"],
                priority=pod["priority"],
                priority_class=pod["priority_class"],
                cpu_milli=pod["cpu_milli"],
                memory_bytes=pod["memory_bytes"],
                extended={},
                terminating=pod["terminating"],
                nominated=False,
                reserved=False,
                phase="Running",
            )
            for pod in pods
        ]
        used = sum(use.cpu_milli for use in uses)
        bars.append(bar("cpu", cpu_milli, used, uses, scale) if there else None)
    return PackedNode(row["node"], bars[0], bars[1])
