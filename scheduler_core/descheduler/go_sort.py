"""Go's `sort.Slice`: the same order of elements that its comparison does not tell apart, or tells apart both ways.

Source: sort/zsortfunc.go of Go 1.24 (pattern-defeating quicksort; insertion sort for up to 12 elements)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Hint = Literal["unknown", "rising", "falling"]

_SHORT = 12
_NINTHER = 50
_MAX_SWAPS = 12
_MAX_STEPS = 5


def sort_slice(items: list[T], less: Callable[[T, T], bool]) -> None:
    """Sort in place. `less` need not be an order: what it says of equal elements decides how they come out."""
    _Slice(items, less).sort(0, len(items), len(items).bit_length())


class _Slice:
    """A list that is sorted by index."""

    def __init__(self, items: list[Any], less: Callable[[Any, Any], bool]) -> None:
        self.items = items
        self._less = less

    def less(self, i: int, j: int) -> bool:
        return self._less(self.items[i], self.items[j])

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, a: int, b: int, limit: int) -> None:
        balanced = partitioned = True
        while True:
            length = b - a
            if length <= _SHORT:
                self._insertion_sort(a, b)
                return
            if limit == 0:
                self._heap_sort(a, b)
                return
            if not balanced:
                self._break_patterns(a, b)
                limit -= 1
            pivot, hint = self._choose_pivot(a, b)
            if hint == "falling":
                self.items[a:b] = self.items[a:b][::-1]
                pivot = (b - 1) - (pivot - a)
                hint = "rising"
            if balanced and partitioned and hint == "rising" and self._partial_insertion_sort(a, b):
                return
            if a > 0 and not self.less(a - 1, pivot):
                a = self._partition_equal(a, b, pivot)
                continue
            middle, partitioned = self._partition(a, b, pivot)
            left, right = middle - a, b - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(a, middle, limit)
                a = middle + 1
            else:
                self.sort(middle + 1, b, limit)
                b = middle

    def _insertion_sort(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def _sift_down(self, low: int, high: int, first: int) -> None:
        root = low
        while (child := 2 * root + 1) < high:
            if child + 1 < high and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def _heap_sort(self, a: int, b: int) -> None:
        high = b - a
        for i in range((high - 1) // 2, -1, -1):
            self._sift_down(i, high, a)
        for i in range(high - 1, -1, -1):
            self.swap(a, a + i)
            self._sift_down(0, i, a)

    def _partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        was_partitioned = True
        while True:
            while i <= j and self.less(i, a):
                i += 1
            while i <= j and not self.less(j, a):
                j -= 1
            if i > j:
                self.swap(j, a)
                return j, was_partitioned
            was_partitioned = False
            self.swap(i, j)
            i, j = i + 1, j - 1

    def _partition_equal(self, a: int, b: int, pivot: int) -> int:
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self.less(a, i):
                i += 1
            while i <= j and self.less(a, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def _partial_insertion_sort(self, a: int, b: int) -> bool:
        i = a + 1
        for _ in range(_MAX_STEPS):
            while i < b and not self.less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _NINTHER:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:
                for j in range(i - 1, 0, -1):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
            if b - i >= 2:
                for j in range(i + 1, b):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
        return False

    def _break_patterns(self, a: int, b: int) -> None:
        length = b - a
        if length < 8:
            return
        random, modulus = length, 1 << length.bit_length()
        index = a + (length // 4) * 2 - 1
        for i in range(3):
            random ^= (random << 13) & (2**64 - 1)
            random ^= random >> 7
            random ^= (random << 17) & (2**64 - 1)
            other = random & (modulus - 1)
            if other >= length:
                other -= length
            self.swap(index + i, a + other)

    def _choose_pivot(self, a: int, b: int) -> tuple[int, Hint]:
        length = b - a
        swaps = [0]
        i, j, k = (a + length // 4 * times for times in (1, 2, 3))
        if length >= _NINTHER:
            i, j, k = (self._median(x - 1, x, x + 1, swaps) for x in (i, j, k))
        j = self._median(i, j, k, swaps)
        return j, "rising" if swaps[0] == 0 else "falling" if swaps[0] == _MAX_SWAPS else "unknown"

    def _median(self, x: int, y: int, z: int, swaps: list[int]) -> int:
        if self.less(y, x):
            swaps[0] += 1
            x, y = y, x
        if self.less(z, y):
            swaps[0] += 1
            y, z = z, y
        if self.less(y, x):
            swaps[0] += 1
            x, y = y, x
        return y
