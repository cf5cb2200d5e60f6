"""Expectations: what holds, what does not, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.scenario import Finding, ScenarioError, first_failing, run_scenario
from tests.scheduler_core.scenario.builders import make_budget, make_node, make_pod, make_scenario

CLUSTER = (
    make_node("small", "1", pool="general"),
    make_node("large", "4", pool="gpu"),
    make_pod("low", "4", node="large", labels={"app": "low"}),
    make_pod("web-1", "500m", labels={"app": "web"}),
    make_pod("web-2", "500m", labels={"app": "web"}),
    make_pod("high", "4", priority=100),
    make_pod("huge", "9"),
)


def findings(*expectations: dict[str, Any], objects: tuple[dict[str, Any], ...] = CLUSTER) -> list[Finding]:
    return run_scenario(make_scenario(*objects, expect=list(expectations))).findings


@pytest.mark.parametrize(
    "expectation",
    [
        {"pod": "high", "node": "large", "state": "bound", "victims": ["low"], "attempts": 2},
        {"pod": "default/high", "nodeIn": ["large", "x"], "nodeLabels": {"pool": "gpu"}},
        {"pod": "web-1", "notNodeLabels": {"pool": "gpu"}},
        {"pod": "huge", "state": "pending", "reason": "Insufficient cpu", "victims": []},
        {"pod": "low", "state": "gone"},
        {"pods": {"labels": {"app": "web"}}, "node": "small"},
        {"pods": {"namespace": "default"}, "state": "bound", "count": {"min": 3, "max": 3}},
        {"pods": {"labels": {"app": "none"}}, "state": "bound", "count": 0},
        {
            "cycle": 1,
            "of": "high",
            "outcome": "preempting",
            "node": "large",
            "victims": ["low"],
            "feasible": 0,
        },
        {"cycles": {"min": 5}},
        {"order": ["web-1", "web-2", "high"]},
        {"budgets": "respected"},
        {"metric": "pending", "count": 1},
        {"metric": "cpuUtilisation", "count": {"is": 1}},
    ],
)
def test_what_holds_is_found_to_hold(expectation: dict[str, Any]) -> None:
    assert [finding.sentence for finding in findings(expectation) if not finding.holds] == []


@pytest.mark.parametrize(
    ("expectation", "words", "cycle"),
    [
        ({"pod": "high", "node": "small"}, "default/high on small was expected, but it is on large.", None),
        ({"pod": "huge", "state": "bound"}, "to be bound was expected, but it is pending. Cycle ", None),
        ({"pod": "huge", "reason": "taint"}, 'the last thing said was "0/2 nodes', None),
        ({"pod": "high", "victims": []}, "evicted for it were default/low", None),
        ({"pod": "web-1", "nodeLabels": {"pool": "gpu"}}, "it is on small, which carries pool=general", 2),
        (
            {"pods": {"labels": {"app": "web"}}, "node": "large"},
            "default/web-1: it is on small (and 1 more)",
            2,
        ),
        ({"cycle": 1, "outcome": "bound"}, "Of cycle 1 something else was expected: it ended preempting", 1),
        ({"cycle": 1, "victims": ["web-1"]}, "its victims were default/low, not default/web-1", 1),
        ({"order": ["web-2", "web-1"]}, "web-2 was expected to get a node before default/web-1", 2),
        ({"order": ["huge", "high"]}, "default/huge never got a node.", None),
        ({"cycles": {"max": 2}}, "the number of cycles is ", None),
        ({"metric": "pending", "count": {"max": 0}}, "pending is 1, more than 0. The first pod without", 1),
    ],
)
def test_what_does_not_hold_is_told_in_words_with_its_cycle(
    expectation: dict[str, Any], words: str, cycle: int | None
) -> None:
    (finding,) = findings(expectation)
    assert not finding.holds
    assert words in finding.sentence
    if cycle is not None:
        assert finding.cycle == cycle


def test_a_violated_budget_is_found_with_its_cycle() -> None:
    guarded = make_pod("low", "4", node="n", labels={"app": "low"})
    objects = (make_node("n"), make_budget("guard", "low"), guarded, make_pod("high", "4", priority=1))
    (finding,) = findings({"budgets": "respected"}, objects=objects)
    assert (finding.holds, finding.cycle) == (False, 1)
    assert "in cycle 1 1 eviction violates one" in finding.sentence


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        ({"pod": "hihg", "state": "bound"}, 'never was a pod default/hihg; did you mean "default/high"?'),
        ({"cycle": 99, "outcome": "bound"}, "expect[0].cycle: there is no cycle 99, the run had "),
        ({"pods": {"labels": {"app": "x"}}, "state": "bound"}, "there never was one of the pods labelled app=x"),
        ({"order": ["a", "b"]}, "expect[0].order: there never was a pod default/a"),
    ],
)  # fmt: skip
def test_an_expectation_about_what_never_was_is_an_error_not_a_failure(
    expectation: dict[str, Any], said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        findings(expectation)
    assert str(caught.value).startswith("expect[0].") and said in str(caught.value)


def test_the_first_failing_expectation_is_the_one_with_the_earliest_cycle() -> None:
    found = findings({"cycles": 1}, {"pod": "web-2", "node": "large"}, {"cycle": 1, "outcome": "bound"})
    first = first_failing(found)
    assert first is not None and first.path == "expect[2]"
    assert first_failing([]) is None
