"""Who may see which cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest

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
