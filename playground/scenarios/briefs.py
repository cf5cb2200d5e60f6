"""What a page draws of a moment of a large cluster: a heat map and the heads of the lanes need no pod by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from playground.engine.columns import FINISHED

MOST_CARDS: Final = 200
"""Nodes up to which each is drawn with its pods."""
LANE_ITEMS: Final = 6
"""Pods of a lane that are named."""
_OF_A_NODE: Final = ("name", "zone", "unschedulable", "ready", "cpu_milli")


def brief_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state (`engine.moments`) without its pods.

    Returns
    -------
    dict
        ``nodes`` with ``used_cpu_milli`` (what bound and reserved pods request), ``queue`` (lane -> ``count`` and the
        first ``items``, each with its ``priority_class``), ``n_pods``, ``classes``, ``clock_ns``.
    """
    used: Counter[str] = Counter()
    for pod in state["pods"]:
        node = pod["node_name"] or pod.get("reserved")
        if node and pod["phase"] not in FINISHED:
            used[node] += pod["cpu_milli"]
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
            {key: node[key] for key in _OF_A_NODE} | {"used_cpu_milli": used[node["name"]]}
            for node in state["nodes"]
        ],
        "queue": heads,
        "n_pods": len(state["pods"]),
        "classes": state["classes"],
        "clock_ns": state["clock_ns"],
    }
