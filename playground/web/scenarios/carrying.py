"""What leaves the site whole, and comes back: links that carry their scenario, and replays saved as one file."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from playground.clusters.errors import ClusterError
from playground.engine.carrying import MAX_LINK_CHARS
from playground.scenarios import services
from playground.web.problems import Problem, problems_of
from playground.web.requests import HtmxHttpRequest, site_user
from playground.web.scenarios.shares import get_share, shared_page
from playground.web.scenarios.sharing import expiry_of, seen_by, visibilities_for, wants_login

LONG_LINK = 2000
"""Characters above which some chat programs cut a link."""


@wants_login
@require_safe
def saved(request: HttpRequest, share_id: str) -> HttpResponse:
    """The replay as one HTML file; a worker runs it anew for it."""
    share = get_share(request, share_id)
    try:
        page = services.standalone_file(
            scenario=share, owner=site_user(request), address=request.build_absolute_uri("/")
        )
    except ClusterError as error:
        messages.error(request, f"No file: {error.message}")
        return redirect("scenarios:page", share.public_id)
    return as_download(page, f"{share.name or share.public_id}.html")


def as_download(page: str, name: str) -> HttpResponse:
    """A standalone file to keep: with a script of its own, it is never opened as a page of this site."""
    response = HttpResponse(page, content_type="text/html; charset=utf-8")
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)
    response.headers["Content-Disposition"] = f'attachment; filename="{safe}"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


@require_safe
@vary_on_headers("HX-Request")
def link(request: HtmxHttpRequest, share_id: str) -> HttpResponse:
    """The link that carries the share, for the page to show; or why there is none."""
    share = get_share(request, share_id)
    context: dict[str, Any] = {"share": share}
    try:
        line = services.carried_line(scenario=share)
    except ClusterError as error:
        context["problem"] = error.message
    else:
        whole = f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}"
        context |= {"link": whole, "is_long": len(whole) > LONG_LINK}
    template = "scenarios/carried_link.html" if request.htmx else "scenarios/carried_link_page.html"
    return render(request, template, context)


@require_http_methods(["GET", "HEAD", "POST"])
def open_link(request: HttpRequest) -> HttpResponse:
    """Open a link that carries its scenario: the browser reads it, and one button brings it here."""
    return _brought(request) if request.method == "POST" else _opening(request, [], 200)


@wants_login
def _brought(request: HttpRequest) -> HttpResponse:
    line = "".join(request.POST.get("carried", "")[: MAX_LINK_CHARS + 1].split())
    try:
        shared = services.share(
            document=f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}",
            owner=site_user(request),
            **seen_by(request),
            expires=expiry_of(request.POST.get("days", "")),
        )
    except ClusterError as error:
        return _opening(request, problems_of(error), error.status)
    return shared_page(request, shared)


def _opening(request: HttpRequest, problems: list[Problem], status: int) -> HttpResponse:
    context = {
        "problems": problems,
        "visibilities": visibilities_for(request),
        "may_bring": settings.EMBEDDED or request.user.is_authenticated,
        "most": MAX_LINK_CHARS,
    }
    return render(request, "scenarios/open.html", context, status=status)
