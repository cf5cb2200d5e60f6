"""What every view of this API has: who asks, one error shape, ETags, and the cluster in the path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from django.utils.decorators import decorator_from_middleware, method_decorator
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from playground.accounts import idempotency
from playground.accounts.authentication import BearerToken, MayEnter, Requests, SessionLogin, Writes
from playground.accounts.choices import Role
from playground.api import errors
from playground.api.documentation import query_names
from playground.api.requests import StrictJSONParser, checked
from playground.clusters.access import get_cluster
from playground.clusters.errors import Conflict
from scheduler_core.schema.fields_check import nearest_name

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
_KEY: Final = re.compile(r"[!-~]{1,255}")
_KEPT_HEADERS: Final = ("Content-Type", "Location", "ETag", "Retry-After", "Warning")


class AlwaysJSON(DefaultContentNegotiation):
    """JSON whatever `Accept` says: there is nothing else, and a client that gets it can say so itself."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


# An answer that did not change is 304 for a client that sends its ETag back.
@method_decorator(decorator_from_middleware(ConditionalGetMiddleware), name="dispatch")
class PlaygroundView(APIView):
    """Base of every view here; a view makes one call into a service or selector and renders what it gives."""

    authentication_classes = [BearerToken, SessionLogin]
    permission_classes = [MayEnter]
    throttle_classes = [Requests, Writes]
    renderer_classes = [JSONRenderer]
    parser_classes: list[type[BaseParser]] = [StrictJSONParser]
    content_negotiation_class = AlwaysJSON
    told_once = False
    """Whether an answer holds a secret: it is not kept for requests that are repeated."""

    def get_exception_handler(self) -> Callable[[Exception, Mapping[str, Any]], Response | None]:
        return errors.handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        for name, value in (
            *kwargs.items(),
            *((key, v) for key in request.GET for v in request.GET.getlist(key)),
        ):
            if isinstance(value, str) and "\0" in value:
                raise errors.bad_query(name, "contains the character U+0000")
        match = django_request(request).resolver_match
        known = query_names(str(request.method), match.route if match else "")
        if known is not None:
            for name in (each for each in request.GET if each not in known):
                near = nearest_name(name, sorted(known))
                raise errors.bad_query(
                    name, "no such parameter" + (f", did you mean {near}?" if near else "")
                )
        self._claim_key(request)

    def _claim_key(self, request: Request) -> None:
        """Answer a POST that is repeated as before; keep the answer of one that may be.

        Raises
        ------
        Repeated, InvalidInput, Conflict, KeyReused
        """
        key = request.headers.get(IDEMPOTENCY_KEY)
        if request.method != "POST" or key is None:
            return
        if not _KEY.fullmatch(key):
            raise errors.bad_query(IDEMPOTENCY_KEY, "is 1 to 255 printable ASCII characters without spaces")
        inner = django_request(request)
        asked = (inner.get_full_path(), request.content_type or "")
        digest = idempotency.digest_of(*(part.encode() for part in asked), inner.body)
        found = idempotency.begin(person=self.person, key=key, digest=digest)
        if not found.same:
            raise errors.KeyReused()
        if found.claim is not None:
            inner.kept_claim = found.claim  # type: ignore[attr-defined]
        elif found.answer is None:
            raise Conflict("the same request is being answered; ask again in a moment")
        else:
            raise errors.Repeated(_again(*found.answer))

    # The stubs know of Django REST framework's own responses alone; Django's go through as they are.
    def finalize_response(  # type: ignore[override]
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        final: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "private, no-cache")
        inner = django_request(request)
        if allowances := getattr(inner, "allowances", ()):
            # Of all that count, the one that ends first.
            least = min(allowances, key=lambda one: one.left)
            final.headers["RateLimit-Limit"] = str(least.limit)
            final.headers["RateLimit-Remaining"] = str(least.left)
            final.headers["RateLimit-Reset"] = str(least.reset_s)
        claim = getattr(inner, "kept_claim", None)
        if claim is not None and isinstance(final, Response):
            final.add_post_render_callback(lambda done: self._keep(claim, done))
        elif claim is not None:
            self._keep(claim, final)
        return final

    def _keep(self, claim: Any, response: Any) -> None:
        body, told = bytes(response.content), not self.told_once or response.status_code >= 300
        status = response.status_code
        if len(body) > idempotency.MAX_BODY_BYTES or not told:
            status, body = 409, b""
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        idempotency.keep(claim, status, kept, body)

    def body(self, shape: str) -> dict[str, Any]:
        """The body of the request, held against a shape of `openapi.yaml`.

        Raises
        ------
        InvalidManifest
        """
        return checked(self.request.data or {}, shape)

    @property
    def person(self) -> Any:
        """The user who asks; None for the local one."""
        user = self.request.user
        return user if not settings.EMBEDDED and user and user.is_authenticated else None

    def cluster(self, cluster_id: str, *, at_least: Role | None = None) -> Cluster:
        """The cluster of the path, if it is there for the caller, to do what the method does.

        Reading takes a viewer, everything else an editor unless `at_least` says otherwise.

        Raises
        ------
        NotFound, Forbidden
        """
        if at_least is None:
            at_least = Role.VIEWER if self.request.method in SAFE_METHODS else Role.EDITOR
        return get_cluster(cluster_id, self.person, at_least=at_least)


def tags_of(request: Request) -> list[str]:
    """The tags of If-Match; that of a packed answer, a weak one, is of the same version."""
    tags = (tag.strip() for tag in request.headers.get("If-Match", "").split(","))
    return [tag.removeprefix("W/") for tag in tags if tag]


def _again(status: int, headers: Mapping[str, str], body: bytes) -> Response:
    """An answer that was given before."""
    if status == 409 and not body:
        return errors.problem(
            409, "Conflict", "this was done already; its answer is told once, or too long to be told again",
            headers={**headers, REPLAYED: "true"},
        )  # fmt: skip
    response = Response(json.loads(body) if body else None, status=status)
    for name, value in {**headers, REPLAYED: "true"}.items():
        response.headers[name] = value
    response.content_type = headers.get("Content-Type", "application/json")
    return response


def accepted(body: Mapping[str, Any], where: str, *, retry_after_s: int = 1) -> Response:
    """Answer for asynchronous work: 202, its URL (GET shows progress, DELETE cancels) and when to ask again."""
    return Response(body, status=202, headers={"Location": where, "Retry-After": str(retry_after_s)})


def django_request(request: Request) -> HttpRequest:
    """Django's own request below DRF's, its body untouched."""
    inner: HttpRequest = request._request
    return inner
