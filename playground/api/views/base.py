"""What every view of this API has: who asks, one error shape, ETags, and the cluster in the path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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

from playground.accounts.authentication import BearerToken, MayEnter, Requests, Session, Writes
from playground.accounts.models import Role
from playground.api import errors
from playground.api.documentation import OperationSchema
from playground.api.parsers import StrictJSONParser
from playground.clusters import selectors
from playground.clusters.models import Cluster


class AlwaysJSON(DefaultContentNegotiation):
    """JSON whatever `Accept` says: there is nothing else, and a client that gets it can say so itself."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


# An answer that did not change is 304 for whoever sends its ETag back.
@method_decorator(decorator_from_middleware(ConditionalGetMiddleware), name="dispatch")
class PlaygroundView(APIView):
    """Base of every view here; a view makes one call into a service or selector and renders what it gives."""

    authentication_classes = [BearerToken, Session]
    permission_classes = [MayEnter]
    throttle_classes = [Requests, Writes]
    renderer_classes = [JSONRenderer]
    parser_classes: list[type[BaseParser]] = [StrictJSONParser]
    content_negotiation_class = AlwaysJSON
    schema = OperationSchema()

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

    def finalize_response(
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "private, no-cache")
        return final

    @property
    def person(self) -> Any:
        """The user who asks; None for the local one."""
        user = self.request.user
        return user if not settings.EMBEDDED and user and user.is_authenticated else None

    def cluster(self, cluster_id: str, *, at_least: Role | None = None) -> Cluster:
        """The cluster of the path, if it is there for whoever asks, to do what the method does.

        Reading takes a viewer, everything else an editor unless `at_least` says otherwise.

        Raises
        ------
        NotFound, Forbidden
        """
        if at_least is None:
            at_least = Role.VIEWER if self.request.method in SAFE_METHODS else Role.EDITOR
        return selectors.get_cluster(cluster_id, self.person, at_least=at_least)


def django_request(request: Request) -> HttpRequest:
    """Django's own request below DRF's, its body untouched."""
    inner: HttpRequest = request._request
    return inner
