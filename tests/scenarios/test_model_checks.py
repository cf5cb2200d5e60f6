"""The formal model on clusters and shares: asked for, answered by a worker, shown and told by the API."""

import pytest

from playground.accounts.models import User
from playground.clusters import questions
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cycle, Question
from playground.engine import scenarios
from playground.engine.scenarios import RunStopped
from playground.scenarios.services import questions as asked_of_runs
from playground.scenarios.services.gallery import open_gallery_scenario
from playground.scenarios.services.shares import share
from scheduler_core.scenario.gallery import gallery_text
from tests.markup import words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def overtaken(work):
    scenario = share(document=gallery_text("nominated-overtaken"), visibility="public").scenario
    work()
    return scenario


@pytest.mark.dialect
def test_a_share_is_checked_once_and_its_departures_are_told(client, overtaken, work):
    here = f"/s/{overtaken.public_id}/model/"
    assert "keep to the formal model?" in words(client.get(here))
    assert client.post(here).status_code == 302
    polled = client.get(here, headers={"HX-Request": "true"})
    assert b'id="asking"' in polled.content and b"<html" not in polled.content
    work()
    assert client.get(here, headers={"HX-Request": "true"}).status_code == 286
    told = words(client.get(here))
    found = Question.objects.get().answer
    assert found["sentence"] in told and found["violations"] == []
    for departure in found["departures"]:
        assert departure["first"]["sentence"] in told
    left = words(client.get(f"{here}?show=leaves"))
    assert "default/mid was taken out of backoffQ before its time" in left
    client.post(here)
    assert Question.objects.count() == 1


def test_a_cluster_is_checked_up_to_its_last_cycle(client, work):
    cluster = open_gallery_scenario(name="tie-break-1-violations")
    request_run(cluster=cluster)
    work()
    cluster.refresh_from_db()
    url = f"/api/v1/clusters/{cluster.public_id}/model/"
    assert client.get(url).status_code == 404
    asked = client.post(url)
    assert (asked.status_code, asked.json()["state"], asked.json()["cycle"]) == (
        202,
        "queued",
        cluster.next_cycle - 1,
    )
    work()
    answer = client.get(asked.json()["url"]).json()
    assert (answer["state"], answer["result"]["status"]) == ("done", "holds")
    first = answer["result"]["cycles"][0]
    row = Cycle.objects.get(cluster=cluster, number=1)
    assert (first["possible"], first["feasible"], first["viable"]) == (
        row.n_nodes,
        row.n_feasible,
        row.n_viable,
    )
    assert [verdict["property"] for verdict in first["verdicts"]] == ["order", "placement", "casualty"]
    page = words(client.get(f"/c/{cluster.public_id}/model/"))
    assert answer["result"]["sentence"] in page


def test_a_violation_is_shown_with_its_counterexample(client, overtaken, work, monkeypatch):
    questions.ask(kind="model", params={}, share=overtaken)
    verdict = {
        "property": "placement", "status": "fails", "sentence": "a (1 points) was taken, and b (2) is viable.",
        "counterexample": {"node": "b", "total": 2},
    }  # fmt: skip
    cycle = {
        "cycle": 1, "pod": "default/p", "outcome": "bound", "possible": 2, "feasible": 2, "viable": 1,
        "verdicts": [verdict],
    }  # fmt: skip
    none = dict.fromkeys(("holds", "leaves", "fails", "notComputed"), 0)
    found = {
        "status": "fails", "sentence": "The model is violated in 1 of 1 cycles (cycle 1).", "departures": [],
        "counts": {"order": none, "placement": none | {"fails": 1}, "casualty": none}, "violations": [],
        "cycles": [cycle],
    }  # fmt: skip
    monkeypatch.setattr(scenarios, "ask_process", lambda request, timeout_s: found)
    work()
    answer = client.get(f"/s/{overtaken.public_id}/model/").content.decode()
    assert "1</b> violated" in answer and "a (1 points) was taken, and b (2) is viable." in answer
    assert "&quot;node&quot;: &quot;b&quot;" in answer


def test_without_a_cycle_there_is_nothing_to_check(client):
    cluster = create_cluster(name="new")
    answer = client.post(f"/api/v1/clusters/{cluster.public_id}/model/")
    assert answer.status_code == 409 and "no cycle was run yet" in answer.json()["detail"]


def test_a_run_that_breaks_off_is_told_and_can_be_asked_again(client, overtaken, work, monkeypatch):
    def stop(request, timeout_s):
        raise RunStopped("the run was ended after 240 s")

    with monkeypatch.context() as patch:
        patch.setattr(scenarios, "ask_process", stop)
        questions.ask(kind="model", params={}, share=overtaken)
        work()
    here = f"/s/{overtaken.public_id}/model/"
    assert "There is no answer. the run was ended after 240 s" in words(client.get(here))
    client.post(here)
    work()
    assert Question.objects.get().state == "done"


def test_strangers_read_a_public_share_and_cannot_have_it_checked(client, overtaken, settings):
    settings.EMBEDDED = False
    here = f"/s/{overtaken.public_id}/model/"
    assert client.get(here).status_code == 200
    assert client.post(here).status_code == 302
    assert not Question.objects.exists()
    owner = User.objects.create_user("olga", password="x")
    mine = create_cluster(name="mine", owner=owner)
    assert client.get(f"/c/{mine.public_id}/model/").status_code in (302, 404)
    assert client.get(f"/api/v1/clusters/{mine.public_id}/model/").status_code in (401, 404)


def test_only_so_many_cycles_are_told_those_with_most_to_tell_first(monkeypatch, overtaken):
    def cycle(number: int, status: str):
        return {"cycle": number, "verdicts": [{"status": status}]}

    found = {"cycles": [cycle(1, "holds"), cycle(2, "holds"), cycle(3, "leaves")]}
    monkeypatch.setattr(scenarios, "ask_process", lambda request, timeout_s: found)
    monkeypatch.setattr(asked_of_runs, "MOST_CYCLES_TOLD", 2)
    told = asked_of_runs.KINDS["model"].answer(Question(share=overtaken.public_id), None, None)
    assert told["nCycles"] == 3 and [item["cycle"] for item in told["cycles"]] == [1, 3]
