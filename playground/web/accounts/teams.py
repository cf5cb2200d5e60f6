"""A team's page: members, roles, invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from playground.accounts import invitations, teams
from playground.accounts.choices import Role
from playground.accounts.passwords import may_mail
from playground.accounts.teams import TeamError
from playground.web.accounts.access import as_page_error, own_team, team_mode
from playground.web.accounts.forms import ROLES, InviteForm, TeamForm
from playground.web.accounts.mail import mail_invitation

if TYPE_CHECKING:
    from playground.accounts.row_types import Team


@team_mode
@require_POST
def new(request: HttpRequest) -> HttpResponse:
    """Make a team; who makes it owns it."""
    assert request.user.is_authenticated
    form = TeamForm(request.POST)
    if not form.is_valid():
        messages.error(request, "A team needs a name of at most 100 characters.")
        return redirect("accounts:account")
    try:
        made = teams.create_team(name=form.cleaned_data["name"], owner=request.user)
    except TeamError as error:
        messages.error(request, error.message)
        return redirect("accounts:account")
    return redirect("accounts:team", made.pk)


@team_mode
@require_safe
def team(request: HttpRequest, team_id: int) -> HttpResponse:
    """Who is in it, and for its owners: roles and invitations."""
    return _page(request, own_team(request, team_id))


@team_mode
@require_POST
def invite(request: HttpRequest, team_id: int) -> HttpResponse:
    """Make an invitation, whose link this one answer shows."""
    assert request.user.is_authenticated
    found = own_team(request, team_id)
    form = InviteForm(request.POST, mails=may_mail())
    if not form.is_valid():
        return _page(request, found, form=form, status=400)
    data = form.cleaned_data
    try:
        invitation, secret = invitations.create_invitation(
            by=request.user, team=found, role=data["role"], days=data["days"], email=data.get("email", "")
        )
    except TeamError as error:
        if error.reason == "Forbidden":
            raise as_page_error(error) from None
        form.add_error(None, error.message)
        return _page(request, found, form=form, status=400)
    link = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
    sent = bool(invitation.email) and mail_invitation(request, invitation, link)
    return _page(request, found, made=link, sent_to=invitation.email if sent else "", status=201)


@team_mode
@require_POST
def member(request: HttpRequest, team_id: int) -> HttpResponse:
    """Give a member another role, or let them go; members may leave by themselves."""
    assert request.user.is_authenticated
    found, name = own_team(request, team_id), request.POST.get("user", "")
    leaves = request.POST.get("role", "") == ""
    itself = name == request.user.get_username()
    try:
        teams.get_team(found.name, request.user, to_manage=not (leaves and itself))
        if leaves:
            teams.remove_member(team=found, username=name, by=request.user)
        elif request.POST["role"] in Role.values and found.members.filter(username=name).exists():
            teams.set_member(team=found, username=name, role=request.POST["role"], by=request.user)
        else:
            raise Http404("There is no such member or role.")
    except TeamError as error:
        if error.reason != "Conflict":
            raise as_page_error(error) from None
        messages.error(request, error.message)
    if leaves and itself:
        return redirect("accounts:account")
    return redirect("accounts:team", found.pk)


@team_mode
@require_POST
def withdraw(request: HttpRequest, team_id: int, invitation_id: int) -> HttpResponse:
    """The invitation's link leads nowhere then."""
    assert request.user.is_authenticated
    found = own_team(request, team_id)
    try:
        teams.get_team(found.name, request.user, to_manage=True)
    except TeamError as error:
        raise as_page_error(error) from None
    if not invitations.withdraw(by=request.user, team=found, invitation_id=invitation_id):
        raise Http404("There is no such invitation.")
    return redirect("accounts:team", found.pk)


def _page(
    request: HttpRequest, found: Team, *, form: InviteForm | None = None, status: int = 200, **also: Any
) -> HttpResponse:
    assert request.user.is_authenticated
    members = list(found.memberships.select_related("user").order_by("user__username"))
    owns = any(one.user_id == request.user.pk and one.role == Role.OWNER for one in members)
    context = {
        "team": found,
        "members": members,
        "roles": ROLES,
        "owns": owns,
        "form": form or InviteForm(mails=may_mail()),
        "invitations": invitations.open_invitations(request.user, found) if owns else [],
        **also,
    }
    return render(request, "accounts/team.html", context, status=status)
