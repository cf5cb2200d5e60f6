"""Shares leave the site whole, as a link or as a file, and come back into another one."""

import json

import pytest
from django.test import Client

from playground.accounts.models import User
from playground.clusters.errors import InvalidManifest
from playground.engine.scenarios import MAX_LINK_CHARS
from playground.scenarios.models import Scenario
from playground.scenarios.services.shares import share
from scheduler_core.scenario import page as in_page
from tests.scenarios.documents import node, pod, small, small_text, text_of

pytestmark = pytest.mark.django_db

NOTE = "See </script> the giant."


def shared(**changes):
    return share(document=small_text(**changes), note=NOTE, opens_at=2).scenario


def link_of(client, scenario):
    answer = client.get(f"/api/v1/scenarios/{scenario.public_id}/link")
    assert answer.status_code == 200
    assert answer.json()["characters"] == len(answer.json()["link"])
    return answer.json()["link"]


def test_a_link_brings_scenario_note_and_moment_into_an_instance_that_never_saw_it(client, wakes):
    scenario = shared()
    link = link_of(client, scenario)
    assert link.startswith("http://testserver/open/#1.")
    digest = scenario.digest
    Scenario.objects.all().delete()
    answer = client.post("/open/", {"carried": link.partition("#")[2], "visibility": "unlisted"})
    assert answer.status_code == 302
    again = Scenario.objects.get()
    assert (again.digest, again.note, again.opens_at) == (digest, NOTE, 2)
    assert answer["Location"] == f"/s/{again.public_id}/"


def test_a_link_of_the_page_opens_here_and_one_of_here_in_the_page(client, wakes):
    said = json.loads(
        in_page.answer("nodes: [{name: n, cpu: 2, memory: 1Gi}]\npods: [{name: p, cpu: 1, count: 3}]\n")
    )
    assert client.post("/open/", {"carried": said["line"], "visibility": "unlisted"}).status_code == 302
    scenario = Scenario.objects.get()
    assert scenario.digest == said["digest"]
    back = json.loads(in_page.carried(link_of(client, scenario).partition("#")[2]))
    again = json.loads(in_page.answer(back["text"]))
    assert (again["digest"], again["decisions"]) == (said["digest"], said["decisions"])


def test_rest_takes_a_link_and_a_saved_file_where_it_takes_yaml(client, wakes):
    scenario = shared()
    link = link_of(client, scenario)
    page = client.get(f"/api/v1/scenarios/{scenario.public_id}/replay")
    assert page.status_code == 200 and page["Content-Disposition"].startswith("attachment")
    assert "sandbox" in page["Content-Security-Policy"]
    for body in (link.encode(), page.content):
        Scenario.objects.all().delete()
        answer = client.generic("POST", "/api/v1/scenarios/", body, content_type="text/plain")
        assert answer.status_code == 201, answer.content
        read = answer.json()
        assert (read["digest"], read["note"], read["opensAt"]) == (scenario.digest, NOTE, 2)


def test_the_page_saves_the_file_under_the_scenarios_name(client, wakes):
    scenario = shared()
    page = client.get(f"/s/{scenario.public_id}/").content.decode()
    assert (
        f'href="/s/{scenario.public_id}.html"' in page and f'hx-get="/s/{scenario.public_id}/link/"' in page
    )
    answer = client.get(f"/s/{scenario.public_id}.html")
    assert answer["Content-Disposition"] == 'attachment; filename="small.html"'
    assert b"http://testserver/open/#1." in answer.content
    assert "See &lt;/script&gt;" not in answer.content.decode(), "the note is in the record alone"


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda line: line[:-30], "cut or changed"),
        (lambda line: line[:2] + "0" * 64 + line[66:], "it was changed"),
        (lambda line: "9" + line[1:], "version 9 of the form"),
        (lambda line: "", "no carried scenario"),
        (lambda line: "javascript:alert(1)", "no carried scenario"),
    ],
)
def test_a_mangled_link_is_refused_and_nothing_is_kept(client, wakes, change, said):
    link = link_of(client, shared())
    Scenario.objects.all().delete()
    line = change(link.partition("#")[2])
    answer = client.post("/open/", {"carried": line})
    assert answer.status_code == 400 and said in answer.content.decode()
    with pytest.raises(InvalidManifest, match=said):
        share(document=f"http://testserver/open/#{line}")
    assert not Scenario.objects.exists()


def test_a_scenario_that_does_not_fit_a_link_says_so_with_both_sizes(client, wakes):
    import random

    draw = random.Random(3)
    names = [
        "".join(draw.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(50)) for _ in range(900)
    ]
    objects = [node("a"), *(pod(f"p{name}") for name in names)]
    large = Scenario.objects.create(
        share_key="x", delete_digest="x", document=text_of(small(objects=objects)).encode(), digest="d",
        emulates="v1.34", start_ns=0, n_bytes=200_000, state=Scenario.State.RECORDED,
    )  # fmt: skip
    answer = client.get(f"/api/v1/scenarios/{large.public_id}/link")
    assert answer.status_code == 413 and f"at most {MAX_LINK_CHARS:,}" in answer.json()["detail"]
    page = client.get(f"/s/{large.public_id}/link/", headers={"HX-Request": "true"}).content.decode()
    assert "No link can carry it: packed the scenario has" in page
    Scenario.objects.filter(pk=large.pk).update(n_bytes=300_000)
    page = client.get(f"/s/{large.public_id}/link/").content.decode()
    assert "the scenario has 300,000 bytes" in page
    Scenario.objects.filter(pk=large.pk).update(n_pods=9000)
    answer = client.get(f"/api/v1/scenarios/{large.public_id}/replay")
    assert answer.status_code == 413 and "9,000 pods (at most 2,000)" in answer.json()["detail"]
    answer = client.get(f"/s/{large.public_id}.html")
    assert answer.status_code == 302 and answer["Location"] == f"/s/{large.public_id}/"


def test_a_share_that_is_decided_otherwise_today_makes_no_file(client, wakes):
    scenario = shared()
    Scenario.objects.filter(pk=scenario.pk).update(decisions_digest="0" * 64)
    answer = client.get(f"/api/v1/scenarios/{scenario.public_id}/replay")
    assert answer.status_code == 409 and "decides it otherwise than was recorded" in answer.json()["detail"]
    Scenario.objects.filter(pk=scenario.pk).update(state="queued")
    answer = client.get(f"/api/v1/scenarios/{scenario.public_id}/replay")
    assert answer.status_code == 409 and "not been run yet" in answer.json()["detail"]


def test_another_teams_share_has_no_link_and_no_file_and_bringing_one_wants_a_login(wakes, settings, db):
    ada = User.objects.create_user("ada", password="x")
    private = share(document=small_text(), owner=ada, visibility="private").scenario
    public = share(document=small_text(), owner=ada, visibility="public").scenario
    settings.EMBEDDED = False
    stranger = Client()
    for path in (f"/s/{private.public_id}/link/", f"/api/v1/scenarios/{private.public_id}/link"):
        assert stranger.get(path).status_code == 404
    line = link_of(stranger, public).partition("#")[2]
    page = stranger.get("/open/").content.decode()
    assert "Log in to bring it here" in page and 'type="submit">Bring' not in page
    assert stranger.post("/open/", {"carried": line}).status_code == 302
    assert stranger.get(f"/s/{public.public_id}.html")["Location"].startswith("/account/login/")
    assert stranger.get(f"/api/v1/scenarios/{public.public_id}/replay").status_code in (401, 403)
    assert Scenario.objects.count() == 2
