"""Who may see which cluster."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import slugify
from django_htmx.middleware import HtmxDetails

from playground.accounts.choices import Role
from playground.clusters import access
from playground.clusters.row_types import Cluster
from playground.middleware import SAFE_METHODS


def visible_clusters(request: HttpRequest) -> QuerySet[Cluster]:
    """The clusters of the person logged in; in embedded mode (one person, no login) those without an owner."""
    return access.clusters_of(request.user)


def get_cluster(request: HttpRequest, cluster_id: str) -> Cluster:
    """The cluster, if the user may do with it what the request does: another user's does not exist for them.

    Changing it takes an editor, deleting it an owner.

    Raises
    ------
    NotFound, Forbidden
    """
    match = request.resolver_match
    deletes = match is not None and match.kwargs.get("action") == "delete"
    changes = Role.OWNER if deletes else Role.EDITOR
    return access.get_cluster(
        cluster_id, request.user, at_least=Role.VIEWER if request.method in SAFE_METHODS else changes
    )


def site_user(request: HttpRequest) -> Any:
    """The user; None for the one person of embedded mode, and without a login."""
    return request.user if not settings.EMBEDDED and request.user.is_authenticated else None


def wants_login(request: HttpRequest) -> HttpResponse | None:
    """A page of one's own among pages that strangers may read: on a served site it wants a login."""
    if settings.EMBEDDED or request.user.is_authenticated:
        return None
    return redirect_to_login(request.get_full_path(), reverse("accounts:login"))


def next_page(request: HttpRequest) -> str:
    """The page the form was on, if it says so and that is one of this site; else empty."""
    there = request.POST.get("next", "")
    return there if there.startswith("/") and url_has_allowed_host_and_scheme(there, None) else ""


def done(request: HttpRequest, words: str, where: str, *ids: Any, anchor: str = "") -> HttpResponse:
    """Redirect to a page (a route of these ids, or a path) that says what was done."""
    if words:
        messages.success(request, words)
    response = redirect(where, *ids)
    response.headers["Location"] += anchor
    return response


def download(body: str, name: str, ending: str, content_type: str) -> HttpResponse:
    """A file to keep, never opened as a page of this site."""
    response = HttpResponse(body, content_type=f"{content_type}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{slugify(name) or "scenario"}.{ending}"'
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


class HtmxHttpRequest(HttpRequest):
    """A request as views get it; ``request.htmx`` is true where htmx asks."""

    htmx: HtmxDetails


MAX = 2**53


def positive_int(text: str | None) -> int | None:
    """Return the number, or None for anything that is not one from 1 to 2^53."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 16:
        return None
    number = int(text)
    return number if 1 <= number <= MAX else None


def posted_gates(request: HttpRequest) -> dict[str, bool]:
    """Gates as pages post them: `gate:NAME` is on or off, empty leaves it at its default."""
    return {
        name.removeprefix("gate:"): value == "on"
        for name, value in request.POST.items()
        if name.startswith("gate:") and value in ("on", "off")
    }


_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')


def digest_of(html: str) -> str:
    """A short digest of a rendered fragment; the token of its forms, masked anew every time, does not count."""
    return hashlib.sha256(_TOKEN.sub("", html).encode()).hexdigest()[:10]
