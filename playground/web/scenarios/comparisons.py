"""Runs side by side, with a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from playground.clusters import wake
from playground.clusters.board.nodes import PodUse
from playground.clusters.choices import WorkState
from playground.clusters.errors import NotFound
from playground.engine.scenarios import way_documents
from playground.scenarios import selectors
from playground.scenarios.choices import Visibility
from playground.scenarios.comparing import LETTERS
from playground.scenarios.row_types import Comparison
from playground.scenarios.services import comparing
from playground.scenarios.services.comparing import may_delete
from playground.web import amounts
from playground.web.look import pod_words
from playground.web.looks import PriorityScale, View, made_of, piece
from playground.web.requests import done, positive_int, site_user, visible_clusters
from playground.web.scenarios.shares import seen_by, visibilities_for
from scheduler_core.scenario.gallery import Way
from scheduler_core.schema.tables import table_beside

MOVED_SHOWN = 40

_FIGURES: Final[Mapping[str, tuple[str, str, int]]] = table_beside(__package__, "tables.yaml")["comparison"]
_ONLY_IF_ANY = ("gpuUtilisation", "gpuFragmentation", "budgetViolations")


def ask(request: HttpRequest) -> HttpResponse:
    """Choose two sides or more."""
    user = site_user(request)
    if request.method == "POST":
        named = {name.partition("-link")[0] for name in request.POST if (request.POST[name] or "").strip()}
        sides = [_side(request, letter) for letter in LETTERS if letter in {"a", "b"} | named]
        comparison = comparing.request_comparison(
            a=sides[0],
            b=sides[1],
            more=sides[2:],
            owner=user,
            **seen_by(request, otherwise=""),
        )
        return redirect("scenarios:compare", comparison.public_id)
    clusters = list(visible_clusters(request).order_by("-created")[:100])
    shares = selectors.my_scenarios(user) if user is not None or settings.EMBEDDED else []
    context = {
        "clusters": clusters,
        "shares": shares,
        "gallery": sorted(selectors.gallery_rows().values(), key=lambda row: row.words),
        "sides": [(letter, request.GET.get(letter, "")) for letter in LETTERS[:2]],
        "more_sides": [(letter, request.GET.get(letter, "")) for letter in LETTERS[2:]],
        "has_more": any(request.GET.get(letter) for letter in LETTERS[2:]),
        "comparisons": selectors.my_comparisons(user),
        "is_local": settings.EMBEDDED,
        "visibilities": [("", "those who see all sides now"), *visibilities_for(request)],
    }
    return render(request, "scenarios/compare_ask.html", context)


def _side(request: HttpRequest, name: str) -> dict[str, Any]:
    """The side a form names."""
    what, _, public_id = request.POST.get(name, "").strip().partition("/")
    other = request.POST.get(f"{name}-link", "").strip().rstrip("/")
    if other:
        what, public_id = "scenario", other.rpartition("/")[2].removesuffix(".yaml")
    if not public_id:
        raise NotFound("choose a cluster or a scenario for every side", kind="Cluster")
    return {"kind": what, "id": public_id, "cycle": positive_int(request.POST.get(f"{name}-cycle"))}


def page(request: HttpRequest, comparison: Comparison) -> HttpResponse:
    """Show a comparison's result."""
    found = comparison.result
    context: dict[str, Any] = {
        "comparison": comparison,
        "found": found,
        "may_delete": may_delete(comparison, site_user(request)),
        "is_local": settings.EMBEDDED,
    }
    if found is not None:
        sides = [
            {**about, "letter": about["name"], "name": about["name"].upper(), "of": side}
            for about, side in zip(found["sides"], comparison.sides, strict=True)
        ]
        if found["divergence"] is not None:
            context["divergence"] = _divergence(found["divergence"], sides)
        scale = PriorityScale([tuple(item) for item in found["classes"]])
        context |= {
            "sides": sides,
            "figures": _figures(found["figures"], sides),
            "bound": list(zip(sides, found["figures"].get("bound") or [], strict=False)),
            "binds_as_many": len(set(found["figures"].get("bound") or [])) < 2,
            "nodes": [_packed(row, scale, sides) for row in found["packing"]],
            "legend": scale.legend(),
            "moved": [
                item | {"mark": scale.mark(item["priority"], item["priorityClass"])}
                for item in found["moved"][: None if request.GET.get("all") else MOVED_SHOWN]
            ],
            "shown_all": bool(request.GET.get("all")) or found["nMoved"] <= MOVED_SHOWN,
            "swap": "&".join(
                f"{letter}={side['kind']}/{side['id']}"
                for letter, side in zip(LETTERS, (comparison.b, comparison.a, *comparison.more), strict=False)
            ),
        }
    response = render(request, "scenarios/compare.html", context)
    if comparison.visibility != Visibility.PUBLIC:
        response.headers["X-Robots-Tag"] = "noindex"
    return response


def delete(request: HttpRequest, comparison: Comparison) -> HttpResponse:
    """Delete a comparison; its link leads nowhere then, and a worker that is at it stops."""
    if request.method == "POST":
        comparing.delete_comparison(comparison=comparison, user=site_user(request))
        was_open = comparison.state == WorkState.QUEUED
        end = "cancelled." if was_open else "deleted; its link leads nowhere now."
        return done(request, f"The comparison is {end}", "scenarios:compare-ask")
    return render(request, "scenarios/compare_delete.html", {"comparison": comparison})


def _divergence(divergence: dict[str, Any], sides: list[View]) -> dict[str, Any]:
    """The first decision that differs, with a list entry a side."""
    ties = divergence["ties"]
    return divergence | {
        "said": [
            (side, did["decision"], note)
            for side, did, note in zip(sides, divergence["sides"], divergence["notes"], strict=True)
        ],
        "columns": list(zip(sides, divergence["plugins"], strict=True)),
        "table": _score_table(divergence),
        "ties_told": [(side, n_tied or 1) for side, n_tied in zip(sides, ties, strict=True)]
        if any(ties)
        else [],
    }


def _score_table(divergence: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a node: points of each plugin and the total, side by side."""
    rows = []
    for row in divergence["rows"]:
        cells: list[dict[str, Any]] = []
        for place, plugins in enumerate(divergence["plugins"]):
            points = row["points"][place] or {}
            cells += [{"value": points.get(plugin["name"])} for plugin in plugins]
            cells.append({"value": row["totals"][place], "total": True, "chosen": row["chosen"][place]})
        rows.append({"node": row["node"], "cells": cells})
    return rows


def _figures(numbers: dict[str, list[float]], sides: list[View]) -> list[View]:
    figures = []
    for name, (words, unit, better) in _FIGURES.items():
        if name not in numbers or (name in _ONLY_IF_ANY and not any(numbers[name])):
            continue
        values = [100 * number if unit else number for number in numbers[name]]
        verdict = "same" if len({round(value, 1) for value in values}) == 1 else ""
        difference = ""
        if len(values) == 2:
            change = values[1] - values[0]
            verdict = "same" if round(change, 1) == 0 else ""
            difference = _signed(change, "pt" if unit else "")
            if not verdict and better:
                verdict = "better" if change * better > 0 else "worse"
        if name == "bound" and "pods" in numbers and len(set(numbers["pods"])) == 1:
            words = f"Pods bound of {numbers['pods'][0]:.0f}"
        told = [(side, _number(value, unit)) for side, value in zip(sides, values, strict=True)]
        figures.append({"words": words, "values": told, "difference": difference, "verdict": verdict})
    return figures


def _number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if unit and abs(value) >= 10 else f"{value:,.1f}".removesuffix(".0")
    return f"{text} {unit}" if unit else text


def _signed(value: float, unit: str) -> str:
    text = _number(abs(value), unit)
    return f"+{text}" if value > 0 else f"−{text}"


def _packed(row: dict[str, Any], scale: PriorityScale, sides: list[View]) -> View:
    bars = []
    for cpu_milli, there, pods in zip(row["cpuMilli"], row["there"], row["pods"], strict=True):
        uses = [
            made_of(PodUse, pod, node=row["node"], extended={}, nominated=False, held_in="", phase="Running")
            for pod in pods
        ]
        bars.append(_bar(cpu_milli, uses, scale) if there else None)
    return {"name": row["node"], "bars": list(zip(sides, bars, strict=True))}


GPU_NODE, GPU_POD = "gpu-", "train-"
"""What nodes with GPUs and pods that use them are called in the scenarios."""


def four_ways_page(request: HttpRequest) -> HttpResponse:
    """No rule, the taint alone, the affinity alone, and both."""
    comparison = selectors.four_ways()
    found = comparison.result if comparison is not None else None
    if found is None and cache.add("scenarios:four-ways-asked", 1, 20):
        wake.send("four_ways")
    context: dict[str, Any] = {"comparison": comparison}
    if comparison is not None and found is not None:
        context["ways"] = [
            _way(way, side["id"], [_node_in_ways(row, place) for row in found["packing"]])
            for place, ((way, _), side) in enumerate(zip(way_documents(), comparison.sides, strict=True))
        ]
    return render(request, "scenarios/four_ways.html", context)


def _node_in_ways(row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """A node with its pods in one of the ways, those that should not be there marked."""
    has_gpu = row["node"].startswith(GPU_NODE)
    pods = [
        {"name": pod["name"], "uses_gpu": (uses := pod["name"].startswith(GPU_POD)), "wrong": uses != has_gpu}
        for pod in sorted(row["pods"][place], key=lambda pod: pod["name"])
    ]
    return {"name": row["node"], "has_gpu": has_gpu, "pods": pods, "wrong": any(pod["wrong"] for pod in pods)}


def _way(way: Way, share_id: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    pods = [pod for node in nodes for pod in node["pods"]]
    users, others = ([pod for pod in pods if pod["uses_gpu"] is uses] for uses in (True, False))
    groups = (("With a GPU", True), ("Without", False))
    return {
        "way": way,
        "share_id": share_id,
        "groups": [(title, [node for node in nodes if node["has_gpu"] is has]) for title, has in groups],
        "strangers": sum(pod["wrong"] for pod in others),
        "n_others": len(others),
        "astray": sum(pod["wrong"] for pod in users),
        "n_users": len(users),
        "holds": way.taint and way.affinity and not any(pod["wrong"] for pod in pods),
    }


MAX_SEGMENTS = 40


def _bar(cpu_milli: int, pods: Sequence[PodUse], scale: PriorityScale) -> View:
    """What pods request of a node's cpu; pieces below a tenth of a percent are left out."""
    segments: list[View] = []
    x = 0.0
    for pod in pods:
        width = round(100 * pod.cpu_milli / cpu_milli, 2) if cpu_milli else 0.0
        if width < 0.1 or len(segments) >= MAX_SEGMENTS:
            continue
        start, mark = min(x, 100.0), scale.mark(pod.priority, pod.priority_class)
        drawn = piece(start, min(width, round(100 - round(start, 2), 2)), room=9)
        segments.append(
            {**drawn, "mark": mark, "title": pod_words(pod, mark.title), "terminating": pod.terminating}
        )
        x += width
    used = amounts.cores(sum(pod.cpu_milli for pod in pods))
    return {"used": used, "allocatable": amounts.cores(cpu_milli), "segments": segments}
