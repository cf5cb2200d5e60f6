"""What a page draws of a moment of a large cluster: its nodes and the heads of the lanes need no pod by pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from playground.engine.columns import with_uses

MOST_CARDS: Final = 200
"""Nodes up to which each is drawn with its pods."""
LANE_ITEMS: Final = 6
"""Pods of a lane that are named."""


def brief_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state (`engine.moments`) without its pods.

    Returns
    -------
    dict
        ``nodes`` with what bound and reserved pods request (`columns.with_uses`), ``queue`` (lane ->
        ``count`` and the first ``items``, each with its ``priority_class``), ``n_pods``, ``classes``, ``clock_ns``.
    """
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
        "nodes": with_uses(state["nodes"], state["pods"]),
        "queue": heads,
        "n_pods": len(state["pods"]),
        "classes": state["classes"],
        "clock_ns": state["clock_ns"],
    }
