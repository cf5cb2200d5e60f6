"""Teams: who belongs to which, and as what. A team always has an owner. And the people of a site, to be found."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from playground.accounts import audit
from playground.accounts.choices import Role
from playground.accounts.models import Membership, Team, User


def everyone() -> QuerySet[User]:
    """All accounts with their teams, unordered."""
    return User.objects.prefetch_related("memberships__team")


def person_by_number(user_id: int) -> User | None:
    """An account by its number, with its teams."""
    return everyone().filter(pk=user_id).first()


def person_named(name: str, *, active: bool = False) -> User | None:
    """An account by its name; `active`: only one that may log in. One query."""
    rows = User.objects.filter(username=name)
    return (rows.filter(is_active=True) if active else rows).first()


class TeamError(Exception):
    """Refused.

    Attributes
    ----------
    reason : str
        ``NotFound``, ``Forbidden``, ``AlreadyExists`` or ``Conflict``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def teams_of(user: Any) -> list[Team]:
    """A person's teams with their members, by name. Three queries."""
    found = Team.objects.filter(memberships__user=user).prefetch_related("memberships__user")
    return list(found.order_by("name"))


def get_team(name: str, user: Any, *, to_manage: bool = False) -> Team:
    """A team the person belongs to.

    Raises
    ------
    TeamError
        There is none of that name for this person, or he is not its owner and wants to manage it.
    """
    membership = Membership.objects.filter(team__name=name, user=user).select_related("team").first()
    if membership is None:
        raise TeamError("NotFound", f'team "{name}" not found')
    if to_manage and membership.role != Role.OWNER:
        raise TeamError("Forbidden", f'only an owner of team "{name}" may do that')
    return membership.team


def team_of_member(user: Any, team_id: int) -> Team | None:
    """A team by its number, if the person is in it. One query."""
    return Team.objects.filter(pk=team_id, memberships__user=user).first()


def may_edit_for(team: Team, user: Any) -> bool:
    """Whether the person may make and change clusters of the team: all but viewers. One query."""
    return Membership.objects.filter(team=team, user=user).exclude(role=Role.VIEWER).exists()


def create_team(*, name: str, owner: User) -> Team:
    """A new team with one owner.

    Raises
    ------
    TeamError
        The name is taken.
    """
    with transaction.atomic():
        team, is_new = Team.objects.get_or_create(name=name)
        if not is_new:
            raise TeamError("AlreadyExists", f'there is a team "{name}" already')
        Membership.objects.create(team=team, user=owner, role=Role.OWNER)
        audit.record("team-made", by=owner, team=team)
    return team


def set_member(*, team: Team, username: str, role: str, by: Any = None) -> Membership:
    """Take a person in, or give them another role.

    Raises
    ------
    TeamError
        No such person, or the team would be left without an owner.
    """
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise TeamError("NotFound", f'there is no person "{username}"')
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        if role != Role.OWNER:
            _keep_an_owner(team, but=user)
        membership, _ = Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
        audit.record("member-set", by=by, about=user, team=team, detail=role)
    return membership


def remove_member(*, team: Team, username: str, by: Any = None) -> None:
    """Let a member go.

    Raises
    ------
    TeamError
        He is no member, or the team would be left without an owner.
    """
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        membership = Membership.objects.filter(team=team, user__username=username).first()
        if membership is None:
            raise TeamError("NotFound", f'"{username}" is no member of team "{team.name}"')
        _keep_an_owner(team, but=membership.user)
        membership.delete()
        audit.record("member-removed", by=by, about=membership.user, team=team)


def _keep_an_owner(team: Team, *, but: User) -> None:
    others = Membership.objects.filter(team=team, role=Role.OWNER).exclude(user=but)
    mine = Membership.objects.filter(team=team, role=Role.OWNER, user=but)
    if mine.exists() and not others.exists():
        raise TeamError("Conflict", f'team "{team.name}" would be left without an owner')
