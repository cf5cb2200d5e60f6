"""Decisions side by side, the first pod whose outcome differs, and the sentence that says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from scheduler_core.scenario.difference import Beside, beside, compare, n_same, partings, why
from scheduler_core.scenario.expectations import run_scenario
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.tables import table


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


@pytest.mark.parametrize(
    ("a", "b", "told", "was", "words"),
    table(__file__, "the_plugin_score_or_filter_that_made_the_difference_is_named"),
)
def test_the_plugin_score_or_filter_that_made_the_difference_is_named(
    a: list[Any] | None, b: list[Any] | None, told: Any, was: Any, words: str
) -> None:
    decisions = tuple(one and One(*one) for one in (a, b))
    assert why(Beside("p", 1, decisions, False), told, ("A", "B"), was) == words
