"""One's own account: tokens, teams, where one is logged in, and how to keep it safe."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from playground.accounts.sessions import end_other_sessions, end_session, sessions_of
from playground.accounts.teams import teams_of
from playground.accounts.tokens import TokenError, create_token, delete_token, tokens_of
from playground.scenarios.services.storage import quota_of
from playground.web.access import visible_clusters
from playground.web.accounts.access import team_mode
from playground.web.accounts.forms import TeamForm, TokenForm


@team_mode
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's tokens and teams. POST makes a token, which this one answer shows."""
    assert request.user.is_authenticated
    rows = visible_clusters(request).order_by("-created").values_list("public_id", "name")
    clusters = [(public_id, f"{name} ({public_id})") for public_id, name in rows[:200]]
    form, made, status = TokenForm(request.POST or None, clusters=clusters), "", 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            data = form.cleaned_data
            try:
                _, made = create_token(
                    user=request.user,
                    name=data["name"],
                    scope=data["scope"],
                    cluster=data["cluster"],
                    days=int(data["days"]) if data["days"] else None,
                )
            except TokenError as error:
                form.add_error("name", str(error))
            else:
                status, made_for = 201, data["cluster"]
                form = TokenForm(clusters=clusters)
                return _page(request, form, made=made, made_for=made_for, status=status)
    return _page(request, form, made=made, made_for="", status=status)


def _page(request: HttpRequest, form: TokenForm, *, made: str, made_for: str, status: int) -> HttpResponse:
    assert request.user.is_authenticated
    context = {
        "form": form,
        "made": made,
        "made_for": made_for,
        "tokens": tokens_of(request.user),
        "teams": teams_of(request.user),
        "team_form": TeamForm(auto_id="id_team_%s"),
        "now": timezone.now(),
        "sessions": sessions_of(request.user),
        "session_key": request.session.session_key,
        "quota": quota_of(request.user),
        "server": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "accounts/account.html", context, status=status)


@team_mode
@require_POST
def token_delete(request: HttpRequest, token_id: int) -> HttpResponse:
    """It stops working at once."""
    assert request.user.is_authenticated
    if not delete_token(user=request.user, token_id=token_id):
        raise Http404("There is no such token.")
    return redirect("accounts:account")


@team_mode
@require_POST
def session_end(request: HttpRequest, session: str) -> HttpResponse:
    """Its user is asked to log in again; one's own may be ended, too."""
    assert request.user.is_authenticated
    if not end_session(user=request.user, handle=session):
        raise Http404("There is no such session.")
    messages.success(request, "The session is ended.")
    return redirect("accounts:account")


@team_mode
@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    """End all of one's sessions but this one."""
    assert request.user.is_authenticated
    number = end_other_sessions(user=request.user, but=request.session.session_key)
    messages.success(request, f"{number} other session{'' if number == 1 else 's'} ended.")
    return redirect("accounts:account")
