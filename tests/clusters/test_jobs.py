"""Work of the lanes: put once, taken in fair turns, never lost, given up with a reason."""

import datetime
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from playground.clusters import jobs, lanes, questions, wake
from playground.clusters.errors import Conflict
from playground.clusters.models import Cluster, Job, Question
from playground.scenarios.models import Scenario
from playground.scenarios.services.shares import share
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.scenarios.documents import small_text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(wake, "look", sent.append)
    return sent


def asked(owner: Any = None, kind: str = "seeds", seeds: int = 10) -> Question:
    cluster = make_cluster(make_node("n1"), make_pod("p1"))
    Cluster.objects.filter(pk=cluster.pk).update(owner=owner)
    return Question.objects.create(
        cluster=cluster,
        kind=kind,
        key="k",
        params={"first": 1, "seeds": seeds},
        person=jobs.person_of(getattr(owner, "pk", None)),
    )


def cancel(question: Question) -> int:
    return questions.cancel(Question.objects.filter(pk=question.pk))


def person(name: str) -> Any:
    return get_user_model().objects.create_user(name, password="long enough to be one")


def send_seeds(question: Question, number: int) -> None:
    for seed in range(number):
        wake.send("run_seeds", question_id=question.pk, seeds=[seed])


def taken(holder: str = "here:x") -> str:
    """Give one job its turn, as a worker does; whose it was."""
    job = jobs.claim(lanes.ASK, holder=holder)
    if job is None:
        return ""
    jobs.finish(job)
    return job.person


@pytest.mark.dialect
def test_a_wake_up_of_a_cluster_is_a_message_and_a_question_is_a_row(looks: list[str]) -> None:
    question = asked()
    wake.send("advance", cluster_id=question.cluster_id)
    assert looks == ["decide"] and not Job.objects.exists()
    wake.send("answer", question_id=question.pk)
    wake.send("answer", question_id=question.pk)
    (job,) = Job.objects.all()
    assert (job.lane, job.task, job.params) == ("ask", "answer", {"question_id": question.pk})
    assert looks[1:] == ["ask"] * 2


@pytest.mark.dialect
def test_each_person_has_a_turn_before_anybody_has_a_second_one() -> None:
    many, few = person("many"), person("few")
    long, short = asked(many), asked(few)
    send_seeds(long, 4)
    send_seeds(short, 2)
    a, b = f"user-{many.pk}", f"user-{few.pk}"
    assert [taken() for _ in range(7)] == [a, b, a, b, a, a, ""]


@pytest.mark.dialect
def test_a_single_question_stands_before_what_the_same_person_asked_in_bulk() -> None:
    sweep = asked()
    send_seeds(sweep, 3)
    wake.send("answer", question_id=sweep.pk)
    job = jobs.claim(lanes.ASK)
    assert job is not None and job.task == "answer"


@pytest.mark.dialect
def test_a_person_has_one_piece_of_work_under_way_in_a_lane_and_others_go_on() -> None:
    first, second = person("first"), person("second")
    for owner in (first, first, second):
        wake.send("answer", question_id=asked(owner, "try").pk)
    one, other = jobs.claim(lanes.ASK, holder="a:x"), jobs.claim(lanes.ASK, holder="b:x")
    assert one is not None and other is not None and one.person != other.person
    assert jobs.claim(lanes.ASK, holder="c:x") is None
    jobs.finish(one)
    assert jobs.claim(lanes.ASK, holder="c:x") is not None


@pytest.mark.dialect
def test_a_sweep_takes_every_worker_that_would_be_idle_and_stands_behind_all_else() -> None:
    sweeper, other = person("sweeper"), person("other")
    sweep = asked(sweeper)
    send_seeds(sweep, 6)
    held = [jobs.claim(lanes.ASK, holder=f"{letter}:x") for letter in "abc"]
    assert (
        all(job is not None and job.task == "run_seeds" for job in held)
        and len({job.pk for job in held}) == 3
    )
    wake.send("answer", question_id=sweep.pk)
    wake.send("answer", question_id=asked(other, "try").pk)
    next_ones = [jobs.claim(lanes.ASK, holder=f"{letter}:x") for letter in "def"]
    assert [job and (job.task, job.person) for job in next_ones] == [
        ("answer", f"user-{other.pk}"),
        ("answer", f"user-{sweeper.pk}"),
        None,
    ]


@pytest.mark.dialect
def test_what_a_dead_worker_held_is_taken_by_another_and_its_word_counts_no_more() -> None:
    question = asked()
    wake.send("answer", question_id=question.pk)
    held = jobs.claim(lanes.ASK, holder="elsewhere:1")
    assert held is not None and jobs.claim(lanes.ASK) is None
    Job.objects.update(claimed_until=timezone.now() - datetime.timedelta(seconds=1))
    again = jobs.claim(lanes.ASK, holder="elsewhere:2")
    assert again is not None
    assert not jobs.renew(held)
    jobs.finish(held)
    assert Job.objects.filter(pk=again.pk).exists()


@pytest.mark.dialect
def test_a_cancelled_question_wants_no_work_and_may_be_asked_again() -> None:
    question = asked()
    wake.send("answer", question_id=question.pk)
    job = jobs.claim(lanes.ASK)
    assert job is not None and jobs.renew(job)
    assert [cancel(question), cancel(question)] == [1, 0]
    assert not jobs.renew(job)
    questions.answer(question_id=question.pk)
    question.refresh_from_db()
    assert (question.state, question.error, question.answer) == ("cancelled", "Cancelled.", None)
    jobs.finish(job)
    again = questions.ask(cluster=question.cluster, kind="try", params={"manifest": make_pod("x")})
    cancel(again)
    assert questions.ask(cluster=question.cluster, kind="try", params={"manifest": make_pod("x")}).is_open


@pytest.mark.dialect
def test_work_that_is_given_up_says_why_where_people_look() -> None:
    question = asked()
    wake.send("answer", question_id=question.pk)
    job = jobs.claim(lanes.ASK)
    assert job is not None
    jobs.give_up(job, "The work was ended: it used up the 120 s.")
    question.refresh_from_db()
    assert (question.state, question.error) == ("failed", "The work was ended: it used up the 120 s.")
    assert not Job.objects.exists()


@pytest.mark.dialect
def test_one_person_may_have_so_much_waiting_and_is_told_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_OPEN", 2)
    for _ in range(2):
        wake.send("answer", question_id=asked().pk)
    cluster = Cluster.objects.latest("pk")
    with pytest.raises(Conflict, match="2 pieces of your work wait in the lane 'ask' already"):
        questions.ask(cluster=cluster, kind="try", params={"manifest": make_pod("x")})


@pytest.mark.dialect
def test_rows_that_an_older_version_left_queued_or_running_go_on() -> None:
    queued, running = asked(kind="try"), asked(seeds=7)
    Question.objects.filter(pk=running.pk).update(state="running")
    shared = share(document=small_text()).scenario
    Scenario.objects.filter(pk=shared.pk).update(state="queued")
    Job.objects.all().delete()  # as it is after an upgrade: rows, and no work for them
    n_put = jobs.adopt()
    found = {
        (job.task, job.params.get("question_id") or job.params.get("scenario_id"))
        for job in Job.objects.all()
    }
    assert ("answer", queued.pk) in found
    assert ("run_seeds", running.pk) in found
    assert ("record", shared.pk) in found
    assert n_put == Job.objects.count()
    assert jobs.adopt() == 0
