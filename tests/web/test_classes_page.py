"""The page of classes and budgets: who uses them, what they allow and why, and forms that make and change them."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters.models import Cluster, Pod, PodDisruptionBudget, PriorityClass
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.manifests import priority_class
from tests.markup import html_of
from tests.tables import table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wakes")]


def make_budget(
    name: str, selector: dict[str, Any] | None, status: Any = None, **rule: Any
) -> dict[str, Any]:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    spec = ({} if selector is None else {"selector": selector}) | rule
    return head | {"spec": spec} | ({"status": status} if status else {})


def labelled(name: str, app: str, priority_class: str = "", node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if node:
        spec["nodeName"] = node
    pod = make_pod(name, **spec)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    pod["metadata"] |= {"labels": {"app": app}, "ownerReferences": [owner]}
    return pod


COUNTED = {"type": "DisruptionAllowed", "status": "True", "message": "computed from the cluster's pods"}


def counted(healthy: int, desired: int, expected: int) -> dict[str, Any]:
    return {
        "disruptionsAllowed": max(healthy - desired, 0),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [COUNTED],
    }


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster(
        make_node("n1"),
        make_node("n2"),
        priority_class("gold", 1000),
        priority_class("calm", 10, preemptionPolicy="Never"),
        priority_class("batch", 0, globalDefault=True),
        labelled("web-1", "web", "gold", "n1"),
        labelled("web-2", "web", "gold", "n2"),
        labelled("db-1", "db", "batch", "n1"),
        labelled("db-2", "db", "batch"),
        make_budget("db", {"matchLabels": {"app": "db"}}, counted(1, 1, 2), minAvailable=1),
        make_budget("web", {"matchLabels": {"app": "web"}}, counted(2, 1, 2), maxUnavailable="50%"),
        make_budget("none", {"matchLabels": {"app": "gone"}}, counted(0, 1, 0), minAvailable=1),
        make_budget("dump", {"matchLabels": {"app": "web"}}, {"disruptionsAllowed": 7}, minAvailable=1),
        make_budget("fresh", {"matchLabels": {"app": "db"}}, minAvailable=1),
    )


def url(cluster: Cluster, **query: str) -> str:
    end = "&".join(f"{key}={value}" for key, value in query.items())
    return reverse("web:classes", args=[cluster.public_id]) + (f"?{end}" if end else "")


def row(html: str, anchor: str) -> str:
    """The text of one table row."""
    found = re.search(rf'<tr id="{anchor}">(.*?)</tr>', html, re.DOTALL)
    assert found is not None, anchor
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def said(html: str) -> str:
    """The text of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_classes_say_who_uses_them_and_what_they_may_evict_now(client: Client, cluster: Cluster) -> None:
    html = html_of(client.get(url(cluster)))
    gold = row(html, "class-gold")
    assert "1,000" in gold and "default/web 2" in gold
    # On nodes stand one pod of batch below gold; the pending one is no pod to evict.
    assert "1 pod on a node has a lower priority" in gold
    calm = row(html, "class-calm")
    assert "none: its policy is Never; 1 pod on a node has a lower priority" in calm and "no pod" in calm
    batch = row(html, "class-batch")
    assert "global default" in batch and "none: no pod on a node has a lower priority" in batch
    assert "built in" in row(html, "class-system-node-critical")
    assert "5 classes, of which 3 may evict pods now" in said(html)


def test_budgets_say_what_they_allow_and_why(client: Client, cluster: Cluster) -> None:
    html = html_of(client.get(url(cluster)))
    db = row(html, "budget-default-db")
    assert "minAvailable: 1" in db and "app=db" in db
    assert "1 healthy, 1 must stay: holds up a drain of 1 node" in db
    web = row(html, "budget-default-web")
    assert "maxUnavailable: 50%" in web
    assert "2 healthy, 1 must stay; on 2 nodes, drains go 1 at a time" in web
    assert "2 pods also under dump: Kubernetes refuses to evict a pod of two budgets" in web
    assert "matches no pod" in row(html, "budget-default-none")
    assert "as its manifest says" in row(html, "budget-default-dump")
    assert "not counted yet" in row(html, "budget-default-fresh")
    assert "5 budgets, of which default/db allows no eviction at all." in said(html)


def test_a_class_is_made_changed_and_deleted_by_its_form(client: Client, cluster: Cluster) -> None:
    made = client.post(url(cluster), {"action": "class", "name": "silver", "value": "500", "policy": "Never"})
    assert made.status_code == 302 and made["Location"].endswith("#class-silver")
    silver = PriorityClass.objects.get(cluster=cluster, name="silver")
    assert (silver.value, silver.preemption_policy) == (500, "Never")
    opened = html_of(client.get(url(cluster, **{"class": "silver"})))
    assert "Between gold and calm; its policy is Never, so a pod of it evicts none." in opened
    version = silver.manifest["metadata"]["resourceVersion"]
    changed = client.post(
        url(cluster, **{"class": "silver"}),
        {
            "action": "class",
            "version": version,
            "value": "9",
            "policy": "PreemptLowerPriority",
            "description": "Tea",
        },
    )
    assert changed.status_code == 302
    silver.refresh_from_db()
    # Value and policy of a class that exists are fixed, whatever is sent.
    assert (silver.value, silver.preemption_policy, silver.manifest["description"]) == (500, "Never", "Tea")
    gone = client.post(
        reverse("web:object-delete", args=[cluster.public_id, "PriorityClass", "-", "silver"]),
        {"sure": "yes"},
    )
    assert gone["Location"] == url(cluster)
    assert not PriorityClass.objects.filter(cluster=cluster, name="silver").exists()


def test_a_budget_is_made_and_changed_by_its_form(client: Client, cluster: Cluster) -> None:
    made = client.post(
        url(cluster),
        table(__file__, "a_budget_is_made_and_changed_by_its_form_made"),
    )
    assert made.status_code == 302 and made["Location"].endswith("#budget-default-mixed")
    budget = PodDisruptionBudget.objects.get(cluster=cluster, name="mixed")
    assert budget.selector == table(__file__, "a_budget_is_made_and_changed_by_its_form")
    assert (budget.max_unavailable, budget.unhealthy_pod_eviction_policy) == ("25%", "AlwaysAllow")
    opened = html_of(client.get(url(cluster, budget="default/mixed")))
    assert 'value="app=web,env notin (test),!old,tier in (a,b)"' in opened
    values = dict(re.findall(r'name="(\w+)" value="([^"]*)"[^>]*id="budget-', opened))
    values |= {"action": "budget", "rule": "minAvailable", "amount": "3", "selector": "app=web"}
    assert client.post(url(cluster, budget="default/mixed"), values).status_code == 302
    budget.refresh_from_db()
    assert (budget.min_available, budget.max_unavailable) == ("3", "")
    assert budget.manifest["spec"]["minAvailable"] == 3
    # Who had it open before that change undoes nothing, and keeps what was typed.
    late = client.post(url(cluster, budget="default/mixed"), values | {"amount": "44"})
    assert late.status_code == 409 and b"the object has been modified" in late.content
    assert b'value="44"' in late.content


@pytest.mark.parametrize(
    ("wrong", "words"),
    table(__file__, "what_is_wrong_with_a_budget_is_said_at_its_form"),
)
def test_what_is_wrong_with_a_budget_is_said_at_its_form(
    client: Client, cluster: Cluster, wrong: dict[str, str], words: str
) -> None:
    asked = {"action": "budget", "name": "new", "namespace": "default", "rule": "minAvailable", "amount": "1"}
    before = cluster.last_seq
    answer = client.post(url(cluster), asked | {"selector": "app=x"} | wrong)
    assert answer.status_code >= 400
    html = html_of(answer)
    assert words in html[html.index('id="budget-form"') :]
    cluster.refresh_from_db()
    assert cluster.last_seq == before


def test_an_edit_keeps_what_the_form_does_not_show(client: Client, cluster: Cluster) -> None:
    apply_documents(
        cluster=cluster,
        objects=[
            make_budget("bare", None, minAvailable=1) | {"metadata": {"name": "bare", "labels": {"a": "b"}}}
        ],
    )
    row_ = PodDisruptionBudget.objects.get(cluster=cluster, name="bare")
    assert (
        client.post(
            url(cluster, budget="default/bare"),
            {
                "action": "budget",
                "version": row_.resource_version,
                "selector": "",
                "rule": "minAvailable",
                "amount": "2",
            },
        ).status_code
        == 302
    )
    row_.refresh_from_db()
    # A budget that selects nothing does not come to select everything.
    assert row_.selector is None and row_.labels == {"a": "b"} and row_.min_available == "2"
    assert client.get(url(cluster, budget="default/nosuch")).status_code == 404


@pytest.mark.parametrize("n", [2, 40])
def test_the_page_costs_the_same_queries_however_many_there_are(
    client: Client, n: int, django_assert_num_queries: Any
) -> None:
    objects = [priority_class(f"c{i}", i) for i in range(n)] + [labelled(f"p{i}", f"a{i}") for i in range(n)]
    objects += [make_budget(f"b{i}", {"matchLabels": {"app": f"a{i}"}}, minAvailable=1) for i in range(n)]
    cluster = make_cluster(*objects)
    with django_assert_num_queries(6):
        assert client.get(url(cluster)).status_code == 200


def test_pods_lead_to_their_class_and_their_budget(client: Client, cluster: Cluster) -> None:
    assert Pod.objects.filter(cluster=cluster, name="web-1").exists()
    story = html_of(client.get(reverse("web:pod", args=[cluster.public_id, "default", "web-1"])))
    assert f'href="{url(cluster)}#class-gold"' in story
    assert f'href="{url(cluster)}#budget-default-web"' in story
    board = html_of(client.get(reverse("web:board", args=[cluster.public_id])))
    assert f'href="{url(cluster)}#class-gold"' in board


def test_a_class_every_cluster_has_offers_no_delete_and_is_no_default(
    client: Client, cluster: Cluster
) -> None:
    own = html_of(client.get(url(cluster, **{"class": "gold"})))
    built_in = html_of(client.get(url(cluster, **{"class": "system-node-critical"})))
    gone = "objects/PriorityClass/-/{}/delete/"
    assert gone.format("gold") in own
    assert gone.format("system-node-critical") not in built_in and "every cluster has it" in built_in
    assert re.search(r'name="is_default"[^>]*disabled', built_in)


def test_the_only_budget_is_named_once(client: Client) -> None:
    db = {"matchLabels": {"app": "db"}}
    made = make_cluster(make_node("n1"), labelled("db-1", "db", node="n1"),
                        make_budget("db", db, counted(1, 1, 1), minAvailable=1))  # fmt: skip
    assert "1 budget, of which default/db allows no eviction at all." in said(html_of(client.get(url(made))))


def test_a_form_says_what_it_would_do_before_it_is_sent(client: Client, cluster: Cluster) -> None:
    def stands(**query: str) -> str:
        answer = client.get(url(cluster), query)
        assert answer.status_code == 200 and "<form" not in html_of(answer)
        return said(html_of(answer))

    rich = stands(stands="class", name="rich", value="500", policy="PreemptLowerPriority")
    assert rich == "Between gold and calm; a pod of it could evict one pod."
    assert "its policy is Never" in stands(stands="class", value="500", policy="Never")
    assert stands(stands="class", value="x", policy="Never") == stands(stands="class") == ""
    assert stands(stands="budget", namespace="default", selector="app=web") == "It selects 2 pods on 2 nodes."
    assert stands(stands="budget", namespace="default", selector="") == "It selects 4 pods on 2 nodes."
    assert stands(stands="budget", namespace="shop", selector="app=web") == "It selects no pod in shop."
    assert stands(stands="budget", namespace="default", selector="app in (") != ""
    # One that is opened says so from the beginning, an empty form nothing.
    assert "It selects 2 pods on 2 nodes." in html_of(client.get(url(cluster, budget="default/web")))
    assert "It selects" not in html_of(client.get(url(cluster)))
