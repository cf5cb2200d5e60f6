"""From posted text to an object as it will be stored: reading, unknown fields, admission of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from django.conf import settings

from playground.clusters import structural
from playground.clusters.custom_kinds import (
    DEFINITION,
    admit_custom,
    admit_definition,
    schema_of,
    unknown_fields,
)
from playground.clusters.errors import Conflict, InvalidManifest, Unsupported
from playground.clusters.kinds import Kind
from playground.clusters.structural import OverLimit, at_most
from playground.clusters.versions import as_stored
from playground.engine import admission
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.defaults import PriorityClasses
from scheduler_core.objects.reading import Posted
from scheduler_core.objects.reading import read_posted as read_objects
from scheduler_core.schema.fields_check import FieldProblem, check_fields, unknown_field

YAML_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
JSON_TYPES = ("application/json",)


def read_posted(text: str | bytes, content_type: str = "application/yaml") -> list[Posted]:
    """Read every object of a posted text, which may be compressed (`playground.bodies` bounds that).

    Raises
    ------
    InvalidManifest, Unsupported
    """
    media_type = checked_media_type(content_type)
    limit = settings.PLAYGROUND_MAX_UNPACKED_BYTES
    return read_objects(text, json_only=media_type in JSON_TYPES, max_bytes=limit)


def checked_media_type(content_type: str) -> str:
    """Without its parameters, if manifests can be of that type.

    Raises
    ------
    Unsupported
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in YAML_TYPES + JSON_TYPES:
        raise Unsupported(f"{media_type or 'no media type'}: send application/yaml or application/json")
    return media_type


# ---- Field validation: one place for every surface that takes manifests
#
# A field that is not known is dropped, as an API server drops it. Whether that is told, and whether it is refused,
# the
# surface says: `Strict`, `Warn` or `Ignore`.
#
# Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go (fieldValidation), v1.34

_MOST: Final = 20
MODES: Final = ("Ignore", "Strict", "Warn")


@dataclass(slots=True)
class FieldValidation:
    """How a request wants to hear of unknown fields, and what was found.

    Attributes
    ----------
    mode
        ``Strict`` refuses, ``Warn`` tells, ``Ignore`` says nothing.
    warnings
        Sentences, each field once.
    """

    mode: str = "Ignore"
    warnings: list[str] = field(default_factory=list)
    _told: list[InvalidManifest] = field(default_factory=list)

    def known(
        self, kind: Kind, posted: Posted, old: Mapping[str, Any] | None = None
    ) -> tuple[Posted, Sequence[FieldProblem]]:
        """The object without unknown fields, and what of the rest is of another type.

        Parameters
        ----------
        old
            What is stored: an unknown field of it was told when it was written.
        """
        if kind.custom is not None:
            schema = schema_of(kind) or {}
            found = [
                unknown_field(path, None, structural.names_at(schema, path))
                for path in unknown_fields(kind, posted.manifest)[:_MOST]
            ]
            self._note(kind, posted, found)
            return posted, ()
        manifest, problems = check_fields(posted.manifest, kind.type)
        unknown = [problem for problem in problems if problem.unknown]
        if unknown and old is not None:
            before = {problem.path for problem in check_fields(old, kind.type)[1]}
            unknown = [problem for problem in unknown if problem.path not in before]
        self._note(kind, posted, unknown)
        return replace(posted, manifest=manifest), [problem for problem in problems if not problem.unknown]

    def _note(self, kind: Kind, posted: Posted, problems: Sequence[FieldProblem]) -> None:
        if self.mode == "Ignore":
            return
        for problem in problems:
            told = posted.problem(problem.reason, path=problem.path, value=problem.value)
            self._told.append(told)
            whose = f'{kind.kind} "{posted.name}": ' if posted.name else ""
            line = f" (line {told.line})" if told.line else ""
            words = f"{whose}{problem.said_of(told.path)}{line}"
            if words not in self.warnings:
                self.warnings.append(words)

    def refuse(self) -> None:
        """Refuse what was found, if the request wants that; to be called when every object was looked at.

        Raises
        ------
        InvalidManifest
            A ``BadRequest``.
        """
        if self.mode == "Strict" and self._told:
            error = InvalidManifest.of(self._told)
            error.reason = "BadRequest"
            raise error


def type_problem(posted: Posted, problems: Sequence[FieldProblem]) -> InvalidManifest:
    """The first value of another type, as a problem of what was posted."""
    problem = problems[0]
    error = InvalidObject(problem.path, problem.value, problem.reason)
    return posted.invalid(error.in_kubernetes_form())


# ---- Admission of one object of any kind: what is known of its fields, its defaults, what an API server refuses

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
    if kind.custom is None and kind.row_kind != DEFINITION:
        return _admitted(kind, posted, around, old)
    try:
        with at_most(VALIDATION_S):  # a schema may ask for as much as it likes
            return _admitted(kind, posted, around, old)
    except OverLimit as error:
        raise posted.problem(f"its validation {error}") from None


def _admitted(
    kind: Kind, posted: Posted, around: Surroundings, old: Mapping[str, Any] | None
) -> dict[str, Any]:
    posted, wrong = around.fields.known(kind, posted, old)
    if not kind.is_main:
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
