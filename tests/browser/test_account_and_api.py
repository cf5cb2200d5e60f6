"""Logging in, one's account and the API's own page in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from playground.accounts import teams
from playground.accounts.models import User
from tests.browser.looks import PHONE, seen_wrong, wear

# Operations that are shown by one template: axe looks at two of each group, and for the others at whether they fit.
TWO_OF_EACH = """() => {
  for (const one of document.querySelectorAll('section.panel')) {
    [...one.querySelectorAll('details.op')].slice(2).forEach(more => more.remove());
  }
}"""


@pytest.fixture
def ada(settings: Any, transactional_db: None) -> User:
    settings.EMBEDDED = False
    user = User.objects.create_user("ada", password="correct horse battery")
    teams.create_team(name="platform", owner=user)
    return user


def problems_of(page: Any, name: str) -> list[str]:
    for details in page.locator("details").all():
        details.evaluate("d => d.open = true")
    wear(page, *PHONE)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.evaluate(TWO_OF_EACH)
    return seen_wrong(page, name) + ([f"{name}: {wide} px too wide"] if wide > 0 else [])


def test_one_logs_in_makes_a_token_and_reads_the_api(
    page: Any, asgi_server: str, ada: User, complaints: list[str]
) -> None:
    page.goto(f"{asgi_server}/account/login/")
    found = problems_of(page, "login")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    assert "correct username and password" in page.get_by_role("main").get_by_role("alert").inner_text()
    found += problems_of(page, "refused")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Account of ada").click()
    found += problems_of(page, "account")
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a token").click()
    token = page.get_by_label("The token", exact=True).inner_text()
    assert token.startswith("ksp_")
    found += problems_of(page, "token")
    page.get_by_role("banner").get_by_role("link", name="API").click()
    assert "--token $TOKEN" in page.get_by_label("With kubectl").inner_text()
    found += problems_of(page, "api")
    page.get_by_role("link", name="Account of ada").click()
    page.get_by_role("button", name="Delete the token laptop").click()
    assert page.get_by_role("button", name="Delete the token laptop").count() == 0
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("banner").get_by_role("link", name="Log in").wait_for()
    assert not found, "\n".join(found)


def test_the_local_user_finds_the_api_and_no_account(
    page: Any, asgi_server: str, complaints: list[str]
) -> None:
    page.goto(asgi_server)
    assert page.get_by_role("banner").get_by_role("link", name="Log in").count() == 0
    page.get_by_role("banner").get_by_role("link", name="API").click()
    assert page.get_by_role("heading", level=1).inner_text() == "REST API"
    assert f"kubectl --server {asgi_server}/k8s/CLUSTER-ID get pods" in page.content()
    assert not problems_of(page, "api")
