"""Go's sort: an order is sorted; what equal elements do is held by the recorded cycles of the descheduler."""

import random

import pytest

from scheduler_core.descheduler.go_sort import sort_slice


@pytest.mark.parametrize("length", [0, 1, 2, 12, 13, 49, 50, 51, 200, 1000])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "saw", "few"])
def test_an_order_is_sorted(length: int, kind: str) -> None:
    draw = random.Random(length)
    items = {
        "random": [draw.randrange(10**6) for _ in range(length)],
        "rising": list(range(length)),
        "falling": list(range(length, 0, -1)),
        "saw": [index % 17 for index in range(length)],
        "few": [draw.randrange(3) for _ in range(length)],
    }[kind]
    wanted = sorted(items)
    sort_slice(items, lambda left, right: left < right)
    assert items == wanted


def test_a_list_that_defeats_quicksort_ends_in_the_heap() -> None:
    """Without an order at all (each before the other) nothing is lost, and it comes to an end."""
    items = list(range(500))
    sort_slice(items, lambda left, right: (left * 7919) % 31 <= (right * 7919) % 31)
    assert sorted(items) == list(range(500))


def test_equal_elements_come_out_turned_round_where_each_goes_before_the_other() -> None:
    items = [("a", 1), ("b", 1), ("c", 0), ("d", 1)]
    sort_slice(items, lambda left, right: left[1] <= right[1])
    assert items == [("c", 0), ("d", 1), ("b", 1), ("a", 1)]
