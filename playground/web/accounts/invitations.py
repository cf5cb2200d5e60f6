"""The page behind an invitation's link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from playground.accounts import audit, invitations
from playground.accounts.addresses import client_address
from playground.accounts.devices import remember_device
from playground.accounts.teams import TeamError
from playground.web.accounts.access import team_mode
from playground.web.accounts.forms import NewAccountForm

if TYPE_CHECKING:
    from playground.accounts.row_types import Invitation


@team_mode
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Accept it: as who is logged in, or with a new account."""
    found = invitations.invitation_of(secret)
    if found is None:
        return render(request, "accounts/invitation_over.html", status=404)
    form = None if request.user.is_authenticated else NewAccountForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        try:
            if form is None:
                assert request.user.is_authenticated
                invitations.accept(secret=secret, user=request.user, address=client_address(request))
                return _welcome(request, found)
            if form.is_valid():
                return _as_new(request, secret, found, form)
        except TeamError as error:
            if form is None:
                messages.error(request, error.message)
                return redirect("accounts:account")
            form.add_error("username" if error.reason == "AlreadyExists" else None, error.message)
    context = {"invitation": found, "form": form, "here": request.path}
    return render(request, "accounts/invitation.html", context, status=status)


def _as_new(request: HttpRequest, secret: str, found: Invitation, form: NewAccountForm) -> HttpResponse:
    address = client_address(request)
    user = invitations.accept_as_new(
        secret=secret,
        name=form.cleaned_data["username"],
        password=form.cleaned_data["password1"],
        email=form.cleaned_data["email"],
        address=address,
    )
    login(request, user, "django.contrib.auth.backends.ModelBackend")
    audit.record("login", by=user, about=user, address=address, detail="with an invitation")
    response = _welcome(request, found)
    remember_device(request, response, user)
    return response


def _welcome(request: HttpRequest, found: Invitation) -> HttpResponse:
    if found.team is None:
        messages.success(request, "Welcome.")
        return redirect("web:home")
    messages.success(request, f"You are in team {found.team.name}, as {found.role}.")
    return redirect("accounts:team", found.team.pk)
