"""Refusals and deletions as `Status` objects, the way an API server writes them.

Source: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go, v1.34
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions

from playground.accounts.authentication import headers_of
from playground.clusters import kinds
from playground.clusters.errors import ClusterError, InvalidInput, InvalidManifest
from playground.clusters.kinds import Kind
from playground.clusters.trouble import cause_of
from scheduler_core.errors import FIELD_ERROR_WORDS, FieldError, aggregate
from scheduler_core.schema.tables import table_beside

logger = logging.getLogger(__name__)

_CODES: Final[Mapping[str, int]] = table_beside(__package__, "protocol.yaml")["codes"]
_OF_CODE: Final = {code: reason for reason, code in _CODES.items() if reason != "AlreadyExists"}


class Refusal(Exception):
    """An answer of this surface alone: no service was asked.

    Parameters
    ----------
    reason
        One of Kubernetes' own.
    message
        A sentence.
    """

    def __init__(self, reason: str, message: str, *, causes: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.causes = causes


def check_fields(subject: str, errors: Iterable[FieldError]) -> None:
    """Refuse what is wrong with the fields of something that is not kept.

    Parameters
    ----------
    subject
        Kind, group and name, as in ``ListOptions.meta.k8s.io ""``.

    Raises
    ------
    Refusal
        Invalid.
    """
    if found := [*errors]:
        causes = [{"reason": each.type, "message": each.body, "field": each.field} for each in found]
        raise Refusal("Invalid", f"{subject} is invalid: {aggregate(found)}", causes=causes)


def failure(
    reason: str, message: str, *, code: int | None = None, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A `Status` that says no."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({"details": dict(details)} if details else {}),
        "code": code or _CODES[reason],
    }


def success(details: Mapping[str, Any]) -> dict[str, Any]:
    """A `Status` that says it is done."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": dict(details),
    }


def status_of(error: Exception, asked: Kind | None = None) -> tuple[dict[str, Any], dict[str, str]] | None:
    """What to answer, and headers; None for a bug that should be seen while debugging.

    Parameters
    ----------
    asked
        The kind of the request's path, if it has one: an error may be about a custom one.
    """
    named = getattr(error, "kind", "")
    kind = asked if asked is not None and asked.kind == named else kinds.by_kind(named)
    if isinstance(error, Refusal):
        details = {"causes": [dict(cause) for cause in error.causes]} if error.causes else None
        return failure(error.reason, error.message, details=details), {}
    if isinstance(error, InvalidManifest):
        return _manifest(error, kind), {}
    if isinstance(error, InvalidInput):
        return failure("BadRequest", error.message), {}
    if isinstance(error, ClusterError):
        reason = "BadRequest" if error.reason == "UnsupportedMediaType" else error.reason
        return failure(reason, error.message, details=_about(error, kind)), {}
    if isinstance(error, Http404):
        return failure("NotFound", "the server could not find the requested resource"), {}
    if isinstance(error, exceptions.APIException):
        return _api(error)
    if isinstance(error, OperationalError):
        logger.exception("database did not answer")
        cause = cause_of(error)
        return failure("ServiceUnavailable", cause[0].lower() + cause[1:].rstrip(".")), {"Retry-After": "1"}
    if settings.DEBUG:
        return None
    logger.error("unexpected error", exc_info=error)
    return failure("InternalError", "Internal error occurred; it is logged"), {}


def _api(error: exceptions.APIException) -> tuple[dict[str, Any], dict[str, str]]:
    reason = _OF_CODE.get(error.status_code, "BadRequest")
    return failure(reason, str(error.detail), code=error.status_code), headers_of(error)


def _about(error: ClusterError, kind: Kind | None) -> dict[str, Any]:
    facts = {
        "name": getattr(error, "name", ""),
        "group": kind.group if kind else "",
        "kind": kind.plural if kind else getattr(error, "kind", ""),
    }
    details: dict[str, Any] = {key: value for key, value in facts.items() if value}
    if error.reason == "TooManyRequests":
        details["causes"] = [{"reason": "DisruptionBudget", "message": error.message}]
    return details


def _manifest(error: InvalidManifest, kind: Kind | None) -> dict[str, Any]:
    if error.reason == "Forbidden":
        subject = f'{kind.resource if kind else error.kind} "{error.name}" is forbidden'
        return failure("Forbidden", f"{subject}: {error.message}", details=_about(error, kind))
    if error.reason == "BadRequest":
        return failure("BadRequest", _strict(error, kind))
    if error.reason == "RequestEntityTooLarge":
        return failure(error.reason, error.message)
    return _invalid(error, kind)


def _strict(error: InvalidManifest, kind: Kind | None) -> str:
    found = ", ".join(
        each.words.replace("unknown field", f'unknown field "{each.path}"', 1)
        for each in (error, *error.causes)
    )
    what = error.kind or "object"
    if kind is not None:
        what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    else:
        what = f"the {what} cannot be handled"
    return f"{what}: strict decoding error: {found}"


def _invalid(error: InvalidManifest, kind: Kind | None) -> dict[str, Any]:
    # Unreadable text is a bad request; an object that was read and is wrong is Invalid.
    if not error.path and not error.kind:
        return failure("BadRequest", error.message)
    causes = [_cause(item) for item in (error, *error.causes)]
    details: dict[str, Any] = {
        "name": error.name,
        "group": kind.group if kind else "",
        "kind": error.kind,
        "causes": causes,
    }
    named = f"{error.kind}.{kind.group}" if kind and kind.group else error.kind
    subject = f'{named} "{error.name}"' if error.name else named or "the object"
    said = aggregate(": ".join(filter(None, (cause["field"], cause["message"]))) for cause in causes)
    return failure(
        "Invalid",
        f"{subject} is invalid: {said}",
        details={key: value for key, value in details.items() if value},
    )


def _cause(error: InvalidManifest) -> dict[str, str]:
    """One problem of a field, as an API server words it: a client writes the field before the message."""
    said = error.words
    type_ = error.type or next(
        (name for name, words in FIELD_ERROR_WORDS.items() if said == words or said.startswith(f"{words}: ")),
        "",
    )
    if not type_:
        if isinstance(error.value, str):
            said = said.removeprefix(f'"{error.value}"'[:80]).lstrip()
        elif error.value is not None:
            said = said.removeprefix(repr(error.value)[:80]).lstrip()
        type_ = "FieldValueRequired" if error.value is None else "FieldValueInvalid"
        said = FieldError(type_, "", error.value, "" if said == "is required" else said).body
    return {"reason": type_, "message": said, "field": error.path}
