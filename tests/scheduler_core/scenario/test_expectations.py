"""Expectations: what holds, what does not, and the words for it."""

from typing import Any

import pytest

from scheduler_core.scenario import Finding, ScenarioError, run_scenario
from tests.scheduler_core.scenario.builders import make_budget, make_node, make_pod, make_scenario
from tests.tables import table

CLUSTER = table(__file__, "CLUSTER")


def findings(*expectations: dict[str, Any], objects: tuple[dict[str, Any], ...] = CLUSTER) -> list[Finding]:
    return run_scenario(make_scenario(*objects, expect=list(expectations))).findings


@pytest.mark.parametrize(
    "expectation",
    table(__file__, "what_holds_is_found_to_hold"),
)
def test_what_holds_is_found_to_hold(expectation: dict[str, Any]) -> None:
    assert [finding.sentence for finding in findings(expectation) if not finding.holds] == []


@pytest.mark.parametrize(
    ("expectation", "words", "cycle"),
    table(__file__, "what_does_not_hold_is_told_in_words_with_its_cycle"),
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
    ("expectation", "said"), table(__file__, "an_expectation_about_what_never_was_is_an_error_not_a_failure")
)
def test_an_expectation_about_what_never_was_is_an_error_not_a_failure(
    expectation: dict[str, Any], said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        findings(expectation)
    assert str(caught.value).startswith("expect[0].") and said in str(caught.value)
