"""Which rows changed since when: what lets an answer of an earlier cycle be brought up to date."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_KEEP = 65_536
_RECORDS_A_ROW = 16
"""Up to so many records for each row that may be looked at, counting rows costs less than looking at all."""


class Journal:
    """An append-only list of changed rows, addressed by an ever growing position.

    Attributes
    ----------
    position : int
        Where the next change will stand.
    """

    __slots__ = ("_rows", "position")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self.position = 0

    def record(self, row: int) -> None:
        self.position += 1
        self._rows.append(row)
        if len(self._rows) > 2 * _KEEP:
            del self._rows[:-_KEEP]

    def record_all(self, rows: Sequence[int]) -> None:
        self.position += len(rows)
        self._rows += rows
        if len(self._rows) > 2 * _KEEP:
            del self._rows[:-_KEEP]

    def since(self, position: int, limit: int) -> list[int] | None:
        """Rows changed since `position`, each once, ascending.

        None when that is no longer known, or when more than `limit` rows may have changed: start afresh. A pod that is
        bound is recorded several times on its way, so the rows are counted, not the records, up to a bound.
        """
        n_records = self.position - position
        if n_records > len(self._rows) or n_records > _RECORDS_A_ROW * limit:
            return None
        if n_records == 0:
            return []
        if n_records == 1:
            return self._rows[-1:]
        rows = sorted(set(self._rows[-n_records:]))
        return rows if len(rows) <= limit else None


class JournalReader:
    """How far a reader has read some journals."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: list[int] | None = None

    def changed(self, journals: Sequence[Journal], limit: int) -> list[int] | None:
        """Rows changed since the last call, in any of the journals, each once; None for "perhaps all of them"."""
        before, self._positions = self._positions, [journal.position for journal in journals]
        if before is None:
            return None
        rows: list[int] = []
        for journal, position in zip(journals, before, strict=True):
            found = journal.since(position, limit)
            if found is None:
                return None
            rows += found
        return list(dict.fromkeys(rows))


def grown(column: NDArray[np.generic], capacity: int, fill: int = 0) -> NDArray[np.generic]:
    """A copy of `column` whose last axis has room for `capacity` rows."""
    result = np.full((*column.shape[:-1], capacity), fill, dtype=column.dtype)
    result[..., : column.shape[-1]] = column
    return result
