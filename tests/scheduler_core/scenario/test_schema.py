"""The published JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import scheduler_core.scenario
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.load import json_schema, schema_text
from tests.scheduler_core.scenario.builders import document

PUBLISHED = Path(scheduler_core.scenario.__file__).parent / "scenario.schema.json"


def test_the_published_file_is_what_the_declarations_say() -> None:
    assert PUBLISHED.read_text() == schema_text(), "write it anew: python -m scheduler_core replay --schema"


@pytest.mark.parametrize("name", ORDER)
def test_gallery_scenarios_satisfy_the_schema(name: str) -> None:
    jsonschema.validate(load_documents(gallery_text(name))[0].value, json.loads(PUBLISHED.read_text()))


def test_the_schema_refuses_what_the_loader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(json_schema())
    for wrong in ({"stepz": []}, {"steps": [{"run": "idel"}]}, {"seed": -1}, {"expect": [{"pod": "a/b/c"}]}):
        assert not validator.is_valid({**document(), **wrong})
    assert validator.is_valid(document())
