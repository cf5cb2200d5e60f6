"""Where one is logged in: listed, ended one by one or all others, and over with a new password."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from playground.accounts import passwords
from playground.accounts.models import AuditEntry, Session, User
from playground.accounts.sessions import SEEN_EVERY, sessions_of
from tests.accounts.world import RIGHT


def logged_in(browser: str, name: str = "ada", address: str = "192.0.2.7") -> Client:
    client = Client(headers={"user-agent": browser}, REMOTE_ADDR=address)
    answer = client.post("/account/login/", {"username": name, "password": RIGHT})
    assert answer.status_code == 302, answer.content
    return client


def is_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


@pytest.mark.dialect
def test_each_is_listed_with_its_browser_and_ended_alone_or_with_all_others(ada: User) -> None:
    clients = {name: logged_in(name) for name in ("laptop", "phone", "library")}
    User.objects.create_user("bob", password=RIGHT)
    bob = logged_in("bobs", "bob")
    rows = {row.browser: row for row in sessions_of(ada)}
    assert set(rows) == set(clients)
    assert {row.address for row in rows.values()} == {"192.0.2.7"}
    page = clients["laptop"].get("/account/").content.decode()
    assert "phone" in page and "library" in page and "192.0.2.7" in page and "bobs" not in page
    for row in rows.values():
        assert row.session_key not in page
    assert rows["phone"].handle in page and rows["laptop"].handle not in page

    path = f"/account/sessions/{rows['phone'].handle}/end/"
    assert bob.post(path).status_code == 404
    assert is_in(clients["phone"])
    assert clients["laptop"].post(path).status_code == 302
    assert not is_in(clients["phone"]) and is_in(clients["laptop"]) and is_in(clients["library"])
    assert clients["laptop"].post(path).status_code == 404

    said = clients["laptop"].post("/account/sessions/end-others/", follow=True).content.decode()
    assert "1 other session ended." in said
    assert not is_in(clients["library"]) and is_in(clients["laptop"]) and is_in(bob)
    assert AuditEntry.objects.filter(action="session-ended", actor=ada).count() == 2


def test_a_new_password_and_a_closed_account_leave_no_row_of_an_old_session(ada: User) -> None:
    laptop, phone = logged_in("laptop"), logged_in("phone")
    form = {"old_password": RIGHT, "new_password1": "staple battery", "new_password2": "staple battery"}
    assert laptop.post("/account/password/", form).status_code == 302
    assert is_in(laptop) and not is_in(phone)
    assert [row.browser for row in sessions_of(ada)] == ["laptop"]
    root = User.objects.create_superuser("root")
    passwords.set_active(by=root, user=ada, active=False)
    assert not Session.objects.filter(user=ada).exists()
    passwords.set_active(by=root, user=ada, active=True)
    assert not is_in(laptop)
    passwords.change_password(user=ada, password=RIGHT, how="password-reset")
    logged_in("laptop")
    passwords.change_password(user=ada, password="another", how="password-reset")
    assert not Session.objects.filter(user=ada).exists()


def test_when_it_was_used_is_noted_every_few_minutes(ada: User) -> None:
    laptop = logged_in("laptop")
    before = sessions_of(ada)[0].seen
    assert is_in(laptop) and sessions_of(ada)[0].seen == before
    session = laptop.session
    session["seen"] = (timezone.now() - 2 * SEEN_EVERY).isoformat()
    session.save()
    assert is_in(laptop)
    assert sessions_of(ada)[0].seen >= before
