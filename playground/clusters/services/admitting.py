"""Admission of one object of any kind: what is known of its fields, its defaults, what an API server refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from playground.clusters.bounds import OverLimit, at_most
from playground.clusters.custom_kinds import DEFINITION
from playground.clusters.custom_resources import admit_custom, admit_definition
from playground.clusters.errors import Conflict
from playground.clusters.kinds import Kind
from playground.clusters.services.fields import FieldValidation, type_problem
from playground.clusters.versions import as_stored
from playground.engine import admission
from playground.engine.admission import Posted, PriorityClasses

VALIDATION_S: Final = 1.0
"""Of processor time, for one object: whose validation takes longer is refused, and no one waits for it meanwhile."""

MOST_TRIES: Final = 5
T = TypeVar("T")


class Overtaken(Exception):
    """What an object was admitted among is another by the time the lock is taken."""


def settled(write: Callable[[], T]) -> T:
    """Admit and write, again where something came in between: validation holds no lock, however long it takes.

    Raises
    ------
    Conflict
    """
    for _ in range(MOST_TRIES):
        try:
            return write()
        except Overtaken:
            continue
    raise Conflict("what the objects depend on is changed all the time; please try again")


@dataclass(slots=True)
class Surroundings:
    """What an object is admitted among.

    Attributes
    ----------
    classes
        The PriorityClasses, for pods to name.
    others
        Their manifests, for a PriorityClass to stand among.
    stamp
        The cluster's time, RFC 3339.
    fields
        What to do about unknown fields.
    """

    classes: PriorityClasses
    others: Iterable[Mapping[str, Any]] = ()
    stamp: str = ""
    fields: FieldValidation = field(default_factory=FieldValidation)


def admitted(
    kind: Kind, posted: Posted, around: Surroundings, old: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The object as it will be stored, in the version rows have.

    Unknown fields are noted in `around.fields`, whose `refuse` is for the caller to ask.

    Parameters
    ----------
    old
        The object it replaces.

    Raises
    ------
    InvalidManifest
    """
    try:
        with at_most(VALIDATION_S):
            return _admitted(kind, posted, around, old)
    except OverLimit as error:
        raise posted.problem(f"its validation {error}") from None


def _admitted(
    kind: Kind, posted: Posted, around: Surroundings, old: Mapping[str, Any] | None
) -> dict[str, Any]:
    posted, wrong = around.fields.known(kind, posted, old)
    posted = replace(posted, manifest=as_stored(kind, posted.manifest))
    if kind.custom is not None:
        return admit_custom(kind, posted, old)
    if kind.row_kind == DEFINITION:
        ready = admit_definition(posted, stamp=around.stamp, old=old)
    else:
        ready = admission.admit(posted, around.classes, others=around.others, old=old)
    if wrong:
        raise type_problem(posted, wrong)
    return ready
