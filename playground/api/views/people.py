"""The people of a site: their tokens, teams, invitations and what they did (team mode)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import reverse

from playground.accounts import invitations, passwords, teams
from playground.accounts.audit import ACTIONS, entries_for, may_see_address
from playground.accounts.row_types import AuditEntry, Team, User
from playground.accounts.tokens import create_token, delete_token, tokens_of
from playground.api.representations import shown
from playground.api.views.base import Call
from playground.clusters.access import get_cluster
from playground.clusters.errors import Conflict, Forbidden, NotFound
from playground.scenarios.services.storage import quota_of


def team_of(name: str | None, person: Any) -> Team | None:
    """The team a new cluster is for: a viewer of it may not make one.

    Raises
    ------
    NotFound, Forbidden, AccountError
    """
    if not name:
        return None
    team = teams.get_team(name, person)
    if not teams.may_edit_for(team, person):
        raise Forbidden(f'a viewer of team "{name}" may not make clusters for it', kind="Team", name=name)
    return team


def _shown(team: Team) -> dict[str, Any]:
    members = sorted(team.memberships.all(), key=lambda member: member.user.username)
    return shown(
        "Team", team, url=f"/api/v1/teams/{team.name}/", members=[shown("TeamMember", one) for one in members]
    )


def teams_list(call: Call) -> Any:
    """With their members and what each may do. Embedded mode has none."""
    return [_shown(team) for team in (teams.teams_of(call.person) if call.person else [])]


def teams_create(call: Call) -> Any:
    """You are its first owner."""
    if settings.EMBEDDED:
        raise Conflict("the embedded playground has no login, so it has no teams", kind="Team")
    return _shown(teams.create_team(name=call.body["name"], owner=call.person))


def teams_read(call: Call, team: str) -> Any:
    """Its members and what each may do."""
    return _shown(teams.get_team(team, call.person))


def teams_set_member(call: Call, team: str, user: str) -> Any:
    """Owners manage the team, editors change its clusters, viewers look. It takes an owner."""
    managed = teams.get_team(team, call.person)
    teams.set_member(team=managed, username=user, role=call.body["role"], by=call.person)
    return _shown(managed)


def teams_remove_member(call: Call, team: str, user: str) -> None:
    """Members may leave by themselves; the last owner may not."""
    teams.remove_member(team=teams.get_team(team, call.person), username=user, by=call.person)


# ---- invitations: of a team, or (for administrators) of the site


def teams_invitations_list(call: Call, team: str) -> Any:
    """List a team's invitations, for its owners; the links themselves are shown only when made."""
    return _invitations(call, teams.get_team(team, call.person))


def teams_invite(call: Call, team: str) -> Any:
    """The answer holds the link, once: it takes one person in, with an account or by making one."""
    return _invite(call, teams.get_team(team, call.person), role=call.body["role"])


def teams_invitations_withdraw(call: Call, team: str, invitation_id: int) -> None:
    """Its link leads nowhere then."""
    managed = teams.get_team(team, call.person)
    invitations.withdraw(by=call.person, team=managed, invitation_id=invitation_id)


def people_invitations_list(call: Call) -> Any:
    """List invitations, for administrators; the links themselves are shown only when made."""
    return _invitations(call, None)


def people_invite(call: Call) -> Any:
    """For administrators: the answer holds the link, once."""
    return _invite(call, None)


def people_invitations_withdraw(call: Call, invitation_id: int) -> None:
    """Its link leads nowhere then."""
    invitations.withdraw(by=call.person, team=None, invitation_id=invitation_id)


def _invitations(call: Call, team: Team | None) -> Any:
    return [shown("Invitation", one) for one in invitations.open_invitations(call.person, team)]


def _invite(call: Call, team: Team | None, **role: Any) -> Any:
    days = call.body["expiresInDays"]
    made, secret = invitations.create_invitation(by=call.person, team=team, days=days, **role)
    return shown("Invitation", made) | {"link": call.url(reverse("accounts:invitation", args=[secret]))}


# ---- one's own


def tokens_list(call: Call) -> Any:
    """Never the tokens themselves, only what tells them apart. Embedded mode has none."""
    return [shown("Token", row) for row in (tokens_of(call.person) if call.person else ())]


def tokens_create(call: Call) -> Any:
    """The answer holds the token, once: only its digest is kept here.

    A token to read answers 403 to what would change anything, a token of one cluster to all but that cluster.
    """
    if settings.EMBEDDED:
        raise Conflict("the embedded playground has no login, so it needs no tokens", kind="Token")
    wanted = call.body
    cluster = wanted.get("cluster", "")
    if cluster:
        get_cluster(cluster, call.person)
    row, text = create_token(
        user=call.person,
        name=wanted["name"],
        scope=wanted["scope"],
        cluster=cluster,
        days=wanted["expiresInDays"],
        by=call.request.auth,
    )
    return shown("Token", row) | {"token": text}


def tokens_delete(call: Call, token_id: int) -> None:
    """It stops working at once."""
    delete_token(user=call.person, token_id=token_id)


def quota_read(call: Call) -> Any:
    """What you have, and what one person may have. Embedded mode has no quotas."""
    if call.person is None:
        raise NotFound("the embedded playground has no quotas", kind="Quota")
    found = quota_of(call.person)
    return {name: {"used": used, "limit": limit} for name, (used, limit) in found.items()}


def audit_list(call: Call) -> Any:
    """Newest first: what you did, what was done to your account, and all about teams you own.

    An administrator of the site reads everything. `next` is the path of the next page, or null.
    """
    if call.person is None:
        return {"items": [], "next": None}
    limit, before, action = call.query("limit", 50), call.query("before"), call.query("action")
    rows = entries_for(call.person, action=action, before=before)
    return call.page(list(rows[: limit + 1]), limit, lambda row: _entry(row, call.person), before="id")


def _entry(row: AuditEntry, person: Any) -> dict[str, Any]:
    address = row.address or None if may_see_address(row, person) else None
    return shown("AuditEntry", row, words=ACTIONS.get(row.action, row.action), address=address)


# ---- for administrators


def people_list(call: Call) -> Any:
    """For administrators: by id."""
    limit = call.query("limit", 100)
    rows = teams.everyone().filter(pk__gt=call.query("after", 0)).order_by("pk")
    return call.page(list(rows[: limit + 1]), limit, _person, after="id")


def people_set_active(call: Call, user_id: int) -> Any:
    """For administrators: tokens and sessions of a closed account end at once."""
    person = teams.person_by_number(user_id)
    passwords.set_active(by=call.person, user=person, active=call.body["active"])
    person.refresh_from_db()
    return _person(person)


def _person(person: User) -> dict[str, Any]:
    of = sorted(member.team.name for member in person.memberships.all())
    return shown("Person", person, teams=of)
