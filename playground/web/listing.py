"""Tables that are sorted, filtered and turned over by links: what they show is in the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

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


@dataclass(frozen=True)
class Listing:
    """The query of a list; `asked` has its filters and its order."""

    asked: Mapping[str, str]

    def href(self, **changes: object) -> str:
        """The query with changes; without the page, which a change of anything else turns back to the first."""
        values = {**self.asked, **{name: str(value) for name, value in changes.items()}}
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


_BUTTONS: Final[Mapping[str, list[Mapping[str, Any]]]] = table_beside(__file__, "buttons.yaml")
POD_BUTTONS, NODE_BUTTONS = _BUTTONS["pods"], _BUTTONS["nodes"]
