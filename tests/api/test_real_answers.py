"""Real answers are what the OpenAPI document says of them, to the last field.

Each scenario is opened as a cluster and everything that was decided in it is read and asked about: preemption,
extenders, Permit, pod groups, dynamic resources, draws among equals, decisions of other schedulers.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from playground.clusters import questions
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Cycle, ForeignDecision, Pod, Question
from playground.scenarios.services.forking import fork
from playground.scenarios.services.shares import share
from scheduler_core.scenario.gallery import gallery_text
from tests.api import told
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import Kube
from tests.kube_api.schedulers import Faulty, Packing
from tests.scenarios.test_forks import own_site, walked
from tests.tables import table

__all__ = ["own_site"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.any_database,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

POD = table(__file__, "POD")


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client)


class Asked:
    """Asks, has a worker answer, and reads the answer."""

    def __init__(self, api: Api, work: Callable[[], None]) -> None:
        self.api, self.work = api, work

    def __call__(self, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.api.post(path, body)
        assert answer.status_code == 202, answer.content
        self.work()
        found: dict[str, Any] = self.api.get(answer["Location"].removeprefix("/api/v1")).json()
        assert found["state"] == "done", found
        return found


def opened(name: str, work: Callable[[], None]) -> tuple[str, Cluster]:
    scenario = share(document=gallery_text(name).encode()).scenario
    work()
    cluster = walked(fork(scenario=scenario), work)
    request_run(cluster=cluster, until="idle")
    work()
    return scenario.public_id, cluster


def all_read(api: Api, cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    base = f"/clusters/{cluster.public_id}"
    cycles = [
        api.get(f"{base}/cycles/{number}/?full=1").json()
        for number in Cycle.objects.filter(cluster=cluster).values_list("number", flat=True)[:60]
    ]
    pods = list(Pod.objects.filter(cluster=cluster)[:10])
    stories = [api.get(f"{base}/pods/{pod.namespace}/{pod.name}/story").json() for pod in pods]
    for path in ("/", "/queue/", "/cycles/", "/nodes/", "/pods/", "/config/", "/mock-extenders/", "/runs/"):
        assert api.get(base + path).status_code == 200
    return {"cycles": cycles, "stories": stories}


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("preemption-budget", lambda cycle: (cycle["preemption"] or {}).get("candidates")),
        ("extender-preempt-bind", lambda cycle: cycle["extenders"]),
        ("manual-approval", lambda cycle: cycle["permit"]),
        ("gang-almost-fits", lambda cycle: cycle.get("group")),
        ("filtering-twice", lambda cycle: cycle["nominatedPasses"]),
        ("tie-break-6-draw", lambda cycle: (cycle["preemption"] or {}).get("tied")),
        ("volumes-bind-zone", lambda cycle: cycle["filterByPlugin"].get("VolumeBinding")),
    ],
)
def test_every_cycle_and_story_is_as_told(
    name: str, shows: Callable[[dict[str, Any]], Any], own_site: None, work: Any, api: Api
) -> None:
    _, cluster = opened(name, work)
    read = all_read(api, cluster)
    assert any(shows(cycle) for cycle in read["cycles"]), "the scenario does not show what it is here for"
    assert all(story["story"] for story in read["stories"] if story["exists"])


def test_every_answer_about_a_cluster_is_as_told(own_site: None, work: Any, api: Api) -> None:
    _, cluster = opened("partitioned-gpu", work)
    base, asked = f"/clusters/{cluster.public_id}", Asked(api, work)
    devices = asked(f"{base}/cycles/1/devices")["answer"]
    assert devices["open"]["devices"]
    pending = Pod.objects.filter(cluster=cluster, node_name="").first()
    kept = cluster.nodes.values_list("name", flat=True)[0]
    if pending is not None:
        asked(f"{base}/fix", {"pod": f"{pending.namespace}/{pending.name}"})
    assert asked(f"{base}/cycles/1/why-not?node={kept}")["answer"]["filters"]
    assert asked(f"{base}/try", POD)["answer"]["cycle"]["full"]
    assert asked(f"{base}/try-rule", {"filter": "true", "score": "1"})["answer"]["nodes"]
    for question in (
        {"ask": "drain", "nodes": [kept]},
        {"ask": "lose", "nodes": [kept]},
        {"ask": "any-node"},
        {"ask": "headroom", "pod": POD},
        {"ask": "backlog"},
        {"ask": "consolidate"},
    ):
        found = asked(f"{base}/plan", question)
        assert found["answer"]["question"]["ask"] == question["ask"]
        assert api.get(found["url"].removeprefix("/api/v1") + "answer.json").status_code == 200


def test_edits_weights_draws_and_seeds_are_as_told(work: Any, api: Api) -> None:
    cluster = make_cluster(
        make_node("n1", cpu="2"),
        make_node("n2", cpu="2"),
        make_node("n3", cpu="4"),
        make_pod("small", cpu="1"),
        make_pod("large", cpu="5"),
        make_pod("middle", cpu="2"),
    )
    request_run(cluster=cluster, until="idle")
    work()
    base, asked = f"/clusters/{cluster.public_id}", Asked(api, work)
    edits = asked(f"{base}/fix", {"pod": "default/large"})["answer"]
    assert edits["fixes"] and edits["groups"] and edits["best"]
    bound = Cycle.objects.filter(cluster=cluster, outcome="bound").values_list("number", flat=True)
    weights = [asked(f"{base}/cycles/{number}/weights")["answer"] for number in bound]
    assert any(one["plugins"] for one in weights)
    seeds = asked(f"{base}/seeds?seeds=4")["answer"]
    assert seeds["nSeeds"] == 4 and seeds["states"]


def test_what_searches_and_comparisons_find_is_as_told(own_site: None, work: Any, api: Api) -> None:
    scenario, cluster = opened("preemption-budget", work)
    other = share(document=gallery_text("ties-spread").encode()).scenario
    asked = Asked(api, work)
    # Of either side one of the long searches; the answers of both have the same shapes.
    assert asked(f"/clusters/{cluster.public_id}/model/")["result"]["cycles"]
    assert asked(f"/scenarios/{scenario}/optimum/", {"timeLimitS": 5})["result"]["levels"]
    for path in (f"/clusters/{cluster.public_id}", f"/scenarios/{scenario}"):
        assert asked(f"{path}/upgrade/", {"kubernetesRelease": "1.36"})["result"]["runs"]
    assert asked(f"/scenarios/{scenario}/luck/", {"seeds": 3})["result"]["nSeeds"] == 3
    sides = [
        {"kind": "scenario", "id": scenario},
        {"kind": "scenario", "id": other.public_id},
        {"kind": "cluster", "id": cluster.public_id},
    ]
    found = asked("/comparisons/", {"a": sides[0], "b": sides[1], "more": sides[2:]})
    assert found["result"]["divergence"] and found["result"]["moved"]


def test_decisions_of_other_schedulers_are_as_told(client: Client, work: Any, api: Api) -> None:
    cluster = make_cluster(
        *(make_node(name, cpu="4") for name in ("n1", "n2")),
        make_pod("pack-a", cpu="1", schedulerName="bin-packer"),
        make_pod("pack-c", cpu="9", schedulerName="bin-packer"),
        make_pod("bad-a", cpu="3", schedulerName="faulty"),
    )
    kube = Kube(client, f"/k8s/{cluster.public_id}")
    Packing(kube).decide()
    Faulty(kube).decide()
    base = f"/clusters/{cluster.public_id}"
    assert api.get(f"{base}/judge/").json()["left"]
    questions.answer(question_id=Question.objects.get(kind="judge").pk)
    assert api.get(f"{base}/judge/").json()["items"]
    for row in ForeignDecision.objects.all():
        found = api.get(f"{base}/judge/{row.seq}/{row.kind}/").json()
        assert found["ours"] is not None
    assert api.get(f"{base}/schedulers/").json()["programs"]


def test_an_answer_that_is_not_as_told_is_found(api: Api, work: Any) -> None:
    cluster = make_cluster(make_node("n1"))
    path = f"/api/v1/clusters/{cluster.public_id}/queue/"
    answer = api.client.get(path)
    told.check("GET", path, answer)
    for changed in ({"active": [{"pod": 1}]}, {"unheardOf": []}):
        answer = api.client.get(path)
        answer._is_rendered, body = True, answer.json() | changed
        answer.content = json.dumps(body).encode()
        del answer._json
        with pytest.raises(AssertionError):
            told.check("GET", path, answer)
