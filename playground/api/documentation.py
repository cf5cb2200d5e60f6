"""What the OpenAPI document says of an operation, in one line at the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from playground.api.errors import MEDIA_TYPE, REASONS
from playground.api.serializers import answers
from playground.clusters.objects.admission import MODES

View = TypeVar("View", bound=Callable[..., Any])

ALWAYS: Final = (401, 403, 429, 500, 503)
OF_STATUS: Final = {
    400: "Invalid",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "IdempotencyKeyReused",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class OperationSchema(AutoSchema):
    """How to authenticate is the same everywhere and said once for the whole document."""

    def get_auth(self) -> list[Any]:
        return []


def operation(
    summary: str,
    *,
    id: str,
    answers_: Mapping[Any, Any],
    request: Any = None,
    errors: Sequence[int] = (),
    example: Any = None,
    example_media_type: str = "application/json",
    answer_example: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
    tag: str = "clusters",
    reads: bool = False,
) -> Callable[[View], View]:
    """Document one method of a view.

    Parameters
    ----------
    summary
        One line; the method's docstring is the longer text.
    id
        The operation's name for generated clients.
    answers_
        Status -> serializer (None = no body).
    request
        Serializer of the body.
    errors
        Statuses it may answer besides those every operation may.
    example, answer_example
        Of a request (of `example_media_type`) and of its answer, with every status of the same shape.
    reads
        Whether it is a GET, which may answer 304.
    """
    examples = []
    if example is not None:
        examples.append(
            OpenApiExample("Request", value=example, request_only=True, media_type=example_media_type)
        )
    if answer_example is not None:
        first = next(iter(answers_))
        codes = [key for key, shape in answers_.items() if shape == answers_[first]]
        media = first[1] if isinstance(first, tuple) else "application/json"
        examples.append(
            OpenApiExample(
                "Answer",
                value=answer_example,
                response_only=True,
                status_codes=[str(key[0] if isinstance(key, tuple) else key) for key in codes],
                media_type=media,
            )
        )
    responses: dict[Any, Any] = dict(answers_)
    for status in sorted({*errors, *ALWAYS}):
        responses[(status, MEDIA_TYPE)] = OpenApiResponse(answers.Problem, description=_words(status))
    if reads:
        responses[304] = OpenApiResponse(None, description="Not changed since the ETag in If-None-Match.")
    describe = extend_schema(
        operation_id=id,
        summary=summary,
        request=request,
        responses=responses,
        examples=examples,
        parameters=list(parameters),
        tags=[tag],
    )

    def documented(view: View) -> View:
        found = describe(view)
        # Other names are refused (`PlaygroundView.initial`) where 400 is an answer: `?dryrun=true` must not write.
        if 400 in errors:
            found.query_names = frozenset(  # type: ignore[attr-defined]  # a function's
                each.name for each in parameters if each.location == OpenApiParameter.QUERY
            )
        return found

    return documented


def _words(status: int) -> str:
    return REASONS[OF_STATUS[status]][2]


def query(
    name: str,
    words: str,
    *,
    type: Any = OpenApiTypes.STR,
    required: bool = False,
    enum: Sequence[Any] | None = None,
) -> OpenApiParameter:
    """A query parameter."""
    return OpenApiParameter(
        name, type, OpenApiParameter.QUERY, required=required, description=words, enum=enum
    )


def number(name: str, words: str, *, least: int = 0, most: int = 2**63 - 1) -> OpenApiParameter:
    """A whole number in the query."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return OpenApiParameter(name, schema, OpenApiParameter.QUERY, description=words)


FIELD_VALIDATION = query(
    "fieldValidation",
    "What becomes of fields a kind does not have: Warn tells and drops them, Strict refuses, Ignore drops them.",
    enum=MODES,
)
