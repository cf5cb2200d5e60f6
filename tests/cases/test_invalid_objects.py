"""What an API server refuses is refused at every door, in its words: `invalid-pods.yaml`, `pod-level-too-small.yaml`.

The sentences are those of pkg/apis/*/validation of Kubernetes 1.36.3.
"""

import copy
import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.clusters import kinds
from playground.clusters.models import Cluster, LogEntry
from scheduler_core import load_scenario, prepare
from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidObject
from scheduler_core.scenario import ScenarioError
from scheduler_core.schema.tables import table_of
from tests.changes import one_in
from tests.kube_api.conftest import Kube
from tests.kube_api.conftest import cluster as cluster
from tests.kube_api.conftest import kube as kube

Manifest = dict[str, Any]
DATA = Path(__file__).parent / "data"
PODS = {
    item["metadata"]["name"]: item
    for item in yaml.load_all((DATA / "invalid-pods.yaml").read_text(), yaml.CSafeLoader)
}
TOO_SMALL = table_of((DATA / "pod-level-too-small.yaml").read_text())
OF_CASES = table_of((DATA / "invalid-pods-said.yaml").read_text())


def said_by_the_library(manifest: Manifest) -> list[str]:
    try:
        prepare(copy.deepcopy(manifest))
    except InvalidObject as error:
        return [str(each) for each in error.errors] or [str(error)]
    return []


def said_by_a_scenario(manifest: Manifest) -> list[str]:
    document = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "kubernetesRelease": "1.36"}
    try:
        load_scenario({**document, "objects": [copy.deepcopy(manifest)]})
    except ScenarioError as error:
        return [str(problem).removeprefix("objects[0].") for problem in error.problems]
    return []


class CommandLine:
    """`simulate` of one file."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "objects.yaml"
        self.capsys = capsys

    def said(self, manifest: Manifest, expected: list[str]) -> list[str]:
        """Its lines, each without the place before it."""
        self.file.write_text(json.dumps(manifest))
        self.capsys.readouterr()
        status = main(["simulate", str(self.file)])
        lines = [line for line in self.capsys.readouterr().err.splitlines() if not line.startswith("note: ")]
        assert (status == 2) == bool(lines), lines
        return [next((said for said in expected if line.endswith(said)), line) for line in lines]


@pytest.fixture
def command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


class Site:
    """The doors of one cluster."""

    def __init__(self, kube: Kube, cluster: Cluster) -> None:
        self.kube, self.cluster = kube, cluster

    def said_by_k8s(self, manifest: Manifest) -> list[str]:
        kind = kinds.by_kind(manifest["kind"])
        assert kind is not None
        space = "/namespaces/default" if kind.namespaced else ""
        version = manifest["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        answer = self.kube.post(f"{root}{space}/{kind.plural}?dryRun=All", manifest)
        if answer.status_code == 201:
            return []
        status = answer.json()
        assert (status["code"], status["reason"]) == (422, "Invalid"), status
        found = [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]]
        shown = found[0] if len(found) == 1 else f"[{', '.join(dict.fromkeys(found))}]"
        assert status["message"].endswith(f" is invalid: {shown}")
        return found

    def said_by_rest(self, manifest: Manifest) -> list[str]:
        path = f"/api/v1/clusters/{self.cluster.public_id}/apply?dryRun=true"
        answer = self.kube.client.post(path, json.dumps(manifest), content_type="application/json")
        if answer.status_code == 200:
            return []
        body = answer.json()
        assert answer.status_code == 400 and body["reason"] == "Invalid", body
        return [body["detail"], *(cause["detail"] for cause in body.get("causes", ()))]

    def said_by_the_page(self, manifest: Manifest) -> list[str]:
        form = {"text": json.dumps(manifest), "action": "preview"}
        answer = self.kube.client.post(f"/c/{self.cluster.public_id}/import/", form)
        shown = html.unescape(answer.content.decode())
        problems = answer.context.get("problems") or []
        assert all(problem["message"] in shown for problem in problems)
        assert (answer.status_code == 200) == (not problems)
        return [problem["message"] for problem in problems]


@pytest.fixture
def site(kube: Kube, cluster: Cluster) -> Site:
    return Site(kube, cluster)


ROWS = [(PODS[name], said) for name, said in OF_CASES.items()]
ROWS += [(TOO_SMALL, ['spec.resources.requests[cpu]: Invalid value: "100m": must be greater than or equal to aggregate'
                      " container requests of 200m"])]  # fmt: skip
ROWS += [(row["object"], [row["said"]]) for row in table_of((DATA / "invalid-objects.yaml").read_text())]


def test_every_pod_of_the_file_has_its_row() -> None:
    assert list(OF_CASES) == list(PODS)


@pytest.mark.parametrize(
    "row",
    one_in(
        3, ROWS, "scheduler_core/validation/", "scheduler_core/schema/", name=lambda row: str(row[1])[:60]
    ),
)
def test_every_door_says_it_in_kubernetes_words(
    site: Site, command_line: CommandLine, row: tuple[Manifest, list[str]]
) -> None:
    manifest, said = row
    before = LogEntry.objects.count()
    found = said_by_the_library(manifest)
    if len(said) == 1:
        # Beside what is asked here another rule may be broken.
        assert said[0] in found
        said = found
    assert found == said
    assert said_by_a_scenario(manifest) == said
    assert command_line.said(manifest, said) == said
    assert site.said_by_k8s(manifest) == said
    assert site.said_by_rest(manifest) == said
    assert site.said_by_the_page(manifest) == said
    assert LogEntry.objects.count() == before or not said


VALUES: list[Any] = [
    None, True, 0, -1, 3, 1.5, 10**12, "", "x", "-1", "1x", "é", "a/b/c", "Exists", "1e999999999", [], [None], ["x"],
    {}, {"x": "1"}, {"key": "a", "operator": "In"},
]  # fmt: skip
GOOD = table_of((DATA / "good-objects.yaml").read_text())


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = []
    for key in keys:
        if path or key not in ("apiVersion", "kind"):
            found += [(*path, key), *_paths(value[key], (*path, key))]
    return found


@st.composite
def broken(draw: Callable[..., Any]) -> Manifest:
    """A good object, one or two fields of which hold something else."""
    manifest = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(_paths(manifest)))
        at: Any = manifest
        for key in path:
            at = at[key]
        at[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return manifest


def _is_named(manifest: Manifest) -> bool:
    """Doors name what has no kind or name, or is no object, in words of their own."""
    meta = manifest.get("metadata")
    return isinstance(meta, dict) and isinstance(meta.get("name"), str) and meta["name"] != ""


@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(manifest=broken().filter(_is_named))
def test_any_object_has_one_verdict_and_one_sentence_at_every_door(
    site: Site, command_line: CommandLine, manifest: Manifest
) -> None:
    said = said_by_the_library(manifest)
    assert said_by_a_scenario(manifest) == said
    assert command_line.said(manifest, said) == said
    assert site.said_by_rest(manifest) == said
    assert site.said_by_k8s(manifest) == said
    assert site.said_by_the_page(manifest) == said


@pytest.mark.parametrize("manifest", GOOD)
def test_what_is_right_is_taken_at_every_door(
    site: Site, command_line: CommandLine, manifest: Manifest
) -> None:
    assert said_by_the_library(manifest) == said_by_a_scenario(manifest) == []
    assert command_line.said(manifest, []) == site.said_by_k8s(manifest) == site.said_by_rest(manifest) == []
    assert site.said_by_the_page(manifest) == []
