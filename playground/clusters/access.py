"""Who may see and change which cluster, with the token they ask with: the one place that decides it."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.db.models import Q, QuerySet

from playground.accounts.choices import Role
from playground.accounts.models import Membership
from playground.accounts.tokens import beyond, may_go_on, only_cluster, only_reads
from playground.clusters.errors import Conflict, Forbidden, NotFound, found
from playground.clusters.models import Cluster

_RANK: Final = {Role.VIEWER: 1, Role.EDITOR: 2, Role.OWNER: 3}


def clusters_of(user: Any) -> QuerySet[Cluster]:
    """The clusters a user may see: theirs and their teams', of these the one their token is for if it is for one.

    For the local user of embedded mode those without owner.
    """
    if user is None or not getattr(user, "is_authenticated", False):
        if not settings.EMBEDDED:
            return Cluster.objects.none()
        return Cluster.objects.filter(owner__isnull=True, team__isnull=True)
    mine = Membership.objects.filter(user=user).values("team")
    rows = Cluster.objects.filter(Q(owner=user) | Q(team__in=mine))
    only = only_cluster(user)
    return rows.filter(public_id=only) if only else rows


def role_in(cluster: Cluster, user: Any) -> Role | None:
    """What a user may do with a cluster, with the token they ask with; None for a stranger.

    The local user owns what has no owner.

    At most one query.
    """
    if user is None or not getattr(user, "is_authenticated", False):
        local = settings.EMBEDDED and cluster.owner_id is None and cluster.team_id is None
        return Role.OWNER if local else None
    if only_cluster(user) not in ("", cluster.public_id):
        return None
    role: str | None = Role.OWNER if cluster.owner_id == user.pk else None
    if role is None and cluster.team_id is not None:
        members = Membership.objects.filter(team=cluster.team_id, user=user)
        role = members.values_list("role", flat=True).first()
    if role is None:
        return None
    return Role.VIEWER if only_reads(user) else Role(role)


def check_role(cluster: Cluster, user: Any, at_least: Role) -> None:
    """Refuse what takes a higher role than the user has.

    Raises
    ------
    Forbidden
    """
    if at_least == Role.VIEWER:
        return
    role = role_in(cluster, user)
    if role is None or _RANK[role] < _RANK[at_least]:
        raise Forbidden(
            f'that takes the role "{at_least}" in cluster "{cluster.public_id}", yours is "{role}"',
            kind="Cluster",
            name=cluster.public_id,
        )


def get_cluster(public_id: str, user: Any = None, *, at_least: Role = Role.VIEWER) -> Cluster:
    """The cluster, if a user may do with it what the role may.

    Raises
    ------
    NotFound
        It does not exist, or it is another user's: the two look the same.
    Forbidden
        The user may see it and no more, or asks with a token of another cluster.
    """
    if only_cluster(user) not in ("", public_id):
        raise Forbidden(beyond(only_cluster(user)), kind="Cluster")
    row = clusters_of(user).filter(public_id=public_id).first()
    cluster = found(row, f'cluster "{public_id}"', kind="Cluster", name=public_id)
    check_role(cluster, user, at_least)
    return cluster


def get_parent(branch: Cluster, user: Any = None, *, at_least: Role = Role.VIEWER) -> Cluster:
    """The cluster that a branch was made of, as `get_cluster` hands it out.

    Raises
    ------
    Conflict
        It is no branch of a cluster.
    NotFound, Forbidden
    """
    if branch.parent is None:
        raise Conflict(f'"{branch.name}" is no branch of another cluster', kind="Cluster")
    try:
        return get_cluster(branch.parent.public_id, user, at_least=at_least)
    except NotFound:
        raise NotFound(f'the parent of "{branch.name}" is not there for you', kind="Cluster") from None


def cluster_now(pk: int, user: Any = None) -> Cluster | None:
    """The row as it is now, for an answer that goes on for long. Two queries, one for the local user.

    None: the cluster was deleted, or the user's token, account or role has ended since they asked.
    """
    if not settings.EMBEDDED and not may_go_on(user):
        return None
    return clusters_of(user).filter(pk=pk).first()
