"""Field validation: one place for every surface that takes manifests.

A field that is not known is dropped, as an API server drops it. Whether that is told, and whether it is refused, the
surface says: `Strict`, `Warn` or `Ignore`.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go (fieldValidation), v1.34
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from playground.clusters import structural
from playground.clusters.custom_resources import schema_of, unknown_fields
from playground.clusters.errors import InvalidManifest
from playground.clusters.kinds import Kind
from playground.engine.admission import InvalidObject, Posted
from playground.engine.schema import FieldProblem, check_fields, unknown_field

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
