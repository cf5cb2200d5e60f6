"""Answers kept between cycles: what failed is asked again; what changed is known (kept = fresh: `test_columns.py`).

Combinations counted one by one are those found by looking at every place.
"""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.cluster.journal import Journal
from scheduler_core.framework.distinct import tally
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import pod_from
from scheduler_core.plugins.node_resources_fit import NodeResourcesFit
from tests.manifests import node, pod
from tests.scheduler_core.stored import prepare

pytestmark = pytest.mark.usefixtures("every_threshold")


@pytest.mark.parametrize("point", ["filter", "score"])
def test_what_a_plugin_failed_to_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("broken")

    asked = pod_from(prepare(pod("p")))
    cluster = CaseCluster([node("n1", "3"), node("n2", "2")], None)
    assert cluster.schedule(asked).node_name == "n1"
    _, _, _, changed = parse(prepare(node("n2", "4")))
    cluster.cache.set_node(changed)
    with monkeypatch.context() as patch:
        patch.setattr(NodeResourcesFit, point, broken)
        assert cluster.schedule(asked).error
    assert cluster.schedule(asked).node_name == "n2"


def test_a_journal_names_each_changed_row_once_and_in_order() -> None:
    journal = Journal()
    start = journal.position
    for row in (5, 2, 5, 9):
        journal.record(row)
    assert journal.since(start, 10) == [2, 5, 9]
    assert journal.since(journal.position, 10) == []


def test_a_journal_that_forgot_says_so() -> None:
    journal = Journal()
    for row in range(200_000):
        journal.record(row % 7)
    assert journal.since(0, 10**9) is None
    assert journal.since(journal.position - 3, 2) is None


PLACES = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(-2, 9)), max_size=60)


@given(PLACES)
def test_each_combination_is_told_once_with_its_first_place(places: list[tuple[bool, int, int]]) -> None:
    among = np.array([wanted for wanted, _, _ in places], np.bool_)
    columns = [
        np.array([item[1] for item in places], np.int8),
        np.array([item[2] for item in places], np.int64),
    ]
    found = tally(among, *columns)
    combinations = [item[1:] for item in places if item[0]]
    assert {places[place][1:]: amount for place, amount in found} == Counter(combinations)
    assert all(
        place == next(at for at, item in enumerate(places) if item == (True, *places[place][1:]))
        for place, _ in found
    )
    assert len(found) == len(set(combinations))
