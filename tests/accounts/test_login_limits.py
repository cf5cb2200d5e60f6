"""How many passwords may be tried, from where, and who gets in all the same."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate as real_authenticate
from django.contrib.auth import forms as auth_forms
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import Client, RequestFactory
from django.utils import timezone

from playground.accounts import addresses, passwords, throttle
from playground.accounts.models import AuditEntry, Session, User
from playground.accounts.sessions import SEEN_EVERY, sessions_of
from playground.settings import _network
from tests.accounts.world import RIGHT
from tests.tables import table


@pytest.fixture(autouse=True)
def lower_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the real ones, which a process of its own is held to below."""
    monkeypatch.setattr(throttle, "PER_ADDRESS", 17)
    monkeypatch.setattr(throttle, "PER_NAME", 20)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names whose passwords were tried."""
    names: list[str] = []

    def authenticate(request: Any = None, **credentials: Any) -> Any:
        names.append(credentials["username"])
        return real_authenticate(request, **credentials)

    monkeypatch.setattr(auth_forms, "authenticate", authenticate)
    return names


def person(name: str) -> User:
    return User.objects.create_user(name, password=RIGHT)


def login(
    name: str,
    password: str = "x",
    *,
    address: str = "192.0.2.1",
    client: Client | None = None,
    **headers: str,
) -> int:
    client = client or Client()
    data = {"username": name, "password": password}
    answer = client.post("/account/login/", data, REMOTE_ADDR=address, headers=headers)
    if answer.status_code == 429:
        assert b"Too many tries" in answer.content
        assert 0 < int(answer["Retry-After"]) <= throttle.WINDOW_S
    return int(answer.status_code)


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_of_many_wrong_passwords_at_once_no_more_than_the_limit_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person("ada")
    n_threads, tried, answers, go_on = 30, [], [], threading.Event()

    def authenticate(request: Any = None, **credentials: Any) -> None:
        # No try ends before every other one was let in or refused.
        tried.append(credentials["username"])
        go_on.wait(120)

    monkeypatch.setattr(auth_forms, "authenticate", authenticate)

    def knock() -> None:
        try:
            answers.append(login("ada"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=knock) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    while len(tried) + len(answers) < n_threads and time.monotonic() < deadline:
        threads[0].join(0.05)
    go_on.set()
    for thread in threads:
        thread.join(120)
    assert len(tried) == throttle.PER_NAME_AND_ADDRESS
    assert sorted(answers) == [200] * 10 + [429] * 20


SIXTY_AT_ONCE = table(__file__, "SIXTY_AT_ONCE")


@pytest.mark.slow
def test_sixty_at_once_on_a_database_file_are_counted_by_both_by_address_and_by_name(tmp_path: Path) -> None:
    """As a site has it; the tests' own database in memory refuses writers that meet, and has nothing to count then."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-c", SIXTY_AT_ONCE],
        env=environment | {"DJANGO_SETTINGS_MODULE": "playground.settings", "PLAYGROUND_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["60 10", "60 40", "60 50"]


def test_many_names_from_one_address_are_slowed(tried: list[str]) -> None:
    for number in range(throttle.PER_ADDRESS + 5):
        login(f"name-{number}")
    assert len(tried) == throttle.PER_ADDRESS
    assert login("another") == 429
    assert login("another", address="192.0.2.2") == 200


def test_one_name_from_many_addresses_is_slowed_and_an_ipv6_network_is_one_address(tried: list[str]) -> None:
    person("ada")
    for number in range(throttle.PER_NAME + 5):
        login("ada", address=f"198.51.100.{number}")
    assert len(tried) == throttle.PER_NAME
    tried.clear()
    for number in range(throttle.PER_NAME_AND_ADDRESS + 5):
        login("bob", address=f"2001:db8::{number:x}")
    assert len(tried) == throttle.PER_NAME_AND_ADDRESS


def test_a_known_device_and_a_known_address_get_in_while_others_try_the_name() -> None:
    person("ada")
    device, at_home = Client(), "203.0.113.9"
    assert login("ada", RIGHT, client=device, address=at_home) == 302
    device.post("/account/logout/")
    for number in range(throttle.PER_NAME + 5):
        login("ada", address=f"198.51.100.{number}")
    for _ in range(throttle.PER_NAME_AND_ADDRESS + 1):
        login("ada", address="192.0.2.1")
    assert login("ada", RIGHT, address="203.0.113.1") == 429
    assert login("ada", RIGHT, client=device, address="192.0.2.1") == 302
    assert login("ada", RIGHT, address=at_home) == 302
    # The cookie is of one person, and of one password.
    assert "known-device" in device.cookies
    thief = Client()
    thief.cookies = device.cookies
    person("bob")
    for number in range(throttle.PER_NAME + 1):
        login("bob", address=f"198.51.101.{number}")
    thief.post("/account/logout/")
    assert login("bob", RIGHT, client=thief, address="203.0.113.2") == 429


def test_a_devices_own_failures_are_counted_for_it_alone(tried: list[str]) -> None:
    person("ada")
    device = Client()
    assert login("ada", RIGHT, client=device) == 302
    device.post("/account/logout/")
    tried.clear()
    for _ in range(throttle.PER_DEVICE + 5):
        login("ada", client=device)
    assert len(tried) == throttle.PER_DEVICE
    assert login("ada", RIGHT) == 302


def test_right_passwords_do_not_count_and_a_window_ends_however_often_one_knocks() -> None:
    ada = person("ada")
    for number in range(throttle.PER_ADDRESS + 5):
        person(f"p{number}")
        assert login(f"p{number}", RIGHT) == 302
    how: dict[str, Any] = {"name": "ada", "address": "192.0.2.7", "user": ada}
    for _ in range(30):
        attempt = throttle.count_login(**how, now=1000)
    assert attempt.wait_s == throttle.WINDOW_S
    assert throttle.count_login(**how, now=1299).wait_s == 1
    assert throttle.count_login(**how, now=1300).wait_s == 0


def test_failures_are_in_the_audit_list_without_what_was_typed() -> None:
    person("ada")
    login("ada")
    login("MyPassw0rd!")
    for _ in range(15):
        login("ada", address="192.0.2.3")
    assert not AuditEntry.objects.filter(target__contains="Passw0rd").exists()
    assert AuditEntry.objects.filter(action="login-failed", about__username="ada").count() == 11
    assert AuditEntry.objects.filter(action="login-throttled").count() == 1


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "wanted"),
    table(__file__, "only_trusted_hops_say_from_where_a_request_comes"),
)
def test_only_trusted_hops_say_from_where_a_request_comes(
    settings: Any, trusted: str, peer: str, forwarded: str, wanted: str
) -> None:
    names = [name for name in trusted.split(",") if name]
    settings.PLAYGROUND_TRUST_UNIX_SOCKET = "unix" in names
    settings.PLAYGROUND_TRUSTED_PROXIES = [_network("X", name) for name in names if name != "unix"]
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers)
    assert addresses.client_address(request) == wanted


def test_behind_a_trusted_proxy_each_client_has_counts_of_its_own(settings: Any, tried: list[str]) -> None:
    settings.PLAYGROUND_TRUSTED_PROXIES = [_network("X", "10.0.0.0/8")]
    person("ada")
    for number in range(30):
        # What the client itself writes is no way around it.
        spoofed = {"X-Forwarded-For": f"203.0.113.{number}, 198.51.100.1"}
        login("ada", address="10.0.0.2", **spoofed)
    assert len(tried) == throttle.PER_NAME_AND_ADDRESS
    assert login("ada", RIGHT, address="10.0.0.2", **{"X-Forwarded-For": "198.51.100.2"}) == 302
    with pytest.raises(ImproperlyConfigured, match="PLAYGROUND_TRUSTED_PROXIES"):
        _network("PLAYGROUND_TRUSTED_PROXIES", "10.0.0.0/99")


# ---- Where one is logged in: listed, ended one by one or all others, and over with a new password


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
