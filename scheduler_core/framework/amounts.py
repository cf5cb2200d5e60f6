"""The amounts behind a rejection: columns while the cycle runs, words when they are read.

A `Comparison` is one thing a filter plugin compared on many rows. As a trace keeps it, it is a mask and some columns
in one int64 array, and the words around them in the header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.framework.distinct import distinct
from scheduler_core.objects.resources import amount_text

Columns = NDArray[np.int64]

FREE_OF: Final = " free of "
"""Follows the gap that says how much is free."""

SHORT: Final = " short"
"""Ends a sentence whose last gap says how much is missing."""


@dataclass(frozen=True, slots=True)
class Amount:
    """The values for a placeholder of the message, one per row.

    Attributes
    ----------
    column : ndarray of shape (n_rows,), int64
    unit : str or sequence of str
        The resource whose whole units these are, "" for plain counts, or the texts that the column numbers.
    absent : str
        The text for -1.
    """

    column: NDArray[Any]
    unit: str | Sequence[str] = ""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One thing a filter plugin compared on some rows.

    Attributes
    ----------
    fails : ndarray of shape (n_rows,), bool
        The rows it speaks against; only of these anything is told.
    words : tuple of str and Amount
        The sentence, gaps in their places.
    """

    fails: NDArray[np.bool_]
    words: tuple[str | Amount, ...]


def packed(
    comparisons: Iterable[Comparison], places: NDArray[np.intp], n_places: int
) -> tuple[list[list[Any]], list[Columns]]:
    """What a trace keeps: the words of each comparison that fails anywhere, and its mask and columns by place.

    Parameters
    ----------
    places : ndarray of shape (n_rows,), intp
        Where each row is told.
    """
    sentences: list[list[Any]] = []
    lines: list[Columns] = []
    for comparison in comparisons:
        fails = comparison.fails
        if not fails.any():
            continue
        told = places[fails]
        mask = np.zeros(n_places, np.int64)
        mask[told] = 1
        lines.append(mask)
        sentence: list[Any] = []
        for part in comparison.words:
            if isinstance(part, str):
                sentence.append(part)
                continue
            values, unit = part.column[fails], part.unit
            if not isinstance(unit, str):
                values, unit = _renumbered(values, unit, part.absent)
            line = np.zeros(n_places, np.int64)
            line[told] = values
            lines.append(line)
            sentence.append([unit])
        sentences.append(sentence)
    return sentences, lines


def _renumbered(ids: Columns, values: Sequence[str], absent: str) -> tuple[Columns, list[str]]:
    """Only the texts that are used, sorted: the number of an interned one is chance, and other after a checkpoint."""
    used, places = np.unique(ids, return_inverse=True)
    found = [values[value_id] if value_id >= 0 else absent for value_id in used.tolist()]
    kept = sorted(dict.fromkeys(found))
    place_of = {text: place for place, text in enumerate(kept)}
    return np.array([place_of[text] for text in found], np.int64)[places], kept


def unpacked(
    sentences: Sequence[Sequence[Any]], lines: Columns, names: Sequence[str]
) -> dict[str, list[str]]:
    """The sentences about each name that has any; each distinct one is put together once.

    Names that lack the smallest part of what is wanted come first; equal ones in the order of the places.

    Parameters
    ----------
    sentences, lines
        As from `packed`, `lines` of shape (n_lines, n_places).
    names : sequence of str
        Of the places.
    """
    told: dict[str, list[str]] = {}
    lacking = np.zeros(len(names))
    start = 0
    for sentence in sentences:
        n_gaps = sum(not isinstance(part, str) for part in sentence)
        places = np.flatnonzero(lines[start])
        columns = lines[start + 1 : start + 1 + n_gaps][:, places]
        start += 1 + n_gaps
        first, group = (
            distinct(*columns) if n_gaps else (np.zeros(1, np.intp), np.zeros(len(places), np.intp))
        )
        written = [_written(sentence, columns[:, index].tolist()) for index in first.tolist()]
        for place, index in zip(places.tolist(), group.tolist(), strict=True):
            told.setdefault(names[place], []).append(written[index])
        if sentence[-1] == SHORT:
            lacking[places] = np.maximum(lacking[places], _missing_part(sentence, columns))
    if lacking.any():
        by_need = [names[place] for place in np.argsort(lacking, kind="stable").tolist()]
        return {name: told[name] for name in by_need if name in told}
    return told


def _missing_part(sentence: Sequence[Any], columns: Columns) -> NDArray[np.float64]:
    """What is missing as a part of what is wanted, only to compare one name with another."""
    n_before = sum(not isinstance(part, str) for part in sentence[: sentence.index(FREE_OF)])
    free, missing = columns[n_before - 1], columns[-1]
    part: NDArray[np.float64] = missing / np.maximum(free + missing, 1)
    return part


def _written(sentence: Sequence[Any], values: list[int]) -> str:
    gaps = iter(values)
    return "".join(part if isinstance(part, str) else _filled(part[0], next(gaps)) for part in sentence)


def _filled(unit: str | list[str], value: int) -> str:
    if isinstance(unit, list):
        return unit[value]
    return amount_text(unit, value)
