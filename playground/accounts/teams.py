"""Teams: who belongs to which, and as what. A team always has an owner. And the people of a site, to be found."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from playground.accounts import audit
from playground.accounts.choices import Role
from playground.accounts.models import Membership, Team, User
from scheduler_core.errors import ClusterError


def everyone() -> QuerySet[User]:
    """All accounts with their teams, unordered."""
    return User.objects.prefetch_related("memberships__team")


def person_by_number(user_id: int) -> User:
    """An account by its number, with its teams.

    Raises
    ------
    AccountError
    """
    found = everyone().filter(pk=user_id).first()
    if found is None:
        raise AccountError("NotFound", f"person {user_id} not found", "Person")
    return found


def person_named(name: str, *, active: bool = False) -> User | None:
    """An account by its name; `active`: only one that may log in. One query."""
    rows = User.objects.filter(username=name)
    return (rows.filter(is_active=True) if active else rows).first()


class AccountError(ClusterError):
    """A refusal about accounts.

    Parameters
    ----------
    reason : str
        ``NotFound``, ``Forbidden``, ``AlreadyExists`` or ``Conflict``.
    """

    def __init__(self, reason: str, message: str, kind: str = "Team") -> None:
        super().__init__(message)
        self.reason, self.kind = reason, kind
        self.status = {"NotFound": 404, "Forbidden": 403}.get(reason, 409)

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {"kind": self.kind}


def teams_of(user: Any) -> list[Team]:
    """A person's teams with their members, by name. Three queries."""
    found = Team.objects.filter(memberships__user=user).prefetch_related("memberships__user")
    return list(found.order_by("name"))


def get_team(name: str, user: Any) -> Team:
    """A team the person belongs to; None is the local one, who has none.

    Raises
    ------
    AccountError
        There is none of that name for this person.
    """
    found = Team.objects.filter(name=name, memberships__user=user).first() if user else None
    if found is None:
        raise AccountError("NotFound", f'team "{name}" not found')
    return found


def check_owner(team: Team, person: Any) -> None:
    """Refuse what only an owner of a team may do. One query.

    Raises
    ------
    AccountError
    """
    if not Membership.objects.filter(team=team, user=person, role=Role.OWNER).exists():
        raise AccountError("Forbidden", f'only an owner of team "{team.name}" may do that')


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
    AccountError
        The name is taken.
    """
    with transaction.atomic():
        team, is_new = Team.objects.get_or_create(name=name)
        if not is_new:
            raise AccountError("AlreadyExists", f'there is a team "{name}" already')
        Membership.objects.create(team=team, user=owner, role=Role.OWNER)
        audit.record("team-made", by=owner, team=team)
    return team


def set_member(*, team: Team, username: str, role: str, by: Any = None) -> Membership:
    """Take a person in, or give them another role.

    Raises
    ------
    AccountError
        No such person, the team would be left without an owner, or who does it is none.
    """
    if by is not None:
        check_owner(team, by)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise AccountError("NotFound", f'there is no person "{username}"')
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        if role != Role.OWNER:
            _keep_an_owner(team, but=user)
        membership, _ = Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
        audit.record("member-set", by=by, about=user, team=team, detail=role)
    return membership


def remove_member(*, team: Team, username: str, by: Any = None) -> None:
    """Let a member go; members may leave by themselves.

    Raises
    ------
    AccountError
        He is no member, the team would be left without an owner, or who does it is none.
    """
    if by is not None and by.get_username() != username:
        check_owner(team, by)
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=team.pk)
        membership = Membership.objects.filter(team=team, user__username=username).first()
        if membership is None:
            raise AccountError("NotFound", f'"{username}" is no member of team "{team.name}"')
        _keep_an_owner(team, but=membership.user)
        membership.delete()
        audit.record("member-removed", by=by, about=membership.user, team=team)


def _keep_an_owner(team: Team, *, but: User) -> None:
    others = Membership.objects.filter(team=team, role=Role.OWNER).exclude(user=but)
    mine = Membership.objects.filter(team=team, role=Role.OWNER, user=but)
    if mine.exists() and not others.exists():
        raise AccountError("Conflict", f'team "{team.name}" would be left without an owner')
