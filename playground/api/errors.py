"""One shape for every refusal: problem details (RFC 9457), `application/problem+json`.

`type` points at the reason's explanation, `detail` is a sentence for a person, and what is known of the place
stands beside it: `document` and `line` in the posted text, `field` path, `value`, `kind` and `name` of the object.
Further problems of the same request are in `causes`, each with the same keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from playground.accounts.authentication import headers_of
from playground.api.documentation import MEDIA_TYPE, OF_STATUS, REASONS
from playground.clusters.errors import ClusterError, InvalidInput
from playground.clusters.trouble import cause_of
from playground.middleware import request_id

logger = logging.getLogger(__name__)

_OF_STATUS: Final = OF_STATUS | {400: "BadRequest", 406: "BadRequest"}


class Repeated(Exception):
    """A request that was answered before, and its answer."""

    def __init__(self, response: Response) -> None:
        super().__init__("answered before")
        self.response = response


class KeyReused(exceptions.APIException):
    """An Idempotency-Key came with another request."""

    status_code = 422
    default_detail = "This Idempotency-Key was used for another request of yours within the last day."


class PreconditionFailed(exceptions.APIException):
    """If-Match named another version."""

    status_code = 412
    default_detail = "The cluster was changed since the version in If-Match."


def problem(
    status: int,
    reason: str,
    detail: str,
    *,
    facts: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer in the shape of problem details."""
    title = REASONS[reason][1] if reason in REASONS else reason
    body = problem_body(status, reason, detail, title=title, facts=facts)
    return Response(body, status=status, headers=dict(headers or {}), content_type=MEDIA_TYPE)


def problem_body(
    status: int, reason: str, detail: str, *, title: str = "", facts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Problem details as JSON."""
    return {
        "type": f"/api/v1/problems/{reason}/",
        "title": title or REASONS[reason][1],
        "status": status,
        "detail": detail,
        "reason": reason,
        "requestId": request_id(),
        **(facts or {}),
    }


def reason_of(status: int) -> str:
    """Kubernetes' word for a status that came without one."""
    return _OF_STATUS.get(status, "BadRequest" if status < 500 else "InternalError")


def handle(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn whatever a view raised into a problem; None (a bug, while debugging) goes on up."""
    if isinstance(error, Repeated):
        return error.response
    if isinstance(error, ClusterError):
        return _refused(error)
    if isinstance(error, RequestDataTooBig):
        return problem(413, "RequestEntityTooLarge", str(error))
    if isinstance(error, Http404):
        return problem(404, "NotFound", str(error) or "There is nothing here.")
    if isinstance(error, PermissionDenied):
        return problem(403, "Forbidden", str(error) or "You may not do that.")
    if isinstance(error, exceptions.APIException):
        return _api(error)
    if isinstance(error, OperationalError):
        logger.exception("database did not answer")
        return problem(503, "ServiceUnavailable", cause_of(error), headers={"Retry-After": "1"})
    if settings.DEBUG:
        return None
    view = context.get("view")
    name = type(view).__name__
    logger.error("unexpected error in %s, request %s", name, request_id(), exc_info=error)
    return problem(500, "InternalError", "Something is broken here. It is logged; the request had no effect.")


def _refused(error: ClusterError) -> Response:
    facts = {key: value for key, value in error.as_dict().items() if key not in ("reason", "message")}
    if "causes" in facts:
        facts["causes"] = [_cause(cause) for cause in facts["causes"]]
    headers = {"Retry-After": "10"} if error.status == 429 else {}
    return problem(error.status, error.reason, error.message, facts=facts, headers=headers)


def _cause(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"detail" if key == "message" else key: value for key, value in facts.items() if key != "reason"}


def _api(error: exceptions.APIException) -> Response:
    reason = reason_of(error.status_code)
    return problem(error.status_code, reason, str(error.detail), headers=headers_of(error))


def bad_query(name: str, detail: str) -> ClusterError:
    """A path or query value that is not what it should be."""
    return InvalidInput(f"{name}: {detail}", field=name)


PREFIX: Final = "/api/v1/"


class ProblemMiddleware:
    """Outermost middleware: turns refusals before the view (hosts, CSRF, sizes) and bugs into answers of the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code < 400 or not request.path_info.startswith(PREFIX):
            return response
        if response.streaming or response.headers.get("Content-Type", "").startswith(MEDIA_TYPE):
            return response
        assert isinstance(response, HttpResponse)
        reason = reason_of(response.status_code)
        is_text = response.headers.get("Content-Type", "").startswith("text/plain")
        detail = response.content.decode("utf-8", "replace").strip() if is_text else REASONS[reason][2]
        told = JsonResponse(
            problem_body(response.status_code, reason, detail or REASONS[reason][2]),
            status=response.status_code,
            content_type=MEDIA_TYPE,
        )
        for name, value in response.items():
            if name not in ("Content-Type", "Content-Length"):
                told.headers.setdefault(name, value)
        return told
