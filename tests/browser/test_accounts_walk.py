"""Invitation, scopes, expiry, a new password and the audit list, walked in a real browser."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.core import mail
from django.utils import timezone

from playground.accounts.choices import Role
from playground.accounts.models import AccessToken, Invitation, User
from playground.clusters.lifecycle import create_cluster
from tests.browser.test_account_and_api import ada, problems_of

__all__ = ["ada"]

NEW = "staple battery horse"


def log_in(page: Any, server: str, name: str, password: str) -> None:
    page.goto(f"{server}/account/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=f"Account of {name}").wait_for()


def test_a_team_grows_and_its_owner_sees_who_did_what(
    page: Any,
    browser: Any,
    asgi_server: str,
    ada: User,
    settings: Any,
    complaints: list[str],
) -> None:
    settings.PLAYGROUND_MAIL = True
    User.objects.filter(pk=ada.pk).update(is_superuser=True)
    cluster = create_cluster(name="storefront", owner=ada)
    found: list[str] = []

    def seen(there: Any, name: str) -> None:
        found.extend(problems_of(there, name))

    log_in(page, asgi_server, "ada", "correct horse battery")

    # Tokens: one that reads one cluster for a week, one without expiry, one that has expired.
    page.goto(f"{asgi_server}/account/")
    for name, scope, where, until in (
        ("dashboard", "read", cluster.public_id, "7"),
        ("old script", "write", "", ""),
    ):
        page.get_by_label("What it is for").fill(name)
        page.get_by_label("It may").select_option(scope)
        page.get_by_label("In", exact=True).select_option(where)
        page.get_by_label("It expires").select_option(until)
        page.get_by_role("button", name="Make a token").click()
        assert f"/k8s/{where or 'CLUSTER-ID'} --token ksp_" in page.get_by_label("With kubectl").inner_text()
        AccessToken.objects.filter(name="dashboard").update(expires=timezone.now() - timedelta(days=1))
    rows = page.get_by_role("table", name="Your tokens")
    reader = rows.get_by_role("row", name="dashboard").inner_text()
    assert "read" in reader and cluster.public_id in reader and "expired" in reader
    assert "no expiry" in rows.get_by_role("row", name="old script").inner_text()
    seen(page, "account")

    # An invitation, taken by a new person in a browser of their own.
    page.get_by_role("link", name="platform").click()
    page.get_by_label("As", exact=True).select_option("viewer")
    page.get_by_role("button", name="Make an invitation").click()
    link = page.get_by_label("The link", exact=True).inner_text().strip()
    seen(page, "team")
    other = browser.new_context(viewport={"width": 390, "height": 844})
    grace = other.new_page()
    grace.goto(link)
    assert grace.get_by_role("heading", level=1).inner_text() == "Join team platform"
    seen(grace, "invitation")
    grace.get_by_label("Name").fill("grace")
    grace.get_by_label("Mail address").fill("grace@example.org")
    grace.get_by_label("Password", exact=True).fill("123")
    grace.get_by_label("The same again").fill("123")
    grace.get_by_role("button", name="Make an account and join").click()
    assert "too short" in grace.get_by_role("main").inner_text()
    seen(grace, "invitation-refused")
    grace.get_by_label("Password", exact=True).fill("correct horse battery")
    grace.get_by_label("The same again").fill("correct horse battery")
    grace.get_by_role("button", name="Make an account and join").click()
    assert grace.get_by_role("heading", level=1).inner_text() == "Team platform"
    assert ada.memberships.get().team.memberships.get(user__username="grace").role == Role.VIEWER
    assert Invitation.objects.get().accepted is not None

    # She changes her password; then forgets it, and a link by mail sets a new one.
    grace.goto(f"{asgi_server}/account/password/")
    grace.get_by_label("Old password").fill("correct horse battery")
    grace.get_by_label("New password", exact=True).fill(NEW)
    grace.get_by_label("The same again").fill(NEW)
    seen(grace, "password")
    grace.get_by_role("button", name="Change it").click()
    assert "logged out everywhere else" in grace.inner_text("body")
    grace.get_by_role("button", name="Log out").click()
    grace.get_by_role("link", name="Forgotten the password?").click()
    grace.get_by_label("Mail address of the account").fill("grace@example.org")
    seen(grace, "reset")
    grace.get_by_role("button", name="Send it").click()
    assert grace.get_by_role("heading", level=1).inner_text() == "Look into your mail"
    path = re.search(r"(/account/reset/\S+)", mail.outbox[-1].body)[1]
    grace.goto(f"{asgi_server}{path}")
    grace.get_by_label("New password", exact=True).fill("another battery staple")
    grace.get_by_label("The same again").fill("another battery staple")
    seen(grace, "reset-confirm")
    grace.get_by_role("button", name="Set it").click()
    grace.get_by_role("heading", name="grace", level=1).wait_for()
    grace.goto(f"{asgi_server}{path}")
    assert "This link is over" in grace.get_by_role("main").inner_text()

    # She sees where else she is logged in, and ends it.
    elsewhere = browser.new_context(user_agent="A library's browser")
    library = elsewhere.new_page()
    log_in(library, asgi_server, "grace", "another battery staple")
    assert library.request.get(f"{asgi_server}/api/v1/tokens/").status == 200
    grace.goto(f"{asgi_server}/account/")
    rows = grace.get_by_role("table", name="Your sessions")
    assert "this session" in rows.inner_text()
    seen(grace, "sessions")
    rows.get_by_role("row", name="A library's browser").get_by_role("button", name="End the session").click()
    grace.get_by_text("The session is ended.").wait_for()
    assert "library" not in rows.inner_text()
    assert library.request.get(f"{asgi_server}/api/v1/tokens/").status == 401
    elsewhere.close()
    other.close()

    # The owner gives her another role, and reads it all in the audit list.
    page.goto(f"{asgi_server}/account/")
    page.get_by_role("link", name="platform").click()
    page.get_by_label("Role of grace", exact=True).select_option("editor")
    page.get_by_role("button", name="Set the role of grace").click()
    page.goto(f"{asgi_server}/account/audit/")
    said = page.get_by_role("table", name="Entries of the audit list").inner_text()
    for words in (
        "accepted an invitation",
        "changed the password",
        "set a new password by a reset link",
        "gave a role",
    ):
        assert words in said, words
    seen(page, "audit")
    page.get_by_label("Only").select_option("login-failed")
    page.get_by_role("button", name="Show").click()
    assert "There is none." in page.get_by_role("main").inner_text()
    page.goto(f"{asgi_server}/account/people/")
    page.get_by_role("button", name="Make a reset link for grace").click()
    assert "/account/reset/" in page.get_by_label("The link", exact=True).inner_text()
    seen(page, "people")
    assert not found, "\n".join(found)


def test_a_comparison_is_deleted_on_its_page(
    page: Any, asgi_server: str, ada: User, complaints: list[str]
) -> None:
    from playground.scenarios.models import Comparison
    from playground.scenarios.services.comparing import compare_now, request_comparison

    cluster = create_cluster(name="storefront", owner=ada)
    side = {"kind": "cluster", "id": cluster.public_id, "cycle": None}
    comparison = request_comparison(a=side, b=side, owner=ada)
    compare_now(comparison_id=comparison.pk)
    log_in(page, asgi_server, "ada", "correct horse battery")
    page.goto(f"{asgi_server}/compare/")
    found = problems_of(page, "compare-ask")
    assert "seen by you alone" in page.get_by_role("main").inner_text()
    page.goto(f"{asgi_server}/compare/{comparison.public_id}/")
    found += problems_of(page, "compare")
    page.get_by_role("link", name="Delete this comparison").click()
    found += problems_of(page, "compare-delete")
    page.get_by_role("button", name="Delete").click()
    assert "The comparison is deleted" in page.inner_text("body")
    assert not Comparison.objects.exists()
    assert not found, "\n".join(found)
