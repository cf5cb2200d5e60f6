"""Thresholds between two ways to one answer are taken from one place, and can be given."""

import numpy as np
import pytest

from scheduler_core.framework import distinct as distinct_module
from scheduler_core.framework.distinct import tally
from scheduler_core.thresholds import INFINITY, Thresholds, thresholds, using

SORTED, LOOKED_FOR = "sorted", "looked for one by one"


def way_taken(monkeypatch: pytest.MonkeyPatch, n_combinations: int) -> str:
    """How `tally` counts so many combinations."""
    taken = [LOOKED_FOR]
    real = distinct_module.distinct
    monkeypatch.setattr(distinct_module, "distinct", lambda *columns: taken.append(SORTED) or real(*columns))
    values = np.arange(n_combinations)
    assert tally(np.ones(n_combinations, bool), values) == [(place, 1) for place in range(n_combinations)]
    return taken[-1]


@pytest.mark.parametrize(
    ("given", "few", "many"),
    [
        (Thresholds(), LOOKED_FOR, SORTED),
        (Thresholds.all_at(0), SORTED, SORTED),
        (Thresholds.all_at(INFINITY), LOOKED_FOR, LOOKED_FOR),
    ],
    ids=["default", "zero", "infinity"],
)
def test_the_threshold_given_decides_which_way_is_taken(
    given: Thresholds, few: str, many: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with using(given):
        assert way_taken(monkeypatch, 3) == few
        assert way_taken(monkeypatch, 30) == many


def test_the_usual_ones_are_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), using(Thresholds.all_at(0)):
        assert thresholds() == Thresholds.all_at(0)
        1 / 0  # noqa: B018
    assert thresholds() == Thresholds()
    assert [Thresholds().most_changes(100), Thresholds.all_at(3).most_changes(100)] == [58, 3]
