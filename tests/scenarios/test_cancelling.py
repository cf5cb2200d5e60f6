"""Whatever was asked for can be cancelled, on its page and by REST; what was lost is put again by one rule."""

import pytest

from playground.clusters import jobs, lanes, wake
from playground.clusters.drive.runs import request_run
from playground.clusters.drive.turns import take_turn
from playground.clusters.models import Job, Question
from playground.scenarios.models import Comparison
from playground.scenarios.services.comparing import compare_now, request_comparison
from playground.scenarios.services.gallery import open_gallery_scenario
from playground.scenarios.services.shares import share
from scheduler_core.scenario.gallery import gallery_text

pytestmark = pytest.mark.django_db(transaction=True)

KINDS = ("model", "optimum", "luck")


@pytest.fixture
def work(monkeypatch):
    """Be a worker of the lane `make`, as its room is."""
    monkeypatch.setattr(wake, "look", lambda lane: None)
    jobs.load()

    def run() -> None:
        while job := jobs.claim(lanes.MAKE):
            assert not jobs.TASKS[job.task].do(**job.params)
            jobs.finish(job)

    return run


@pytest.fixture
def scenario(work):
    """Page and REST path of a share that was run."""
    made = share(document=gallery_text("nominated-overtaken"), visibility="public").scenario
    work()
    return f"/s/{made.public_id}/", f"/api/v1/scenarios/{made.public_id}/"


@pytest.fixture
def cluster(work):
    """The same of a cluster."""
    made = open_gallery_scenario(name="tie-break-1-violations")
    request_run(cluster=made)
    take_turn()
    work()
    return f"/c/{made.public_id}/", f"/api/v1/clusters/{made.public_id}/"


def posted(client, path):
    few = {"seeds": 2} if path.endswith("luck/") else {}
    return client.post(path, few, content_type="application/json")


@pytest.mark.parametrize(
    ("of", "name"),
    [("scenario", name) for name in KINDS] + [("cluster", "model"), ("cluster", "optimum")],
)
def test_work_is_cancelled_by_rest_and_on_its_page_and_can_be_asked_for_again(
    client, request, work, of, name
):
    page, rest = (f"{prefix}{name}/" for prefix in request.getfixturevalue(of))
    rows = Question.objects.filter(kind=name)
    assert client.delete(rest).status_code == 404
    asked = posted(client, rest)
    assert (asked.status_code, asked.json()["state"]) == (202, "queued"), asked.content
    job = jobs.claim(lanes.MAKE)
    assert jobs.renew(job)
    for _ in range(2):  # twice is once
        answer = client.delete(rest)
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    assert not jobs.renew(job)  # by which the worker that is at it knows
    assert client.get(rest).json()["problem"] == "Cancelled."
    jobs.finish(job)
    work()
    assert (
        rows.get().state == "cancelled"
        and not Job.objects.filter(lane=lanes.MAKE, task__contains="answer").exists()
    )

    client.post(page)
    shown = client.get(page).content.decode()
    assert 'name="cancel"' in shown
    assert client.post(page, {"cancel": "1"}).status_code == 302
    assert rows.latest("pk").state == "cancelled"
    assert "Cancelled." in client.get(page).content.decode()
    assert posted(client, rest).status_code == 202
    work()
    assert client.get(rest).json()["state"] == "done"


def test_a_comparison_is_cancelled_on_its_page_and_what_a_worker_finds_then_is_dropped(client, cluster):
    side = {"kind": "cluster", "id": cluster[0].split("/")[2]}
    comparison = request_comparison(a=side, b=side)
    page = f"/compare/{comparison.public_id}/"
    assert f'action="{page}delete/"' in client.get(page).content.decode()
    job = jobs.claim(lanes.MAKE)
    said = client.post(f"{page}delete/", follow=True).content.decode()
    assert "The comparison is cancelled." in said
    assert not jobs.renew(job) and not Comparison.objects.exists()
    compare_now(comparison_id=comparison.pk)
    assert client.get(page).status_code == 404


def test_work_whose_row_is_open_is_put_again_when_it_was_lost(client, scenario, cluster):
    """The one rule for lost work: what pages looked after themselves, and services by the age of a row."""
    Job.objects.all().delete()  # of runs that requests waited for
    for (_, rest), name in ((scenario, "luck"), (scenario, "model"), (cluster, "optimum")):
        posted(client, f"{rest}{name}/")
    side = {"kind": "cluster", "id": cluster[0].split("/")[2]}
    request_comparison(a=side, b=side)
    posted(client, f"{cluster[1]}seeds?seeds=2")
    asked = ("answer", "answer_long", "compare")
    jobs_of = Job.objects.filter(task__in=asked)
    known = sorted(jobs_of.values_list("key", flat=True))
    assert len(set(jobs_of.values_list("task", flat=True))) == len(asked)
    Job.objects.all().delete()
    assert jobs.adopt() == len(known)
    assert sorted(Job.objects.values_list("key", flat=True)) == known
    assert jobs.adopt() == 0
