"""The page of controllers: its state, a sentence for each node, the loop, and forms that write the annotations."""

import json
import re

import pytest
from django.test import Client

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.history.controllers import controllers_now
from playground.clusters.models import Cluster, Question
from playground.clusters.objects.apply import apply_documents
from scheduler_core.scenario.gallery import gallery_scenario
from tests.clusters.builders import make_cluster, make_node, make_pod, run, with_programs
from tests.markup import html_of
from tests.scheduler_core.sim.test_programs import policy

pytestmark = pytest.mark.django_db


def page(client: Client, cluster: Cluster, query: str = "") -> str:
    html = html_of(client.get(f"/c/{cluster.public_id}/controllers/{query}")).replace("<wbr>", "")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def post(client: Client, cluster: Cluster, **said: str):
    return client.post(f"/c/{cluster.public_id}/controllers/", said)


def test_every_node_is_told_once_and_a_scale_up_says_why_its_group(
    client: Client, wakes: list[object]
) -> None:
    cluster = with_programs(make_pod("web", cpu="3"), make_pod("large", cpu="9"))
    assert "No controller has run yet." in page(client, cluster)
    run(cluster, until="30s")
    text = page(client, cluster)
    assert "Still changing after 30s: 1 node goes if nothing else changes." in text
    assert "2 nodes: 1 goes, 1 stays" in text and "Goes at 1m10s at the earliest" in text
    assert "1 pod No group helps; web: Insufficient cpu. default/large" in text
    assert "No node has nowhere in its name." in page(client, cluster, "?q=nowhere")
    apply_documents(cluster=cluster, objects=[make_pod("more", cpu="3"), make_pod("most", cpu="3")])
    run(cluster, until="60s")
    text = page(client, cluster)
    assert "Why this node group at" in text and "web is resized by +1" in text and "chosen" in text


def test_a_loop_is_drawn_with_what_goes_round(client: Client, wakes: list[object]) -> None:
    nodes = [make_node(name, cpu="8") for name in ("a", "b")]
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "6Gi"}}}]
    }
    template = {"metadata": {"labels": {"app": "large"}}, "spec": spec}
    large = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "large"}}, "template": template},
    }  # fmt: skip
    cluster = make_cluster(*nodes, large)
    low = policy("LowNodeUtilization", thresholds={"memory": 25}, targetThresholds={"memory": 70})
    answer = post(
        client,
        cluster,
        program="descheduler",
        text=json.dumps({"policy": low, "descheduling-interval": "5m"}),
    )
    assert answer.status_code == 302
    run(cluster, until="26m")
    text = page(client, cluster)
    assert "A loop: the descheduler undoes its own work every 10m" in text and "4 steps" in text
    assert "LowNodeUtilization evicts a pod of Deployment default/large from Node" in text
    html = html_of(client.get(f"/c/{cluster.public_id}/controllers/"))
    [run_at] = set(re.findall(r'<a href="(\?run=\d+)#h-run">Descheduler</a>', html)[:1])
    assert "Descheduler at 2" in page(client, cluster, run_at)
    for number in re.findall(r'href="/c/\w+/cycles/(\d+)/">Scheduler</a>', html):
        assert "places" in text and client.get(f"/c/{cluster.public_id}/cycles/{number}/").status_code == 200
    assert 'class="round"' in html

    assert post(client, cluster, find="1").status_code == 302
    assert "Queued" in page(client, cluster)
    [asked] = Question.objects.filter(cluster=cluster)
    assert questions.answer(question_id=asked.pk, memory=EngineMemory()) == Question.State.DONE
    text = page(client, cluster)
    assert "What ends it Each change was run until rest, with 3 seeds." in text
    assert "LowNodeUtilization: raise targetThresholds to 100 at rest nothing changes any more" in text
    assert "DefaultEvictor: set nodeFit: true still loops every 5m0s" in text
    before = {cluster.pk}
    branched = client.post(f"/c/{cluster.public_id}/questions/{asked.public_id}/branch/", {"rank": "1"})
    assert branched.status_code == 302
    [cured] = Cluster.objects.exclude(pk__in=before)
    run(cured, until="26m")
    assert controllers_now(cured).state == "rest" and "A loop" not in page(client, cured)
    assert post(client, cluster, program="descheduler", text="", off="1").status_code == 302
    assert "A loop" not in page(client, cluster)


def test_pods_that_will_wait_for_good_are_found_before_they_come(client: Client, wakes: list[object]) -> None:
    lesson = gallery_scenario("loops-conflicting-spread")
    cluster = make_cluster(*lesson.objects)
    run(cluster, until="1m")
    assert post(client, cluster, find="1").status_code == 302
    [asked] = Question.objects.filter(cluster=cluster)
    assert questions.answer(question_id=asked.pk, memory=EngineMemory()) == Question.State.DONE
    text = page(client, cluster)
    assert "What ends it 1 pod of Deployment default/web finds no node: 0/3 nodes are available" in text
    assert "spread over kubernetes.io/hostname with whenUnsatisfiable: ScheduleAnyway at rest" in text


def test_settings_that_cannot_be_used_are_refused_with_their_place(
    client: Client, wakes: list[object]
) -> None:
    cluster = make_cluster(make_node("n1"))
    wrong = "nodeGroups: [{name: web, minSize: many, maxSize: 3}]"
    refused = post(client, cluster, program="cluster-autoscaler", text=wrong)
    html = html_of(refused).replace("<wbr>", "")
    assert refused.status_code == 400
    assert "autoscaler.nodeGroups[0].minSize" in html and wrong in html and "many" in html
    assert post(client, cluster, program="other", text="x").status_code == 400
    assert "No controller beside the scheduler is on." in page(client, cluster)
