"""What a run may become is known before it is run: objects, pods of controllers included, and virtual time.

Whatever a document holds, it runs or is refused with words; nothing else ever comes out.
"""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario, scenario_digest
from scheduler_core.scenario.bounds import RunBounds
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.redact import redact
from tests.manifests import make_object, node, pod, scenario
from tests.tables import table

SMALL = RunBounds(objects=20)
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
OF_A_JOB = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def workload(kind: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    selector = {"a": "b"} if kind == "ReplicationController" else {"matchLabels": {"a": "b"}}
    own = {"template": OF_A_JOB} if kind == "Job" else {"selector": selector, "template": TEMPLATE}
    return make_object(version, kind, name, namespace="default", spec=spec | own)


def document(*objects: dict[str, Any], steps: list[Any] | None = None) -> dict[str, Any]:
    return scenario(objects=list(objects), steps=steps or [{"run": "idle"}])


def problem(document: dict[str, Any], bounds: RunBounds = SMALL) -> tuple[str, str]:
    with pytest.raises(ScenarioError) as raised:
        load_scenario(document, bounds=bounds)
    (found,) = raised.value.problems
    return found.path, found.reason


@pytest.mark.parametrize(
    ("kind", "spec", "field"), table(__file__, "what_a_controller_will_make_counts_as_objects")
)
def test_what_a_controller_will_make_counts_as_objects(kind: str, spec: dict[str, Any], field: str) -> None:
    path, reason = problem(document(node("n1"), workload(kind, **spec)))
    assert path == f"objects[1].{field}"
    count = max(value for value in spec.values())
    assert f"{kind} web asks for {count:,} pods" in reason and "at most 20 objects" in reason


@pytest.mark.parametrize(("step", "path"), table(__file__, "a_step_that_scales_is_refused_at_the_step"))
def test_a_step_that_scales_is_refused_at_the_step(step: dict[str, Any], path: str) -> None:
    scaled = document(workload("Deployment", replicas=2), steps=[{"run": "idle"}, step])
    assert problem(scaled)[0] == path


def test_what_was_deleted_or_scaled_down_before_counts_no_more() -> None:
    first, second = workload("Deployment", "a", replicas=15), workload("Deployment", "b", replicas=15)
    gone = {"delete": {"kind": "Deployment", "name": "a"}}
    load_scenario(document(first, steps=[gone, {"apply": [second]}]), bounds=SMALL)
    down = {"patch": {"kind": "Deployment", "name": "a", "patch": {"spec": {"replicas": 1}}}}
    load_scenario(document(first, steps=[down, {"apply": [second]}]), bounds=SMALL)


@pytest.mark.parametrize(
    ("steps", "path"), table(__file__, "virtual_time_has_one_cap_for_all_steps_together")
)
def test_virtual_time_has_one_cap_for_all_steps_together(steps: list[Any], path: str) -> None:
    found, reason = problem(document(node("n1"), pod("p"), steps=steps))
    assert found == path and "at most 8,784 h (366 days)" in reason


def test_time_that_a_run_takes_by_itself_is_held_to_the_cap() -> None:
    # A pod that ends lets time pass in `run: idle`; what a step then adds is over the cap, which the text does not say.
    short = RunBounds(virtual_ns=60 * 10**9)
    waits = load_scenario(document(node("n1"), pod("p", cpu="100"), steps=[{"advance": "50s"}]), bounds=short)
    assert run_scenario(waits, bounds=short).cycles
    with pytest.raises(ScenarioError, match=r"steps\[0\]\.advance: makes .* of virtual time"):
        run_scenario(waits, bounds=RunBounds(virtual_ns=40 * 10**9))


DOCUMENTS = [load_documents(gallery_text(name))[0].value for name in ORDER]
JUNK = st.sampled_from(table(__file__, "JUNK"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


@st.composite
def broken_documents(draw: st.DrawFn) -> dict[str, Any]:
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(places(document))))
        parent = document
        for step in path[:-1]:
            parent = parent[step]
        if draw(st.booleans()):
            parent[path[-1]] = copy.deepcopy(draw(JUNK))
        else:
            del parent[path[-1]]
        if not document:
            break
    return document


@settings(max_examples=60)
@given(broken_documents())
def test_a_broken_scenario_runs_or_is_refused_in_words(document: dict[str, Any]) -> None:
    try:
        loaded = load_scenario(document)
    except ScenarioError as error:
        assert all(problem.reason for problem in error.problems)
        return
    scenario_digest(loaded)
    redact(loaded)
    try:
        run_scenario(loaded, max_cycles=2_000).metrics()
    except ScenarioError as error:
        assert all(problem.reason for problem in error.problems)
