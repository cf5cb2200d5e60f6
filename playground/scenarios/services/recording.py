"""Writing down what a run decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from playground.engine.columns import with_uses
from playground.engine.scenarios import FreshRun
from playground.scenarios.models import Moment, RecordedCycle, Scenario
from playground.scenarios.services.storage import count_stored

_COLUMNS: Final = (
    "number", "at_ns", "pod_namespace", "pod_name", "pod_uid", "profile", "attempt", "outcome", "node", "message",
    "sentence", "n_nodes", "n_feasible", "n_viable", "digest", "trace",
)  # fmt: skip


def record(scenario: Scenario, run: FreshRun) -> None:
    """Keep a share's first run: every cycle, the figures, how its cluster ended. In the caller's transaction."""
    RecordedCycle.objects.bulk_create(
        [
            RecordedCycle(scenario=scenario, **{name: getattr(cycle, name) for name in _COLUMNS})
            for cycle in run.cycles
        ],
        batch_size=500,
    )
    news = {
        "state": Scenario.State.RECORDED,
        "recorded_bytes": sum(len(cycle.trace or b"") + len(cycle.sentence) for cycle in run.cycles),
        "engine_version": run.engine,
        "decisions_digest": run.decisions_digest,
        "n_cycles": len(run.cycles),
        "figures": dict(run.figures),
        "findings": [dict(finding) for finding in run.findings],
        "notes": list(run.notes),
        "stop": run.stop,
        "timeline": msgspec.to_builtins(run.timeline),
    }
    for column, value in news.items():
        setattr(scenario, column, value)
    scenario.save(update_fields=list(news))
    keep_moments(scenario=scenario, moments={len(run.cycles): run.final})
    count_stored(scenario.owner_id)


def keep_moments(*, scenario: Scenario, moments: Mapping[int, Mapping[str, Any]]) -> None:
    """Cache states of a scenario's run; twice is once."""
    Moment.objects.bulk_create(
        [moment_row(number, state, scenario=scenario) for number, state in moments.items()],
        ignore_conflicts=True,
        batch_size=200,
    )


def moment_row(number: int, state: Mapping[str, Any], **whose: Any) -> Moment:
    """An unsaved row of the state after a cycle."""
    is_large = len(state["nodes"]) > MOST_CARDS
    return Moment(cycle=number, data=state, brief=brief_of(state) if is_large else None, **whose)


# ---- what a page draws of a moment of a large cluster

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
