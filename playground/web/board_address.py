"""What a board shows is in its address: links carry it, Back goes through it, and ticks ask for the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from playground.web.numbers import positive_int

_FIELDS: Final = ("view", "group", "by", "q", "open", "sort", "node", "pod")


@dataclass(frozen=True)
class BoardAddress:
    """The query of a board.

    Attributes
    ----------
    view
        ``cards``, ``heat`` or ``table``; empty = what suits the number of nodes.
    group
        Label nodes are grouped by, ``none`` for one group; empty = what suits their labels.
    by
        Resource the heat map shows, ``pods`` for how many; empty = cpu.
    q
        Words nodes are looked for by.
    open
        Name of the group whose cards are all shown.
    sort
        Column nodes are sorted by, ``-`` before it for the largest first; empty = by name.
    page
        Of the table.
    node, pod
        What is selected; a pod as ``namespace/name``. At most one of the two.
    """

    view: str = ""
    group: str = ""
    by: str = ""
    q: str = ""
    open: str = ""
    sort: str = ""
    page: int = 1
    node: str = ""
    pod: str = ""

    @classmethod
    def read(cls, query: Mapping[str, Any]) -> BoardAddress:
        """From a query; ``selected`` stands for a node or a pod."""
        found = {name: str(query.get(name) or "").strip() for name in _FIELDS}
        address = cls(**found, page=positive_int(query.get("page", "")) or 1)
        picked = found["node"] or found["pod"] or str(query.get("selected") or "")
        return address.selecting(picked)

    @property
    def selected(self) -> str:
        """The name of a node, or ``namespace/name`` of a pod; empty for nothing."""
        return self.node or self.pod

    def selecting(self, picked: str) -> BoardAddress:
        """The same board with something else selected: a slash is no part of a node's name."""
        is_pod = "/" in picked
        return replace(self, node="" if is_pod else picked, pod=picked if is_pod else "")

    def facts(self) -> dict[str, str]:
        """What differs from a plain board, as text by name."""
        said = {name: str(value) for name, value in asdict(self).items() if value}
        return {name: value for name, value in said.items() if (name, value) != ("page", "1")}

    def href(self, **changes: Any) -> str:
        """The query of this board with changes: ``?view=heat``; ``?`` for a plain one."""
        return f"?{urlencode(replace(self, **changes).facts())}"
