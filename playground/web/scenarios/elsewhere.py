"""A share in other people's pages: the frame, and oEmbed that finds it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from playground.clusters.errors import NotFound
from playground.scenarios import selectors
from playground.scenarios.choices import Visibility
from playground.security import CONTENT_SECURITY_POLICY
from playground.web.requests import positive_int
from playground.web.scenarios.badge import Standing, standing_of
from playground.web.scenarios.shares import get_share, moment_context, opening_cycle, readable

if TYPE_CHECKING:
    from playground.scenarios.row_types import Scenario

FRAME_WIDTH, FRAME_HEIGHT = 760, 480
_OPEN_TO_ALL = (Visibility.PUBLIC, Visibility.UNLISTED)


def _standing(share: Scenario) -> Standing:
    found = selectors.scenario_page(share)
    return standing_of(share, found.proof, found.last_proof)


@require_safe
@xframe_options_exempt
def embed(request: HttpRequest, share_id: str) -> HttpResponse:
    """The moment for a frame in another site's page: nothing to change, nothing that needs a cookie or a script."""
    share = get_share(request, share_id)
    context = moment_context(request, share, request.GET.get("cycle") or opening_cycle(share))
    theme = request.GET.get("theme", "")
    context |= {
        "embedded": True,
        "standing": _standing(share),
        "is_line": request.GET.get("view") == "line",
        "theme": theme if theme in ("light", "dark") else "",
    }
    response = render(request, "scenarios/embed.html", context)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
        "frame-ancestors 'none'", f"frame-ancestors {_frame_ancestors(share)}"
    )
    if _frame_ancestors(share) == "'none'":
        response.headers["X-Frame-Options"] = "DENY"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


def _frame_ancestors(share: Scenario) -> str:
    """Whose pages may frame it: what a team or a person alone sees is framed nowhere."""
    return settings.PLAYGROUND_EMBED_IN if share.visibility in _OPEN_TO_ALL else "'none'"


_PATH = re.compile(r"/s/([A-Za-z0-9_-]{1,24})(?:/(?:embed/?|cycles/([0-9]{1,9})/?)?)?")


@require_safe
def oembed(request: HttpRequest) -> HttpResponse:
    """oEmbed 1.0, rich: the frame of a share, for pages its link is pasted into (https://oembed.com)."""
    if request.GET.get("format", "json") != "json":
        return _problem("json is the format there is", 501)
    asked = urlsplit(request.GET.get("url", ""))
    found = _PATH.fullmatch(asked.path)
    if found is None or asked.netloc != request.get_host():
        return _problem("url is the address of a share here", 404)
    try:
        share = selectors.get_scenario(found[1], request.user)
    except NotFound as error:
        return _problem(error.message, 404)
    if _frame_ancestors(share) == "'none'":
        return _problem("it is not shown in other people's pages", 401)
    cycle = found[2] or dict(part.partition("=")[::2] for part in asked.query.split("&")).get("cycle", "")
    query = f"?{urlencode({'cycle': cycle})}" if positive_int(cycle) else ""
    whole = request.build_absolute_uri
    source = f"{whole(reverse('scenarios:embed', args=[share.public_id]))}{query}"
    width = min(FRAME_WIDTH, positive_int(request.GET.get("maxwidth")) or FRAME_WIDTH)
    height = min(FRAME_HEIGHT, positive_int(request.GET.get("maxheight")) or FRAME_HEIGHT)
    answer = {
        "version": "1.0",
        "type": "rich",
        "title": share.words,
        "provider_name": "Scheduling Playground",
        "provider_url": whole("/"),
        "cache_age": 300,
        "html": frame(source, share.words, width, height),
        "width": width,
        "height": height,
    }
    return readable(JsonResponse(answer), share)


def frame(source: str, title: str, width: int = FRAME_WIDTH, height: int = FRAME_HEIGHT) -> str:
    """The element that shows a share in a page."""
    return format_html(
        '<iframe src="{}" width="{}" height="{}" title="{}" loading="lazy" sandbox="allow-popups"></iframe>',
        source, width, height, title,
    )  # fmt: skip


def _problem(words: str, status: int) -> HttpResponse:
    return JsonResponse({"error": words}, status=status, headers={"Access-Control-Allow-Origin": "*"})
