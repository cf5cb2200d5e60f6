"""A share in other people's pages, as they would use it: preview, oEmbed, frame."""

import html
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from playground.accounts.models import User
from playground.scenarios.models import Scenario, Verification
from playground.scenarios.services import share
from tests.scenarios.documents import small_text
from tests.tables import table

pytestmark = pytest.mark.django_db


@pytest.fixture
def scenario(work, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        shared = share(document=small_text(), opens_at=5).scenario
    work()
    shared.refresh_from_db()
    return shared


def meta(page, name):
    found = re.search(rf'<meta (?:property|name)="{name}"\s+content="([^"]*)"', page)
    return found and html.unescape(found[1])


def test_a_chat_that_unfurls_the_link_gets_its_address(client, scenario):
    page = client.get(f"/s/{scenario.public_id}/?cycle=5").content.decode()
    assert meta(page, "og:url") == f"http://testserver/s/{scenario.public_id}/?cycle=5"
    assert meta(page, "twitter:card") == "summary" and meta(page, "og:image") is None


def test_a_page_that_knows_oembed_finds_the_frame_by_the_link(client, scenario):
    page = client.get(f"/s/{scenario.public_id}/?cycle=3").content.decode()
    found = re.search(r'type="application/json\+oembed"[^>]*?href="([^"]*)"', page, re.DOTALL)
    discovered = html.unescape(found[1])
    assert parse_qs(urlsplit(discovered).query)["url"] == [
        f"http://testserver/s/{scenario.public_id}/?cycle=3"
    ]
    answer = client.get(discovered.removeprefix("http://testserver") + "&maxwidth=500&format=json")
    assert answer["Content-Type"] == "application/json" and answer["Access-Control-Allow-Origin"] == "*"
    said = answer.json()
    assert (said["version"], said["type"], said["width"], said["title"]) == (
        "1.0",
        "rich",
        500,
        scenario.words,
    )
    source = re.search(r'<iframe src="([^"]*)" width="500"', said["html"])
    framed = client.get(html.unescape(source[1]).removeprefix("http://testserver"))
    assert "Cycle 3 of 5" in framed.content.decode()


@pytest.mark.parametrize(
    "query, status",
    table(__file__, "oembed_of_anything_else_is_refused"),
)
def test_oembed_of_anything_else_is_refused(client, scenario, query, status):
    answer = client.get(f"/oembed/{query.replace('{id}', scenario.public_id)}")
    assert answer.status_code == status and answer.json()["error"]


def test_only_the_frame_of_what_all_with_the_link_may_read_is_framed(settings, work):
    ada = User.objects.create_user("ada", password="x")
    client = Client()
    client.force_login(ada)
    shares = {
        seen: share(document=small_text(), owner=ada, visibility=seen).scenario
        for seen in ("public", "unlisted", "private")
    }
    settings.EMBEDDED = False

    def ancestors(path):
        return re.search(r"frame-ancestors ([^;]*)", client.get(path)["Content-Security-Policy"])[1]

    for seen, scenario in shares.items():
        base = f"/s/{scenario.public_id}/"
        assert ancestors(f"{base}embed/") == ("'none'" if seen == "private" else "*")
        assert ("X-Frame-Options" in client.get(f"{base}embed/")) == (seen == "private")
        for path in (base, f"{base}cycles/1/", f"{base}link/", "/s/", "/open/", f"{base}upgrade/"):
            assert ancestors(path) == "'none'", path
            assert client.get(path)["X-Frame-Options"] == "DENY", path
    settings.PLAYGROUND_EMBED_IN = "https://wiki.example"
    assert ancestors(f"/s/{shares['public'].public_id}/embed/") == "https://wiki.example"
    assert ancestors(f"/s/{shares['private'].public_id}/embed/") == "'none'"
    assert client.get(f"/oembed/?url=http://testserver/s/{shares['private'].public_id}/").status_code == 401
    assert Client().get(f"/oembed/?url=http://testserver/s/{shares['private'].public_id}/").status_code == 404
    assert Client().get(f"/oembed/?url=http://testserver/s/{shares['public'].public_id}/").status_code == 200


def standing(client, scenario):
    page = client.get(f"/s/{scenario.public_id}/embed/").content.decode()
    found = re.search(r'<span class="badge b-\w+"\s+title="([^"]*)">.*?</span> ([^<]*)</b>', page, re.DOTALL)
    return found[1], found[2]


def test_the_frame_tells_the_truth_about_the_proof(client, scenario):
    assert standing(client, scenario) == ("Reproduced, 5 of 5", "reproduced on 1.34")
    proof = scenario.verifications.get()
    rows = Verification.objects.filter(pk=proof.pk)
    rows.update(finished=timezone.now() - timedelta(days=61))
    assert standing(client, scenario)[1] == "last run 61 days ago"
    rows.update(finished=timezone.now(), differs_at=3)
    assert standing(client, scenario) == ("Differs at cycle 3", "not reproduced on 1.34")
    rows.update(state="failed")
    assert standing(client, scenario)[1] == "not checked"
    rows.update(state="queued")
    assert standing(client, scenario)[1] == "running on 1.34"
    Scenario.objects.filter(pk=scenario.pk).update(state="failed")
    rows.delete()
    assert standing(client, scenario)[1] == "cannot be run"
