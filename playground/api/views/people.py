"""The people of a site: their tokens, teams, invitations and what they did (team mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts import invitations, passwords, teams
from playground.accounts.audit import ACTIONS, entries_for, may_see_address
from playground.accounts.teams import TeamError
from playground.accounts.tokens import TokenError, create_token, delete_token, tokens_of
from playground.api import representations
from playground.api.requests import next_page, whole_number
from playground.api.views.base import PlaygroundView
from playground.clusters.access import get_cluster
from playground.clusters.errors import AlreadyExists, ClusterError, Conflict, Forbidden, NotFound
from playground.scenarios.services.storage import quota_of

if TYPE_CHECKING:
    from playground.accounts.row_types import AuditEntry, Invitation, Team, User

_ERRORS: dict[str, type[ClusterError]] = {
    "NotFound": NotFound,
    "Forbidden": Forbidden,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
}


def as_error(error: TeamError) -> ClusterError:
    """A refusal about teams in the shape of all others."""
    return _ERRORS[error.reason](error.message, kind="Team")  # type: ignore[call-arg]


def team_of(name: str | None, person: Any) -> Team | None:
    """The team a new cluster is for: a viewer of it may not make one.

    Raises
    ------
    NotFound, Forbidden
    """
    if not name:
        return None
    if person is None:
        raise NotFound(f'team "{name}" not found', kind="Team", name=name)
    try:
        team = teams.get_team(name, person)
    except TeamError as error:
        raise as_error(error) from None
    if not teams.may_edit_for(team, person):
        raise Forbidden(f'a viewer of team "{name}" may not make clusters for it', kind="Team", name=name)
    return team


def shown(team: Team) -> dict[str, Any]:
    members = sorted(team.memberships.all(), key=lambda member: member.user.username)
    return {
        "name": team.name,
        "url": f"/api/v1/teams/{team.name}/",
        "members": [{"user": member.user.username, "role": member.role} for member in members],
    }


class TeamView(PlaygroundView):
    """Base: refusals of `accounts.teams` become problems, and embedded mode has no teams."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, TeamError):
            exc = as_error(exc)
        return super().handle_exception(exc)

    def team(self, name: str, *, to_manage: bool = False) -> Team:
        if self.person is None:
            raise NotFound(f'team "{name}" not found', kind="Team", name=name)
        return teams.get_team(name, self.person, to_manage=to_manage)


class Teams(TeamView):
    def get(self, request: Request) -> Response:
        """With their members and what each may do. Embedded mode has none."""
        found = teams.teams_of(self.person) if self.person else []
        return Response({"items": [shown(team) for team in found]})

    def post(self, request: Request) -> Response:
        """You are its first owner."""
        if settings.EMBEDDED:
            raise Conflict("the embedded playground has no login, so it has no teams", kind="Team")
        asked = self.body("TeamCreate")
        team = teams.create_team(name=asked["name"], owner=self.person)
        return Response(shown(team), status=201)


class OneTeam(TeamView):
    def get(self, request: Request, team: str) -> Response:
        """Its members and what each may do."""
        return Response(shown(self.team(team)))


class OneMember(TeamView):
    def put(self, request: Request, team: str, user: str) -> Response:
        """Owners manage the team, editors change its clusters, viewers look. It takes an owner."""
        managed = self.team(team, to_manage=True)
        asked = self.body("Member")
        teams.set_member(team=managed, username=user, role=asked["role"], by=self.person)
        return Response(shown(managed))

    def delete(self, request: Request, team: str, user: str) -> Response:
        """Members may leave by themselves; the last owner may not."""
        itself = self.person is not None and self.person.get_username() == user
        teams.remove_member(team=self.team(team, to_manage=not itself), username=user, by=self.person)
        return Response(status=204)


class Invitations(TeamView):
    told_once = True

    def get(self, request: Request, team: str) -> Response:
        """List a team's invitations, for its owners; the links themselves are shown only when made."""
        managed = self.team(team, to_manage=True)
        found = invitations.open_invitations(self.person, managed)
        return Response({"items": [invitation_shown(one) for one in found]})

    def post(self, request: Request, team: str) -> Response:
        """The answer holds the link, once: it takes one person in, with an account or by making one."""
        managed = self.team(team, to_manage=True)
        asked = self.body("InvitationCreate")
        made, secret = invitations.create_invitation(
            by=self.person,
            team=managed,
            role=asked["role"],
            days=asked["expiresInDays"],
        )
        return Response(invitation_shown(made) | {"link": invitation_link(request, secret)}, status=201)


class OneInvitation(TeamView):
    def delete(self, request: Request, team: str, invitation_id: int) -> Response:
        """Its link leads nowhere then."""
        managed = self.team(team, to_manage=True)
        if not invitations.withdraw(by=self.person, team=managed, invitation_id=invitation_id):
            raise NotFound(f"invitation {invitation_id} not found", kind="Invitation")
        return Response(status=204)


def invitation_link(request: Request, secret: str) -> str:
    """Where an invitation is taken."""
    return request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))


def invitation_shown(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": invitation.pk,
        "role": invitation.role,
        "email": invitation.email or None,
        "madeBy": invitation.made_by.get_username(),
        "createdAt": invitation.created,
        "expiresAt": invitation.expires,
    }


class Tokens(PlaygroundView):
    told_once = True

    def get(self, request: Request) -> Response:
        """Never the tokens themselves, only what tells them apart. Embedded mode has none."""
        rows = tokens_of(self.person) if self.person else ()
        return Response({"items": [representations.token(row) for row in rows]})

    def post(self, request: Request) -> Response:
        """The answer holds the token, once: only its digest is kept here.

        A token to read answers 403 to what would change anything, a token of one cluster to all but that cluster.
        """
        if settings.EMBEDDED:
            raise Conflict("the embedded playground has no login, so it needs no tokens", kind="Token")
        asked = self.body("TokenCreate")
        wanted = asked
        cluster = wanted.get("cluster", "")
        if cluster:
            get_cluster(cluster, self.person)
        try:
            row, text = create_token(
                user=self.person,
                name=wanted["name"],
                scope=wanted["scope"],
                cluster=cluster,
                days=wanted["expiresInDays"],
                by=request.auth,
            )
        except TokenError as error:
            raise Conflict(str(error), kind="Token") from None
        return Response(representations.token(row) | {"token": text}, status=201)


class OneToken(PlaygroundView):
    def delete(self, request: Request, token_id: int) -> Response:
        """It stops working at once."""
        if self.person is None or not delete_token(user=self.person, token_id=token_id):
            raise NotFound(f"token {token_id} not found", kind="Token", name=str(token_id))
        return Response(status=204)


class Quota(PlaygroundView):
    def get(self, request: Request) -> Response:
        """What you have, and what one person may have. Embedded mode has no quotas."""
        if self.person is None:
            raise NotFound("the embedded playground has no quotas", kind="Quota")
        found = quota_of(self.person)
        return Response({name: {"used": used, "limit": limit} for name, (used, limit) in found.items()})


def _shown(person: User) -> dict[str, Any]:
    return {
        "id": person.pk,
        "user": person.get_username(),
        "administrator": person.is_superuser,
        "active": person.is_active,
        "teams": sorted(member.team.name for member in person.memberships.all()),
    }


class AdministratorView(TeamView):
    """To everybody else there is nothing here, as on the pages."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        known = hasattr(self, str(request.method).lower())  # 405 is right for any other method
        if known and (self.person is None or not self.person.is_superuser):
            raise NotFound(f"there is nothing at {request.path}")

    def one(self, user_id: int) -> User:
        found = teams.person_by_number(user_id)
        if found is None:
            raise NotFound(f"person {user_id} not found", kind="Person", name=str(user_id))
        return found


class AllPeople(AdministratorView):
    def get(self, request: Request) -> Response:
        """For administrators: by id."""
        limit = whole_number(request, "limit", default=100, least=1, most=500) or 100
        after = whole_number(request, "after", default=0) or 0
        rows = teams.everyone().filter(pk__gt=after).order_by("pk")
        found = list(rows[: limit + 1])
        more = found[limit - 1].pk if len(found) > limit else None
        return Response(
            {"items": [_shown(one) for one in found[:limit]], "next": next_page(request, after=more)}
        )


class OnePerson(AdministratorView):
    def patch(self, request: Request, user_id: int) -> Response:
        """For administrators: tokens and sessions of a closed account end at once."""
        person = self.one(user_id)
        asked = self.body("Active")
        passwords.set_active(by=self.person, user=person, active=asked["active"])
        person.refresh_from_db()
        return Response(_shown(person))


class SiteInvitations(AdministratorView):
    told_once = True

    def get(self, request: Request) -> Response:
        """List invitations, for administrators; the links themselves are shown only when made."""
        found = invitations.open_invitations(self.person, None)
        return Response({"items": [invitation_shown(one) for one in found]})

    def post(self, request: Request) -> Response:
        """For administrators: the answer holds the link, once."""
        asked = self.body("SiteInvitation")
        made, secret = invitations.create_invitation(by=self.person, team=None, days=asked["expiresInDays"])
        return Response(invitation_shown(made) | {"link": invitation_link(request, secret)}, status=201)


class OneSiteInvitation(AdministratorView):
    def delete(self, request: Request, invitation_id: int) -> Response:
        """Its link leads nowhere then."""
        if not invitations.withdraw(by=self.person, team=None, invitation_id=invitation_id):
            raise NotFound(f"invitation {invitation_id} not found", kind="Invitation")
        return Response(status=204)


class Audit(PlaygroundView):
    def get(self, request: Request) -> Response:
        """Newest first: what you did, what was done to your account, and all about teams you own.

        An administrator of the site reads everything. `next` is the path of the next page, or null.
        """
        if self.person is None:
            return Response({"items": [], "next": None})
        limit = whole_number(request, "limit", default=50, least=1, most=200) or 50
        before = whole_number(request, "before", least=1)
        rows = entries_for(self.person)
        if action := request.GET.get("action"):
            rows = rows.filter(action=action)
        if before:
            rows = rows.filter(pk__lt=before)
        found = list(rows[: limit + 1])
        items = [_entry(row, self.person) for row in found[:limit]]
        more = str(items[-1]["id"]) if len(found) > limit else None
        return Response({"items": items, "next": next_page(request, before=more)})


def _entry(row: AuditEntry, person: Any) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.at,
        "actor": row.actor_name or None,
        "action": row.action,
        "words": ACTIONS.get(row.action, row.action),
        "about": row.about_name or None,
        "team": row.team_name or None,
        "target": row.target or None,
        "detail": row.detail or None,
        "address": row.address or None if may_see_address(row, person) else None,
    }
