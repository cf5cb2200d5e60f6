"""Who may see which cluster."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django_htmx.middleware import HtmxDetails

from playground.accounts.choices import Role
from playground.clusters.access import check_role, clusters_of
from playground.clusters.errors import Forbidden

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


def visible_clusters(request: HttpRequest) -> QuerySet[Cluster]:
    """The clusters of the person logged in; in embedded mode (one person, no login) those without an owner."""
    return clusters_of(request.user)


def get_cluster(request: HttpRequest, cluster_id: str) -> Cluster:
    """Return the cluster, or answer 404: another user's cluster does not exist for you.

    Changing it takes an editor, deleting it an owner; a viewer is answered 403.
    """
    cluster = visible_clusters(request).filter(public_id=cluster_id).first()
    if cluster is None:
        raise Http404(f'There is no cluster "{cluster_id}".')
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        person = request.user if request.user.is_authenticated else None
        match = request.resolver_match
        deletes = match is not None and match.kwargs.get("action") == "delete"
        try:
            check_role(cluster, person, Role.OWNER if deletes else Role.EDITOR)
        except Forbidden as error:
            raise PermissionDenied(error.message) from None
    return cluster


def site_user(request: HttpRequest) -> Any:
    """The user; None for the one person of embedded mode, and without a login."""
    return request.user if not settings.EMBEDDED and request.user.is_authenticated else None


def wants_login(request: HttpRequest) -> HttpResponse | None:
    """A page of one's own among pages that strangers may read: on a served site it wants a login."""
    if settings.EMBEDDED or request.user.is_authenticated:
        return None
    return redirect_to_login(request.get_full_path(), reverse("accounts:login"))


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


_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')


def digest_of(html: str) -> str:
    """A short digest of a rendered fragment; the token of its forms, masked anew every time, does not count."""
    return hashlib.sha256(_TOKEN.sub("", html).encode()).hexdigest()[:10]
