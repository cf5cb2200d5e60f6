"""Rows as this API writes them: `openapi.yaml` says which fields a shape has, and which attribute each is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from playground.api.documentation import declared
from playground.clusters.clock import virtual_now_ns
from playground.clusters.drive.extender_calls import matched
from playground.clusters.history.story import PodStory
from playground.clusters.row_types import Cluster, ControllerRecord, Cycle, ExtenderCall, Run
from playground.clusters.trouble import why_run_waits
from playground.scenarios.row_types import RecordedCycle, Scenario
from scheduler_core.objects.fields import format_seconds, format_time_ns
from scheduler_core.sim.outlook import reason_words

_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
_PLAIN: Final = (str, int, float, Mapping, type(None))


def shown(shape: str, row: Any, **said: Any) -> dict[str, Any]:
    """A row in a shape of `openapi.yaml`; `said` are the fields that are no attribute of it.

    A field is the attribute of its name in snake_case, or what `from` leads to by attributes and keys. Nanoseconds
    become a moment, a number in a field of text a text, an empty text null where the field may be null, a row the shape
    of the field.
    """
    made, schema = {}, declared()["schemas"][shape]
    for name, field in schema["properties"].items():
        if name in said:
            made[name] = said[name]
        elif name not in schema.get("optional", ()):
            source = field.get("from") or _WORD.sub("_", name).lower()
            value = row
            for step in source.split("."):
                if value is not None:
                    value = value.get(step) if isinstance(value, Mapping) else getattr(value, step)
            made[name] = _shown(value, field, is_ns=source.endswith("_ns"))
    return made


def _shown(value: Any, field: Mapping[str, Any], *, is_ns: bool = False) -> Any:
    of = next((part["$ref"] for part in (field, *field.get("oneOf", ())) if "$ref" in part), None)
    if of and not isinstance(value, _PLAIN):
        return shown(of, value)
    if isinstance(value, list | tuple):
        return [_shown(one, field.get("items", {})) for one in value]
    if "string" not in field.get("type", ()):
        return value
    if is_ns and value is not None:
        return format_time_ns(value) if "format" in field else format_seconds(value)
    if not value and "null" in field["type"]:
        return None
    return str(value) if isinstance(value, int) else value


def cluster(row: Cluster) -> dict[str, Any]:
    """A cluster with its counts (`clusters.board.overview`)."""
    at = row.public_id
    where = {"url": f"/api/v1/clusters/{at}/", "page": f"/c/{at}/", "kubernetes": f"/k8s/{at}"}
    return shown("Cluster", row, clock=clock(row), **where)


def clock(row: Cluster) -> dict[str, Any]:
    deadline = None
    if row.next_deadline_ns is not None:
        deadline = {"at": format_time_ns(row.next_deadline_ns), "what": row.next_deadline_what}
    now = format_time_ns(virtual_now_ns(row))
    return shown("ClockAnswer", row, now=now, nextDeadline=deadline, offered=row.clock_offer == "open")


def run(row: Run, cluster_id: str) -> dict[str, Any]:
    return shown(
        "Run",
        row,
        url=f"/api/v1/clusters/{cluster_id}/runs/{row.public_id}/",
        until=row.until if row.duration_ns is None else f"{row.duration_ns / 1e9:g}s",
        message=row.message or why_run_waits(row) or None,
    )


def cycle(row: Cycle, cluster_id: str) -> dict[str, Any]:
    return shown("CycleSummary", row, url=f"/api/v1/clusters/{cluster_id}/cycles/{row.number}/")


def recorded_cycle(row: RecordedCycle, scenario: Scenario) -> dict[str, Any]:
    """A cycle of a share, as one of a cluster."""
    where = f"/api/v1/scenarios/{scenario.public_id}/cycles/{row.number}/"
    return shown("CycleSummary", row, url=where, repeats=0, engine=scenario.engine_version)


def extender_calls(told: Sequence[Mapping[str, Any]], made: Sequence[ExtenderCall]) -> list[dict[str, Any]]:
    """The calls of a cycle's record with the time each took, then its bind calls, which were made after it."""
    found, binds = matched([(call["verb"], call["url"]) for call in told], made)
    calls = [
        {**call, "tookMs": None if wire is None else wire.took_ms}
        for call, wire in zip(told, found, strict=True)
    ]
    return calls + [
        shown(
            "ExtenderCall",
            wire,
            request=json.loads(text) if (text := wire.request_text) else None,
            answer=wire.answer_text,
            durationMs=None,
            tookMs=wire.took_ms,
            ignored=False,
        )
        for wire in binds
    ]


def controller_run(row: ControllerRecord, cluster: Cluster) -> dict[str, Any]:
    """A kept run of a controller, in words."""
    run = row.run
    acts = [
        {
            "text": str(act),
            "effect": act.effect,
            "about": list(map(str, act.about)),
            "options": list(act.facts.get("options", ())),
            "byExpander": dict(act.facts.get("byExpander", {})),
            "refused": dict(act.facts.get("refused", {})),
        }
        for act in run.did
    ]
    reasons = [
        {
            "object": name,
            "reason": str(facts.get("reason") or ""),
            "text": reason_words(facts, cluster.start_ns),
        }
        for name, facts in run.why_not.items()
    ]
    at = f"/api/v1/clusters/{cluster.public_id}/controllers/runs/{row.pk}/"
    return shown("ControllerRun", row, url=at, did=acts, whyNot=reasons)


def story(found: PodStory) -> dict[str, Any]:
    traces, pod = found.traces, found.traces.pod
    name = f"{traces.namespace}/{traces.name}"
    if pod is None:
        gone = dict.fromkeys(("phase", "node", "waitsFor"))
        return shown("Story", found, pod=name, exists=False, **gone)
    return shown("Story", found, pod=name, exists=True)
