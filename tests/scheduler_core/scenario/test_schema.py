"""The published JSON Schema.

What scheduler_core/scenario/README.md shows is true.
"""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import scheduler_core.scenario
from scheduler_core.cli.main import main
from scheduler_core.objects import short
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario.expectations import run_scenario
from scheduler_core.scenario.form import _PARTS, SCHEMA, part_of
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.load import schema_text
from scheduler_core.scenario.types import SUBJECTS, VERB_FIELDS, Scenario
from tests.scheduler_core.scenario.builders import document, make_scenario

PUBLISHED = Path(scheduler_core.scenario.__file__).parent / "scenario.schema.json"


def test_every_property_of_the_schema_is_a_field_of_its_part() -> None:
    parts = {name: part for name, part in SCHEMA["$defs"].items() if not name.startswith("Short")}
    assert {name: set(_PARTS[name].fields) for name in parts} == {
        name: set(part["properties"]) for name, part in parts.items()
    }
    written_otherwise = {"apiVersion", "kind", "emulates", "controllers", *short.FIELDS}
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


README = (Path(scheduler_core.scenario.__file__).parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_example_runs_and_says_what_the_readme_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two-nodes.yaml"
    path.write_text(blocks("yaml")[0])
    assert main(["replay", str(path), "--check"]) == 0
    printed = re.sub(r" \([^)]*\)|; decisions \w+", "", capsys.readouterr().out)
    shown = README.partition("$ python -m scheduler_core replay two-nodes.yaml --check\n")[2].partition(
        "```"
    )[0]
    assert printed == shown


def test_the_python_example_runs() -> None:
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})


def test_every_step_and_subject_is_told() -> None:
    for word in (*VERB_FIELDS, *SUBJECTS):
        assert f"`{word}" in README, word


def test_every_module_is_told() -> None:
    folder = Path(scheduler_core.scenario.__file__).parent
    for path in folder.glob("*.py"):
        if path.stem not in ("__init__", "merge"):
            assert f"`{path.stem}`" in README, path.stem
