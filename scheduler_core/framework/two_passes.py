"""The two Filter passes over nodes with nominated pods, side by side, for the reader of a cycle.

A node that pods of equal or higher priority were nominated to must pass twice: as if they ran there, and as it is.

Source: pkg/scheduler/framework/runtime/framework.go RunFilterPluginsWithNominatedPods, v1.34
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler_core.framework.attempt import Attempt
from scheduler_core.framework.failure import PluginFailure
from scheduler_core.framework.status import Status

Document = dict[str, Any]

MOST_NODES = 200
WITH, WITHOUT, BOTH = "with", "without", "both"


def two_passes(attempt: Attempt) -> Document | None:
    """What both passes said; to be called before the cluster changes.

    Returns
    -------
    dict or None
        None where no node has nominated pods that count, else `count`, the number of such nodes that were filtered,
        and `nodes`, `MOST_NODES` of them at most: {node, pods, with, without, failsIn}. pods are those nominated;
        with and without are a verdict {plugin, code, reasons}, or null for a pass that holds; failsIn is ``with``,
        ``without``, ``both`` or null. Nodes that fail in one pass alone come first.
    """
    places = attempt.nominated_places(attempt.rows)
    if not attempt.pre_filter_status.is_success or not len(places):
        return None
    rows = attempt.rows[places]
    every = np.arange(len(rows))
    try:
        world = attempt.what_if(rows)
        without, without_statuses = world.told(every, world.run_filters(every))
        beside, beside_statuses = world.told(every, world.run_filters_beside_nominated(every))
    except PluginFailure:
        # The cycle itself has ended with that error.
        return None
    snapshot = attempt.snapshot
    pods: dict[int, list[str]] = {}
    nominated = attempt.nominated_pods()
    assert nominated is not None
    indices, pod_ids, _ = nominated.counted_on(attempt.pod, rows)
    for index, pod_id in zip(indices.tolist(), pod_ids.tolist(), strict=True):
        pods.setdefault(index, []).append(snapshot.pods[pod_id].key)
    nodes: list[Document] = []
    for index, row in enumerate(rows.tolist()):
        first = _verdict(int(beside[index]), beside_statuses)
        second = _verdict(int(without[index]), without_statuses)
        fails_in = BOTH if first and second else WITH if first else WITHOUT if second else None
        nodes.append(
            {
                "node": snapshot.nodes.name(row),
                "pods": sorted(pods.get(index, ())),
                "with": first,
                "without": second,
                "failsIn": fails_in,
            }
        )
    turn: dict[str | None, int] = {WITHOUT: 0, WITH: 0, BOTH: 1, None: 2}
    nodes.sort(key=lambda node: (turn[node["failsIn"]], node["node"]))
    return {"count": len(nodes), "nodes": nodes[:MOST_NODES]}


def _verdict(index: int, statuses: list[Status]) -> Document | None:
    if index < 0:
        return None
    status = statuses[index]
    return {"plugin": status.plugin or None, "code": status.code.name, "reasons": sorted(status.reasons)}
