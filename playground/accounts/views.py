"""Logging in, and the page of one's own tokens."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import AuthenticationForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from playground.accounts.limits import count, counted
from playground.accounts.models import AccessToken
from playground.accounts.teams import teams_of
from playground.accounts.tokens import TooManyTokens, create_token

MAX_FAILURES: Final = 10
FAILURES_KEPT_S: Final = 300


class PatientLoginForm(AuthenticationForm):
    """Refuses to try after too many failures for one name from one address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "inp"

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username") or "")
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        key = "login:" + hashlib.sha256(f"{address} {name}".encode("utf-8", "replace")).hexdigest()
        if counted(key, period_s=FAILURES_KEPT_S) >= MAX_FAILURES:
            raise forms.ValidationError("Too many tries. Wait five minutes.", code="throttled")
        try:
            return super().clean()
        except forms.ValidationError:
            count(key, period_s=FAILURES_KEPT_S)
            raise


class Login(auth_views.LoginView):
    """The login page of team mode."""

    template_name = "accounts/login.html"
    authentication_form = PatientLoginForm
    redirect_authenticated_user = True
    next_page = "/"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if settings.EMBEDDED:
            raise Http404("The embedded playground has no login.")
        return super().dispatch(request, *args, **kwargs)


class Logout(auth_views.LogoutView):
    """POST only."""

    next_page = reverse_lazy("accounts:login")


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="What it is for",
        widget=forms.TextInput({"class": "inp", "autocomplete": "off"}),
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's tokens and teams. POST makes a token, which this one answer shows."""
    if settings.EMBEDDED:
        raise Http404("The embedded playground has no accounts.")
    assert request.user.is_authenticated
    form, made, status = TokenForm(request.POST or None), "", 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                _, made = create_token(user=request.user, name=form.cleaned_data["name"])
                form, status = TokenForm(), 201
            except TooManyTokens as error:
                form.add_error("name", str(error))
    context = {
        "form": form,
        "made": made,
        "tokens": AccessToken.objects.filter(user=request.user).order_by("-pk"),
        "teams": teams_of(request.user),
        "server": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "accounts/account.html", context, status=status)


@require_POST
def token_delete(request: HttpRequest, token_id: int) -> HttpResponse:
    """It stops working at once."""
    if settings.EMBEDDED or not AccessToken.objects.filter(pk=token_id, user=request.user).delete()[0]:
        raise Http404("There is no such token.")
    return redirect("accounts:account")
