"""Teams: the people who own clusters together (team mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts import invitations, teams
from playground.accounts.teams import TeamError
from playground.api.documentation import operation
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters.errors import AlreadyExists, ClusterError, Conflict, Forbidden, NotFound

if TYPE_CHECKING:
    from playground.accounts.row_types import Invitation, Team

TEAM = {
    "name": "platform",
    "url": "/api/v1/teams/platform/",
    "members": [{"user": "ada", "role": "owner"}, {"user": "grace", "role": "viewer"}],
}
INVITATION = {
    "id": 3,
    "role": "editor",
    "email": None,
    "madeBy": "ada",
    "createdAt": "2026-01-02T00:00:00Z",
    "expiresAt": "2026-01-09T00:00:00Z",
}
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
    @operation(
        "List your teams",
        id="teams_list",
        answers_={200: answers.Teams},
        answer_example={"items": [TEAM]},
        tag="teams",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """With their members and what each may do. Embedded mode has none."""
        found = teams.teams_of(self.person) if self.person else []
        return Response({"items": [shown(team) for team in found]})

    @operation(
        "Make a team",
        id="teams_create",
        request=requests.TeamCreate,
        answers_={201: answers.Team},
        errors=(400, 409, 413, 415),
        example={"name": "platform"},
        answer_example=TEAM,
        tag="teams",
    )
    def post(self, request: Request) -> Response:
        """You are its first owner."""
        if settings.EMBEDDED:
            raise Conflict("the embedded playground has no login, so it has no teams", kind="Team")
        asked = requests.TeamCreate(data=request.data)
        asked.is_valid(raise_exception=True)
        team = teams.create_team(name=asked.validated_data["name"], owner=self.person)
        return Response(shown(team), status=201)


class OneTeam(TeamView):
    @operation(
        "Read a team",
        id="teams_read",
        answers_={200: answers.Team},
        errors=(400, 404),
        answer_example=TEAM,
        tag="teams",
        reads=True,
    )
    def get(self, request: Request, team: str) -> Response:
        """Its members and what each may do."""
        return Response(shown(self.team(team)))


class OneMember(TeamView):
    @operation(
        "Take a person into a team, or give a member another role",
        id="teams_set_member",
        request=requests.Member,
        answers_={200: answers.Team},
        errors=(400, 404, 409, 413, 415),
        example={"role": "editor"},
        answer_example=TEAM,
        tag="teams",
    )
    def put(self, request: Request, team: str, user: str) -> Response:
        """Owners manage the team, editors change its clusters, viewers look. It takes an owner."""
        managed = self.team(team, to_manage=True)
        asked = requests.Member(data=request.data)
        asked.is_valid(raise_exception=True)
        teams.set_member(team=managed, username=user, role=asked.validated_data["role"], by=self.person)
        return Response(shown(managed))

    @operation(
        "Let a member go",
        id="teams_remove_member",
        answers_={204: None},
        errors=(400, 404, 409),
        tag="teams",
    )
    def delete(self, request: Request, team: str, user: str) -> Response:
        """Members may leave by themselves; the last owner may not."""
        itself = self.person is not None and self.person.get_username() == user
        teams.remove_member(team=self.team(team, to_manage=not itself), username=user, by=self.person)
        return Response(status=204)


class Invitations(TeamView):
    told_once = True

    @operation(
        "List a team's open invitations",
        id="teams_invitations_list",
        answers_={200: answers.Invitations},
        errors=(400, 403, 404),
        answer_example={"items": [INVITATION]},
        tag="teams",
        reads=True,
    )
    def get(self, request: Request, team: str) -> Response:
        """For its owners. The links themselves were told once."""
        managed = self.team(team, to_manage=True)
        found = invitations.open_invitations(self.person, managed)
        return Response({"items": [invitation_shown(one) for one in found]})

    @operation(
        "Invite a person into a team",
        id="teams_invite",
        request=requests.InvitationCreate,
        answers_={201: answers.NewInvitation},
        errors=(400, 403, 404, 409, 413, 415),
        example={"role": "editor", "expiresInDays": 7},
        answer_example=INVITATION | {"link": "https://playground.example/account/invitation/m0Rse-c0de/"},
        tag="teams",
    )
    def post(self, request: Request, team: str) -> Response:
        """The answer holds the link, once: it takes one person in, with an account or by making one."""
        managed = self.team(team, to_manage=True)
        asked = requests.InvitationCreate(data=request.data)
        asked.is_valid(raise_exception=True)
        made, secret = invitations.create_invitation(
            by=self.person,
            team=managed,
            role=asked.validated_data["role"],
            days=asked.validated_data["expiresInDays"],
        )
        return Response(invitation_shown(made) | {"link": invitation_link(request, secret)}, status=201)


class OneInvitation(TeamView):
    @operation(
        "Withdraw an invitation",
        id="teams_invitations_withdraw",
        answers_={204: None},
        errors=(400, 403, 404),
        tag="teams",
    )
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
