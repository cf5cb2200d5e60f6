"""How much of a share's outcome is luck.

The GPU use case, its four ways side by side.
"""

import re

import pytest
from django.core.cache import cache

from playground.accounts.models import User
from playground.clusters import jobs, questions, wake
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Question, SeedEnd
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.models import Comparison, Scenario
from playground.scenarios.services.gallery import compare_four_ways
from playground.scenarios.services.shares import share
from scheduler_core.scenario.gallery import gallery_text
from tests.manifests import scheduler_config
from tests.markup import words
from tests.scenarios.documents import node, pod, small_text

pytestmark = pytest.mark.django_db(transaction=True)


def request_luck(scenario, **params):
    return questions.ask(kind="luck", share=scenario, params=params)


@pytest.fixture
def drawn(work):
    """Two pods that may be evicted, one of which must go."""
    scenario = share(document=gallery_text("tie-break-6-draw"), visibility="public").scenario
    work()
    return scenario


@pytest.mark.dialect
def test_fifty_seeds_are_a_group_of_tasks_and_their_end_states_are_counted(client, drawn, work, monkeypatch):
    sent, inner = [], wake.send
    monkeypatch.setattr(wake, "send", lambda task, **how: sent.append(task) or inner(task, **how))
    assert "Not run yet" in words(client.get(f"/s/{drawn.public_id}/luck/"))
    answer = client.post(f"/s/{drawn.public_id}/luck/", {"seeds": "50"})
    assert answer.status_code == 302
    assert "Queued" in words(client.get(f"/s/{drawn.public_id}/luck/"))
    polled = client.get(f"/s/{drawn.public_id}/luck/", headers={"HX-Request": "true"})
    assert b'id="asking"' in polled.content
    work()
    assert sent.count("run_seeds_long") == 10
    found = Question.objects.get()
    assert found.state == "done" and found.done == 50 and not SeedEnd.objects.exists()
    states = found.answer["states"]
    assert len(states) == 2 and sum(state["n"] for state in states) == 50
    assert found.answer["nMarks"] == {"preemptionTie": 1}
    assert (found.answer["nPods"], found.answer["nVarying"]) == (3, 3)
    ends = {item["pod"]: (item["node"], item["gone"]) for item in states[0]["differs"]}
    assert sorted(ends.values()) == [("", True), ("node-a", False), ("node-b", False)], "the victim is gone"
    said = words(client.get(f"/s/{drawn.public_id}/luck/"))
    n_stays = found.answer["sometimesGone"][0]["stays"]
    assert f"50 seeds, 2 end states. Luck decides who is evicted: on-a stays in {n_stays} of 50." in said
    assert "a draw among 2 equally good candidates for preemption" in said
    done = client.get(f"/s/{drawn.public_id}/luck/", headers={"HX-Request": "true"})
    assert done.status_code == 286 and done["HX-Refresh"] == "true"
    assert request_luck(drawn, seeds=50) == found, "the same is not run twice"
    Question.objects.update(engine_version="0.0.1")
    assert request_luck(drawn, seeds=50) != found, "but what another engine found is"


def test_draws_sampling_and_queue_order_are_marked(work):
    config = scheduler_config(percentageOfNodesToScore=10)
    nodes = [node(f"n-{i:03}", cpu="2") for i in range(150)]
    pods = [pod("one"), pod("big-a", cpu="1500m", nodeName="n-000"), pod("two", nodeSelector={"only": "a"}),
            pod("three", nodeSelector={"only": "a"})]  # fmt: skip
    nodes[7]["metadata"]["labels"] = {"only": "a"}
    nodes[7]["status"]["allocatable"]["cpu"] = "1"
    scenario = share(document=small_text(objects=[*nodes, *pods], scheduler=config)).scenario
    work()
    request_luck(scenario, seeds=2)
    work()
    counts = Question.objects.get().answer["nMarks"]
    assert counts["sampling"] >= 1 and counts["tie"] >= 1 and counts["queueOrder"] == 2


def test_what_cannot_be_run_is_refused(client, drawn):
    with pytest.raises(InvalidInput, match="from 2 to 50"):
        request_luck(drawn, seeds=51)
    drawn.n_cycles = 8152
    with pytest.raises(InvalidInput, match="Ask for 12 seeds"):
        request_luck(drawn)
    drawn.state = "queued"
    with pytest.raises(Conflict, match="not run yet"):
        request_luck(drawn)
    assert not Question.objects.exists()
    client.post(f"/s/{drawn.public_id}/luck/", {"seeds": "99"})
    assert "from 2 to 50" in words(client.get(f"/s/{drawn.public_id}/luck/"))


def test_readers_of_a_served_site_may_look_and_not_ask(client, drawn, settings):
    settings.EMBEDDED = False
    assert client.get(f"/s/{drawn.public_id}/luck/").status_code == 200
    client.post(f"/s/{drawn.public_id}/luck/")
    assert not Question.objects.exists()
    client.force_login(User.objects.create_user("ada"))
    client.post(f"/s/{drawn.public_id}/luck/")
    assert Question.objects.get().kind == "luck"


def test_a_lost_message_is_sent_again_for_the_seeds_that_are_left(drawn, work, wakes):
    asked = request_luck(drawn, seeds=10)
    questions.answer(question_id=asked.pk)
    questions.run_seeds(**wakes[-1][1])
    wakes.clear()
    request_luck(drawn, seeds=10)
    assert not wakes, "asking again is not what brings lost work back"
    assert jobs.adopt() == 1
    job = jobs.Job.objects.get()
    wakes.append((job.task, dict(job.params)))
    work()
    assert Question.objects.get().state == "done"


def test_the_luck_of_a_cluster_marks_its_decisions_too(client, work):
    cluster = create_cluster(name="c", seed=2**63 - 1, start_ns=1_767_312_000_000_000_000)
    apply_documents(cluster=cluster, objects=[node("a"), node("b"), pod("p")])
    request_run(cluster=cluster, until="idle")
    work()
    cluster.refresh_from_db()
    questions.ask(cluster=cluster, kind="seeds", params={"seeds": 4})
    work()
    assert Question.objects.get().answer["nMarks"] == {"tie": 1}
    assert "a draw among 2 nodes with the same score" in words(client.get(f"/c/{cluster.public_id}/luck/"))


def test_four_ways_are_run_by_a_worker_and_shown_side_by_side(client, work):
    cache.clear()
    here = "/gallery/gpu/four-ways/"
    assert "A worker runs the four ways" in client.get(here).content.decode()
    work()
    page = client.get(here).content.decode()
    assert page.count('<h2 id="w-') == 4
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    counts = re.findall(r"(\d+) of 12 web pods on GPU nodes (\d+) of 6 training pods off them", told)
    assert [tuple(int(n) > 0 for n in pair) for pair in counts] == [
        (True, True),
        (False, True),
        (True, False),
        (False, False),
    ]
    assert page.count(", on the wrong kind of node") == sum(int(n) for pair in counts for n in pair)
    comparison = Comparison.objects.get()
    assert len(comparison.sides) == 4 and client.get(f"/compare/{comparison.public_id}/").status_code == 200
    n_shares = Scenario.objects.count()
    assert compare_four_ways().pk == comparison.pk and Scenario.objects.count() == n_shares
