"""Priority classes as a fill and a letter: four fills by value, one letter a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, TypeVar

from playground.clusters.board.pods import priorities
from playground.clusters.row_types import Cluster
from scheduler_core.schema.tables import table_beside

T = TypeVar("T")
SYSTEM_VALUE = 2_000_000_000
View = dict[str, Any]
"""What a template draws."""


def piece(x: float, width: float, *, room: float) -> View:
    """A piece of a bar, in percent: the `middle` is the x of its letter, which can be read inside if it `has_room`."""
    x = round(x, 2)
    return {"x": x, "width": width, "middle": round(x + width / 2, 2), "has_room": width >= room}


def made_of(kind: Callable[..., T], known: Mapping[str, Any], /, **said: Any) -> T:
    """A row of a kind: its fields are those of the same name in a dictionary, unless they are said."""
    names = signature(kind).parameters
    return kind(**{name: known[name] for name in names if name in known} | said)


NO_CLASS_LETTER = "N"
NO_CLASS = "no priority class"


@dataclass(frozen=True)
class PriorityMark:
    """The drawing of a pod's priority."""

    css: str
    letter: str
    title: str


class PriorityScale:
    """Marks of one cluster's pods.

    Parameters
    ----------
    classes : iterable of (name, value, is_default)
        The cluster's PriorityClasses. Higher than the ordinary value is drawn as critical, lower as batch.
        The ordinary value is the default class's; without one it is 0, or the median where three classes
        and more exist.
    """

    def __init__(self, classes: Iterable[tuple[str, int, bool]]) -> None:
        known = [c for c in classes if c[1] < SYSTEM_VALUE]
        known.sort(key=lambda c: (-c[1], c[0]))
        defaults = [value for _, value, is_default in known if is_default]
        if defaults:
            self.ordinary = defaults[0]
        else:
            self.ordinary = known[len(known) // 2][1] if len(known) >= 3 else 0
        self.classes = known
        self._letters: dict[str, str] = {}
        taken = {"S", NO_CLASS_LETTER}
        for name, _, _ in known:
            letter = next((c for c in name.upper() if c.isalpha() and c not in taken), "?")
            taken.add(letter)
            self._letters[name] = letter
        self._marks: dict[tuple[int, str], PriorityMark] = {}

    def mark(self, priority: int, class_name: str) -> PriorityMark:
        """Return the mark of a pod; without its class's name the class of the same value is meant."""
        key = (priority, class_name)
        if key not in self._marks:
            self._marks[key] = self._make(priority, class_name)
        return self._marks[key]

    def legend(self) -> list[PriorityMark]:
        """One mark per class, highest first, then those of pods without a class, as far as any were drawn."""
        drawn = {mark.css for mark in self._marks.values() if mark.title == NO_CLASS}
        marks = [self.mark(SYSTEM_VALUE, "system")]
        marks += [self.mark(value, name) for name, value, _ in self.classes[:6]]
        if "crit" in drawn:
            marks.append(PriorityMark("crit", NO_CLASS_LETTER, "higher, no class"))
        if self.ordinary not in {value for _, value, _ in self.classes}:
            marks.append(self.mark(self.ordinary, ""))
        if "batch" in drawn:
            marks.append(PriorityMark("batch", NO_CLASS_LETTER, "lower, no class"))
        return marks

    def _make(self, priority: int, class_name: str) -> PriorityMark:
        if priority >= SYSTEM_VALUE:
            return PriorityMark("sys", "S", class_name or "system")
        if priority > self.ordinary:
            css = "crit"
        elif priority < self.ordinary:
            css = "batch"
        else:
            css = "std"
        class_name = class_name or next((name for name, value, _ in self.classes if value == priority), "")
        letter = self._letters.get(class_name, NO_CLASS_LETTER)
        return PriorityMark(css, letter, class_name or NO_CLASS)


def priority_scale(cluster: Cluster) -> PriorityScale:
    """Marks of this cluster's priority classes: one query."""
    return PriorityScale(priorities(cluster))


@dataclass(frozen=True)
class Outcome:
    """The drawing of an outcome.

    Attributes
    ----------
    key : str
        The word of the explanation: bound, unschedulable, preempting, waiting, binding, expired or error.
    icon : str
        Name of the symbol in ``templates/components/icons.html``.
    css : str
        Class that carries the colour.
    """

    key: str
    icon: str
    css: str


OUTCOMES: Final = {
    key: Outcome(key, *drawn) for key, drawn in table_beside(__package__, "looks.yaml")["outcomes"].items()
}


def outcome_of(key: str | None) -> Outcome:
    """Return the drawing of an outcome; a word this table does not know is shown as it is, greyed."""
    return OUTCOMES.get(key or "", Outcome(key or "unknown", "dot", "dim"))
