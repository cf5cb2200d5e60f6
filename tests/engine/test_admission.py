"""Posted text to admitted objects: every kind of bad input is an error with a place, never a crash."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.clusters.errors import InvalidManifest
from playground.engine import columns
from playground.engine.admission import admit
from scheduler_core.objects.defaults import PriorityClasses
from scheduler_core.objects.reading import from_objects, read_posted
from scheduler_core.schema.tables import table_of
from tests.manifests import make_object
from tests.tables import table

POD = table_of((Path(__file__).parent / "data" / "pod.yaml").read_text())
NODE: dict[str, Any] = table(__file__, "NODE")
DEPLOYMENT: dict[str, Any] = table(__file__, "DEPLOYMENT")
BUDGET: dict[str, Any] = table(__file__, "BUDGET")
PRIORITY_CLASS: dict[str, Any] = table(__file__, "PRIORITY_CLASS")
CLAIM: dict[str, Any] = table(__file__, "CLAIM")
COLUMNS = {
    "Pod": columns.pod_columns,
    "Node": columns.node_columns,
    "PodDisruptionBudget": columns.budget_columns,
    "PriorityClass": columns.priority_class_columns,
}


def admitted(manifest: dict[str, Any]) -> dict[str, Any]:
    return admit(from_objects([manifest])[0], PriorityClasses())


def problem_of(text: str) -> InvalidManifest:
    with pytest.raises(InvalidManifest) as caught:
        for posted in read_posted(text):
            admit(posted, PriorityClasses())
    return caught.value


@pytest.mark.parametrize(
    "manifest", [POD, NODE, DEPLOYMENT, BUDGET, PRIORITY_CLASS, CLAIM], ids=lambda item: item["kind"]
)
def test_whole_objects_pass_and_passing_twice_changes_nothing(manifest: dict[str, Any]) -> None:
    once = admitted(manifest)
    assert admitted(once) == once
    COLUMNS.get(manifest["kind"], dict)(once)


def test_a_bad_quantity_is_named_with_document_line_path_and_value() -> None:
    text = table(__file__, "a_bad_quantity_is_named_with_document_line_path_and_value")
    problem = problem_of(text)
    assert (problem.document, problem.line, problem.value) == (1, 13, "1x")
    assert problem.path == "spec.containers[0].resources.requests.cpu"
    words = 'Invalid value: "1x": quantities must match the regular expression '
    assert str(problem).startswith(f"spec.containers[0].resources.requests.cpu: {words}")
    assert (problem.kind, problem.name) == ("Pod", "web")


def test_a_member_of_a_list_is_named_by_its_position() -> None:
    text = table(__file__, "a_member_of_a_list_is_named_by_its_position")
    problem = problem_of(text)
    assert (problem.path, problem.line) == ("items[1].status.allocatable.cpu", 9)
    assert "must be greater than or equal to 0" in str(problem)


def test_members_of_a_typed_list_need_not_say_what_they_are() -> None:
    posted = read_posted('{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}')
    assert [(item.kind, item.name) for item in posted] == [("Node", "n1")]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    table(__file__, "what_an_api_server_refuses_is_refused"),
)
def test_what_an_api_server_refuses_is_refused(path: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidManifest, match=words):
        admitted(_changed(POD, path.split("."), value))


def _changed(manifest: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(manifest)
    at: Any = result
    for part in path[:-1]:
        at = at[int(part) if isinstance(at, list) else part]
    at[int(path[-1]) if isinstance(at, list) else path[-1]] = value
    return result


def _paths(value: Any, path: tuple[str, ...] = ()) -> list[list[str]]:
    found: list[list[str]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if path or key not in ("apiVersion", "kind"):
                found += [[*path, key], *_paths(item, (*path, key))]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += [[*path, str(index)], *_paths(item, (*path, str(index)))]
    return found


VALUES: list[Any] = table(__file__, "VALUES")
VALUES += [{}, {"x": 1}, {"x": None}, {"": ""}, [{}], [{"x": []}], {"key": "a", "operator": "In"}]
ANYTHING = st.sampled_from(VALUES)


@pytest.mark.parametrize(
    "manifest", [POD, NODE, DEPLOYMENT, BUDGET, PRIORITY_CLASS, CLAIM], ids=lambda item: item["kind"]
)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_field_of_any_type_is_taken_or_refused_and_never_crashes(
    manifest: dict[str, Any], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(_paths(manifest)))
    changed = _changed(manifest, path, data.draw(ANYTHING))
    try:
        result = admitted(changed)
    except InvalidManifest as problem:
        assert problem.path or problem.words
        return
    COLUMNS.get(manifest["kind"], dict)(result)


@pytest.mark.parametrize(
    ("pod_level", "containers", "path", "words"),
    table(__file__, "what_a_pod_requests_as_a_whole_must_cover_its_containers"),
)  # fmt: skip
def test_what_a_pod_requests_as_a_whole_must_cover_its_containers(
    pod_level: dict[str, Any], containers: list[dict[str, Any]], path: str, words: str
) -> None:
    items = [{"name": f"c{index}", "resources": item} for index, item in enumerate(containers)]
    manifest = make_object("v1", "Pod", "p", spec={"resources": pod_level, "containers": items})
    [posted] = from_objects([manifest])
    with pytest.raises(InvalidManifest) as caught:
        admit(posted, PriorityClasses())
    assert (caught.value.path, caught.value.words.endswith(words)) == (path, True), caught.value


LABELLED = table(__file__, "LABELLED")


def test_a_bad_label_is_shown_at_its_own_line_whether_its_key_or_its_value_is_wrong() -> None:
    """Kubernetes names the map alone."""
    [posted] = read_posted(LABELLED)
    with pytest.raises(InvalidManifest) as caught:
        admit(posted, PriorityClasses())
    found = [caught.value, *caught.value.causes]
    assert [(one.path, one.value, one.line) for one in found] == [
        ("metadata.labels", "bad key", 8),
        ("metadata.labels", "bad value", 7),
    ]
