"""A new password: by who knows the old one, or by a link that works once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth import views as auth_views
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_http_methods, require_safe

from playground.accounts import audit
from playground.accounts.addresses import client_address, origin_of
from playground.accounts.devices import remember_device
from playground.accounts.limits import count
from playground.accounts.passwords import change_email, change_password, may_mail
from playground.web.accounts.access import team_mode
from playground.web.accounts.forms import (
    ChangePasswordForm,
    EmailForm,
    NewPasswordForm,
    ResetForm,
    check_own_password,
)

if TYPE_CHECKING:
    from playground.accounts.row_types import User

MAILS_PER_HOUR: Final = 10


@team_mode
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest) -> HttpResponse:
    """Change the password; other sessions end, this one goes on."""
    assert request.user.is_authenticated
    form = ChangePasswordForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        change_password(
            user=request.user,
            password=form.cleaned_data["new_password1"],
            address=client_address(request),
            end_tokens=form.cleaned_data["end_tokens"],
        )
        update_session_auth_hash(request, request.user)
        messages.success(request, "The password is changed; you are logged out everywhere else.")
        response = redirect("accounts:account")
        remember_device(request, response, request.user)
        return response
    status = 400 if request.method == "POST" else 200
    return render(request, "accounts/password.html", {"form": form}, status=status)


@team_mode
@require_http_methods(["GET", "HEAD", "POST"])
def email(request: HttpRequest) -> HttpResponse:
    """Change where reset links go; it takes the password."""
    assert request.user.is_authenticated
    form = EmailForm(request.POST or None, initial={"email": request.user.email})
    status = 400 if request.method == "POST" else 200
    if request.method == "POST" and form.is_valid():
        try:
            check_own_password(request.user, form.cleaned_data["password"])
        except ValidationError as error:
            form.add_error("password", error)
        else:
            change_email(user=request.user, email=form.cleaned_data["email"])
            messages.success(request, "The mail address is changed.")
            return redirect("accounts:account")
    return render(request, "accounts/email.html", {"form": form}, status=status)


@method_decorator(team_mode, name="dispatch")
class Reset(auth_views.PasswordResetView):
    """Ask for a link by mail. The answer says nothing of whether there is such an account."""

    template_name = "accounts/reset.html"
    email_template_name = "accounts/reset_mail.txt"
    subject_template_name = "accounts/reset_subject.txt"
    form_class = ResetForm
    success_url = reverse_lazy("accounts:reset-sent")
    extra_context = {"may_mail": may_mail}

    def form_valid(self, form: Any) -> HttpResponse:
        address = client_address(self.request)
        mail = form.cleaned_data["email"].casefold()
        keys = (f"mail:address:{origin_of(address)}", f"mail:to:{mail}"[:100])
        # Each is counted, whichever is over; beyond that the answer is the same and nothing is sent.
        most = max(count(key, period_s=3600)[0] for key in keys)
        if most <= MAILS_PER_HOUR and may_mail():
            for user in form.get_users(form.cleaned_data["email"]):
                audit.record("reset-asked", about=user, address=address)
            return super().form_valid(form)
        return redirect(self.get_success_url())


@team_mode
@require_safe
def reset_sent(request: HttpRequest) -> HttpResponse:
    """What happens next."""
    return render(request, "accounts/reset_sent.html")


@method_decorator(team_mode, name="dispatch")
class ResetConfirm(auth_views.PasswordResetConfirmView):
    """Set a new password with the link; it works once, and who has it is logged in on this device."""

    template_name = "accounts/reset_confirm.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("accounts:account")

    def form_valid(self, form: Any) -> HttpResponse:
        user: User = form.user
        address = client_address(self.request)
        change_password(
            user=user, password=form.cleaned_data["new_password1"], how="password-reset", address=address
        )
        self.request.session.pop(auth_views.INTERNAL_RESET_SESSION_TOKEN, None)
        response = redirect(self.get_success_url())
        if user.is_active:
            login(self.request, user, "django.contrib.auth.backends.ModelBackend")
            audit.record("login", by=user, about=user, address=address, detail="with a reset link")
            remember_device(self.request, response, user)
        messages.success(self.request, "The new password is set; you are logged out everywhere else.")
        return response
