"""Logging in and out."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import logout as end_session
from django.contrib.auth import views as auth_views
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from playground.accounts import audit
from playground.accounts.addresses import client_address
from playground.accounts.devices import remember_device
from playground.accounts.passwords import may_mail
from playground.web.accounts.access import team_mode
from playground.web.accounts.forms import PatientLoginForm


@method_decorator(team_mode, name="dispatch")
class Login(auth_views.LoginView):
    """The login page of team mode."""

    template_name = "accounts/login.html"
    authentication_form = PatientLoginForm
    redirect_authenticated_user = True
    next_page = "/"
    extra_context = {"may_mail": may_mail}

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        audit.record("login", by=form.get_user(), about=form.get_user(), address=client_address(self.request))
        remember_device(self.request, response, form.get_user())
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        attempt = getattr(form, "attempt", None)
        if attempt is not None and attempt.wait_s:
            response.status_code = 429
            response.headers["Retry-After"] = str(attempt.wait_s)
        return response


@team_mode
@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """End this session."""
    if request.user.is_authenticated:
        audit.record("logout", by=request.user, address=client_address(request))
    end_session(request)
    return redirect("accounts:login")
