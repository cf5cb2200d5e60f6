"""Clusters over REST: made, read, changed, run, explained."""

from collections.abc import Callable
from typing import Any

import pytest

from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Cycle, LogEntry
from playground.clusters.objects.apply import apply_documents
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.tables import table

MANIFESTS = table(__file__, "MANIFESTS")


@pytest.mark.dialect
def test_the_whole_way_from_a_name_to_an_explained_cycle(api: Api, visit: Callable[[Cluster], None]) -> None:
    made = api.post("/clusters/", {"name": "demo"})
    assert made.status_code == 201
    id = made.json()["id"]
    assert made["Location"] == f"/api/v1/clusters/{id}/"
    applied = api.yaml(f"/clusters/{id}/apply", MANIFESTS)
    assert applied.status_code == 200, applied.json()
    assert [item["kind"] for item in applied.json()["created"]] == ["Node", "Pod"]
    assert applied.json()["ignored"][0]["kind"] == "ServiceMonitor"
    asked = api.post(f"/clusters/{id}/run", {"until": "idle"})
    assert asked.status_code == 202
    run = asked.json()["id"]
    assert api.get(f"/clusters/{id}/runs/{run}/").json()["state"] == "queued"
    visit(Cluster.objects.get(public_id=id))
    done = api.get(f"/clusters/{id}/runs/{run}/").json()
    assert (done["state"], done["stop"], done["cyclesDone"], done["progress"]) == ("done", "idle", 1, 1.0)
    listed = api.get(f"/clusters/{id}/cycles/").json()["items"]
    assert [(item["cycle"], item["outcome"]) for item in listed] == [(1, "bound")]
    explained = api.get(f"/clusters/{id}/cycles/1/").json()
    assert explained["pod"] == "default/web"
    assert explained["node"] == "n1"
    assert explained["feasible"] == ["n1"]
    assert "filterByPlugin" not in explained
    assert "filterByPlugin" in api.get(f"/clusters/{id}/cycles/1/?full=1").json()
    found = api.get(f"/clusters/{id}/").json()
    assert (found["nodes"], found["pods"], found["bound"], found["cycles"]) == (1, 1, 1, 1)


def test_a_pending_pod_names_plugin_and_reason_of_each_node(
    api: Api, visit: Callable[[Cluster], None], cluster: Cluster
) -> None:
    apply_documents(cluster=cluster, objects=[make_pod("big", cpu="64")])
    api.post(f"/clusters/{cluster.public_id}/run", {"until": "idle"})
    visit(cluster)
    number = Cycle.objects.get(cluster=cluster, pod_name="big").number
    explained = api.get(f"/clusters/{cluster.public_id}/cycles/{number}/").json()
    # More than a node has at all.
    why = {
        "plugin": "NodeResourcesFit",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["Insufficient cpu"],
    }
    assert explained["filter"] == {"n1": why, "n2": why}
    assert "0/2 nodes are available" in explained["fitError"]
    queue = api.get(f"/clusters/{cluster.public_id}/queue/").json()
    assert [item["pod"] for item in queue["unschedulable"]] == ["default/big"]
    story = api.get(f"/clusters/{cluster.public_id}/pods/default/big/story").json()
    assert story["queue"]["lane"] == "unschedulable"
    [lane] = api.get(f"/clusters/{cluster.public_id}/timeline?q=default/big").json()["pods"]
    assert [(cycle["number"], cycle["node"]) for cycle in lane["cycles"]] == [(number, None)]
    assert {span["state"] for span in lane["spans"]} == {"unschedulable"}


@pytest.mark.parametrize(
    ("method", "path"),
    table(__file__, "paths_answer_with_and_without_a_trailing_slash"),
)
def test_paths_answer_with_and_without_a_trailing_slash(
    api: Api, cluster: Cluster, method: str, path: str
) -> None:
    bodies: dict[str, Any] = {
        "apply": make_node("n9"),
        "clock": {"mode": "paused"},
        "run": {"until": "cycle"},
        "reset": None,
        "node-pools": {"name": "pool", "count": 1},
    }
    body = None if method == "GET" else bodies.get(path.rsplit("/", 1)[-1], {"name": "other"})
    for slash in ("", "/"):
        answer = api.send(method, "/" + path.format(id=cluster.public_id) + slash, body)
        assert answer.status_code in (200, 201, 202), (answer.status_code, answer.content)


def test_clusters_are_listed_newest_first_in_pages(api: Api) -> None:
    for name in "abc":
        make_cluster(name=name)
    first = api.get("/clusters/?limit=2").json()
    assert [item["name"] for item in first["items"]] == ["c", "b"]
    rest = api.client.get(first["next"]).json()
    assert [item["name"] for item in rest["items"]] == ["a"]
    assert rest["next"] is None


@pytest.mark.dialect
def test_cycles_and_runs_come_in_pages(api: Api, cluster: Cluster, visit: Callable[[Cluster], None]) -> None:
    apply_documents(cluster=cluster, objects=[make_pod(f"q{i}", cpu="100m") for i in range(4)])
    for _ in range(5):
        request_run(cluster=cluster, until="cycle")
    visit(cluster)
    for what, key in (("cycles", "cycle"), ("runs", "id")):
        seen, path = [], f"/api/v1/clusters/{cluster.public_id}/{what}/?limit=2"
        while path:
            page = api.client.get(path).json()
            seen += [item[key] for item in page["items"]]
            path = page["next"]
        assert len(seen) == len(set(seen)) == 5
    some = api.get(f"/clusters/{cluster.public_id}/cycles/?before=5&after=1").json()["items"]
    assert [item["cycle"] for item in some] == [4, 3, 2]


def test_a_rename_checks_the_version_it_saw(api: Api, cluster: Cluster) -> None:
    path = f"/clusters/{cluster.public_id}/"
    tag = api.get(path)["ETag"]
    assert api.get(path, if_none_match=tag).status_code == 304
    renamed = api.send("PATCH", path, {"name": "new"}, if_match=tag)
    assert (renamed.status_code, renamed.json()["name"]) == (200, "new")
    late = api.send("PATCH", path, {"name": "newer"}, if_match=tag)
    assert (late.status_code, late.json()["reason"]) == (412, "PreconditionFailed")
    assert api.get(path, if_none_match=tag).status_code == 200


def test_a_clone_and_a_reset_begin_anew(api: Api, cluster: Cluster, visit: Callable[[Cluster], None]) -> None:
    request_run(cluster=cluster, until="idle")
    visit(cluster)
    path = f"/clusters/{cluster.public_id}"
    clone = api.post(f"{path}/clone", {"name": "twin"}).json()
    assert (clone["name"], clone["bound"], clone["cycles"]) == ("twin", 1, 0)
    reset = api.post(f"{path}/reset").json()
    assert (reset["bound"], reset["pending"], reset["cycles"]) == (0, 1, 0)


def test_a_deleted_cluster_is_gone(api: Api, cluster: Cluster) -> None:
    path = f"/clusters/{cluster.public_id}/"
    assert api.send("DELETE", path).status_code == 204
    assert api.get(path).status_code == 404


def test_an_export_applies_to_another_cluster(api: Api, cluster: Cluster) -> None:
    text = api.get(f"/clusters/{cluster.public_id}/export")
    assert text["Content-Type"].startswith("application/yaml")
    other = make_cluster(name="other")
    applied = api.yaml(f"/clusters/{other.public_id}/apply", text.getvalue())
    assert sorted(item["name"] for item in applied.json()["created"]) == ["n1", "n2", "p1"]


def test_a_run_is_cancelled(api: Api, cluster: Cluster) -> None:
    run = api.post(f"/clusters/{cluster.public_id}/run", {"until": "1h"}).json()["id"]
    path = f"/clusters/{cluster.public_id}/runs/{run}/"
    for _ in range(2):
        cancelled = api.send("DELETE", path)
        assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")


def test_a_dry_run_keeps_nothing(api: Api, cluster: Cluster) -> None:
    before = LogEntry.objects.count()
    path = f"/clusters/{cluster.public_id}/node-pools/?dryRun=true"
    pool = {"name": "gpu-{n:02}", "count": 3, "zones": ["a", "b"], "taints": ["gpu=true:NoSchedule"]}
    assert len(api.post(path, pool).json()["created"]) == 3
    assert LogEntry.objects.count() == before


def test_config_is_read_written_and_put_back(api: Api, cluster: Cluster) -> None:
    path = f"/clusters/{cluster.public_id}/config/"
    assert api.get(path).json() == {"default": True, "config": None, "withoutEffect": [], "problem": None}
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "percentageOfNodesToScore: 50\n"
    )
    written = api.send("PUT", path, text, media="application/yaml")
    assert written.status_code == 200, written.json()
    assert api.get(path).json()["config"]["percentageOfNodesToScore"] == 50
    wrong = api.send("PUT", path, text.replace("50", "500"), media="application/yaml")
    assert (wrong.status_code, wrong.json()["field"]) == (400, "percentageOfNodesToScore")
    assert api.send("DELETE", path).json()["default"] is True


def test_the_clock_is_paused_or_runs(api: Api, cluster: Cluster) -> None:
    path = f"/clusters/{cluster.public_id}/clock/"
    assert api.get(path).json()["mode"] == "paused"
    running = api.send("PUT", path, {"mode": "1x"}).json()
    assert (running["mode"], running["rate"]) == ("realtime", 1.0)
    assert api.send("PUT", path, {"mode": "realtime", "rate": 1000}).json()["field"] == "rate"
    assert api.send("PUT", path, {"mode": "paused"}).json()["mode"] == "paused"


def test_a_pod_that_does_not_wait_at_permit_takes_no_answer(api: Api, cluster: Cluster) -> None:
    answer = api.post(f"/clusters/{cluster.public_id}/permits/default/p1/", {"decision": "allow"})
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")


def test_version_names_what_is_emulated(api: Api) -> None:
    version = api.get("/version").json()
    assert version["emulates"] == "v1.37.0"
    assert version["releases"] == ["1.34", "1.35", "1.35.6", "1.36", "1.36.3", "1.37"]
    assert version["engine"]
    assert "every node" in version["sampling"]["default"]
    assert isinstance(version["knownDifferences"], list)


def test_the_demo_can_be_asked_for(api: Api) -> None:
    made = api.post("/clusters/", {"name": "shop", "demo": True}).json()
    assert made["nodes"] == 12


def test_nodes_of_a_cluster_are_no_queries_each(
    api: Api, cluster: Cluster, django_assert_max_num_queries: Any
) -> None:
    apply_documents(cluster=cluster, objects=[make_node(f"m{i}") for i in range(30)])
    with django_assert_max_num_queries(2):
        api.get(f"/clusters/{cluster.public_id}/")
