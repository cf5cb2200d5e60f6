"""Combinations counted one by one are those found by looking at every place."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from scheduler_core.framework.distinct import tally

pytestmark = pytest.mark.usefixtures("every_threshold")

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
