"""Logging in, one's account and the API's own page in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from playground.accounts import teams
from playground.accounts.models import User
from tests.browser.looks import PHONE, seen_wrong, wear
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.web.test_schedulers_page import LEASES, lease

# Operations that are shown by one template: two of each group are looked at, and of the others whether they fit.
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
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
    return seen_wrong(page, name)


def test_one_logs_in_makes_a_token_and_reads_the_api(
    page: Any, asgi_server: str, ada: User, complaints: list[str]
) -> None:
    page.goto(f"{asgi_server}/account/login/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    assert "correct username and password" in page.get_by_role("main").get_by_role("alert").inner_text()
    found = problems_of(page, "refused")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Account of ada").click()
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a token").click()
    token = page.get_by_label("The token", exact=True).inner_text()
    assert token.startswith("ksp_")
    found += problems_of(page, "token")
    page.get_by_role("contentinfo").get_by_role("link", name="API").click()
    assert "--token $TOKEN" in page.get_by_label("With kubectl").inner_text()
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
    page.get_by_role("contentinfo").get_by_role("link", name="API").click()
    assert page.get_by_role("heading", level=1).inner_text() == "REST API"
    assert f"kubectl --server {asgi_server}/k8s/CLUSTER-ID get pods" in page.content()
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
    wear(page, *PHONE)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    page.evaluate(TWO_OF_EACH)
    assert not seen_wrong(page, "api")


# ---- Bring your own scheduler, in a browser: what is to be copied is copied whole, and it looks right in three forms


@pytest.mark.usefixtures("wakes")
def test_what_starts_a_scheduler_is_copied_whole_and_those_seen_are_told(
    page: Any, asgi_server: str, complaints: Any
) -> None:
    wanted = (("mine", "bin-packer"), ("lost", "gone"), ("own", "default-scheduler"))
    pods = [make_pod(name, cpu="1", schedulerName=scheduler) for name, scheduler in wanted]
    cluster = make_cluster(make_node("n1"), *pods)
    kube, by = f"{asgi_server}/k8s/{cluster.public_id}", {"User-Agent": "bin-packer/v0.9 (linux/amd64)"}
    binding = {"metadata": {"name": "mine"}, "target": {"kind": "Node", "name": "n1"}}
    place = f"{kube}/api/v1/namespaces/default/pods/mine/binding"
    assert page.request.post(place, data=binding, headers=by).status == 201
    held = lease("bin-packer", "2020-01-01T00:00:00.000000Z", "packer-7c9d8f6b5-x2x4z_0d4a6c1e-6d0f-4f0b")
    assert page.request.post(f"{kube}{LEASES}", data=held).status == 201

    page.goto(f"{asgi_server}/c/{cluster.public_id}/config/")
    page.get_by_role("link", name="Other schedulers").click()
    page.get_by_role("link", name="A kubeconfig and a program").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 pending pod")
    expect(page.get_by_role("row").filter(has_text="bin-packer/v0.9 (linux/amd64)")).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for what in ("kubeconfig", "command", "program"):
        page.evaluate("document.getElementById('status').textContent = ''")
        page.get_by_role("button", name=f"Copy the {what}").click()
        expect(page.locator("#status")).to_have_text("Copied")
        text = page.get_by_label(f"The {what}", exact=True).text_content()
        assert page.evaluate("navigator.clipboard.readText()") == text
    page.evaluate("scrollTo(0, 0)")
    assert not seen_wrong(page, "schedulers")
