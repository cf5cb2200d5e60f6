"""A share has a note, and opens at the moment its author chose."""

import pytest

from playground.clusters.errors import InvalidInput
from playground.scenarios.models import Scenario
from playground.scenarios.services import share
from playground.scenarios.services.shares import MAX_NOTE
from tests.scenarios.documents import small_text
from tests.scenarios.test_clusters import made_by_hand

pytestmark = pytest.mark.django_db

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
