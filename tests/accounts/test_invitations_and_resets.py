"""Invitations into teams, new passwords, sessions, and the audit list of all that."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from playground.accounts import audit, housekeeping, invitations, teams, throttle, tokens
from playground.accounts.choices import Role
from playground.accounts.models import AccessToken, AuditEntry, Invitation, Session, Team, User
from playground.accounts.teams import AccountError
from playground.clusters.lifecycle import create_cluster, delete_cluster
from tests.accounts.world import RIGHT, client_of

NEW = {"password1": "staple battery horse", "password2": "staple battery horse"}


@pytest.fixture
def team(ada: User) -> Team:
    return teams.create_team(name="platform", owner=ada)


def link_in(page: Any) -> str:
    """The path of the link that a page shows once."""
    return re.search(r"http://testserver(/account/[^<\s]+)", page.content.decode())[1]


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


@pytest.mark.dialect
def test_an_invitation_takes_one_new_person_in_once(ada: User, team: Team) -> None:
    made = client_of(ada).post(f"/account/teams/{team.pk}/invite/", {"role": "viewer", "days": "7"})
    assert made.status_code == 201
    link = link_in(made)
    secret = link.rstrip("/").rpartition("/")[2]
    assert secret not in Invitation.objects.get().digest
    grace = Client()
    assert b"Join team platform" in grace.get(link).content
    weak = grace.post(link, {"username": "grace", "password1": "123", "password2": "123"})
    assert (weak.status_code, User.objects.filter(username="grace").exists()) == (400, False)
    taken = grace.post(link, {"username": "ada"} | NEW)
    assert (taken.status_code, b"already exists" in taken.content) == (400, True)
    joined = grace.post(link, {"username": "grace"} | NEW)
    assert joined["Location"] == f"/account/teams/{team.pk}/"
    assert grace.get(joined["Location"]).status_code == 200
    assert team.memberships.get(user__username="grace").role == Role.VIEWER
    for stranger in (Client(), grace):
        assert stranger.get(link).status_code == 404
        assert stranger.post(link, {"username": "eve"} | NEW).status_code == 404
    assert not User.objects.filter(username="eve").exists()
    wanted = ["team-made", "invitation-made", "account-made", "invitation-accepted", "login"]
    assert actions() == wanted


def test_an_invitation_is_accepted_with_the_account_one_has(ada: User, team: Team) -> None:
    bob = User.objects.create_user("bob", password=RIGHT)
    _, secret = invitations.create_invitation(by=ada, team=team, role=Role.EDITOR)
    link = f"/account/invitation/{secret}/"
    way_in = Client().get(link).content.decode()
    assert f"/account/login/?next={link}" in way_in
    assert client_of(bob).post(link).status_code == 302
    assert team.memberships.get(user=bob).role == Role.EDITOR
    # Who is in it already neither uses it up nor changes roles by it.
    _, second = invitations.create_invitation(by=ada, team=team, role=Role.OWNER)
    client_of(bob).post(f"/account/invitation/{second}/")
    assert team.memberships.get(user=bob).role == Role.EDITOR
    assert invitations.invitation_of(second) is not None


def test_an_invitation_ends_with_its_time_its_maker_or_a_word(ada: User, team: Team) -> None:
    bob = User.objects.create_user("bob")
    teams.set_member(team=team, username="bob", role=Role.OWNER)
    made = [invitations.create_invitation(by=bob, team=team) for _ in range(3)]
    Invitation.objects.filter(pk=made[0][0].pk).update(expires=timezone.now())
    assert invitations.invitation_of(made[0][1]) is None
    where = f"/account/teams/{team.pk}/invitations/{made[1][0].pk}/withdraw/"
    assert client_of(User.objects.create_user("eve")).post(where).status_code == 404
    assert client_of(ada).post(where).status_code == 302
    assert invitations.invitation_of(made[1][1]) is None
    assert invitations.invitation_of(made[2][1]) is not None
    teams.set_member(team=team, username="bob", role=Role.VIEWER)
    assert invitations.invitation_of(made[2][1]) is None
    with pytest.raises(AccountError):
        invitations.accept(secret=made[2][1], user=User.objects.get(username="eve"))
    with pytest.raises(AccountError):
        invitations.create_invitation(by=bob, team=team)
    assert (
        client_of(bob).post(f"/account/teams/{team.pk}/invite/", {"role": "owner", "days": "7"}).status_code
        == 403
    )


def test_invitations_over_rest(ada: User, team: Team) -> None:
    bob = User.objects.create_user("bob")
    teams.set_member(team=team, username="bob", role=Role.EDITOR)
    here = "/api/v1/teams/platform/invitations/"
    api = client_of(ada)
    made = api.post(here, {"role": "viewer", "expiresInDays": 1}, content_type="application/json")
    assert made.status_code == 201
    assert Client().get(made.json()["link"]).status_code == 200
    listed = api.get(here).json()["items"]
    assert (len(listed), "link" in listed[0], listed[0]["role"]) == (1, False, "viewer")
    for method in ("get", "post"):
        assert getattr(client_of(bob), method)(here, content_type="application/json").status_code == 403
        eve = User.objects.get_or_create(username="eve")[0]
        assert getattr(client_of(eve), method)(here, content_type="application/json").status_code == 404
    assert api.delete(f"{here}{listed[0]['id']}/").status_code == 204
    assert Client().get(made.json()["link"]).status_code == 404


def test_a_changed_password_ends_other_sessions_and_on_request_tokens(ada: User) -> None:
    here, elsewhere = client_of(ada), client_of(ada)
    tokens.create_token(user=ada, name="laptop")
    body = {"old_password": "wrong", "new_password1": NEW["password1"], "new_password2": NEW["password1"]}
    assert here.post("/account/password/", body).status_code == 400
    changed = here.post("/account/password/", body | {"old_password": RIGHT})
    assert changed.status_code == 302
    assert here.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302
    assert AccessToken.objects.count() == 1
    again = {
        "old_password": NEW["password1"],
        "new_password1": RIGHT,
        "new_password2": RIGHT,
        "end_tokens": "on",
    }
    assert here.post("/account/password/", again).status_code == 302
    assert not AccessToken.objects.exists()
    assert actions().count("password-changed") == 2
    # An open page is no way to guess the password.
    for _ in range(throttle.PER_DEVICE + 1):
        refused = here.post("/account/password/", body)
    assert b"Too many tries" in refused.content


def test_a_reset_link_by_mail_works_once_and_lets_in_while_others_try_the_name(
    ada: User, settings: Any
) -> None:
    settings.PLAYGROUND_MAIL = True
    old = client_of(ada)
    for number in range(throttle.PER_NAME + 1):
        throttle.count_login(name="ada", address=f"198.51.100.{number}", user=ada)
    owner = Client(REMOTE_ADDR="203.0.113.77")
    answers = [
        owner.post("/account/reset/", {"email": who}) for who in ("ada@example.org", "eve@example.org")
    ]
    assert {answer["Location"] for answer in answers} == {"/account/reset/sent/"}
    assert [message.to for message in mail.outbox] == [["ada@example.org"]]
    link = re.search(r"http://testserver(\S+)", mail.outbox[0].body)[1]
    form = owner.get(link, follow=True)
    assert b"For ada." in form.content
    done = owner.post(
        form.request["PATH_INFO"], {"new_password1": NEW["password1"], "new_password2": NEW["password1"]}
    )
    assert done["Location"] == "/account/"
    assert owner.get("/account/").status_code == 200
    assert old.get("/account/").status_code == 302
    assert b"This link is over" in Client().get(link, follow=True).content
    # The device is known now: the name's count does not hold it up.
    owner.post("/account/logout/")
    body = {"username": "ada", "password": NEW["password1"]}
    assert owner.post("/account/login/", body).status_code == 302
    assert Client(REMOTE_ADDR="203.0.113.78").post("/account/login/", body).status_code == 429


def test_without_mail_an_administrator_alone_hands_out_the_link(ada: User, team: Team) -> None:
    assert b"ask an administrator" in Client().get("/account/reset/").content.lower()
    grace = User.objects.create_user("grace", password=RIGHT)
    teams.set_member(team=team, username="grace", role=Role.EDITOR)
    # A team's owner is no administrator: a member's account opens more than that team.
    for path in ("people/", f"people/{grace.pk}/reset/", f"people/{grace.pk}/close/", "people/invite/"):
        for ask in (client_of(ada).get, client_of(ada).post):
            assert ask(f"/account/{path}").status_code in (404, 405), path
    root = client_of(User.objects.create_superuser("root"))
    link = link_in(root.post(f"/account/people/{grace.pk}/reset/"))
    client = Client()
    form = client.get(link, follow=True)
    client.post(form.request["PATH_INFO"], {f"new_{name}": value for name, value in NEW.items()})
    assert User.objects.get(pk=grace.pk).check_password(NEW["password1"])
    assert b"This link is over" in Client().get(link, follow=True).content
    _, token = tokens.create_token(user=grace, name="x")
    assert root.post(f"/account/people/{grace.pk}/close/").status_code == 302
    assert client.get("/account/").status_code == 302
    assert tokens.token_of(token) is None
    root.post(f"/account/people/{grace.pk}/open/")
    assert tokens.token_of(token) is not None
    invited = link_in(root.post("/account/people/invite/", {"days": "1"}))
    assert Client().post(invited, {"username": "heidi"} | NEW)["Location"] == "/"
    assert User.objects.get(username="heidi").teams.count() == 0


def test_members_and_roles_on_the_teams_page(ada: User, team: Team) -> None:
    for name in ("bob", "eve"):
        User.objects.create_user(name)
    teams.set_member(team=team, username="bob", role=Role.EDITOR)
    bob, eve = (client_of(User.objects.get(username=name)) for name in ("bob", "eve"))
    here = f"/account/teams/{team.pk}/"
    assert eve.get(here).status_code == 404
    assert eve.post(f"{here}members/", {"user": "bob", "role": ""}).status_code == 404
    assert bob.get(here).status_code == 200
    assert bob.post(f"{here}members/", {"user": "bob", "role": "owner"}).status_code == 403
    assert bob.post(f"{here}members/", {"user": "ada", "role": ""}).status_code == 403
    assert client_of(ada).post(f"{here}members/", {"user": "ada", "role": ""}).status_code == 302
    assert team.memberships.filter(user=ada).exists()
    # No one is taken in without having accepted.
    assert client_of(ada).post(f"{here}members/", {"user": "eve", "role": "viewer"}).status_code == 404
    assert client_of(ada).post(f"{here}members/", {"user": "bob", "role": "viewer"}).status_code == 302
    assert team.memberships.get(user__username="bob").role == Role.VIEWER
    assert bob.post(f"{here}members/", {"user": "bob", "role": ""})["Location"] == "/account/"
    assert not team.memberships.filter(user__username="bob").exists()


def test_each_reads_of_the_audit_list_what_concerns_them(ada: User, team: Team) -> None:
    bob, eve = (User.objects.create_user(name, password=RIGHT) for name in ("bob", "eve"))
    teams.set_member(team=team, username="bob", role=Role.EDITOR, by=ada)
    Client(REMOTE_ADDR="192.0.2.9").post("/account/login/", {"username": "bob", "password": RIGHT})
    secret = create_cluster(name="xyzzy", owner=eve)
    delete_cluster(cluster=secret, by=eve)
    shared = create_cluster(name="shared", team=team)
    client_of(bob).post(f"/c/{shared.public_id}/cluster/delete/", {"sure": "yes"})
    teams.set_member(team=team, username="bob", role=Role.OWNER, by=ada)
    client_of(bob).post(f"/c/{shared.public_id}/cluster/delete/", {"sure": "yes"})

    def seen(person: User, **query: Any) -> list[tuple[str, str | None]]:
        answer = client_of(person).get("/api/v1/audit/", query)
        assert answer.status_code == 200
        return [(item["action"], item["address"]) for item in answer.json()["items"]]

    assert ("login", "192.0.2.9") in seen(bob)
    # An owner reads what is done in the team, and not from where others log in.
    assert [action for action, _ in seen(ada)] == ["cluster-deleted", "member-set", "member-set", "team-made"]
    assert [action for action, _ in seen(eve)] == ["cluster-deleted"]
    assert b"xyzzy" not in client_of(ada).get("/account/audit/").content
    assert b"xyzzy" in client_of(eve).get("/account/audit/").content
    root = User.objects.create_superuser("root")
    assert len(seen(root)) == AuditEntry.objects.count() == 6
    assert len(seen(root, action="member-set")) == 2
    first = client_of(root).get("/api/v1/audit/", {"limit": 4}).json()
    second = client_of(root).get(first["next"]).json()
    assert [len(first["items"]), len(second["items"]), second["next"]] == [4, 2, None]
    assert Client().get("/api/v1/audit/").status_code == 401
    assert Client().get("/account/audit/").status_code == 302


def test_the_audit_list_is_bounded_and_what_is_over_is_tidied(
    ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        audit.record("logout", by=ada, target=str(number))
    monkeypatch.setattr(audit, "MAX_ENTRIES", 3)
    Session.objects.create(session_key="over", expire_date=timezone.now() - timedelta(seconds=1))
    row, _ = tokens.create_token(user=ada, name="x", days=1)
    AuditEntry.objects.filter(action="token-made").delete()
    assert housekeeping.tidy()["audit"] == 2
    assert list(AuditEntry.objects.order_by("pk").values_list("target", flat=True)) == ["2", "3", "4"]
    assert not Session.objects.filter(session_key="over").exists()
    AuditEntry.objects.filter(target="2").update(at=timezone.now() - timedelta(days=366))
    assert housekeeping.tidy() == {
        "counts": 0,
        "tokens": 0,
        "invitations": 0,
        "audit": 1,
        "keptAnswers": 0,
    }
    later = row.expires + tokens.KEPT_EXPIRED + timedelta(seconds=1)
    assert housekeeping.tidy(now=later)["tokens"] == 1


def test_a_mail_address_changes_only_with_the_password(ada: User) -> None:
    client = client_of(ada)
    refused = client.post("/account/email/", {"email": "eve@example.org", "password": "x"})
    assert refused.status_code == 400
    assert client.post("/account/email/", {"email": "new@example.org", "password": RIGHT}).status_code == 302
    ada.refresh_from_db()
    assert ada.email == "new@example.org"


def test_embedded_mode_has_none_of_it(settings: Any, team: Team, ada: User) -> None:
    settings.EMBEDDED = True
    for path in ("", "password/", "reset/", "people/", "audit/", f"teams/{team.pk}/", "invitation/x/"):
        assert Client().get(f"/account/{path}").status_code == 404, path
    assert Client().get("/api/v1/audit/").json()["items"] == []
    before = AuditEntry.objects.count()
    delete_cluster(cluster=create_cluster(name="x"))
    assert AuditEntry.objects.count() == before
