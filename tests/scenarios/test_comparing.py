"""Two sides: where they part, and what came of it."""

import pytest

from playground.clusters import questions
from playground.clusters.drive.runs import request_run
from playground.clusters.errors import ClusterError
from playground.clusters.models import Question
from playground.scenarios.models import Comparison
from playground.scenarios.services.comparing import request_comparison
from playground.scenarios.services.forking import fork, make_from_cluster
from playground.scenarios.services.moments import branch
from playground.scenarios.services.shares import share
from tests.manifests import priority_class
from tests.scenarios.documents import PACKING, node, pod, small, small_text, text_of
from tests.scenarios.test_clusters import made_by_hand

pytestmark = pytest.mark.django_db(transaction=True)


def ref(scenario, cycle=None):
    return {"kind": "scenario", "id": scenario.public_id, "cycle": cycle}


def compared(work, a, b):
    comparison = request_comparison(a=a, b=b)
    work()
    comparison.refresh_from_db()
    assert comparison.state == Comparison.State.DONE, comparison.problem
    return comparison.result


def test_two_configurations_part_at_a_cycle_with_both_score_rows(work):
    spreading = share(document=small_text()).scenario
    packing = share(document=small_text(scheduler=PACKING)).scenario
    found = compared(work, ref(spreading), ref(packing))
    parted = found["divergence"]
    assert parted["cycle"] == found["nSame"] + 1
    assert parted["why"].startswith("The points of NodeResourcesFit make the difference: in ")
    decided = [side["decision"] for side in parted["sides"]]
    assert decided[0]["node"] != decided[1]["node"]
    fit = [[row["points"][side]["NodeResourcesFit"] for row in parted["rows"]] for side in (0, 1)]
    assert fit[0] != fit[1]
    winners = [next(row["node"] for row in parted["rows"] if row["chosen"][side]) for side in (0, 1)]
    assert winners == [one["node"] for one in decided]
    assert found["figures"]["bound"] == [4, 4]
    spread, packed = found["figures"]["cpuImbalance"]
    assert packed > spread
    assert found["nMoved"] == len(found["moved"]) > 0
    assert {row["node"] for row in found["packing"]} == {"node-a", "node-b", "node-c"}


def test_the_same_twice_has_no_divergence(work):
    first = share(document=small_text()).scenario
    again = share(document=small_text(), visibility="public").scenario
    found = compared(work, ref(first), ref(again))
    assert found["divergence"] is None and found["nSame"] == 5 and not found["moved"]


def test_two_moments_of_one_cluster(work):
    cluster = made_by_hand(work)
    side = {"kind": "cluster", "id": cluster.public_id}
    found = compared(work, {**side, "cycle": 2}, {**side, "cycle": None})
    assert found["nSame"] == 2
    assert found["figures"]["cycles"] == [2, 6]
    assert found["figures"]["bound"][0] == 2 < found["figures"]["bound"][1]
    assert found["divergence"]["sides"][0] == {"name": "a", "decision": None}
    assert [item["sides"][0]["state"] for item in found["moved"] if item["pod"] == "default/late"] == [
        "not there"
    ]


@pytest.mark.dialect
def test_a_share_and_the_cluster_forked_from_it(work):
    scenario = share(document=small_text()).scenario
    cluster = fork(scenario=scenario)
    found = compared(work, ref(scenario, 1), {"kind": "cluster", "id": cluster.public_id, "cycle": None})
    assert found["figures"]["cycles"] == [1, 0]


def test_what_is_not_there_is_refused_and_what_went_is_said(work):
    scenario = share(document=small_text()).scenario
    with pytest.raises(ClusterError, match="there were 5 cycles"):
        request_comparison(a=ref(scenario, 9), b=ref(scenario))
    with pytest.raises(ClusterError, match="no scenario"):
        request_comparison(a=ref(scenario), b={"kind": "scenario", "id": "nothing"})
    with pytest.raises(ClusterError, match=r"b.kind|a side is"):
        request_comparison(a=ref(scenario), b={"kind": "pod", "id": "x"})
    comparison = request_comparison(a=ref(scenario), b=ref(scenario))
    scenario.delete()
    work()
    comparison.refresh_from_db()
    assert comparison.state == Comparison.State.FAILED and "deleted" in comparison.problem


def greedy_fails():
    """Two nodes of 4 cpu. One by one the small pods are spread, and the large one finds no node."""
    return small(
        objects=[
            priority_class("low", 10),
            node("node-a"),
            node("node-b"),
            pod("small-0", cpu="2", priorityClassName="low"),
            pod("small-1", cpu="2", priorityClassName="low"),
            pod("large", cpu="4"),
        ],
    )


def test_a_large_cluster_is_refused(wakes, db):
    objects = [node(f"node-{i}") for i in range(201)]
    scenario = share(document=text_of(small(objects=objects, steps=[{"advance": "1s"}]))).scenario
    with pytest.raises(ClusterError, match="up to 200 nodes"):
        questions.ask(kind="optimum", share=scenario, params={})


def test_the_best_joint_placement_places_what_one_by_one_does_not_and_tells_its_bound(client, work):
    scenario = share(document=text_of(greedy_fails()), visibility="public").scenario
    assert list(scenario.cycles.values_list("outcome", flat=True)).count("unschedulable") == 1
    url = f"/api/v1/scenarios/{scenario.public_id}/optimum/"
    assert client.get(url).status_code == 404
    refused = client.post(url, {"timeLimitS": 0}, content_type="application/json")
    assert refused.status_code == 400 and "1 to 120 s" in refused.json()["detail"]
    asked = client.post(url, {"timeLimitS": 10}, content_type="application/json")
    assert asked.status_code == 202 and asked.json()["state"] == "queued" and asked.json()["result"] is None
    work()
    found = client.get(asked.json()["url"]).json()
    result = found["result"]
    assert found["state"] == "done" and result["placed"] == [2, 3] and result["proved"]
    assert [(one["priority"], one["now"], one["best"]) for one in result["levels"]] == [(10, 2, 2), (0, 0, 1)]
    large = next(item for item in result["pods"] if item["pod"] == "default/large")
    assert large["now"] == "" and large["best"] and Question.objects.get(kind="optimum").progress == 1.0
    assert result["score"][1] <= result["scoreAtMost"] and result["gap"] == 0 and "coupled" in result
    assert "at most" in client.get(f"/s/{scenario.public_id}/optimum/").content.decode().lower()


def test_three_runs_are_aligned_on_the_page_and_by_rest(client, work):
    spreading = share(document=small_text()).scenario
    packing = share(document=small_text(scheduler=PACKING)).scenario
    fewer = share(document=small_text(objects=small()["objects"][:-1])).scenario
    ids = [scenario.public_id for scenario in (spreading, packing, fewer)]
    body = {letter: {"kind": "scenario", "id": id_} for letter, id_ in zip("ab", ids, strict=False)}
    url = "/api/v1/comparisons/"
    asked = client.post(
        url, body | {"more": [{"kind": "scenario", "id": ids[2]}]}, content_type="application/json"
    )
    assert asked.status_code == 202, asked.content
    work()
    found = client.get(asked.json()["url"]).json()
    result = found["result"]
    assert [side["id"] for side in found["more"]] == ids[2:]
    assert result["figures"]["bound"] == [4, 4, 4] and result["figures"]["pods"] == [5, 5, 4]
    assert result["divergence"]["cycle"] == result["nSame"] + 1
    assert [side["name"] for side in result["divergence"]["sides"]] == ["a", "b", "c"]
    assert all(len(row["pods"]) == 3 for row in result["packing"])
    giant = next(item for item in result["moved"] if item["pod"] == "default/giant")
    assert [place["state"] for place in giant["sides"]] == ["unschedulable", "unschedulable", "not there"]
    page = client.get(f"/compare/{found['id']}/").content.decode()
    assert page.count('<span class="ab c"') > 3 and "As many pods are bound" in page
    form = {letter: f"scenario/{id_}" for letter, id_ in zip("abc", ids, strict=True)}
    made = client.post("/compare/", form)
    assert made.status_code == 302
    assert len(Comparison.objects.get(public_id=made["Location"].split("/")[-2]).sides) == 3
    too_many = client.post(url, body | {"more": [body["a"]] * 5}, content_type="application/json")
    assert too_many.status_code == 400


def test_a_branch_is_aligned_with_its_cluster_and_its_share_by_pod_and_attempt(work):
    cluster = made_by_hand(work)
    shared = make_from_cluster(cluster=cluster).scenario
    work()
    of_cluster, of_share = branch(cycle=3, cluster=cluster), branch(cycle=3, scenario=shared)
    for made in (of_cluster, of_share):
        request_run(cluster=made)
        work()
    whole = {"kind": "cluster", "id": cluster.public_id, "cycle": None}
    for first, made in ((whole, of_cluster), (ref(shared), of_share)):
        found = compared(work, first, {"kind": "cluster", "id": made.public_id, "cycle": None})
        parted = found["divergence"]
        # What was decided before the branch was made is no difference, and no decision stands beside another pod's.
        if parted is not None:
            first, other = (side["decision"] for side in parted["sides"])
            assert parted["pod"] in {one["pod"] for one in (first, other) if one}
            assert first is None or first["number"] > 3
        else:
            assert found["nSame"] == found["figures"]["cycles"][1]
