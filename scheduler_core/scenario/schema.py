"""The published JSON Schema of the format; `scenario.schema.json` is this, and a test keeps them equal.

Write it anew with `python -m scheduler_core replay --schema > scheduler_core/scenario/scenario.schema.json`.
"""

from __future__ import annotations

import json
from typing import Any

from scheduler_core.scenario.form import part_of, schema_of
from scheduler_core.scenario.types import API_VERSION, KIND, MAX_OBJECTS, MAX_STEPS, Scenario


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    definitions: dict[str, Any] = {}
    schema_of(part_of(Scenario), definitions)
    whole = definitions.pop("Scenario")
    properties = {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}, **whole["properties"]}
    properties["emulates"] = {
        "type": "string",
        "deprecated": True,
        "description": "What kubernetesRelease was called before there was more than one.",
    }
    properties["simulation"] = {
        "type": "integer",
        "deprecated": True,
        "description": "Read and ignored: how much acted around the scheduler, of which everything does now.",
    }
    for name, limit in (("objects", MAX_OBJECTS), ("steps", MAX_STEPS)):
        properties[name] = {**properties[name], "maxItems": limit}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://{API_VERSION}/{KIND}.json",
        "title": "A scheduling scenario",
        **whole,
        "required": ["apiVersion", "kind"],
        "properties": properties,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """As the published file holds it."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
