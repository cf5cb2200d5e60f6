"""The tables kubectl prints, of every kind: as recorded, and those of a name alone."""

import doctest
import json
from pathlib import Path

import pytest
import yaml

from playground.clusters import kinds
from playground.clusters.kinds import Kind
from playground.kube_api import cells
from playground.kube_api.tables import table

DATA = Path(__file__).parent / "data"
OBJECTS = yaml.safe_load((DATA / "printed_objects.yaml").read_text())
RECORDED = json.loads((DATA / "printed_tables.json").read_text())
NOW_NS = 1_768_000_000_000_000_000
KINDS = {kind.row_kind: kind for kind in kinds.KINDS}


def _kind(name: str) -> Kind:
    found = KINDS.get(name) or kinds.by_resource("v1", "componentstatuses")
    assert found is not None and found.row_kind == name
    return found


def test_every_kind_is_recorded() -> None:
    assert set(RECORDED) == {*KINDS, "ComponentStatus"} >= set(OBJECTS)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_kind_prints_its_recorded_columns(name: str) -> None:
    """The first row is of an object with nothing but a name."""
    kind = _kind(name)
    objects = [{"metadata": {"name": "bare"}}, *OBJECTS.get(name, ())]
    made = table(
        kind, [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in objects], NOW_NS
    )
    columns = [
        " ".join([each["name"], each["type"], each["format"], str(each["priority"])])
        for each in made["columnDefinitions"]
    ]
    assert columns == RECORDED[name]["columns"]
    assert [row["cells"] for row in made["rows"]] == RECORDED[name]["rows"]


def test_ages_are_written_as_kubectl_writes_them() -> None:
    assert doctest.testmod(cells).attempted and not doctest.testmod(cells).failed
