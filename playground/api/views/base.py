"""What every operation has: who asks, what the path, query and body say, one error shape, ETags, and its answer.

An operation is an entry of `openapi.yaml` and a function of its id in a module of this folder. The function gets the
call, which has what was asked, and what the path names: rows instead of their ids (`_ROWS`). It gives a body, a list
(told as `items`), nothing (204), or a whole response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from django.utils.decorators import decorator_from_middleware, method_decorator
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS, AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts import idempotency
from playground.accounts.authentication import Surface
from playground.accounts.choices import Role
from playground.api import errors
from playground.api.documentation import declared
from playground.api.requests import (
    ConfigurationParser,
    MergePatchParser,
    StrictJSONParser,
    YAMLParser,
    checked,
    flag,
    whole_number,
)
from playground.clusters.access import get_cluster
from playground.clusters.errors import Conflict, InvalidInput, NotFound
from playground.clusters.objects.queries import get_mock_extender, get_run
from playground.clusters.questions import get_question
from playground.clusters.row_types import Cluster
from playground.scenarios import selectors
from scheduler_core.schema.fields_check import nearest_name

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
PREFIX: Final = "/api/v1/"
_OPEN: Final = ("scenarios/{", "comparisons/{", "gallery/", "verdicts/")
"""What the paths begin with that are read without an account, but for operations with `account`."""
_OF_ANY_TOKEN: Final = ("", "version", "releases/", "openapi", "clusters/", "drafts/{draft_id}/")
_KEY: Final = re.compile(r"[!-~]{1,255}")
_KEPT_HEADERS: Final = ("Content-Type", "Location", "ETag", "Retry-After", "Warning")


class Operation(NamedTuple):
    """An operation: what `openapi.yaml` says of it, and what does it."""

    said: Mapping[str, Any]
    does: Callable[..., Any]


# An answer that did not change is 304 for a client that sends its ETag back.
@method_decorator(decorator_from_middleware(ConditionalGetMiddleware), name="dispatch")
class Call(Surface):
    """Base of every view here; a view makes one call into a service or selector and renders what it gives."""

    parser_classes: list[type[BaseParser]] = [StrictJSONParser]
    path = ""
    """As in `openapi.yaml`."""
    operations: Mapping[str, Operation] = {}
    """By method."""

    @property
    def operation(self) -> Operation | None:
        """What is asked for; None where the path has no such method."""
        method = str(self.request.method).lower()
        return self.operations.get("get" if method == "head" else method)

    @property
    def one_cluster_reads(self) -> bool:
        """Whether a token of one cluster may read it although no cluster is in the path."""
        return self.path.removeprefix(PREFIX) in _OF_ANY_TOKEN or self.path.startswith(f"{PREFIX}problems/")

    def get_permissions(self) -> Sequence[Any]:
        """Some paths are read without an account; everything else wants one, on a served site."""
        is_open = self._is_open and self.request.method in SAFE_METHODS
        return [AllowAny()] if is_open else super().get_permissions()

    @property
    def _is_open(self) -> bool:
        closed = self.operation is not None and self.operation.said.get("account", False)
        return self.path.removeprefix(PREFIX).startswith(_OPEN) and not closed

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
        operation = self.operation
        if (
            operation
            and self.path.startswith(f"{PREFIX}people/")
            and not getattr(self.person, "is_superuser", 0)
        ):
            # For administrators: to everybody else there is nothing here, as on the pages.
            raise NotFound(f"there is nothing at {request.path}")
        if operation and 400 in operation.said.get("also", ()):
            known = operation.said.get("query", ())
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
        if self._is_open and request.method in ("GET", "HEAD") and not request.headers.get("Authorization"):
            final.headers["Access-Control-Allow-Origin"] = "*"
            final.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
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
        once = self.operation is not None and self.operation.said.get("once", False)
        body, told = bytes(response.content), not once or response.status_code >= 300
        status = response.status_code
        if len(body) > idempotency.MAX_BODY_BYTES or not told:
            status, body = 409, b""
        kept = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
        idempotency.keep(claim, status, kept, body)

    def answer(self, request: Request, **path: Any) -> HttpResponseBase:
        """Do what is asked for."""
        assert self.operation is not None
        said, does = self.operation
        named: dict[str, Any] = {}
        for key, value in path.items():
            name, row = _ROWS.get(key, (key, None))
            named[name] = row(self, value, named) if row else value
        found = does(self, **named)
        if isinstance(found, HttpResponseBase):
            return found
        if found is None:
            return Response(status=204)
        body: dict[str, Any] = {"items": found} if isinstance(found, list) else found
        status = next(iter(said["answers"]))
        if status == 202:
            return accepted(body, body["url"])
        headers = {"Location": body["url"]} if status == 201 and "url" in body else None
        return Response(body, status=status, headers=headers)

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body of the request, held against its shape.

        Raises
        ------
        InvalidManifest
        """
        assert self.operation is not None
        return checked(self.request.data or {}, self.operation.said["request"])

    def query(self, name: str, default: Any = None) -> Any:
        """A parameter of the query, as `openapi.yaml` types it; the default, or else an empty text, without it.

        Raises
        ------
        InvalidInput
        """
        assert self.operation is not None
        schema = self.operation.said["query"][name]
        if schema["type"] == "boolean":
            return flag(self.request, name)
        if schema["type"] == "integer":
            bounds = {"least": schema["minimum"], "most": schema["maximum"]}
            return whole_number(self.request, name, default=default, **bounds)
        text, known = self.request.GET.get(name) or default or "", schema.get("enum")
        if text and known and text not in known:
            raise InvalidInput(f"{name} is one of {', '.join(known)}", field=name, value=text)
        return text

    @property
    def field_validation(self) -> str:
        """What becomes of fields that a kind does not have."""
        return str(self.query("fieldValidation", "Warn"))

    def made(self, body: Mapping[str, Any], where: str, status: int = 201) -> Response:
        """What was made, and where it is."""
        return Response(body, status=status, headers={"Location": where})

    def page(
        self, found: Sequence[Any], limit: int, shown: Callable[[Any], Any], **last: str
    ) -> dict[str, Any]:
        """A page of rows, of which one more than `limit` was read; the next one begins after the last of this.

        `last`: the parameter that names it, and which field of it does.
        """
        items = [shown(row) for row in found[:limit]]
        ((name, field),) = last.items()
        more = str(items[-1][field]) if len(found) > limit else None
        return {"items": items, "next": self.next(**{name: more})}

    def next(self, **changed: object) -> str | None:
        """The path of the next page: this request's with other parameters; None if one of them is None."""
        if None in changed.values():
            return None
        wanted = {key: values[-1] for key, values in self.request.GET.lists()} | changed
        return f"{self.request.path}?{urlencode(wanted)}"

    def url(self, path: str) -> str:
        """An address of this site, whole."""
        return self.request.build_absolute_uri(path)

    @property
    def person(self) -> Any:
        """The user who asks; None for the local one."""
        user = self.request.user
        return user if not settings.EMBEDDED and user and user.is_authenticated else None

    def cluster(self, cluster_id: str, *, at_least: Role | None = None) -> Cluster:
        """The cluster of the path, if it is there for the caller, to do what the method does.

        Reading takes a viewer, everything else an editor unless `at_least` or the operation's `role` says otherwise.

        Raises
        ------
        NotFound, Forbidden
        """
        if at_least is None:
            usual = Role.VIEWER if self.request.method in SAFE_METHODS else Role.EDITOR
            at_least = Role(self.operation.said.get("role", usual) if self.operation else usual)
        return get_cluster(cluster_id, self.person, at_least=at_least)


_ROWS: Final[Mapping[str, tuple[str, Callable[[Call, str, Mapping[str, Any]], Any]]]] = {
    "cluster_id": ("cluster", lambda view, id, named: view.cluster(id)),
    "scenario_id": ("scenario", lambda view, id, named: selectors.get_scenario(id, view.request.user)),
    "comparison_id": ("comparison", lambda view, id, named: selectors.get_comparison(id, view.request.user)),
    "verdict_id": ("verdict", lambda view, id, named: selectors.get_verdict(id, view.request.user)),
    "question_id": ("question", lambda view, id, named: get_question(named["cluster"], id)),
    "run_id": ("run", lambda view, id, named: get_run(named["cluster"], id)),
    "extender_id": ("extender", lambda view, id, named: get_mock_extender(named["cluster"], id)),
}
"""What a path names by its id -> the argument, and its row."""

_PARSERS: Final = {
    "application/json": StrictJSONParser,
    "application/yaml": YAMLParser,
    "application/merge-patch+json": MergePatchParser,
}


def view_of(path: str, functions: Mapping[str, Callable[..., Any]]) -> type[Call]:
    """The view of a path of `openapi.yaml`, of the functions that do its operations, by id."""
    item = declared()["paths"][path]
    asked = [said["request"] for said in item.values() if "request" in said]
    media = {one for request in asked if not isinstance(request, str) for one in request}
    parsers = [of for name, of in _PARSERS.items() if name in media | {"application/json"}]
    if any("configuration" in said for said in item.values()):
        parsers = [StrictJSONParser, ConfigurationParser]
    facts = {
        "path": path,
        "parser_classes": parsers,
        "operations": {method: Operation(said, functions[said["id"]]) for method, said in item.items()},
        **dict.fromkeys(item, Call.answer),
    }
    return type("View", (Call,), facts)


class Nothing(Call):
    """Every other path: the same shape of refusal as everywhere."""

    throttle_classes = []
    parser_classes: list[type[BaseParser]] = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(f"there is nothing at {request.path}")

    get = post = put = patch = delete = Call.answer


def tags_of(request: Request) -> list[str]:
    """The tags of If-Match; that of a packed answer, a weak one, is of the same version."""
    tags = (tag.strip() for tag in request.headers.get("If-Match", "").split(","))
    return [tag.removeprefix("W/") for tag in tags if tag]


def _again(status: int, headers: Mapping[str, str], body: bytes) -> Response:
    """An answer that was given before."""
    if status == 409 and not body:
        return errors.problem(
            409, "Conflict", "this was done already; its answer is shown only once, or too long to be repeated",
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
