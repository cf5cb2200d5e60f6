"""Paths of team mode's login and accounts."""

from django.urls import path

from playground.web.accounts import views

app_name = "accounts"

urlpatterns = [
    path("", views.account, name="account"),
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", views.logout, name="logout"),
    path("password/", views.change, name="password"),
    path("email/", views.email, name="email"),
    path("reset/", views.Reset.as_view(), name="reset"),
    path("reset/sent/", views.reset_sent, name="reset-sent"),
    path("reset/<str:uidb64>/<str:token>/", views.ResetConfirm.as_view(), name="reset-confirm"),
    path("tokens/<int:token_id>/delete/", views.token_delete, name="token-delete"),
    path("sessions/end-others/", views.sessions_end, name="sessions-end"),
    path("sessions/<slug:session>/end/", views.session_end, name="session-end"),
    path("teams/", views.team_new, name="team-new"),
    path("teams/<int:team_id>/", views.team, name="team"),
    path("teams/<int:team_id>/invite/", views.team_invite, name="team-invite"),
    path("teams/<int:team_id>/members/", views.team_member, name="team-member"),
    path(
        "teams/<int:team_id>/invitations/<int:invitation_id>/withdraw/",
        views.team_withdraw,
        name="team-withdraw",
    ),
    path("invitation/<str:secret>/", views.invitation, name="invitation"),
    path("people/", views.people, name="people"),
    path("people/invite/", views.people_invite, name="people-invite"),
    path("people/invitations/<int:invitation_id>/withdraw/", views.people_withdraw, name="people-withdraw"),
    path("people/<int:user_id>/reset/", views.people_reset, name="people-reset"),
    path("people/<int:user_id>/<slug:action>/", views.people_action, name="people-action"),
    path("audit/", views.audit_list, name="audit"),
]
