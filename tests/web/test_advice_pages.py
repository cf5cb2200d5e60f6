"""Pages of questions: not asked, asking, answered, failed, and never a cycle in the web process."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.kinds import by_kind
from playground.clusters.models import Cluster, Cycle, Pod, Question
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import delete_object
from playground.web.questions.present import view_weights
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.markup import html_of
from tests.tables import table

YAML = table(__file__, "YAML")


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    taint = {"key": "gpu", "value": "t4", "effect": "NoSchedule"}
    made = make_cluster(
        make_node("node-a1", cpu="4"),
        make_node("node-a2", cpu="4"),
        make_node("node-b1", cpu="8", taints=[taint]),
        *(make_pod(f"web-{index}", cpu="1500m") for index in range(3)),
    )
    run(made)
    apply_documents(cluster=made, objects=[make_pod("large", cpu="5")])
    run(made)
    return made


def page(client: Client, name: str, *args: Any, query: str = "") -> str:
    response = client.get(reverse(f"web:{name}", args=args) + query)
    assert response.status_code == 200
    html = html_of(response)
    assert html.count("<main") == 1
    assert " style=" not in html and "<script>" not in html and "onclick" not in html
    return html.replace("<wbr>", "")


def work_off() -> None:
    for item in Question.objects.filter(state="queued"):
        questions.answer(question_id=item.pk, memory=EngineMemory())


def test_a_page_that_waits_for_what_was_cancelled_goes_where_nothing_is_asked(
    client: Client, cluster: Cluster
) -> None:
    args = (cluster.public_id, "default", "large")
    client.post(reverse("web:fix", args=args))
    question = [cluster.public_id, Question.objects.get().public_id]
    cancelled = client.post(reverse("web:question-cancel", args=question))["Location"]
    assert cancelled == reverse("web:fix", args=args) + "?cancelled=1"
    # A page that was about to look again must not load itself, and so ask again, before the redirect arrives.
    told = client.get(reverse("web:question", args=question), headers={"HX-Request": "true"})
    assert (told.status_code, told["HX-Redirect"], told.get("HX-Refresh")) == (286, cancelled, None)


def test_the_board_of_a_picked_pod_shows_its_open_question_and_asks_again_after_a_cancelled_one(
    client: Client, cluster: Cluster
) -> None:
    def board() -> str:
        return page(client, "board", cluster.public_id, query="?pick=default/large")

    assert 'id="picking"' in board() and "Being asked" in board()
    client.post(reverse("web:fix", args=[cluster.public_id, "default", "large"]), {"node": "*"})
    assert 'id="asking"' in board() and 'id="picking"' not in board()
    questions.cancel(cluster.questions.all())
    assert "Not asked" in board() and "cannot be asked" not in board()


def test_what_would_it_take_is_asked_watched_and_read(client: Client, cluster: Cluster) -> None:
    args = (cluster.public_id, "default", "large")
    arriving = page(client, "fix", *args)
    assert 'hx-trigger="load, submit"' in arriving and "Find out" in arriving
    assert 'hx-trigger="load, submit"' not in page(client, "fix", *args, query="?cancelled=1")
    assert client.post(reverse("web:fix", args=args)).status_code == 302
    waiting = page(client, "fix", *args)
    assert "<h2>Queued</h2>" in waiting
    poll = reverse("web:question", args=[cluster.public_id, Question.objects.get().public_id])
    assert f'hx-get="{poll}"' in waiting
    assert "<h2>Queued</h2>" in html_of(client.get(poll, headers={"HX-Request": "true"}))
    work_off()
    done = client.get(poll, headers={"HX-Request": "true"})
    assert (done.status_code, done["HX-Refresh"]) == (286, "true")
    html = page(client, "fix", *args)
    assert "Keeps what you asked for" in html and "Changes what you asked for" in html
    assert "Tolerate the taint gpu=t4:NoSchedule" in html
    assert "Apply to a branch" in html and "kubectl" in html
    assert "too small" in html and "nearest first" in html
    branch = reverse("web:edit-branch", args=[cluster.public_id, Question.objects.get().public_id])
    refused = client.post(branch, {"rank": "999"}, follow=True)
    assert "The branch was not made: " in html_of(refused) and refused.request["PATH_INFO"].endswith("/fix/")


def test_a_workload_and_all_that_is_pending_have_the_same_page(client: Client, cluster: Cluster) -> None:
    for query in ("", "?workload=Pod+default%2Flarge"):
        where = reverse("web:fix-all", args=[cluster.public_id]) + query
        assert client.post(where)["Location"] == where
        work_off()
        html = page(client, "fix-all", cluster.public_id, query=query)
        assert "Best fix" in html and ("One line for each workload" in html or query)


def test_pods_that_would_have_to_go_are_followed_and_a_label_is_a_branch(
    client: Client, cluster: Cluster
) -> None:
    apply_documents(
        cluster=cluster,
        objects=[make_node("node-c1", cpu="4"), make_pod("wide", cpu="3", nodeSelector={"disk": "ssd"})],
    )
    args = (cluster.public_id, "default", "wide")
    client.post(reverse("web:fix", args=args))
    work_off()
    html = page(client, "fix", *args)
    assert "Label node-c1 disk=ssd" in html
    asked = Question.objects.latest("pk")
    titles = [item["title"] for item in asked.answer["fixes"]]
    rank = titles.index("Label node-c1 disk=ssd") + 1
    home = client.post(
        reverse("web:edit-branch", args=[cluster.public_id, asked.public_id]), {"rank": rank}
    ).headers["Location"]
    made = Cluster.objects.get(public_id=home.strip("/").split("/")[1])
    run(made)
    assert Pod.objects.get(cluster=made, name="wide").node_name == "node-c1"

    # On the two small nodes pods would have to go; nothing makes these again.
    apply_documents(cluster=cluster, objects=[make_pod("fourth", cpu="3800m")])
    delete_object(cluster=cluster, kind=by_kind("Node"), namespace="", name="node-c1")
    args = (cluster.public_id, "default", "fourth")
    client.post(reverse("web:fix", args=args))
    work_off()
    html = page(client, "fix", *args)
    kinds = [item["kind"] for item in Question.objects.latest("pk").answer["fixes"]]
    assert kinds == sorted(kinds, key=["keeps", "changes", "harms"].index) and kinds[-1] == "harms"
    assert "it has no owner that recreates it" in html and "Harms other pods" in html


def test_why_not_a_node_stands_beside_the_edits(client: Client, cluster: Cluster) -> None:
    args = (cluster.public_id, "default", "large")
    client.post(reverse("web:fix", args=args))
    asked = client.post(reverse("web:fix", args=args), {"node": "node-b1"})
    assert asked["Location"].endswith("?node=node-b1#why")
    work_off()
    html = page(client, "fix", *args, query="?node=node-b1")
    assert "rejected by TaintToleration" in html
    assert "no matching toleration" in html
    assert "NodeResourcesFit" in html


def test_why_a_recorded_cycle_did_not_choose_a_node(client: Client, cluster: Cluster) -> None:
    args = (cluster.public_id, 1)
    assert "Ask about a node" in page(client, "cycle-why", *args)
    first = Cycle.objects.get(cluster=cluster, number=1)
    other = "node-a2" if first.node == "node-a1" else "node-a1"
    client.post(reverse("web:cycle-why", args=args), {"node": other})
    work_off()
    html = page(client, "cycle-why", *args, query=f"?node={other}")
    assert "Score plugin" in html


def test_a_label_of_a_weight_axis_is_drawn_where_it_has_room_on_a_phone() -> None:
    name, fit = "ip-10-0-125-55.eu-central-1.compute.internal", "NodeResourcesFit"

    def segment(end: float) -> dict[str, Any]:
        part = {"start": {"value": 1}, "end": {"value": end}, "winners": [name], "nWinners": 1}
        plugin = {"plugin": fit, "weight": 1, "switches": [], "intervals": [part]}
        (row,) = view_weights({"plugins": [plugin], "set": {fit: 1}, "winners": [name]})["rows"]
        found: dict[str, Any] = row["segments"][0]
        return found

    drawn = [segment(end) for end in (10, 3.7, 3.25)]
    assert [part["width"] for part in drawn] == [100, 30, 25]
    assert [part["has_room"] for part in drawn] == [True, True, False]


def test_weights_are_lines_at_once_and_proofs_when_asked(client: Client, cluster: Cluster) -> None:
    number = next(item.number for item in Cycle.objects.order_by("number") if item.n_feasible > 1)
    args = (cluster.public_id, number)
    html = page(client, "weights", *args)
    assert 'class="waxis"' in html and 'id="arriving"' in html
    told = re.findall(r'<th scope="row">(\d+[=.] [^<]+)</th>', page(client, "cycle", *args))
    places = re.findall(r'<span class="ranked">(.+?)</span>\s*</th>', html)
    assert sorted(re.sub("<[^>]+>", "", place) for place in places) == sorted(told) != []
    client.post(reverse("web:weights", args=args))
    work_off()
    assert 'id="arriving"' not in page(client, "weights", *args)
    part = html_of(
        client.get(
            reverse("web:weights", args=args) + "?w-NodeResourcesFit=9", headers={"HX-Request": "true"}
        )
    )
    assert "<main" not in part and "was 1" in part


def test_a_cycle_without_scores_says_so(client: Client, cluster: Cluster) -> None:
    last = Cycle.objects.order_by("number").last()
    assert last is not None
    assert "No scores were compared" in page(client, "weights", cluster.public_id, last.number)


def test_a_try_of_many_copies_answers_for_all(client: Client, cluster: Cluster) -> None:
    path = reverse("web:try", args=[cluster.public_id])
    where = client.post(path, {"yaml": YAML, "copies": "50"})["Location"]
    work_off()
    html = html_of(client.get(where))
    assert re.search(r"\d+ of 50 copies find a node:\s+\d+ on .*node-a", html)
    assert "Of the next the scheduler says: " in html
    where = client.post(path, {"yaml": YAML, "copies": "1"})["Location"]
    work_off()
    assert "copies find" not in html_of(client.get(where))


def test_a_pod_is_tried_without_being_submitted(client: Client, cluster: Cluster) -> None:
    asked = client.post(reverse("web:try", args=[cluster.public_id]), {"yaml": YAML})
    assert asked.status_code == 302
    where = asked["Location"]
    assert "<h2>Queued</h2>" in html_of(client.get(where))
    work_off()
    html = html_of(client.get(where))
    assert "tried, not submitted" in html
    headline = " ".join(re.sub(r"<[^>]+>", "", html).split())
    assert "default/tried would be bound to" in headline and "tried bound to" not in headline
    # The API says it in the same words, and that it was only tried.
    question = where.rstrip("/").rpartition("/")[2]
    told = client.get(f"/api/v1/clusters/{cluster.public_id}/questions/{question}/").json()["answer"]
    assert told["sentence"] == told["cycle"]["sentence"] and told["sentence"] in headline
    assert told["cycle"]["dryRun"] is True
    bind = {point["point"]: point["detail"] for point in told["cycle"]["points"]}["Bind"]
    assert bind == "only tried"
    assert 'id="filter"' in html
    refused = client.post(reverse("web:try", args=[cluster.public_id]), {"yaml": "nonsense"}, follow=True)
    assert "It cannot be tried" in html_of(refused)


def test_luck_is_run_as_a_group_and_counted(
    client: Client, cluster: Cluster, wakes: list[tuple[str, dict[str, Any]]]
) -> None:
    assert 'id="arriving"' in page(client, "luck", cluster.public_id)
    assert 'hx-trigger="load, submit"' not in page(client, "luck", cluster.public_id, query="?cancelled=1")
    client.post(reverse("web:luck", args=[cluster.public_id]), {"seeds": "10"})
    work_off()
    for task, how in list(wakes):
        if task == "run_seeds":
            questions.run_seeds(**how)
    html = page(client, "luck", cluster.public_id)
    assert "10 seeds" in html
    assert "End states" in html


def test_a_failed_question_says_why_and_can_be_asked_again(client: Client, cluster: Cluster) -> None:
    args = (cluster.public_id, "default", "large")
    client.post(reverse("web:fix", args=args))
    Question.objects.update(state="failed", error="The engine could not answer: it was tired")
    assert "it was tired" in page(client, "fix", *args)
    client.post(reverse("web:fix", args=args))
    assert Question.objects.get().state == "queued"


def test_a_stale_answer_is_marked(client: Client, cluster: Cluster) -> None:
    args = (cluster.public_id, "default", "large")
    client.post(reverse("web:fix", args=args))
    work_off()
    assert "Ask again" not in page(client, "fix", *args)
    apply_documents(cluster=cluster, objects=[make_node("node-c1")])
    assert "Ask again" in page(client, "fix", *args)


def test_no_page_runs_a_cycle(client: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a cycle was run in the web process")

    monkeypatch.setattr("scheduler_core.schedule_one.Algorithm.schedule", never)
    pod = (cluster.public_id, "default", "large")
    for name, args in (
        ("fix", pod), ("weights", (cluster.public_id, 1)), ("luck", (cluster.public_id,)),
        ("cycle-why", (cluster.public_id, 1)),
    ):  # fmt: skip
        page(client, name, *args)
        assert client.post(reverse(f"web:{name}", args=args), {"node": "node-a1"}).status_code == 302


@pytest.mark.parametrize(
    ("name", "args", "most"),
    table(__file__, "the_number_of_queries_is_pinned"),
)
def test_the_number_of_queries_is_pinned(
    client: Client, cluster: Cluster, name: str, args: Any, most: int, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(most):
        page(client, name, *(cluster.public_id if item == "c" else item for item in args))


def test_pages_that_lead_here_link_here(client: Client, cluster: Cluster) -> None:
    assert "Best fix" in page(client, "pod", cluster.public_id, "default", "large")
    assert "Why not another node?" in page(client, "cycle", cluster.public_id, 1)
    assert "Try it" in page(client, "pod-new", cluster.public_id)
    assert "/luck/" in page(client, "cycles", cluster.public_id)
