"""What the pages of accounts ask first."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth import logout as auth_logout
from django.contrib.auth import views as auth_views
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils import timezone

from playground.accounts import audit, invitations, passwords, sessions, teams, throttle, tokens
from playground.accounts.addresses import client_address, origin_of
from playground.accounts.choices import Role
from playground.accounts.limits import count
from playground.accounts.row_types import Invitation, Team, User
from playground.scenarios.services.storage import quota_of
from playground.web.accounts import forms
from playground.web.requests import done, positive_int, visible_clusters

logger = logging.getLogger(__name__)
MAILS_PER_HOUR: Final = 10
PEOPLE_SHOWN: Final = 500
ENTRIES_SHOWN: Final = 50


class PersonsRequest(HttpRequest):
    """A request to a page behind the login (`accounts.middleware`)."""

    user: User


def mail_invitation(request: HttpRequest, invitation: Invitation, link: str) -> bool:
    """Send an invitation's link; False if the mail server would not take it."""
    where = f"team {invitation.team.name}" if invitation.team else "the scheduling playground"
    text = render_to_string(
        "accounts/invitation_mail.txt",
        {"invitation": invitation, "link": link, "where": where, "host": request.get_host()},
    )
    try:
        return bool(send_mail(f"Invitation to {where}", text, None, [invitation.email]))
    except OSError:
        # smtplib's errors are OSErrors.
        logger.exception("an invitation could not be sent by mail")
        return False


class Login(auth_views.LoginView):
    """The login page of team mode."""

    template_name = "accounts/login.html"
    authentication_form = forms.PatientLoginForm
    redirect_authenticated_user = True
    next_page = "/"
    extra_context = {"may_mail": passwords.may_mail}

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        audit.record("login", by=form.get_user(), about=form.get_user(), address=client_address(self.request))
        throttle.remember_device(self.request, response, form.get_user())
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        attempt = getattr(form, "attempt", None)
        if attempt is not None and attempt.wait_s:
            response.status_code = 429
            response.headers["Retry-After"] = str(attempt.wait_s)
        return response


def logout(request: HttpRequest) -> HttpResponse:
    """End this session."""
    if request.user.is_authenticated:
        audit.record("logout", by=request.user, address=client_address(request))
    auth_logout(request)
    return redirect("accounts:login")


def account(request: PersonsRequest) -> HttpResponse:
    """Show a user's tokens and teams. POST makes a token, which this one answer shows."""
    rows = visible_clusters(request).order_by("-created").values_list("public_id", "name")
    clusters = [(public_id, f"{name} ({public_id})") for public_id, name in rows[:200]]
    form = forms.TokenForm(request.POST or None, clusters=clusters)
    if request.method != "POST":
        return _account_page(request, form)
    if form.is_valid():
        data = form.cleaned_data
        try:
            _, made = tokens.create_token(
                user=request.user,
                name=data["name"],
                scope=data["scope"],
                cluster=data["cluster"],
                days=int(data["days"]) if data["days"] else None,
            )
        except teams.AccountError as error:
            form.add_error("name", error.message)
        else:
            form = forms.TokenForm(clusters=clusters)
            return _account_page(request, form, made=made, made_for=data["cluster"], status=201)
    return _account_page(request, form, status=400)


def _account_page(
    request: PersonsRequest, form: forms.TokenForm, *, made: str = "", made_for: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "made": made,
        "made_for": made_for,
        "tokens": tokens.tokens_of(request.user),
        "teams": teams.teams_of(request.user),
        "team_form": forms.TeamForm(auto_id="id_team_%s"),
        "now": timezone.now(),
        "sessions": sessions.sessions_of(request.user),
        "session_key": request.session.session_key,
        "quota": quota_of(request.user),
        "server": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "accounts/account.html", context, status=status)


def token_delete(request: PersonsRequest, token_id: int) -> HttpResponse:
    """Delete a token; it stops working at once."""
    tokens.delete_token(user=request.user, token_id=token_id)
    return redirect("accounts:account")


def session_end(request: PersonsRequest, session: str) -> HttpResponse:
    """End a session, which may be this one: its user is asked to log in again."""
    if not sessions.end_session(user=request.user, handle=session):
        raise Http404("There is no such session.")
    return done(request, "The session is ended.", "accounts:account")


def sessions_end(request: PersonsRequest) -> HttpResponse:
    """End all of one's sessions but this one."""
    number = sessions.end_other_sessions(user=request.user, but=request.session.session_key)
    words = f"{number} other session{'' if number == 1 else 's'} ended."
    return done(request, words, "accounts:account")


def change(request: PersonsRequest) -> HttpResponse:
    """Change the password; other sessions end, this one goes on."""
    form = forms.ChangePasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        passwords.change_password(
            user=request.user,
            password=form.cleaned_data["new_password1"],
            address=client_address(request),
            end_tokens=form.cleaned_data["end_tokens"],
        )
        update_session_auth_hash(request, request.user)
        words = "The password is changed; you are logged out everywhere else."
        response = done(request, words, "accounts:account")
        throttle.remember_device(request, response, request.user)
        return response
    status = 400 if request.method == "POST" else 200
    return render(request, "accounts/password.html", {"form": form}, status=status)


def email(request: PersonsRequest) -> HttpResponse:
    """Change where reset links go; it takes the password."""
    form = forms.EmailForm(request.POST or None, initial={"email": request.user.email})
    status = 400 if request.method == "POST" else 200
    if request.method == "POST" and form.is_valid():
        try:
            forms.check_own_password(request.user, form.cleaned_data["password"])
        except ValidationError as error:
            form.add_error("password", error)
        else:
            passwords.change_email(user=request.user, email=form.cleaned_data["email"])
            return done(request, "The mail address is changed.", "accounts:account")
    return render(request, "accounts/email.html", {"form": form}, status=status)


class Reset(auth_views.PasswordResetView):
    """Ask for a link by mail. The answer says nothing of whether there is such an account."""

    template_name = "accounts/reset.html"
    email_template_name = "accounts/reset_mail.txt"
    subject_template_name = "accounts/reset_subject.txt"
    form_class = forms.ResetForm
    success_url = reverse_lazy("accounts:reset-sent")
    extra_context = {"may_mail": passwords.may_mail}

    def form_valid(self, form: Any) -> HttpResponse:
        address = client_address(self.request)
        mail = form.cleaned_data["email"].casefold()
        keys = (f"mail:address:{origin_of(address)}", f"mail:to:{mail}"[:100])
        # Each is counted, whichever is over; beyond that the answer is the same and nothing is sent.
        most = max(count(key, period_s=3600)[0] for key in keys)
        if most <= MAILS_PER_HOUR and passwords.may_mail():
            for user in form.get_users(form.cleaned_data["email"]):
                audit.record("reset-asked", about=user, address=address)
            return super().form_valid(form)
        return redirect(self.get_success_url())


def reset_sent(request: HttpRequest) -> HttpResponse:
    """Say that a mail is on its way."""
    return render(request, "accounts/reset_sent.html")


class ResetConfirm(auth_views.PasswordResetConfirmView):
    """Set a new password with the link; it works once, and who has it is logged in on this device."""

    template_name = "accounts/reset_confirm.html"
    form_class = forms.NewPasswordForm
    success_url = reverse_lazy("accounts:account")

    def form_valid(self, form: Any) -> HttpResponse:
        user: User = form.user
        address = client_address(self.request)
        passwords.change_password(
            user=user, password=form.cleaned_data["new_password1"], how="password-reset", address=address
        )
        self.request.session.pop(auth_views.INTERNAL_RESET_SESSION_TOKEN, None)
        response = redirect(self.get_success_url())
        if user.is_active:
            _log_in(self.request, response, user, "with a reset link")
        messages.success(self.request, "The new password is set; you are logged out everywhere else.")
        return response


def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Accept it: as who is logged in, or with a new account."""
    found = invitations.invitation_of(secret)
    if found is None:
        return render(request, "accounts/invitation_over.html", status=404)
    form = None if request.user.is_authenticated else forms.NewAccountForm(request.POST or None)
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
        except teams.AccountError as error:
            if form is None:
                raise
            form.add_error("username" if error.reason == "AlreadyExists" else None, error.message)
    context = {"invitation": found, "form": form, "here": request.path}
    return render(request, "accounts/invitation.html", context, status=status)


def _as_new(request: HttpRequest, secret: str, found: Invitation, form: forms.NewAccountForm) -> HttpResponse:
    user = invitations.accept_as_new(
        secret=secret,
        name=form.cleaned_data["username"],
        password=form.cleaned_data["password1"],
        email=form.cleaned_data["email"],
        address=client_address(request),
    )
    response = _welcome(request, found)
    _log_in(request, response, user, "with an invitation")
    return response


def _log_in(request: HttpRequest, response: HttpResponse, user: User, how: str) -> None:
    """Begin a session on this device, which is a known one from now on."""
    login(request, user, "django.contrib.auth.backends.ModelBackend")
    audit.record("login", by=user, about=user, address=client_address(request), detail=how)
    throttle.remember_device(request, response, user)


def _welcome(request: HttpRequest, found: Invitation) -> HttpResponse:
    if found.team is None:
        return done(request, "Welcome.", "web:home")
    words = f"You are in team {found.team.name}, as {found.role}."
    return done(request, words, "accounts:team", found.team.pk)


def team_new(request: PersonsRequest) -> HttpResponse:
    """Make a team; who makes it owns it."""
    form = forms.TeamForm(request.POST)
    if not form.is_valid():
        raise teams.AccountError("Conflict", "A team needs a name of at most 100 characters.")
    made = teams.create_team(name=form.cleaned_data["name"], owner=request.user)
    return redirect("accounts:team", made.pk)


def invite(request: PersonsRequest, team: Team | None = None) -> HttpResponse:
    """Invite a person to a team, or to the site alone; this one answer shows the link."""
    form = forms.InviteForm(request.POST, mails=passwords.may_mail(), of_team=team is not None)
    if not form.is_valid():
        return _invited_page(request, team, form=form, status=400)
    invitation, secret = invitations.create_invitation(by=request.user, team=team, **form.cleaned_data)
    link = request.build_absolute_uri(reverse("accounts:invitation", args=[secret]))
    sent = bool(invitation.email) and mail_invitation(request, invitation, link)
    made = {"made": link, "made_what": "invitation", "sent_to": invitation.email if sent else ""}
    return _invited_page(request, team, **made, status=201)


def withdraw(request: PersonsRequest, invitation_id: int, team: Team | None = None) -> HttpResponse:
    """Withdraw an invitation: its link leads nowhere then."""
    invitations.withdraw(by=request.user, team=team, invitation_id=invitation_id)
    return redirect("accounts:people") if team is None else redirect("accounts:team", team.pk)


def _invited_page(request: PersonsRequest, team: Team | None, **said: Any) -> HttpResponse:
    return people(request, **said) if team is None else team_page(request, team, **said)


def team_member(request: PersonsRequest, team: Team) -> HttpResponse:
    """Give a member another role, or let them go; members may leave by themselves."""
    name, role = request.POST.get("user", ""), request.POST.get("role", "")
    if not role:
        teams.remove_member(team=team, username=name, by=request.user)
    elif role in Role.values and team.members.filter(username=name).exists():
        teams.set_member(team=team, username=name, role=role, by=request.user)
    else:
        raise Http404("There is no such member or role.")
    if not role and name == request.user.get_username():
        return redirect("accounts:account")
    return redirect("accounts:team", team.pk)


def team_page(
    request: PersonsRequest,
    team: Team,
    *,
    form: forms.InviteForm | None = None,
    status: int = 200,
    **also: Any,
) -> HttpResponse:
    """Show who is in it, and to its owners roles and invitations."""
    members = list(team.memberships.select_related("user").order_by("user__username"))
    owns = any(one.user_id == request.user.pk and one.role == Role.OWNER for one in members)
    context = {
        "members": members,
        "roles": forms.ROLES,
        "owns": owns,
        "form": form or forms.InviteForm(mails=passwords.may_mail()),
        "invitations": invitations.open_invitations(request.user, team) if owns else [],
        **also,
    }
    return render(request, "accounts/team.html", context, status=status)


def people_reset(request: PersonsRequest, user_id: int) -> HttpResponse:
    """Make a link that sets a new password once, to be passed on by hand."""
    person = teams.person_by_number(user_id)
    link = request.build_absolute_uri(passwords.hand_out_reset(by=request.user, user=person))
    return people(request, made=link, made_what="reset", made_for=person.get_username(), status=201)


def people_action(request: PersonsRequest, user_id: int, action: str) -> HttpResponse:
    """Close an account, or open it again."""
    if action not in ("close", "open"):
        raise Http404(f'There is no "{action}" to do.')
    passwords.set_active(by=request.user, user=teams.person_by_number(user_id), active=action == "open")
    return redirect("accounts:people")


def people(
    request: PersonsRequest, *, form: forms.InviteForm | None = None, status: int = 200, **also: Any
) -> HttpResponse:
    """Show all accounts, and the open invitations to the site."""
    rows = teams.everyone().order_by("username")
    context = {
        "people": rows[:PEOPLE_SHOWN],
        "form": form or forms.InviteForm(mails=passwords.may_mail(), of_team=False),
        "invitations": invitations.open_invitations(request.user, None),
        **also,
    }
    return render(request, "accounts/people.html", context, status=status)


def audit_list(request: PersonsRequest) -> HttpResponse:
    """Show the audit entries a user may read, newest first; ``?action=`` chooses, ``?before=`` goes on."""
    action, before = request.GET.get("action", ""), positive_int(request.GET.get("before"))
    found = list(audit.entries_for(request.user, action=action, before=before)[: ENTRIES_SHOWN + 1])
    entries: list[dict[str, Any]] = [
        {
            "row": row,
            "words": audit.ACTIONS.get(row.action, row.action),
            "address": row.address if audit.may_see_address(row, request.user) else "",
        }
        for row in found[:ENTRIES_SHOWN]
    ]
    context = {
        "entries": entries,
        "actions": audit.ACTIONS,
        "action": action,
        "next": found[ENTRIES_SHOWN - 1].pk if len(found) > ENTRIES_SHOWN else None,
    }
    return render(request, "accounts/audit.html", context)
