"""Another scheduler's decisions by page and REST; what pages say of its pods; strangers see nothing."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster, ForeignDecision, Question
from playground.clusters.objects.apply import apply_documents
from playground.scenarios.models import Comparison, Scenario
from playground.scenarios.services.comparing import compare_now
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import PODS, Kube
from tests.kube_api.schedulers import Faulty, Packing
from tests.markup import html_of
from tests.web.test_advice_pages import page


@pytest.fixture
def cluster(client: Client, db: None, wakes: list[Any]) -> Cluster:
    """A packing scheduler and a faulty one have been at work."""
    nodes = [make_node(name, cpu="4") for name in ("n1", "n2", "n3")]
    wanted = [("pack-a", "1", "bin-packer"), ("pack-b", "3", "bin-packer"), ("pack-c", "9", "bin-packer"),
              ("bad-a", "3", "faulty"), ("bad-b", "3", "faulty")]  # fmt: skip
    pods = [make_pod(name, cpu=cpu, schedulerName=scheduler) for name, cpu, scheduler in wanted]
    made = make_cluster(*nodes, make_pod("there", cpu="2", nodeName="n1"), *pods)
    kube = Kube(client, f"/k8s/{made.public_id}")
    Packing(kube).decide()
    Faulty(kube).decide()
    return made


def answer_all() -> None:
    for row in Question.objects.filter(state__in=Question.OPEN):
        assert questions.answer(question_id=row.pk, memory=EngineMemory()) == Question.State.DONE


def seen(client: Client, name: str, *args: Any, **query: str) -> str:
    response = client.get(reverse(f"web:{name}", args=args), query)
    assert response.status_code == 200
    return " ".join(html_of(response).split())


def test_a_kube_scheduler_is_not_told_to_agree_with_itself(client: Client, cluster: Cluster) -> None:
    ForeignDecision.objects.update(
        scheduler="default-scheduler", author="kube-scheduler/v1.36.2 (linux/amd64)"
    )
    seen(client, "judge", cluster.public_id)
    answer_all()
    html = seen(client, "judge", cluster.public_id)
    assert "<b>kube-scheduler</b> agrees with the playground in" in html
    assert html.count(">kube-scheduler</th>") == html.count(">the playground</th>") == 1


def test_looking_has_it_judged_and_then_tells_how_far_they_agree(client: Client, cluster: Cluster) -> None:
    first = seen(client, "judge", cluster.public_id)
    assert "2 schedulers</b> have decided 5 times" in first and 'hx-trigger="every 1s"' in first
    assert Question.objects.filter(kind="judge").count() == 1
    seen(client, "judge", cluster.public_id)
    assert Question.objects.filter(kind="judge").count() == 1
    answer_all()
    html = seen(client, "judge", cluster.public_id)
    rows = {row.pod_name: row.verdict for row in ForeignDecision.objects.all()}
    assert rows["pack-a"] == "different" and rows["pack-c"] == "agree" and rows["bad-b"] == "infeasible"
    assert f"{sum(v in ('agree', 'tie') for v in rows.values())} of 5" in html
    assert "2 schedulers</b> agree with kube-scheduler" in html and "they bound where" in html
    by = html[html.index("By scheduler") : html.index("in common")].replace("<wbr>", "")
    assert re.findall(r"(bin-packer|faulty)</span>.*?<b>(\d)</b> of (\d)", by) == [
        (name, str(sum(row.verdict in ("agree", "tie") for row in own)), str(len(own)))
        for name in ("bin-packer", "faulty")
        if (own := list(ForeignDecision.objects.filter(scheduler=name)))
    ]
    assert re.findall(r'<small class="sub by">(.*?)</small>', html.replace("<wbr>", "")) == [
        row.scheduler for row in ForeignDecision.objects.order_by("-seq", "-pk")
    ]
    assert "bound where the pod does not fit" in html and "every 1s" not in html
    assert "NodeResourcesFit: Insufficient cpu. Bound all the same; an API server does not check it." in html
    assert "says" in html and "of 100 there" in html
    other = seen(client, "judge", cluster.public_id, verdict="disagree")
    assert "pack-a" in other and "pack-c" not in other
    assert client.get(reverse("web:judge", args=[cluster.public_id]), {"verdict": "x"}).status_code == 404


def test_one_decision_shows_our_whole_cycle_on_that_state(client: Client, cluster: Cluster) -> None:
    row = ForeignDecision.objects.get(pod_name="bad-b")
    args = (cluster.public_id, row.seq, row.kind)
    assert "A worker judges it" in seen(client, "judged", *args)
    answer_all()
    html = seen(client, "judged", *args)
    for words in (
        "to <b>n3</b>: does not fit",
        "Insufficient cpu",
        "OpenAPI-Generator/31.0.0/python",
        "Our own cycle",
        'id="filter"',
    ):
        assert words in html, words
    packing = ForeignDecision.objects.get(pod_name="pack-a")
    assert 'id="score"' in seen(client, "judged", cluster.public_id, packing.seq, packing.kind)
    for wrong in ((cluster.public_id, row.seq, "evict"), (cluster.public_id, 1, "bind")):
        assert client.get(reverse("web:judged", args=wrong)).status_code == 404


def test_rest_tells_the_same(client: Client, cluster: Cluster) -> None:
    path = f"/api/v1/clusters/{cluster.public_id}/judge/"
    first = client.get(path).json()
    assert (first["left"], first["agreement"], first["decisions"]) == (5, None, 0)
    assert first["items"][0]["verdict"] is None and first["items"][0]["ours"] is None
    answer_all()
    body = client.get(path, {"limit": "2"}).json()
    assert body["left"] == 0 and body["decisions"] == 5 and len(body["items"]) == 2
    assert body["agreement"] == 20.0 * (body["counts"]["agree"] + body["counts"]["tie"])
    older = client.get(body["next"]).json()
    assert {item["pod"] for item in older["items"]}.isdisjoint(item["pod"] for item in body["items"])
    [worst] = client.get(path, {"verdict": "infeasible"}).json()["items"]
    assert worst["ours"]["plugin"] == "NodeResourcesFit" and worst["ours"]["reasons"] == ["Insufficient cpu"]
    whole = client.get(worst["url"]).json()
    assert whole["cycle"]["filterByPlugin"] and whole["pod"] == "default/bad-b"
    assert client.get(path, {"verdict": "x"}).status_code == 400
    assert client.get(f"{path}1/bind/").status_code == 404


def test_pages_tell_whose_pods_they_are(client: Client, cluster: Cluster) -> None:
    place = cluster.public_id
    bound = seen(client, "pod", place, "default", "pack-a")
    assert "where bin-packer/v0.9 bound it" in bound and "bin-packer/v0.9 chose n1" in bound
    assert "by a person" in bound  # who made it
    waits = seen(client, "pod", place, "default", "pack-c")
    assert "waits for bin-packer/v0.9, which found no node for it" in waits
    assert "never scheduled here" not in waits and "This pod waits for the scheduler bin-packer." in waits
    assert "Edited by a person" not in waits
    board = seen(client, "board", place)
    assert "another scheduler has decided 5 times" in board and "No cycles yet" not in board
    assert "another scheduler has decided 5 times" in seen(client, "cycles", place)
    assert board.count("overcommitted") == 1 and "overcommitted: cpu" in board
    kube = Kube(client, f"/k8s/{place}")
    assert kube.send("DELETE", f"{PODS}/bad-a", user_agent="x-scheduler/1").status_code == 200
    gone = seen(client, "pod", place, "default", "bad-a")
    assert "by x-scheduler/1" in gone and "Evicted" in gone and "Deleted by a person" not in gone
    apply_documents(cluster=cluster, objects=[make_pod("stray", schedulerName="unheard-of")])
    assert "waits for the scheduler unheard-of" in seen(client, "pod", place, "default", "stray")


def test_a_cluster_of_our_own_decisions_says_how_to_begin(client: Client, db: None, wakes: list[Any]) -> None:
    made = make_cluster(make_node("n1"))
    html = page(client, "judge", made.public_id)
    assert "No other scheduler has decided anything here" in html
    assert not Question.objects.exists()


def test_a_share_keeps_their_decisions_or_lets_ours_decide_and_compares_the_two(
    client: Client, cluster: Cluster
) -> None:
    url = reverse("scenarios:share", args=[cluster.public_id])
    assert "Let our scheduler decide what another one decided (5 decisions" in " ".join(
        html_of(client.get(url)).split()
    )
    recorded, ours = (
        html_of(client.post(url, {"as": "file", **more})) for more in ({}, {"ours_decide": "1"})
    )
    assert "by: bin-packer/v0.9" in recorded and "schedulerName: bin-packer" in recorded
    assert "by:" not in ours and "bin-packer" not in ours and "run: idle" in ours
    answer = client.get(f"/api/v1/clusters/{cluster.public_id}/scenario", {"ours_decide": "true"})
    assert html_of(answer) == ours
    compared = client.post(url, {"as": "both", "visibility": "unlisted"})
    assert compared.status_code == 302
    compare_now(comparison_id=Comparison.objects.get().pk)
    page_ = html_of(client.get(compared["Location"]))
    assert "decided by ours" in page_ and "as recorded" in page_
    proof = Scenario.objects.get(title__endswith="as recorded")
    assert proof.n_cycles == 0
    page_ = html_of(client.get(reverse("scenarios:page", args=[proof.public_id])))
    assert "Reproduced 0 of 0" not in page_ and "No cycles yet" not in page_
