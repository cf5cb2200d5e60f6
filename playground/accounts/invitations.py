"""Invitations: a link that takes one person into a team once, as who they are or with a new account."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from playground.accounts import audit
from playground.accounts.choices import Role
from playground.accounts.models import Invitation, Membership, Team, User
from playground.accounts.teams import AccountError, check_owner
from playground.accounts.tokens import digest_of

DAYS: Final = (1, 7, 30)
DEFAULT_DAYS: Final = 7
MAX_OPEN: Final = 100
"""Of one team, or of one administrator's for the site."""
KEPT: Final = timedelta(days=30)


def create_invitation(
    *, by: User, team: Team | None, role: str = Role.EDITOR, days: int = DEFAULT_DAYS, email: str = ""
) -> tuple[Invitation, str]:
    """Create an invitation; the secret of its link is shown only once.

    Parameters
    ----------
    by
        An owner of the team; an administrator if it is for the site alone.
    email
        Where the link is sent, for the list; sending is the caller's.

    Raises
    ------
    AccountError
    """
    if not _may_invite(by, team):
        where = f'team "{team.name}"' if team else "this site"
        who = "an owner" if team else "an administrator"
        raise AccountError("Forbidden", f"only {who} of {where} may invite")
    with transaction.atomic():
        User.objects.select_for_update().get(pk=by.pk)
        if open_invitations(by, team).count() >= MAX_OPEN:
            raise AccountError(
                "Conflict", f"at most {MAX_OPEN} invitations are open at once; withdraw one first"
            )
        secret = secrets.token_urlsafe(32)
        invitation = Invitation.objects.create(
            team=team,
            role=role,
            digest=digest_of(secret),
            email=email,
            made_by=by,
            expires=timezone.now() + timedelta(days=days),
        )
        audit.record("invitation-made", by=by, team=team, target=email, detail=_words(invitation))
    return invitation, secret


def open_invitations(by: User, team: Team | None) -> QuerySet[Invitation]:
    """Open invitations: a team's, for its owners, or an administrator's own for the site; newest first.

    Raises
    ------
    AccountError
    """
    if team is not None:
        check_owner(team, by)
    rows = Invitation.objects.filter(accepted__isnull=True, expires__gt=timezone.now())
    rows = rows.filter(team=team) if team else rows.filter(team__isnull=True, made_by=by)
    return rows.select_related("made_by", "team").order_by("-pk")


def invitation_of(secret: str) -> Invitation | None:
    """The open invitation of a link; None if it is over, was taken, or who made it may not invite any more."""
    found = Invitation.objects.select_related("team", "made_by").filter(
        digest=digest_of(secret), accepted__isnull=True, expires__gt=timezone.now()
    )
    invitation = found.first()
    if invitation is None or not _may_invite(invitation.made_by, invitation.team):
        return None
    return invitation


def accept(*, secret: str, user: User, address: str = "") -> Invitation:
    """Take a person in; the link leads nowhere then.

    Raises
    ------
    AccountError
        The invitation is over, or the person is in the team already (then it stays open).
    """
    with transaction.atomic():
        invitation = _taken(secret, user)
        if invitation.team is not None:
            member, is_new = Membership.objects.get_or_create(
                team=invitation.team, user=user, defaults={"role": invitation.role}
            )
            if not is_new:
                raise AccountError(
                    "AlreadyExists", f'you are in team "{invitation.team.name}" already, as {member.role}'
                )
        audit.record(
            "invitation-accepted",
            by=user,
            about=invitation.made_by,
            team=invitation.team,
            detail=_words(invitation),
            address=address,
        )
    return invitation


def accept_as_new(*, secret: str, name: str, password: str, email: str = "", address: str = "") -> User:
    """Make an account for the person who has the link, and take them in.

    Raises
    ------
    AccountError
        The invitation is over, or the name is taken.
    """
    try:
        with transaction.atomic():
            user = User.objects.create_user(name, email=email, password=password)
            audit.record("account-made", by=user, address=address)
            accept(secret=secret, user=user, address=address)
    except IntegrityError:
        raise AccountError("AlreadyExists", f'the name "{name}" is taken') from None
    return user


def withdraw(*, by: User, team: Team | None, invitation_id: int) -> None:
    """Delete an open invitation, so that its link leads nowhere.

    Raises
    ------
    AccountError
        There is no such open invitation, or it is for others to withdraw.
    """
    with transaction.atomic():
        invitation = open_invitations(by, team).filter(pk=invitation_id).first()
        if invitation is None:
            raise AccountError("NotFound", f"invitation {invitation_id} not found", "Invitation")
        audit.record(
            "invitation-withdrawn", by=by, team=team, target=invitation.email, detail=_words(invitation)
        )
        invitation.delete()


def forget_over(*, now: Any = None) -> int:
    """Drop invitations that were over long ago; how many."""
    before = (now or timezone.now()) - KEPT
    return Invitation.objects.filter(Q(expires__lt=before) | Q(accepted__lt=before)).delete()[0]


def _taken(secret: str, user: User) -> Invitation:
    """The invitation, now this person's: one statement decides between two who come at once."""
    invitation = invitation_of(secret)
    open_rows = Invitation.objects.filter(digest=digest_of(secret), accepted__isnull=True)
    if invitation is None or not open_rows.update(accepted=timezone.now(), accepted_by=user):
        raise AccountError("NotFound", "this invitation is over: it was taken, withdrawn, or has expired")
    return invitation


def _may_invite(person: User, team: Team | None) -> bool:
    if not person.is_active:
        return False
    if team is None:
        return person.is_superuser
    return Membership.objects.filter(team=team, user=person, role=Role.OWNER).exists()


def _words(invitation: Invitation) -> str:
    what = f"as {invitation.role}" if invitation.team_id else "to the site"
    return f"{what}, until {invitation.expires:%Y-%m-%d}"
