"""The page of a live cluster: what its follower tells, the decisions beside ours, and a span of them as a scenario."""

from typing import Any

import pytest
from django.test import Client

from playground.clusters.foreign import following
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster, FollowedCluster, ForeignDecision
from playground.scenarios.models import Comparison, Scenario
from scheduler_core.scenario.expectations import run_scenario as run
from scheduler_core.scenario.load import load_scenario
from tests.api.test_following import AT, DECISION
from tests.clusters.builders import make_node, make_pod

GAP = {
    "kind": "CSINode",
    "resource": "csinodes",
    "group": "storage.k8s.io",
    "what": "CSINode (no right to list csinodes)",
}


def _line(second: int, manifest: dict[str, Any], type: str = "MODIFIED") -> dict[str, Any]:
    return {"at": AT.format(second), "type": type, "object": manifest}


def names_of(scenario: Any) -> set[str]:
    """Of nodes and pods that are there at the beginning."""
    return {item["metadata"]["name"] for item in scenario.objects if item["kind"] in ("Node", "Pod")}


@pytest.fixture
def live(db: None, wakes: list[Any]) -> Cluster:
    cluster = create_cluster(name="prod", live=True)
    following.begin(cluster=cluster, source="production", program="follow on laptop", redacted=False)
    web, waits = make_pod("web", cpu="1"), make_pod("large", cpu="64")
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes fit",
    }
    waits["status"] = {"phase": "Pending", "conditions": [condition]}
    lines = [_line(1, item, "LISTED") for item in (make_node("a"), make_node("b"), waits)]
    following.take(cluster=cluster, session=1, number=1, changes=lines, not_known=[GAP], is_listed=True)
    bound = {**web, "spec": {**web["spec"], "nodeName": "a"}}
    changes = [_line(10, web, "ADDED"), _line(20, bound)]
    following.take(
        cluster=cluster, session=1, number=2, changes=changes, decisions=[{**DECISION, "time": AT.format(20)}]
    )
    cluster.refresh_from_db()
    return cluster


def test_it_tells_the_state_the_decisions_what_waits_and_what_is_not_known(
    client: Client, live: Cluster
) -> None:
    page = client.get(f"/c/{live.public_id}/followed/").content.decode()
    for said in (
        "production", "Following, read-only", "follow on laptop, writes nothing", "10 points against 20.",
        "0/2 nodes fit",
        "scheduling-follower-csinodes --verb=get,list,watch --resource=csinodes.storage.k8s.io",
        "Share as a scenario", "and 500 MB", "<b>1</b> pod for longer than an hour:\n1 Unschedulable",
    ):  # fmt: skip
        assert said in page, said
    assert "1 decision, 0 without a node,\n1 not as ours" in page
    board = client.get(f"/c/{live.public_id}/").content.decode()
    assert "As the live cluster was at" in board and 'id="run-step"' not in board
    FollowedCluster.objects.update(heard="2026-11-20T02:11:00Z")
    assert (
        "the last state is of 02:11:00 UTC" in client.get(f"/c/{live.public_id}/followed/").content.decode()
    )
    client.post(f"/c/{live.public_id}/followed/stop/")
    assert FollowedCluster.objects.get().is_stopped


def test_what_moves_and_the_span_are_parts(client: Client, live: Cluster) -> None:
    def part(target: str, **asked: Any) -> str:
        headers = {"HX-Request": "true", "HX-Target": target}
        return client.get(f"/c/{live.public_id}/followed/", asked, headers=headers).content.decode()

    now = part("now", verdict="tie")
    assert "No decision has this outcome" in now and "<html" not in now and 'id="span"' not in now
    minute = live.now_ns // following.MINUTE_NS
    none = part("span", **{"from": minute - 30, "to": minute - 20, "hours": 6})
    assert "0 decisions, 0 without a node" in none and 'id="now"' not in none


def test_a_span_is_a_scenario_as_recorded_or_with_ours_deciding(client: Client, live: Cluster) -> None:
    path = f"/c/{live.public_id}/share/"
    asked = {"from": AT.format(5), "to": AT.format(30), "as": "file"}
    assert f'value="{AT.format(5)}"' in client.get(path, asked).content.decode()
    text = client.post(path, asked).content.decode()
    assert names_of(load_scenario(text)) == {"a", "b", "large"} and "bind:" in text
    ours = client.post(path, asked | {"ours_decide": "1", "redact": "1"}).content.decode()
    assert load_scenario(ours).steps and "bind:" not in ours and "large" not in ours
    early = client.post(path, asked | {"from": "2026-11-19T00:00:00Z"})
    assert early.status_code == 400 and "kept from 2026-11-20T02:10:01Z on" in early.content.decode()
    assert "is no time such as" in client.post(path, asked | {"from": "then"}).content.decode()


def test_a_span_is_a_test_and_is_tried_with_something_otherwise(client: Client, live: Cluster) -> None:
    path = f"/c/{live.public_id}/share/"
    asked = {"from": AT.format(5), "to": AT.format(30)}
    text = client.post(path, asked | {"as": "test"}).content.decode()
    made = run(load_scenario(text))
    assert len(made.findings) == 2 and all(finding.holds for finding in made.findings)
    otherwise = {"more_like": "a", "more_n": "2", "weight_of": "ImageLocality", "weight": "7"}
    otherwise |= {"priority_of": "default/large", "priority": "900"}
    client.post(path, asked | otherwise | {"as": "what-if"})
    before, after = (load_scenario(bytes(row.document)) for row in Scenario.objects.order_by("pk"))
    assert names_of(after) - names_of(before) == {"a-more-1", "a-more-2"}
    [score] = [profile["plugins"]["score"] for profile in (after.scheduler or {})["profiles"]]
    assert score["enabled"] == [{"name": "ImageLocality", "weight": 7}]
    assert [
        item["spec"]["priorityClassName"] for item in after.objects if item["metadata"]["name"] == "large"
    ] == ["what-if-900"]
    assert Comparison.objects.get().a["id"] and not names_of(before) - names_of(after)
    for wrong, said in (
        ({}, "name a node"),
        ({"more_like": "none"}, "was no node"),
        ({"weight": "x"}, "no whole"),
    ):
        refused = client.post(path, asked | wrong | {"as": "what-if"})
        assert refused.status_code == 400 and said in refused.content.decode()


def test_new_decisions_wait_where_many_came_and_judging_pauses(client: Client, live: Cluster) -> None:
    path = f"/c/{live.public_id}/followed/"
    top = ForeignDecision.objects.get().seq
    more = [{**DECISION, "time": AT.format(30), "pod": f"default/p{number}"} for number in range(9)]
    following.take(cluster=live, session=1, number=3, decisions=more)
    headers = {"HX-Request": "true", "HX-Target": "now"}
    part = client.get(path, {"top": top}, headers=headers).content.decode()
    assert "9 more: show" in part and part.count("<time") == 1 and f'id="d-{top}-bind"' in part
    whole = client.get(path, {"top": top}).content.decode()
    assert "more: show" not in whole and whole.count("<time") == 8
    page = client.post(f"{path}pause/", {"paused": "1"}, follow=True).content.decode()
    assert "Judging is paused" in page and "Decisions are not judged from now on." in page
    page = client.post(f"{path}pause/", {"paused": ""}, follow=True).content.decode()
    assert "Judging is paused" not in page and "Decisions are judged again." in page
