"""The page whose engine runs in its reader's browser, from the folder that `kube-scheduler-playground page` wrote."""

from __future__ import annotations

import mimetypes
import re

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt


@xframe_options_exempt
def page(request: HttpRequest, name: str = "index.html") -> HttpResponse:
    """One file of it. The page says itself, in its policy, that nothing leaves the browser; others may embed it."""
    if settings.PLAYGROUND_PAGE is None:
        return _not_built(request, name)
    file = settings.PLAYGROUND_PAGE / name
    if not re.fullmatch(r"\w[\w.-]*", name) or not file.is_file():
        raise Http404(f"the page has no file {name}")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    response = HttpResponse(file.read_bytes(), content_type=kind)
    # Its service worker keeps the files of one build.
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.headers["Content-Security-Policy"] = f"frame-ancestors {settings.PLAYGROUND_EMBED_IN}"
    return response


def _not_built(request: HttpRequest, name: str) -> HttpResponse:
    if name != "index.html":
        raise Http404("this site serves no page")
    return render(request, "built_page.html")
