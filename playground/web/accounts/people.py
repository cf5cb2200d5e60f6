"""For administrators: everybody with an account, and links to hand out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from playground.accounts import invitations, passwords
from playground.accounts.people import everyone, person_by_number
from playground.accounts.teams import TeamError
from playground.web.accounts.access import administrators
from playground.web.accounts.forms import InviteForm
from playground.web.accounts.mail import mail_invitation

if TYPE_CHECKING:
    from playground.accounts.row_types import User

SHOWN = 500


@administrators
@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Everybody with an account."""
    return _page(request)


@administrators
@require_POST
def invite(request: HttpRequest) -> HttpResponse:
    """Invite a person to the site, whose link this one answer shows."""
    assert request.user.is_authenticated
    form = InviteForm(request.POST, mails=passwords.may_mail(), of_team=False)
    if not form.is_valid():
        return _page(request, form=form, status=400)
    data = form.cleaned_data
    try:
        invitation, secret = invitations.create_invitation(
            by=request.user, team=None, days=data["days"], email=data.get("email", "")
        )
    except TeamError as error:
        form.add_error(None, error.message)
        return _page(request, form=form, status=400)
    link = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
    sent = bool(invitation.email) and mail_invitation(request, invitation, link)
    sent_to = invitation.email if sent else ""
    return _page(request, made=link, made_what="invitation", sent_to=sent_to, status=201)


@administrators
@require_POST
def withdraw(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """The invitation's link leads nowhere then."""
    assert request.user.is_authenticated
    if not invitations.withdraw(by=request.user, team=None, invitation_id=invitation_id):
        raise Http404("There is no such invitation.")
    return redirect("accounts:people")


@administrators
@require_POST
def reset(request: HttpRequest, user_id: int) -> HttpResponse:
    """Make a link that sets a new password once, to be passed on by hand."""
    person = _person(user_id)
    try:
        path = passwords.hand_out_reset(by=request.user, user=person)
    except TeamError as error:
        messages.error(request, error.message)
        return redirect("accounts:people")
    link = request.build_absolute_uri(path)
    return _page(request, made=link, made_what="reset", made_for=person.get_username(), status=201)


@administrators
@require_POST
def action(request: HttpRequest, user_id: int, action: str) -> HttpResponse:
    """Close an account, or open it again."""
    person = _person(user_id)
    if action not in ("close", "open"):
        raise Http404(f'There is no "{action}" to do.')
    try:
        passwords.set_active(by=request.user, user=person, active=action == "open")
    except TeamError as error:
        messages.error(request, error.message)
    return redirect("accounts:people")


def _person(user_id: int) -> User:
    found = person_by_number(user_id)
    if found is None:
        raise Http404("There is no such person.")
    return found


def _page(
    request: HttpRequest, *, form: InviteForm | None = None, status: int = 200, **also: Any
) -> HttpResponse:
    assert request.user.is_authenticated
    rows = everyone().order_by("username")
    context = {
        "people": rows[:SHOWN],
        "form": form or InviteForm(mails=passwords.may_mail(), of_team=False),
        "invitations": invitations.open_invitations(request.user, None),
        **also,
    }
    return render(request, "accounts/people.html", context, status=status)
