"""What a page draws of a moment of a large cluster: its nodes and the heads of the lanes need no pod by pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final

from playground.engine.columns import FINISHED
from scheduler_core.fork import PLACE_LABELS

MOST_CARDS: Final = 200
"""Nodes up to which each is drawn with its pods."""
LANE_ITEMS: Final = 6
"""Pods of a lane that are named."""


def brief_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state (`engine.moments`) without its pods.

    Returns
    -------
    dict
        ``nodes`` with what bound and reserved pods request (``used_cpu_milli`` and the like), ``queue`` (lane ->
        ``count`` and the first ``items``, each with its ``priority_class``), ``n_pods``, ``classes``, ``clock_ns``.
    """
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in state["pods"]:
        node = pod["node_name"] or pod.get("reserved")
        if node and pod["phase"] not in FINISHED:
            sums = {"cpu": pod["cpu_milli"], "memory": pod["memory_bytes"], "pods": 1}
            used[node].update(sums | pod["extended"])
    heads = {
        lane: {"count": len(items), "items": items[:LANE_ITEMS]} for lane, items in state["queue"].items()
    }
    named = {item["pod"] for head in heads.values() for item in head["items"]}
    classes = {
        key: pod["priority_class"]
        for pod in state["pods"]
        if (key := f"{pod['namespace']}/{pod['name']}") in named
    }
    for head in heads.values():
        head["items"] = [item | {"priority_class": classes.get(item["pod"], "")} for item in head["items"]]
    return {
        "nodes": [
            node
            | {
                "labels": {key: value for key, value in node["labels"].items() if key in PLACE_LABELS},
                "used_cpu_milli": used[node["name"]]["cpu"],
                "used_memory_bytes": used[node["name"]]["memory"],
                "n_pods": used[node["name"]]["pods"],
                "used_extended": {name: used[node["name"]][name] for name in node["extended"]},
            }
            for node in state["nodes"]
        ],
        "queue": heads,
        "n_pods": len(state["pods"]),
        "classes": state["classes"],
        "clock_ns": state["clock_ns"],
    }
