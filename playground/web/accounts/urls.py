"""Paths of team mode's login and accounts."""

from django.urls import path

from playground.web.accounts import account, audit, invitations, login, passwords, people, teams

app_name = "accounts"

urlpatterns = [
    path("", account.account, name="account"),
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", login.logout, name="logout"),
    path("password/", passwords.change, name="password"),
    path("email/", passwords.email, name="email"),
    path("reset/", passwords.Reset.as_view(), name="reset"),
    path("reset/sent/", passwords.reset_sent, name="reset-sent"),
    path("reset/<str:uidb64>/<str:token>/", passwords.ResetConfirm.as_view(), name="reset-confirm"),
    path("tokens/<int:token_id>/delete/", account.token_delete, name="token-delete"),
    path("sessions/end-others/", account.sessions_end, name="sessions-end"),
    path("sessions/<slug:session>/end/", account.session_end, name="session-end"),
    path("teams/", teams.new, name="team-new"),
    path("teams/<int:team_id>/", teams.team, name="team"),
    path("teams/<int:team_id>/invite/", teams.invite, name="team-invite"),
    path("teams/<int:team_id>/members/", teams.member, name="team-member"),
    path(
        "teams/<int:team_id>/invitations/<int:invitation_id>/withdraw/", teams.withdraw, name="team-withdraw"
    ),
    path("invitation/<str:secret>/", invitations.invitation, name="invitation"),
    path("people/", people.people, name="people"),
    path("people/invite/", people.invite, name="people-invite"),
    path("people/invitations/<int:invitation_id>/withdraw/", people.withdraw, name="people-withdraw"),
    path("people/<int:user_id>/reset/", people.reset, name="people-reset"),
    path("people/<int:user_id>/<slug:action>/", people.action, name="people-action"),
    path("audit/", audit.audit, name="audit"),
]
