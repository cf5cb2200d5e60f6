"""Tables that are sorted, filtered and turned over by links: what they show is in the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode


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


@dataclass(frozen=True)
class ManyAction:
    """One action, a button.

    Attributes
    ----------
    name
        What is posted as `action`.
    note
        What it does, asked before it is done; empty: done at once, or `field` asks.
    field
        The label of the value it wants, posted under `name`; empty: it wants none.
    """

    name: str
    words: str
    icon: str = ""
    note: str = ""
    field: str = ""
    is_danger: bool = False


_BACK = "An undo brings all of it back."
POD_BUTTONS = (
    ManyAction(
        "delete",
        "Delete",
        icon="trash",
        note="A pod on a node terminates for its grace period on the cluster's clock; an owner such as a ReplicaSet"
        f" makes a new one. {_BACK}",
        is_danger=True,
    ),
)
NODE_BUTTONS = (
    ManyAction("cordon", "Cordon", icon="cordon"),
    ManyAction("uncordon", "Uncordon"),
    ManyAction(
        "drain",
        "Drain",
        icon="drain",
        note="They are cordoned, and their pods evicted as far as budgets let them go. Pods of DaemonSets stay.",
    ),
    ManyAction("taint", "Taint", field="Taint as key=value:Effect; key:Effect- takes it off"),
    ManyAction("label", "Label", field="Label as key=value; key- takes it off"),
    ManyAction(
        "delete",
        "Delete",
        icon="trash",
        note=f"Pods on them are left without a node. {_BACK}",
        is_danger=True,
    ),
)
