"""From how many rows, pods or changes on the other of two ways to the same answer is taken.

Where a question can be answered row by row or in arrays, or a kept answer be brought up to date or made afresh, both
ways give the same; which one is quicker depends on how much there is. How much is said here and nowhere else, so that
the suites can run with every threshold at zero and at infinity: then each way answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Final, Self

INFINITY: Final = 2**62


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Up to these numbers, inclusive, the way for few is taken.

    Attributes
    ----------
    filtered_rows
        Rows that PreFilter left, asked directly rather than by way of kept answers.
    single_rows
        Whether (1 or more) a kept answer is brought up to date for one row without arrays.
    allocated_rows
        Rows that NodeResourcesFit and NodeResourcesBalancedAllocation go through one by one.
    changes
        Changes since which a kept answer is brought up to date rather than made afresh; None = half of the rows, and 8.
    news
        Changes of two layers of answers that are compared one by one with what both said together.
    victim_rows
        Rows whose pods are asked for one by one when victims are looked for.
    nominated_rows
        Rows whose nominated pods are asked for one by one.
    matched_pods
        Pods of the selected classes that are counted class by class.
    combinations
        Distinct combinations of reasons that are counted one by one before they are sorted.
    """

    filtered_rows: int = 32
    single_rows: int = 1
    allocated_rows: int = 6
    changes: int | None = None
    news: int = 64
    victim_rows: int = 64
    nominated_rows: int = 64
    matched_pods: int = 2048
    combinations: int = 8

    @classmethod
    def all_at(cls, number: int) -> Self:
        """Every threshold at the same number.

        Examples
        --------
        >>> Thresholds.all_at(0).news
        0
        """
        return cls(**dict.fromkeys((field.name for field in fields(cls)), number))

    def most_changes(self, n_rows: int) -> int:
        """After more changes than this a kept answer about `n_rows` rows is made afresh."""
        return n_rows // 2 + 8 if self.changes is None else self.changes


_in_use = Thresholds()


def thresholds() -> Thresholds:
    """Those in use."""
    return _in_use


@contextmanager
def using(others: Thresholds) -> Iterator[None]:
    """Use others for as long as the block runs, in this process."""
    global _in_use
    before, _in_use = _in_use, others
    try:
        yield
    finally:
        _in_use = before
