"""Who may read a share or a comparison."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from playground.accounts.models import Team
from playground.accounts.tokens import only_cluster
from playground.clusters.errors import InvalidInput, NotFound
from playground.clusters.log.quotas import check_token
from playground.scenarios.choices import Visibility


def visible(rows: QuerySet[Any], user: Any) -> QuerySet[Any]:
    """Of shares, comparisons or verdicts those that are there for a user: public ones, unlisted ones (who has the link
    may read them), one's own and one's teams'. Expired ones are gone; a token of one cluster sees none.
    """
    live = rows.filter(Q(expires__isnull=True) | Q(expires__gt=timezone.now()))
    if settings.EMBEDDED:
        return live
    if only_cluster(user):
        return live.none()
    may = Q(visibility__in=[Visibility.PUBLIC, Visibility.UNLISTED])
    if user is not None and user.is_authenticated:
        may |= Q(owner=user) | Q(team__memberships__user=user)
    return live.filter(may).distinct()


def checked_audience(
    visibility: str, team: Team | str | None, owner: Any, expires: datetime | None
) -> Team | None:
    """The team of what only a team sees; None for all else.

    Raises
    ------
    InvalidInput, NotFound
    Forbidden
        The owner asks with a token of one cluster, which shares nothing.
    """
    check_token(owner)
    if visibility not in Visibility.values:
        raise InvalidInput(
            f"the visibility is one of {', '.join(Visibility.values)}", field="visibility", value=visibility
        )
    if expires is not None and expires <= timezone.now():
        raise InvalidInput("it would have expired already", field="expires", value=expires.isoformat())
    return _team(visibility, team, owner)


def _team(visibility: str, team: Team | str | None, owner: Any) -> Team | None:
    if visibility != Visibility.TEAM:
        return None
    if owner is None:
        raise InvalidInput(
            "this playground belongs to one person, so there is no team to share with",
            field="visibility",
            value=visibility,
        )
    own = Team.objects.filter(memberships__user=owner).order_by("name")
    if not team:
        teams = list(own[:2])
        if len(teams) == 1:
            return teams[0]
        words = "you are in no team" if not teams else "you are in several teams: name one"
        raise InvalidInput(words, field="team")
    found = own.filter(name=team) if isinstance(team, str) else own.filter(pk=team.pk)
    if not found:
        raise NotFound("there is no such team of yours", kind="Team", name=str(team))
    return found[0]
