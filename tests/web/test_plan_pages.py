"""Questions about a whole cluster by page and REST: the same bytes as by command line, stale, branch, share, cancel."""

import csv
import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster, Node, Pod, Question
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import set_cordon
from playground.scenarios.models import Verdict
from scheduler_core.cli.main import main
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.markup import html_of
from tests.tables import table
from tests.web.test_advice_pages import page

ZONE = "topology.kubernetes.io/zone"


def _owned(name: str, cpu: str = "1") -> dict[str, Any]:
    made = make_pod(name, cpu=cpu)
    reference = table(__file__, "_owned")
    made["metadata"]["ownerReferences"] = [reference]
    return made


def _node(name: str, zone: str) -> dict[str, Any]:
    return make_node(name, labels={ZONE: zone})


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    objects = [
        *(_node(f"node-{name}", zone) for name, zone in zip("abc", "xyy", strict=True)),
        *(_owned(f"web-{index}") for index in range(6)),
        make_pod("bare", cpu="500m"),
    ]
    made = make_cluster(*objects)
    run(made)
    return made


def asked(client: Client, cluster: Cluster, **fields: str) -> Question:
    """Ask by the form, have a worker answer, and follow to the answer's page."""
    response = client.post(reverse("web:plan", args=[cluster.public_id]), fields)
    assert response.status_code == 302, response.content
    question = Question.objects.get(public_id=response["Location"].rstrip("/").rpartition("/")[2])
    questions.answer(question_id=question.pk, memory=EngineMemory())
    question.refresh_from_db()
    return question


QUESTIONS: list[tuple[dict[str, str], list[str]]] = table(__file__, "QUESTIONS")


def test_page_rest_and_command_line_give_the_same_bytes(
    client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply_documents(cluster=cluster, objects=[_owned("large", cpu="3500m"), _owned("larger", cpu="9")])
    run(cluster)
    dump = tmp_path / "dump.json"
    for fields, arguments in QUESTIONS:
        question = asked(client, cluster, **fields)
        assert question.state == "done", (fields, question.error)
        html = page(client, "plan-answer", cluster.public_id, question.public_id)
        assert re.search(r"\b(1 decision|(?!1 d)[\d,]+ decisions) run", html), "the right number"
        params = {key: value.split() if key == "nodes" else value for key, value in fields.items()}
        again = client.post(
            f"/api/v1/clusters/{cluster.public_id}/plan/", json.dumps(params), content_type="application/json"
        )
        assert (again.status_code, again.json()["id"]) == (202, question.public_id)
        body = client.get(f"{again.json()['url']}answer.json").content.decode()
        if not dump.exists():
            made = client.post(reverse("web:plan-share", args=[cluster.public_id, question.public_id]))
            dump.write_bytes(client.get(f"{made['Location']}cluster.json").content)
        capsys.readouterr()
        main(["plan", "--json", "--release", cluster.kubernetes_release, str(dump), *arguments])
        assert capsys.readouterr().out == body, fields


def test_what_a_pod_takes_is_the_same_by_page_rest_and_command_line(
    client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply_documents(cluster=cluster, objects=[_owned("large", cpu="3500m")])
    run(cluster)
    posted = client.post(
        f"/api/v1/clusters/{cluster.public_id}/fix", {"pod": "default/large"}, content_type="application/json"
    )
    row = Question.objects.get(public_id=posted.json()["id"])
    questions.answer(question_id=row.pk, memory=EngineMemory())
    by_rest = client.get(posted.json()["url"]).json()["answer"]
    html = unescape(page(client, "fix", cluster.public_id, "default", "large"))
    dump = tmp_path / "dump.yaml"
    dump.write_bytes(client.get(reverse("web:export", args=[cluster.public_id])).getvalue())
    release = cluster.kubernetes_release
    main(["plan", "--json", "--release", release, str(dump), "fix", "default/large"])
    by_command = json.loads(capsys.readouterr().out)
    assert by_rest["fixes"]
    for one in ("subject", "pods", "headline", "causes", "nNodes", "tried"):
        assert by_rest[one] == by_command[one]
    for one in ("kind", "what", "title", "placed", "of", "price"):
        assert [fix[one] for fix in by_rest["fixes"]] == [fix[one] for fix in by_command["fixes"]]
    assert all(fix["title"] in html for fix in by_command["fixes"])


def test_the_overview_tells_the_newest_answers_and_says_when_they_are_old(
    client: Client, cluster: Cluster
) -> None:
    html = page(client, "plan", cluster.public_id)
    # All but the two that need names ask by themselves, and one whose answer is old does so again.
    assert html.count("Being asked.") == html.count('"arrived": "1"') == 4
    assert html.count("Enter node names or a label.") == 2
    assert "Being asked." not in page(client, "plan", cluster.public_id, query="?cancelled=1")
    question = asked(client, cluster, ask="any-node")
    html = page(client, "plan", cluster.public_id)
    assert question.answer is not None and question.answer["verdict"] in html.replace("<wbr>", "")
    assert "has moved on since" not in html and html.count('"arrived": "1"') == 3
    set_cordon(cluster=cluster, node="node-c", unschedulable=True)
    html = page(client, "plan", cluster.public_id)
    assert "has moved on since" in html and html.count('"arrived": "1"') == 4
    html = page(client, "plan-answer", cluster.public_id, question.public_id)
    assert "Ask again" in html and "disabled" in html
    refused = client.post(
        reverse("web:plan-share", args=[cluster.public_id, question.public_id]), follow=True
    )
    assert "moved on since; ask again" in html_of(refused)


def test_a_card_whose_question_is_open_can_be_cancelled_and_has_no_box_to_press_enter_in(
    client: Client, cluster: Cluster
) -> None:
    def card() -> str:
        html = page(client, "plan", cluster.public_id)
        return html[html.index('id="plan-headroom"') :].partition("</section>")[0]

    assert 'name="workload"' in card() and "Cancel" not in card()
    questions.ask(cluster=cluster, kind="plan", params={"ask": "headroom"})
    assert ">Cancel</button>" in card() and 'class="inp' not in card()


def test_a_question_that_waits_can_be_cancelled_and_is_asked_anew(client: Client, cluster: Cluster) -> None:
    response = client.post(reverse("web:plan", args=[cluster.public_id]), {"ask": "any-node"})
    question = Question.objects.get()
    assert "<h2>Queued</h2>" in html_of(client.get(response["Location"]))
    url = f"/api/v1/clusters/{cluster.public_id}/questions/{question.public_id}/"
    assert client.delete(url).json()["state"] == "cancelled"
    questions.answer(question_id=question.pk, memory=EngineMemory())
    assert Question.objects.get().answer is None
    assert asked(client, cluster, ask="any-node").state == "done"


@pytest.mark.parametrize(
    ("body", "field"),
    table(__file__, "what_cannot_be_asked_is_named_and_nothing_is_kept"),
)
def test_what_cannot_be_asked_is_named_and_nothing_is_kept(
    client: Client, cluster: Cluster, body: dict[str, Any], field: str
) -> None:
    url = f"/api/v1/clusters/{cluster.public_id}/plan/"
    response = client.post(url, json.dumps(body), content_type="application/json")
    assert response.status_code in (400, 422), response.content
    assert response.json()["field"] == field
    assert not Question.objects.exists()


def test_a_node_that_is_not_there_is_said_in_the_answer(client: Client, cluster: Cluster) -> None:
    question = asked(client, cluster, ask="drain", nodes="nowhere")
    assert (question.state, question.error) == ("failed", "nodes: there is no node nowhere.")
    assert "there is no node nowhere" in page(client, "plan-answer", cluster.public_id, question.public_id)


def test_a_descheduler_s_policy_is_pasted_and_tells_where_the_pods_land(
    client: Client, cluster: Cluster
) -> None:
    policy = """kind: ConfigMap
data:
  policy.yaml: |
    apiVersion: descheduler/v1alpha2
    kind: DeschedulerPolicy
    profiles:
    - name: default
      pluginConfig: [{name: PodLifeTime, args: {states: [Running]}}]
      plugins: {deschedule: {enabled: [PodLifeTime]}}
"""
    question = asked(client, cluster, ask="deschedule", policy=policy)
    html = page(client, "plan-answer", cluster.public_id, question.public_id)
    assert "The descheduler evicts" in html and "pod does not have any ownerRefs" in html
    again = client.post(reverse("web:plan", args=[cluster.public_id]), {"again": question.public_id})
    assert question.public_id in again["Location"], "the same policy is asked with"
    refused = asked(client, cluster, ask="deschedule", policy=policy.replace("[Running]", "[Sleeping]"))
    assert "in profile default: states must be one of" in refused.error
    none = client.post(reverse("web:plan", args=[cluster.public_id]), {"ask": "deschedule"}, follow=True)
    assert "one DeschedulerPolicy is needed" in html_of(none)


def test_flags_of_the_autoscaler_are_pasted_and_every_node_says_why_it_stays(
    client: Client, cluster: Cluster
) -> None:
    question = asked(client, cluster, ask="autoscale", autoscaler="--expander=price --v=4")
    html = page(client, "plan-answer", cluster.public_id, question.public_id)
    assert question.answer is not None and question.answer["verdict"] in html
    assert "Every node: why it stays or goes" in html and "--v." in html
    assert all(node["text"].partition("'")[0] in html for node in question.answer["nodes"])
    url = f"/api/v1/clusters/{cluster.public_id}/questions/{question.public_id}/answer.json"
    assert client.get(url).json()["nodes"] == question.answer["nodes"]
    refused = client.post(
        reverse("web:plan", args=[cluster.public_id]),
        {"ask": "autoscale", "autoscaler": "--expander=cheapest"},
        follow=True,
    )
    assert "must be of least-waste" in html_of(refused)


def test_a_branch_does_what_the_answer_says(client: Client, cluster: Cluster) -> None:
    question = asked(client, cluster, ask="drain", nodes="node-a")
    assert question.answer is not None
    moved = [move["pod"].partition("/")[2] for move in question.answer["moves"] if move["outcome"] == "lands"]
    assert moved
    response = client.post(reverse("web:plan-branch", args=[cluster.public_id, question.public_id]))
    made = Cluster.objects.exclude(pk=cluster.pk).get()
    assert response["Location"] == reverse("web:difference", args=[made.public_id])
    advance(cluster_id=made.pk, memory=EngineMemory())
    assert Node.objects.get(cluster=made, name="node-a").manifest["spec"]["unschedulable"] is True
    nodes = dict(Pod.objects.filter(cluster=made).values_list("name", "node_name"))
    assert all(nodes[name] in ("node-b", "node-c") for name in moved)
    assert "node-a" not in nodes.values() and len(nodes) == Pod.objects.filter(cluster=cluster).count() - (
        question.answer["nMoves"] - len(moved)
    )
    assert Pod.objects.filter(cluster=cluster, node_name="node-a").exists(), "the original stays as it is"


def test_a_shared_verdict_is_frozen_readable_by_its_link_and_can_be_ended(
    client: Client, cluster: Cluster
) -> None:
    question = asked(client, cluster, ask="any-domain")
    made = client.post(reverse("web:plan-share", args=[cluster.public_id, question.public_id]))
    assert (
        client.post(reverse("web:plan-share", args=[cluster.public_id, question.public_id]))["Location"]
        == made["Location"]
    )
    verdict = Verdict.objects.get()
    body = client.get(f"{made['Location']}answer.json").content
    assert hashlib.sha256(body).hexdigest() == verdict.digest
    cluster.delete()
    html = page(client, "verdict", verdict.public_id)
    assert f'<meta property="og:title" content="{verdict.sentence}">' in html and verdict.digest in html
    dump = client.get(f"{made['Location']}cluster.json").json()
    assert sum(item["kind"] == "Node" for item in dump["items"]) == 3
    client.post(reverse("web:verdict-end", args=[verdict.public_id]))
    assert client.get(made["Location"]).status_code == 404


def test_a_price_list_of_ones_own_is_read_from_the_form_and_a_branch_has_the_nodes(
    client: Client, cluster: Cluster
) -> None:
    apply_documents(cluster=cluster, objects=[_owned("large", cpu="9")])
    run(cluster)
    question = asked(client, cluster, ask="backlog", prices="name,cpu,memory,price\nbig,10,16Gi,2.5\n")
    assert question.answer is not None
    assert (
        question.answer["verdict"]
        == "1 node places the one pending pod for $2.50 an hour; no plan costs less."
    )
    again = client.post(reverse("web:plan", args=[cluster.public_id]), {"again": question.public_id})
    assert question.public_id in again["Location"], "the same prices are asked with"
    client.post(reverse("web:plan-branch", args=[cluster.public_id, question.public_id]))
    made = Cluster.objects.exclude(pk=cluster.pk).get()
    advance(cluster_id=made.pk, memory=EngineMemory())
    assert Pod.objects.get(cluster=made, name="large").node_name == "plan-node-1"
    refused = client.post(
        reverse("web:plan", args=[cluster.public_id]), {"ask": "backlog", "prices": "types: no"}, follow=True
    )
    assert "It cannot be asked: prices:" in html_of(refused)


def test_a_wrong_row_of_a_price_list_is_told_in_the_same_words_by_page_rest_and_command_line(
    client: Client, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "name,cpu,memory,price\nbig,10,16Gi,2.5\nodd,4,16Gi,-3\n"
    said = 'prices[1].price: "-3" must be from 0 to a thousand million'
    url = reverse("web:plan", args=[cluster.public_id])
    by_page = client.post(url, {"ask": "backlog", "prices": rows}, follow=True)
    assert said in unescape(html_of(by_page))
    body = {"ask": "backlog", "prices": [*csv.DictReader(rows.splitlines())]}
    by_rest = client.post(
        f"/api/v1/clusters/{cluster.public_id}/plan/", json.dumps(body), content_type="application/json"
    )
    assert said in by_rest.json().values() and by_rest.json()["value"] == "-3"
    dump, prices = tmp_path / "dump.json", tmp_path / "prices.csv"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [_node("a", "x")]}))
    prices.write_text(rows)
    assert main(["plan", str(dump), "backlog", "--prices", str(prices)]) == 2
    assert capsys.readouterr().err.strip() == said
    assert not Question.objects.exists()
