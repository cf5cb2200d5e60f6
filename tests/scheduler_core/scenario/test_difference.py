"""Decisions side by side, the first pod whose outcome differs, and the sentence that says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from scheduler_core.scenario.difference import Beside, beside, compare, n_same, partings, why
from scheduler_core.scenario.run import run as run_scenario
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario


@dataclass(frozen=True)
class One:
    number: int
    pod: str
    node: str | None = ""
    outcome: str = "bound"
    message: str | None = ""


def failed(number: int, pod: str, message: str = "0/3 nodes are available") -> One:
    return One(number, pod, "", "unschedulable", message)


def told(pairs: Sequence[Beside[One]]) -> list[tuple[object, ...]]:
    return [(p.pod, p.nth, *(d and d.number for d in p.decisions), p.is_same) for p in pairs]


def test_a_pod_that_failed_alike_on_both_sides_is_no_difference_however_often_it_was_tried() -> None:
    a, b = [failed(1, "p")], [failed(1, "p"), failed(2, "p"), failed(3, "p")]
    ends = ({"p": ""}, {"p": ""})
    pairs = beside([a, b], ends)
    assert all(pair.is_same for pair in pairs) and n_same(pairs) == 3
    assert partings(pairs, ends) == []


def test_a_pod_that_was_tried_before_the_sides_parted_was_tried() -> None:
    """It still waits on one side, where its last try is what stands beside the other's."""
    ends = ({"p": ""}, {"p": "n1"})
    [pair] = partings(beside([[], [One(1, "p", "n1")]], ends, [failed(7, "p")]), ends)
    assert told([pair]) == [("p", 1, 7, 1, False)]
    [pair] = partings(beside([[], [One(1, "p", "n1")]], ends), ends)
    assert told([pair]) == [("p", 1, None, 1, False)]
    # Tried once more, it waits as before: nothing differs.
    ends = ({"p": ""}, {"p": ""})
    assert partings(beside([[], [failed(1, "p")]], ends, [failed(7, "p")]), ends) == []


def test_a_pod_that_stays_where_it_is_decided_anew_is_no_difference() -> None:
    ends = ({"p": "n1"}, {"p": "n1"})
    assert partings(beside([[], [One(1, "p", "n1")]], ends, [One(9, "p", "n1")]), ends) == []


def test_a_pod_that_is_in_one_run_only_is_not_called_untried() -> None:
    a, b = (run_scenario(make_scenario(make_node("x"), *pods)) for pods in ((), (make_pod("p"),)))
    parted = compare(a, b)
    assert parted is not None and parted.a == "There is no such pod."
    assert (parted.number, parted.cycles) == (1, (None, 1))


FILTERED = {"filter": {"n1": {"plugin": "NodeUnschedulable", "reasons": ["node(s) were unschedulable"]}}}
SCORED_A = {
    "scores": {"Fit": {"n1": 60, "n2": 40}, "Spread": {"n1": 5, "n2": 10}},
    "weights": {"Fit": 1, "Spread": 2},
    "total": {"n1": 70, "n2": 60},
}
SCORED_B = {
    **SCORED_A,
    "scores": {**SCORED_A["scores"], "Fit": {"n1": 30, "n2": 40}},
    "total": {"n1": 40, "n2": 60},
}
TIED = {**SCORED_A, "total": {"n1": 60, "n2": 60}}


@pytest.mark.parametrize(
    ("a", "b", "told", "was", "words"),
    [
        (One(1, "p", "n1"), One(1, "p", "n2"), ({}, FILTERED), ("", ""),
         "NodeUnschedulable rejects n1 in B (was unschedulable), but not in A."),
        (One(1, "p", "n2"), One(1, "p", "n1"), (FILTERED, {}), ("", ""),
         "NodeUnschedulable rejects n1 in A (was unschedulable), but not in B."),
        (One(1, "p", "n1"), One(1, "p", "n2"), (SCORED_A, SCORED_B), ("", ""),
         "The points of Fit make the difference: in A 60 to n1 and 40 to n2; in B 30 to n1 and 40 to n2."),
        (One(1, "p", "n1"), One(1, "p", "n2"), (TIED, TIED), ("", ""),
         "n1 and n2 have the same points on both sides: a tie, which a random draw settles."),
        (None, One(1, "p", "n2"), (None, FILTERED), ("n1", "n2"),
         "In A it stays on n1. In B NodeUnschedulable rejects that node (was unschedulable)."),
        (None, One(1, "p", "n2"), (None, {"total": {"n2": 1}}), ("n3", "n2"),
         "In A it stays on n3, which is no candidate in B."),
        (One(1, "p", "n1"), None, (SCORED_A, None), ("n1", ""),
         "Only A decided this pod; in B it was not tried."),
        (One(1, "p", "n1"), None, (SCORED_A, None), ("n1", None),
         "Only A decided this pod; in B it does not exist."),
        (One(1, "p", "", "unschedulable"), One(1, "p", "", "unschedulable"), ({}, {}), ("", ""),
         "It waits on both sides, with different messages."),
        (One(1, "p", "n1"), One(1, "p", "", "unschedulable"), (SCORED_A, {"filter": {}}), ("", ""),
         "n1 is no candidate in B."),
        (One(1, "p", "n1"), One(1, "p", "n2"), (None, None), ("", ""), ""),
    ],
)  # fmt: skip
def test_the_plugin_score_or_filter_that_made_the_difference_is_named(
    a: One | None, b: One | None, told: Any, was: Any, words: str
) -> None:
    assert why(Beside("p", 1, (a, b), False), told, ("A", "B"), was) == words
