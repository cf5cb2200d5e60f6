"""Decisions beside each other, and the sentence that says why they differ."""

from dataclasses import dataclass

import pytest

from playground.scenarios.differing import Beside, beside, why


@dataclass(frozen=True)
class One:
    number: int
    pod: str
    node: str = ""
    outcome: str = "bound"


def test_decisions_stand_beside_the_same_attempt_of_the_same_pod_whatever_their_numbers():
    a = [One(11, "x", "n1"), One(12, "y", outcome="unschedulable"), One(13, "y", "n2"), One(14, "z", "n1")]
    b = [One(1, "y", outcome="unschedulable"), One(2, "x", "n1"), One(3, "new", "n1"), One(4, "y", "n3")]
    pairs = beside([a, b])
    told = [(p.pod, p.nth, *(d and d.number for d in p.decisions), p.is_same) for p in pairs]
    assert told == [
        ("x", 1, 11, 2, True),
        ("y", 1, 12, 1, True),
        ("y", 2, 13, 4, False),
        ("new", 1, None, 3, False),
        ("z", 1, 14, None, False),
    ]


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
         "Only A decided this pod; in B it was not tried or does not exist."),
        (One(1, "p", "n1"), One(1, "p", "", "unschedulable"), (SCORED_A, {"filter": {}}), ("", ""),
         "n1 is no candidate in B."),
        (One(1, "p", "n1"), One(1, "p", "n2"), (None, None), ("", ""), ""),
    ],
)  # fmt: skip
def test_the_plugin_score_or_filter_that_made_the_difference_is_named(a, b, told, was, words):
    assert why(Beside("p", 1, (a, b)), told, ("A", "B"), was) == words
