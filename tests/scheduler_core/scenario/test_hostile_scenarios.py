"""Whatever a document holds, it runs or is refused with words; nothing else ever comes out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario, scenario_digest
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.redact import redact

DOCUMENTS = [load_documents(gallery_text(name))[0].value for name in ORDER]
JUNK = st.sampled_from(
    [
        None,
        "",
        "x",
        "-1",
        0,
        -1,
        2**70,
        1.5,
        True,
        [],
        {},
        [None],
        [[]],
        {"a": None},
        [{"a": 1}],
        "1e9999",
        "a/b/c",
    ]
)


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


@settings(max_examples=150)
@given(broken_documents())
def test_a_broken_scenario_runs_or_is_refused_in_words(document: dict[str, Any]) -> None:
    try:
        scenario = load_scenario(document)
    except ScenarioError as error:
        assert all(problem.reason for problem in error.problems)
        return
    scenario_digest(scenario)
    redact(scenario)
    try:
        run_scenario(scenario, max_cycles=2_000).metrics()
    except ScenarioError as error:
        assert all(problem.reason for problem in error.problems)
