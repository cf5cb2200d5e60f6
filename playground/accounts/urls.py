"""Paths of team mode's login and of one's own account."""

from django.urls import path

from playground.accounts import views

app_name = "accounts"

urlpatterns = [
    path("", views.account, name="account"),
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", views.Logout.as_view(), name="logout"),
    path("tokens/<int:token_id>/delete/", views.token_delete, name="token-delete"),
]
