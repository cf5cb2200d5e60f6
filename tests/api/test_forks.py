"""Forks, branches, boards of the past, lessons, objects of every kind, shared answers: what pages do, for programs."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster
from playground.scenarios.services.shares import share
from scheduler_core.scenario.gallery import gallery_text
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.manifests import make_object, scheduler_config

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client)


@pytest.fixture
def ran(work: Any) -> Cluster:
    cluster = make_cluster(
        make_node("n1", cpu="2"),
        make_node("n2", cpu="2"),
        make_pod("small", cpu="1"),
        make_pod("large", cpu="3"),
    )
    request_run(cluster=cluster, until="idle")
    work()
    cluster.refresh_from_db()
    return cluster


def asked(api: Api, work: Any, path: str, body: Any = None) -> Any:
    answer = api.post(path, body)
    assert answer.status_code == 202, answer.content
    work()
    return api.get(answer["Location"].removeprefix("/api/v1")).json()


def test_a_fork_does_its_steps_one_by_one(api: Api, work: Any) -> None:
    scenario = share(document=gallery_text("preemption-budget").encode()).scenario
    work()
    listed = api.get("/scenarios/").json()["items"]
    assert [one["id"] for one in listed] == [scenario.public_id]
    made = api.post(f"/scenarios/{scenario.public_id}/fork", {"name": "mine"})
    assert (made.status_code, made.json()["name"]) == (201, "mine")
    steps = f"/clusters/{made.json()['id']}/steps/"
    assert api.get(steps).json()["scenario"] == scenario.public_id
    n_steps = len(api.get(steps).json()["steps"])
    for done in range(n_steps):
        told = api.post(steps).json()
        assert told["nextStep"] == done + 1
        work()
    assert told["next"] is None
    assert api.post(steps).status_code == 404
    assert api.get(f"/clusters/{made.json()['id']}/").json()["cycles"] > 0
    plain = api.get(f"/clusters/{api.post('/clusters/', {'name': 'x'}).json()['id']}/steps/").json()
    assert plain == {"scenario": None, "nextStep": 0, "next": None, "steps": []}


def test_a_scenarios_cycles_and_boards_are_read_and_branched_off(api: Api, work: Any) -> None:
    scenario = share(document=gallery_text("preemption-budget").encode()).scenario
    work()
    base = f"/scenarios/{scenario.public_id}"
    page = api.get(f"{base}/cycles/?limit=1").json()
    assert page["items"][0]["cycle"] == 1 and page["next"].endswith("after=1")
    assert api.get(f"{base}/cycles/1/").json()["cycle"] == 1
    assert api.post(f"{base}/cycles/1/whole").status_code == 202
    work()
    assert api.get(f"{base}/cycles/1/").json()["full"] is True
    assert api.get(f"{base}/cycles/999/").status_code == 404
    first = api.get(f"{base}/board?cycle=1")
    assert (first.status_code, first["Retry-After"]) == (202, "1")
    work()
    board = api.get(f"{base}/board?cycle=1").json()
    assert board["cycle"] == 1 and board["nodes"] and any(node["pods"] for node in board["nodes"])
    assert api.get(f"{base}/board?cycle=999").status_code == 404
    made = api.post(f"{base}/branch", {"cycle": 1, "name": "then"})
    assert (made.status_code, made.json()["name"]) == (201, "then")


def test_a_cluster_has_boards_and_branches(api: Api, ran: Cluster, work: Any) -> None:
    base = f"/clusters/{ran.public_id}"
    now = api.get(f"{base}/board").json()
    assert now["cycle"] is None and now["nPods"] == 2
    assert sum(len(node["pods"]) for node in now["nodes"]) == 1
    assert now["queue"]["unschedulable"] == {"count": 1, "pods": ["default/large"]}
    assert api.get(f"{base}/board?cycle=1").status_code == 202
    work()
    assert api.get(f"{base}/board?cycle=1").json()["cycle"] == 1
    assert api.get(f"{base}/branch").json() == {"items": []}
    edit = "{apiVersion: v1, kind: Node, metadata: {name: n3}, status: {allocatable: {cpu: 4, pods: 9}}}"
    made = api.post(f"{base}/branch", {"cycle": 1, "edit": edit})
    assert made.status_code == 201 and made.json()["nodes"] == 3
    (branch,) = api.get(f"{base}/branch").json()["items"]
    assert (branch["id"], branch["parent"]) == (made.json()["id"], {"id": ran.public_id, "cycle": 1})
    refused = api.post(f"{base}/branch", {"cycle": 1, "edit": "{apiVersion: v1, kind: Node, metadata: {}}"})
    assert refused.status_code == 400 and Cluster.objects.count() == 2
    assert api.post(f"{base}/branch", {"cycle": 99}).status_code == 404


def test_answers_are_done_in_branches(api: Api, ran: Cluster, work: Any) -> None:
    base = f"/clusters/{ran.public_id}"
    edits = asked(api, work, f"{base}/fix", {"pod": "default/large"})
    for rank in (0, 1):
        made = api.post(f"{edits['url'].removeprefix('/api/v1')}branch", {"rank": rank})
        assert made.status_code == 201 and made.json()["name"].startswith(ran.name)
    assert api.post(f"{edits['url'].removeprefix('/api/v1')}branch", {"rank": 999}).status_code == 404
    plan = asked(api, work, f"{base}/plan", {"ask": "drain", "nodes": ["n1"]})
    path = plan["url"].removeprefix("/api/v1")
    assert api.post(f"{path}branch", {"rank": 2}).status_code == 400
    assert api.post(f"{path}branch").status_code == 201
    shared = api.post(f"{path}share").json()
    verdict = f"/verdicts/{shared['id']}/"
    assert api.get(verdict).json()["answer"] == plan["answer"]
    assert api.get(f"{verdict}objects").json()["kind"] == "List"
    assert api.send("DELETE", verdict).status_code == 204
    assert api.get(verdict).status_code == 404


def test_an_upgrade_is_shared_and_branched_off(api: Api, ran: Cluster, work: Any) -> None:
    base = f"/clusters/{ran.public_id}/upgrade/"
    assert api.post(f"{base}share").status_code == 404
    other = "1.34" if ran.kubernetes_release != "1.34" else "1.35"
    assert asked(api, work, base, {"kubernetesRelease": other})["state"] == "done"
    shared = api.post(f"{base}share")
    assert shared.status_code == 201
    made = api.post(f"{base}branch")
    assert made.status_code == 201 and made.json()["kubernetesRelease"] == other
    work()
    scenario = f"/scenarios/{shared.json()['id']}/upgrade/"
    assert api.get(scenario).json()["state"] == "done"
    assert api.post(f"{scenario}branch").status_code == 201


def test_lessons_are_listed_read_and_opened(api: Api, work: Any) -> None:
    lessons = api.get("/gallery/").json()["items"]
    assert "ties-spread" in [lesson["name"] for lesson in lessons]
    assert api.get("/gallery/ties-spread/").json()["title"]
    assert api.get("/gallery/unheard-of/").status_code == 404
    opened = api.post("/gallery/ties-spread/open")
    assert opened.status_code == 201 and opened.json()["nodes"] > 0


def test_objects_of_every_kind_are_read_changed_and_deleted(api: Api, ran: Cluster) -> None:
    base = f"/clusters/{ran.public_id}"
    service = make_object("v1", "Service", "web", spec={"ports": [{"port": 80}]})
    assert api.post(f"{base}/apply", service).status_code == 200
    held = {one["kind"]: one["objects"] for one in api.get(f"{base}/objects/").json()["items"]}
    assert held["Service"] == 1 and held["Node"] == 2
    (found,) = api.get(f"{base}/objects/Service/").json()["items"]
    place = f"{base}/objects/Service/default/web/"
    read = api.get(place)
    assert read["ETag"] == f'"{found["metadata"]["resourceVersion"]}"'
    assert api.get(place, If_None_Match=read["ETag"]).status_code == 304
    patched = api.send(
        "PATCH", place, {"metadata": {"labels": {"a": "b"}}}, media="application/merge-patch+json",
        If_Match=read["ETag"],
    )  # fmt: skip
    assert patched.json()["metadata"]["labels"] == {"a": "b"}
    late = api.send("PUT", place, found, If_Match=read["ETag"])
    assert late.status_code == 412
    body = patched.json()
    body["metadata"]["labels"] = {"a": "c"}
    assert api.send("PUT", place, body).json()["metadata"]["labels"] == {"a": "c"}
    other = api.send("PUT", place, body | {"metadata": {"name": "other"}})
    assert other.status_code == 400
    assert api.send("DELETE", place).status_code == 200
    assert api.get(place).status_code == 404
    assert api.get(f"{base}/objects/Node/-/n1/").json()["metadata"]["name"] == "n1"
    assert api.get(f"{base}/objects/Nonsense/").status_code == 404
    page = api.get(f"{base}/objects/Node/?limit=1").json()
    assert [one["metadata"]["name"] for one in page["items"]] == ["n1"]
    following = api.get(page["next"].removeprefix("/api/v1")).json()
    assert [one["metadata"]["name"] for one in following["items"]] == ["n2"] and following["next"] is None


def test_rules_hosts_and_jobs_are_set(api: Api, ran: Cluster) -> None:
    base = f"/clusters/{ran.public_id}"
    written = api.send("PUT", f"{base}/config/rules/ssd/", {"filter": "true", "weight": 2})
    assert written.status_code == 200 and "Rule/ssd" in str(written.json()["config"])
    assert api.send("PUT", f"{base}/config/rules/bad/", {"filter": "nonsense("}).status_code == 400
    assert api.send("DELETE", f"{base}/config/rules/ssd/").status_code == 200
    assert api.send("DELETE", f"{base}/config/rules/ssd/").status_code == 404
    assert api.send("PUT", f"{base}/config/extender-hosts/127.0.0.1:1/").status_code == 400
    config = scheduler_config(extenders=[{"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter"}])
    assert api.send("PUT", f"{base}/config/", config).status_code == 200
    host = f"{base}/config/extender-hosts/127.0.0.1:8888/"
    assert api.send("PUT", host).json() == {"allowed": ["127.0.0.1:8888"], "refused": []}
    assert api.send("DELETE", host).json() == {"allowed": [], "refused": ["127.0.0.1:8888"]}
    assert api.get(f"{base}/job-duration/").json() == {"duration": "1m"}
    assert api.send("PUT", f"{base}/job-duration/", {"duration": "5m"}).json() == {"duration": "5m"}
    assert api.send("PUT", f"{base}/job-duration/", {"duration": "soon"}).status_code == 400


def test_a_pod_group_is_asked_about(api: Api, ran: Cluster) -> None:
    assert api.post(f"/clusters/{ran.public_id}/groups/default/train/ask").status_code == 404
