"""What every page has: variables, refused misspelt parameters, static files, and what a server does at its start."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import TemplateSyntaxError
from django.template.loader import get_template
from django.template.loaders.filesystem import Loader
from django.urls import reverse
from django_htmx.middleware import HtmxDetails
from whitenoise.middleware import WhiteNoiseMiddleware

from playground.clusters.objects.queries import empty_cluster
from playground.engine.configuration import loaded
from playground.engine.releases import all_patches
from playground.web.pages import help_path
from playground.web.requests import HtmxHttpRequest
from scheduler_core.schema.fields_check import nearest_name
from scheduler_core.version import ENGINE_VERSION


def site(request: HttpRequest) -> dict[str, Any]:
    """Template variables of every page: what its path names (`routes`), releases, the engine, where Help leads."""
    match = request.resolver_match
    return {
        **getattr(request, "tab", {}),
        **getattr(request, "rows", {}),
        "emulates": all_patches(),
        "engine_version": ENGINE_VERSION,
        "help_path": help_path(match.app_name, match.url_name or "") if match else help_path("", ""),
    }


_AS_WRITTEN: Final = re.compile(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", re.DOTALL)


class Templates(Loader):
    """The templates without their indentation: a quarter of a page's weight."""

    def get_contents(self, origin: Any) -> str:
        text = super().get_contents(origin)
        if not origin.name.endswith(".html"):
            return text
        parts = _AS_WRITTEN.split(text)
        parts[::2] = [re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2]]
        return "".join(parts)


KNOWN: Final = frozenset(
    """
    a about action after all amount arrived as b before budget by c cancelled card choice class confirm
    csrfmiddlewaretoken cycle d days decisions description device download e effect embed f format from go
    group have hours inline is_default kind lane maxheight maxwidth n name namespace next node none note
    on open opens_at ours_decide outcome owner page part plugin pod policy profile program q question redact
    release request rule run said selected selector show sort stands team theme title to top tried unhealthy url
    value verdict version view visibility wait weight workload
    """.split()  # noqa: SIM905 (a word a line would hide what it is)
)
OF_WEIGHTS: Final = "w-"
"""What the names of parameters begin with that end in a plugin's."""
_PAGES: Final = ("accounts", "scenarios", "web")


class ParametersMiddleware:
    """Looks at the query of every request to a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or match.app_name not in _PAGES:
            return None
        for name in request.GET:
            near = misspelt(name)
            if near:
                return render(request, "400.html", {"name": name[:80], "near": near}, status=400)
        return None


def misspelt(name: str) -> str:
    """The parameter that was probably meant; empty for a known one, and for one like none.

    Examples
    --------
    >>> misspelt("titel"), misspelt("title"), misspelt("utm_source")
    ('title', '', '')
    """
    if name in KNOWN or name.startswith(OF_WEIGHTS):
        return ""
    return nearest_name(name, sorted(KNOWN))


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise with whole answers instead of streamed files.

    Under ASGI Django reads a streamed file whole anyway, warns about it, and leaves it open. Our files are
    small; the largest is htmx with 50 kB.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Answer with the file's bytes, or the part of them that was asked for."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        if found.file is not None:
            # The length was noted when the site started; the file may have been changed since.
            response["Content-Length"] = str(len(body))
        return response


logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what the paths lead to, compile every template, and load the default configuration once."""
    reverse("web:home")  # imports every view, and reads every path
    reverse("api:index_read")  # the same for paths within a prefix
    for folder in (Path(directory) for directory in settings.TEMPLATES[0]["DIRS"]):
        for file in sorted(folder.rglob("*.html")):
            try:
                get_template(str(file.relative_to(folder)))
            except TemplateSyntaxError:
                # A request for that page is told; the others are served.
                continue
    loaded(None)
    _draw_a_board()
    # What is there now stays for the life of the process: the collector need not look at it in some later request.
    gc.collect()
    gc.freeze()


def _draw_a_board() -> None:
    """The board of a cluster that is not there: what queries and pages are put together with is made once.

    In a thread of its own, as a server that imports this may run its loop already.
    """

    def draw() -> None:
        from playground.web.board.views import page_of

        request = HtmxHttpRequest()
        request.method = "GET"
        request.user = AnonymousUser()
        request.htmx = HtmxDetails(request)
        try:
            page_of(request, empty_cluster())
        except Exception as error:
            # No reason not to start: a request for a page is told. A database may only be missing yet.
            logger.info("no board could be drawn, so the first page takes longer: %s", error)
        finally:
            connection.close()

    thread = Thread(target=draw)
    thread.start()
    thread.join()
