"""What clients of REST v1 use is still there: the document of 1.0.0, without its words, beside the one of today."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.api.documentation import document
from tests.tables import table

pytestmark = pytest.mark.any_database

KEPT = Path(__file__).parent / "data" / "openapi-1.0.0.json.xz"
WORDS = frozenset(
    {"description", "summary", "example", "examples", "title", "tags", "info", "servers", "x-spec-enum-id"}
)
LOST = {place: why for why, places in table(__file__, "LOST").items() for place in places}


def facts(value: Any, path: str = "") -> Iterator[str]:
    """Every place of a document with its value; of a list of names, each name is a place."""
    if isinstance(value, dict):
        is_named = path.endswith((".properties", ".schemas", ".paths"))
        for key, item in value.items():
            if is_named or key not in WORDS:
                yield from facts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                name = item.get("$ref") or item.get("name") or item.get("type") or ""
                yield from facts(item, f"{path}[{name}]")
            else:
                yield f"{path}.{item}"
    else:
        yield f"{path} = {json.dumps(value)}"


def test_nothing_that_clients_use_is_lost() -> None:
    kept = set(facts(json.loads(lzma.decompress(KEPT.read_bytes()))))
    lost = kept - set(facts(json.loads(json.dumps(document(), default=str))))
    unlisted = {fact for fact in lost if not any(fact.startswith(place) for place in LOST)}
    assert sorted(unlisted) == []
    assert len(kept) > 5000
    # What is listed is really gone.
    assert {place for place in LOST if not any(fact.startswith(place) for fact in lost)} == set()
