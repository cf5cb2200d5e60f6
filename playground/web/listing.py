"""Tables that are sorted, filtered and turned over by links: what they show is in the address."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode
from zlib import crc32

from scheduler_core.schema.tables import table_beside


@dataclass(frozen=True)
class Column:
    """A column a table is sorted by.

    Attributes
    ----------
    order
        ``ascending`` or ``descending`` if the table is sorted by it, else empty: its ``aria-sort``.
    next
        What its heading asks for.
    """

    key: str
    words: str
    is_number: bool
    order: str
    next: str


def sorted_columns(columns: Iterable[tuple[str, str, bool]], sort: str) -> tuple[Column, ...]:
    """The columns, given as (key, words, is a number) and what the table is sorted by now.

    Numbers are first sorted with the largest on top, words from a to z; a second press turns the order round.
    """
    made = []
    for key, words, is_number in columns:
        first, other = (f"-{key}", key) if is_number else (key, f"-{key}")
        order = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
        made.append(Column(key, words, is_number, order, other if sort == first else first))
    return tuple(made)


T = TypeVar("T")
MEMBERS_SHOWN: Final = 10


@dataclass(frozen=True)
class Alike(Generic[T]):
    """Things that a page shows once, with their number; the first ones are listed where it is opened."""

    key: Any
    items: Sequence[T]

    @property
    def id(self) -> str:
        """The same while the key is."""
        return f"{crc32(repr(self.key).encode()):08x}"

    @property
    def first(self) -> T:
        return self.items[0]

    @property
    def last(self) -> T:
        return self.items[-1]

    @property
    def n(self) -> int:
        return len(self.items)

    @property
    def shown(self) -> Sequence[T]:
        return self.items[:MEMBERS_SHOWN]

    @property
    def n_more(self) -> int:
        return max(0, len(self.items) - MEMBERS_SHOWN)


def alike(items: Iterable[T], key: Callable[[T], Hashable]) -> list[Alike[T]]:
    """Groups of the items with equal keys, in the order of their first ones."""
    found: dict[Hashable, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return [Alike(*one) for one in found.items()]


@dataclass(frozen=True)
class Listing:
    """The query of a list; `asked` has its filters and its order."""

    asked: Mapping[str, str]

    def href(self, **changes: object) -> str:
        """The query with changes; without the page, which a change of anything else turns back to the first."""
        values = {**self.asked, **{name: str(value) for name, value in changes.items()}}
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


_BUTTONS: Final[Mapping[str, list[Mapping[str, Any]]]] = table_beside(__package__, "buttons.yaml")
POD_BUTTONS, NODE_BUTTONS = _BUTTONS["pods"], _BUTTONS["nodes"]
