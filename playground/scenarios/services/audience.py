"""Who may read a share or a comparison: what a person asks for, checked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from playground.accounts.models import Team
from playground.clusters.errors import InvalidInput, NotFound
from playground.scenarios.choices import Visibility


def checked_audience(
    visibility: str, team: Team | str | None, owner: Any, expires: datetime | None
) -> Team | None:
    """The team of what only a team sees; None for all else.

    Raises
    ------
    InvalidInput, NotFound
    """
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
