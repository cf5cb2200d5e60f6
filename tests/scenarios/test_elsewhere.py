"""A share in other people's pages, as they would use it: preview, oEmbed, frame."""

import html
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from playground.accounts.models import User
from playground.clusters.errors import InvalidInput
from playground.scenarios.models import Scenario, Verification
from playground.scenarios.services.shares import MAX_NOTE, share
from tests.scenarios.documents import small_text
from tests.scenarios.test_clusters import made_by_hand
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


# ---- A share has a note, and opens at the moment its author chose


NOTE = "Look at the <b>giant</b>:\nit fits nowhere."


def test_it_opens_at_the_cycle_its_author_chose_and_says_his_note(client, wakes):
    shared = share(document=small_text(), note=f"  {NOTE}\r\n", opens_at=2).scenario
    assert (shared.note, shared.opens_at) == (NOTE, 2)
    page = client.get(f"/s/{shared.public_id}/").content.decode()
    assert 'id="cyc-shown">2</span>' in page
    assert "Look at the &lt;b&gt;giant&lt;/b&gt;:<br>it fits nowhere." in page
    assert 'id="cyc-shown">5</span>' in client.get(f"/s/{shared.public_id}/?cycle=5").content.decode()


def test_a_share_without_a_moment_opens_at_its_last_cycle_as_before(client, wakes):
    shared = share(document=small_text()).scenario
    assert (shared.note, shared.opens_at) == ("", None)
    assert 'id="cyc-shown">5</span>' in client.get(f"/s/{shared.public_id}/").content.decode()


def test_another_note_or_moment_is_another_share_and_the_same_is_the_same(wakes):
    plain = share(document=small_text())
    noted = share(document=small_text(), note=NOTE)
    later = share(document=small_text(), note=NOTE, opens_at=2)
    again = share(document=small_text(), note=f"{NOTE}\n", opens_at=2)
    assert len({one.scenario.pk for one in (plain, noted, later)}) == 3
    assert again.scenario == later.scenario and not again.created
    assert not share(document=small_text()).created


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"opens_at": 6}, "there is no cycle 6 to open it at: the run has 5 cycles"),
        ({"opens_at": 0}, "there is no cycle 0"),
        ({"note": "x" * (MAX_NOTE + 1)}, "at most 2,000 letters; this one has 2,001"),
        ({"note": "a\0b"}, "U[+]0000"),
    ],
)
def test_a_moment_that_is_not_there_and_a_long_note_are_refused_and_nothing_is_kept(wakes, changes, said):
    with pytest.raises(InvalidInput, match=said):
        share(document=small_text(), **changes)
    assert not Scenario.objects.exists()


def test_the_form_keeps_what_was_written_when_it_is_refused(client, wakes):
    answer = client.post("/s/new/", {"text": small_text(), "note": NOTE, "opens_at": "77"})
    page = answer.content.decode()
    assert answer.status_code == 400 and "there is no cycle 77" in page
    assert 'value="77"' in page and "Look at the &lt;b&gt;giant" in page
    answer = client.post("/s/new/", {"text": small_text(), "note": NOTE, "opens_at": "3"})
    assert answer.status_code == 302
    assert Scenario.objects.get().opens_at == 3


@pytest.mark.django_db(transaction=True)
def test_a_cluster_is_shared_at_a_moment_from_its_replay(client, work):
    cluster = made_by_hand(work)
    work()
    replay = client.get(f"/c/{cluster.public_id}/replay/?cycle=2").content.decode()
    assert f"/c/{cluster.public_id}/share/?opens_at=2" in replay
    form = client.get(f"/c/{cluster.public_id}/share/?opens_at=2").content.decode()
    assert 'name="opens_at" inputmode="numeric" pattern="[0-9]*" value="2"' in form
    answer = client.post(f"/c/{cluster.public_id}/share/", {"note": NOTE, "opens_at": "2"})
    assert answer.status_code == 302
    assert Scenario.objects.get().opens_at == 2


@pytest.mark.django_db(transaction=True)
def test_rest_takes_and_tells_them(client, work):
    media = "application/x-www-form-urlencoded"
    path = "/api/v1/scenarios/?note=Look%20here&opens_at=2"
    body = client.generic("POST", path, small_text().encode(), content_type=media).json()
    assert (body["note"], body["opensAt"]) == ("Look here", 2)
    read = client.get(f"/api/v1/scenarios/{body['id']}/").json()
    assert (read["note"], read["opensAt"]) == ("Look here", 2)
    refused = client.generic("POST", path.replace("=2", "=99"), small_text().encode(), content_type=media)
    assert refused.status_code == 400 and refused.json()["field"] == "opens_at"
    cluster = made_by_hand(work)
    work()
    answer = client.post(
        f"/api/v1/clusters/{cluster.public_id}/scenario",
        {"note": "From a cluster", "opens_at": 1},
        content_type="application/json",
    )
    assert answer.status_code == 201 and answer.json()["opensAt"] == 1
