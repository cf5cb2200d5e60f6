"""Small values that are made by the dozen in every cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that is frozen for mypy alone.

    At run time nothing stops an assignment: making a frozen one takes three times as long, and what happens, what is
    asked for and what came of it add up to forty of them for a pod.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
