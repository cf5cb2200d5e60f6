"""A share in other people's pages: the frame, and oEmbed that finds it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.clickjacking import xframe_options_exempt

from playground.clusters.errors import ClusterError, NotFound
from playground.engine.scenarios import MAX_LINK_CHARS
from playground.middleware import CONTENT_SECURITY_POLICY
from playground.scenarios import selectors
from playground.scenarios.choices import Visibility
from playground.scenarios.row_types import Scenario
from playground.scenarios.services import shares
from playground.web.looks import View
from playground.web.problems import problems_of
from playground.web.requests import HtmxHttpRequest, download, positive_int, site_user, wants_login
from playground.web.scenarios.shares import (
    moment_context,
    opening_cycle,
    readable,
    seen_by,
    shared_page,
    visibilities_for,
)

OLD_AFTER = timedelta(days=30)
FRAME_WIDTH, FRAME_HEIGHT = 760, 480
_OPEN_TO_ALL = (Visibility.PUBLIC, Visibility.UNLISTED)


@xframe_options_exempt
def embed(request: HttpRequest, share: Scenario) -> HttpResponse:
    """The moment for a frame in another site's page: nothing to change, nothing that needs a cookie or a script."""
    context = moment_context(request, share, request.GET.get("cycle") or opening_cycle(share))
    theme = request.GET.get("theme", "")
    proof, last_proof = selectors.proofs_of(share)
    last = last_proof
    age = timezone.now() - (last.finished or last.created) if last else OLD_AFTER
    context |= {
        "embedded": True,
        "proof": proof,
        "last_proof": last,
        "days_old": age.days if age > OLD_AFTER else 0,
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
    """Origins whose pages may frame a share; none for one that a team or a person alone sees."""
    return settings.PLAYGROUND_EMBED_IN if share.visibility in _OPEN_TO_ALL else "'none'"


_PATH = re.compile(r"/s/([A-Za-z0-9_-]{1,24})(?:/(?:embed/?|cycles/([0-9]{1,9})/?)?)?")


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


LONG_LINK = 2000
"""Characters above which some chat programs cut a link."""


def saved(request: HttpRequest, share: Scenario) -> HttpResponse:
    """The replay as one HTML file; a worker runs it anew for it."""
    address = request.build_absolute_uri("/")
    page = shares.standalone_file(scenario=share, owner=site_user(request), address=address)
    return download(page, share.name or share.public_id, "html", "text/html")


def link(request: HtmxHttpRequest, share: Scenario) -> HttpResponse:
    """The link that carries the share, for the page to show; or why there is none."""
    context: dict[str, Any] = {"share": share}
    try:
        line = shares.carried_line(scenario=share)
    except ClusterError as error:
        context["problem"] = error.message
    else:
        whole = f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}"
        context |= {"link": whole, "is_long": len(whole) > LONG_LINK}
    template = "scenarios/carried_link.html" if request.htmx else "scenarios/carried_link_page.html"
    return render(request, template, context)


def open_link(request: HttpRequest) -> HttpResponse:
    """Open a link that carries its scenario: the browser reads it, and one button brings it here."""
    return _brought(request) if request.method == "POST" else _opening(request, [], 200)


def _brought(request: HttpRequest) -> HttpResponse:
    if (instead := wants_login(request)) is not None:
        return instead
    line = "".join(request.POST.get("carried", "")[: MAX_LINK_CHARS + 1].split())
    try:
        shared = shares.share(
            document=f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}",
            owner=site_user(request),
            **seen_by(request),
        )
    except ClusterError as error:
        return _opening(request, problems_of(error), error.status)
    return shared_page(request, shared)


def _opening(request: HttpRequest, problems: list[View], status: int) -> HttpResponse:
    context = {
        "problems": problems,
        "visibilities": visibilities_for(request),
        "may_bring": settings.EMBEDDED or request.user.is_authenticated,
        "most": MAX_LINK_CHARS,
        "in_page": settings.PLAYGROUND_PAGE is not None,
    }
    return render(request, "scenarios/open.html", context, status=status)
