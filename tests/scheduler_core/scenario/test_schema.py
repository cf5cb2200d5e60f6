"""The published JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import scheduler_core.scenario
from scheduler_core.objects import short
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario.form import _PARTS, SCHEMA, part_of
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.load import schema_text
from scheduler_core.scenario.run import run as run_scenario
from scheduler_core.scenario.types import Scenario
from tests.scheduler_core.scenario.builders import document, make_scenario

PUBLISHED = Path(scheduler_core.scenario.__file__).parent / "scenario.schema.json"


def test_every_property_of_the_schema_is_a_field_of_its_part() -> None:
    parts = {name: part for name, part in SCHEMA["$defs"].items() if not name.startswith("Short")}
    assert {name: set(_PARTS[name].fields) for name in parts} == {
        name: set(part["properties"]) for name, part in parts.items()
    }
    written_otherwise = {"apiVersion", "kind", "emulates", *short.FIELDS}
    assert set(part_of(Scenario).fields) == set(SCHEMA["properties"]) - written_otherwise
    for name, part in (("nodes", "ShortNode"), ("pods", "ShortPod")):
        assert set(short.FIELDS[name]) == set(SCHEMA["$defs"][part]["properties"])


def test_the_metrics_of_the_schema_are_the_figures_of_a_run() -> None:
    metric = SCHEMA["$defs"]["Expectation"]["properties"]["metric"]
    assert set(metric["enum"]) == set(run_scenario(make_scenario()).metrics())


def test_the_command_prints_the_published_file() -> None:
    assert PUBLISHED.read_text() == schema_text()


@pytest.mark.parametrize("name", ORDER)
def test_gallery_scenarios_satisfy_the_schema(name: str) -> None:
    jsonschema.validate(load_documents(gallery_text(name))[0].value, json.loads(PUBLISHED.read_text()))


def test_the_schema_refuses_what_the_loader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    for wrong in ({"stepz": []}, {"steps": [{"run": "idel"}]}, {"seed": -1}, {"expect": [{"pod": "a/b/c"}]}):
        assert not validator.is_valid({**document(), **wrong})
    assert validator.is_valid(document())
