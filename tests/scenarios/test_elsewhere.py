"""A share in other people's pages, as they would use it: preview, oEmbed, frame, badge."""

import html
import re
import struct
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone

from playground.accounts.models import User
from playground.scenarios.models import Scenario, Upgrade, Verification
from playground.scenarios.services import preview_upgrade_now, share
from playground.scenarios.services.recording import packed
from tests.markup import html_of
from tests.scenarios.documents import small_text

pytestmark = pytest.mark.django_db


@pytest.fixture
def scenario(work, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        shared = share(document=small_text(), opens_at=5).scenario
    work()
    shared.refresh_from_db()
    return shared


def badge(client, scenario, query=""):
    answer = client.get(f"/s/{scenario.public_id}/badge.svg{query}")
    assert answer.status_code == 200 and answer["Content-Type"] == "image/svg+xml"
    root = ElementTree.fromstring(answer.content)
    assert root.get("aria-label") in root.find("{*}title").text
    return root.get("aria-label"), answer


def meta(page, name):
    found = re.search(rf'<meta (?:property|name)="{name}"\s+content="([^"]*)"', page)
    return found and html.unescape(found[1])


def test_a_chat_that_unfurls_the_link_gets_a_png_of_the_cycle(client, scenario):
    page = client.get(f"/s/{scenario.public_id}/?cycle=5").content.decode()
    assert meta(page, "og:url") == f"http://testserver/s/{scenario.public_id}/?cycle=5"
    assert meta(page, "og:image:type") == "image/png" and meta(page, "twitter:card") == "summary_large_image"
    assert "giant" in meta(page, "og:image:alt")
    answer = Client().get(meta(page, "og:image").removeprefix("http://testserver"))
    assert answer["Content-Type"] == "image/png" and answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", answer.content[16:24]) == (1200, 630)
    assert len(answer.content) > 15_000, "words are drawn, not left out for want of a font"
    again = client.get(f"/s/{scenario.public_id}.png?cycle=5", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304
    cycle = client.get(f"/s/{scenario.public_id}/cycles/2/").content.decode()
    assert meta(cycle, "og:image") == f"http://testserver/s/{scenario.public_id}.png?cycle=2"


def test_the_picture_tells_the_cycle_by_reason_and_reproduced_only_of_what_was(client, scenario):
    said = client.get(f"/s/{scenario.public_id}.svg?cycle=5").content.decode()
    assert "Reproduced, 5 of 5" in said and "3 Insufficient cpu" in said and "cycle 5 of 5" in said
    Verification.objects.all().delete()
    said = client.get(f"/s/{scenario.public_id}.svg?cycle=5").content.decode()
    assert "Reproduced" not in said and "Recorded, being proved" in said


def test_a_picture_of_any_words_can_be_drawn(client, work):
    for title in ("x" * 300, "word " * 60, "漢字 \U0001f600 </svg>", "a\x0bb\ufffe"):
        made = share(document=small_text(title=title, seed=len(title))).scenario
        for cycle in (1, 5):
            assert client.get(f"/s/{made.public_id}.png?cycle={cycle}").content[:4] == b"\x89PNG"


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
    assert client.get(said["thumbnail_url"].removeprefix("http://testserver"))["Content-Type"] == "image/png"


@pytest.mark.parametrize(
    "query, status",
    [
        ("", 404),
        ("?url=http://testserver/s/nothing/", 404),
        ("?url=http://elsewhere.example/s/{id}/", 404),
        ("?url=http://testserver/c/{id}/", 404),
        ("?url=http://testserver/s/{id}/&format=xml", 501),
    ],
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


def test_the_badge_tells_the_truth_about_the_proof(client, scenario):
    words, answer = badge(client, scenario)
    assert words == "scheduling: reproduced on 1.34" and "Reproduced, 5 of 5" in answer.content.decode()
    assert badge(client, scenario, "?on=1.34")[0] == words
    proof = scenario.verifications.get()
    rows = Verification.objects.filter(pk=proof.pk)
    rows.update(finished=timezone.now() - timedelta(days=61))
    assert badge(client, scenario)[0] == "scheduling: last run 61 days ago"
    rows.update(finished=timezone.now(), differs_at=3)
    words, answer = badge(client, scenario)
    assert words == "scheduling: not reproduced on 1.34" and "Differs at cycle 3" in answer.content.decode()
    rows.update(state="failed")
    assert badge(client, scenario)[0] == "scheduling: not checked"
    rows.update(state="queued")
    words, answer = badge(client, scenario)
    assert words == "scheduling: running on 1.34" and answer["Cache-Control"] == "max-age=60"
    Scenario.objects.filter(pk=scenario.pk).update(state="failed")
    rows.delete()
    assert badge(client, scenario)[0] == "scheduling: cannot be run"
    scenario.delete()
    words, answer = badge(client, scenario)
    assert words == "scheduling: not available"


def test_the_badge_of_another_release_tells_what_its_preview_found_and_runs_nothing(client, scenario, sent):
    assert badge(client, scenario, "?on=1.36")[0] == "scheduling: not checked on 1.36"
    assert not Upgrade.objects.exists() and not sent
    # The page beside it has the button, and each badge.
    page = html_of(client.get(f"/s/{scenario.public_id}/"))
    assert f'src="/s/{scenario.public_id}/badge.svg?on=1.36"' in page and "badge.svg?on=1.34" not in page
    assert '<option value="1.36">' in page and '<option value="1.34">' not in page
    assert "A badge runs nothing. Check on" in page
    assert client.post(f"/s/{scenario.public_id}/upgrade/", {"release": "1.36"}).status_code == 302
    upgrade = Upgrade.objects.get()
    assert badge(client, scenario, "?on=1.36")[0] == "scheduling: running on 1.36"
    preview_upgrade_now(upgrade_id=upgrade.pk)
    assert badge(client, scenario, "?on=1.36")[0] == "scheduling: 3 pods end otherwise on 1.36"
    same = {"before": {"name": "1.34"}, "counts": {"moved": 0}}
    Upgrade.objects.filter(pk=upgrade.pk).update(result=packed(same))
    assert badge(client, scenario, "?on=1.36")[0] == "scheduling: reproduced on 1.36"
    Upgrade.objects.filter(pk=upgrade.pk).update(result=packed(same | {"before": {"name": "1.35"}}))
    assert badge(client, scenario, "?on=1.36")[0] == "scheduling: not checked on 1.36"
    assert badge(client, scenario)[0] == "scheduling: reproduced on 1.34"
    assert client.get(f"/s/{scenario.public_id}/badge.svg?on=0.9").status_code == 404
