"""The GPU use case, its four ways side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters import wake
from playground.engine.scenarios import Way, way_documents
from playground.scenarios import selectors
from playground.scenarios.services.comparing import result_of
from playground.scenarios.wake import FOUR_WAYS as TASK

GPU_NODE, GPU_POD = "gpu-", "train-"
"""What nodes with GPUs and pods that use them are called in the scenarios."""


@require_safe
@vary_on_headers("HX-Request")
def page(request: HttpRequest) -> HttpResponse:
    """No rule, the taint alone, the affinity alone, and both."""
    comparison = selectors.four_ways()
    found = result_of(comparison) if comparison is not None else None
    if found is None and cache.add("scenarios:four-ways-asked", 1, 20):
        wake.send(TASK)
    context: dict[str, Any] = {"comparison": comparison}
    if comparison is not None and found is not None:
        context["ways"] = [
            _way(way, side["id"], [_node(row, place) for row in found["packing"]])
            for place, (way, side) in enumerate(zip(way_documents(), comparison.sides, strict=True))
        ]
    return render(request, "scenarios/four_ways.html", context)


def _node(row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """A node with its pods in one of the ways, those that should not be there marked."""
    has_gpu = row["node"].startswith(GPU_NODE)
    pods = [
        {"name": pod["name"], "uses_gpu": (uses := pod["name"].startswith(GPU_POD)), "wrong": uses != has_gpu}
        for pod in sorted(row["pods"][place], key=lambda pod: pod["name"])
    ]
    return {"name": row["node"], "has_gpu": has_gpu, "pods": pods, "wrong": any(pod["wrong"] for pod in pods)}


def _way(way: Way, share_id: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    pods = [(node, pod) for node in nodes for pod in node["pods"]]
    strangers = sum(pod["wrong"] for _, pod in pods if not pod["uses_gpu"])
    astray = sum(pod["wrong"] for _, pod in pods if pod["uses_gpu"])
    return {
        "key": way.key,
        "title": way.title,
        "taint": way.taint,
        "affinity": way.affinity,
        "share_id": share_id,
        "groups": [
            ("With a GPU", [node for node in nodes if node["has_gpu"]]),
            ("Without", [node for node in nodes if not node["has_gpu"]]),
        ],
        "strangers": strangers,
        "n_others": sum(not pod["uses_gpu"] for _, pod in pods),
        "astray": astray,
        "n_users": sum(pod["uses_gpu"] for _, pod in pods),
        "holds": not strangers and not astray and way.taint and way.affinity,
    }
