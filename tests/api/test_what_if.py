"""Over REST: what can be undone and undoing it, one action on many, a branch applied to its parent."""

from typing import Any

import pytest

from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import clone_cluster
from playground.clusters.models import Cluster, Node, Pod
from playground.clusters.objects.actions import act_on_nodes
from playground.clusters.objects.apply import apply_documents
from tests.api.conftest import Api
from tests.clusters.builders import make_pod
from tests.tables import table


def test_the_last_change_is_listed_first_and_undone(api: Api, cluster: Cluster) -> None:
    at = f"/clusters/{cluster.public_id}"
    apply_documents(cluster=cluster, objects=[make_pod("new")])
    done = api.post(f"{at}/actions", {"action": "cordon", "nodes": ["n1", "n2"]})
    assert (done.status_code, done.json()) == (200, {"done": "cordon 2 Nodes", "changed": 2, "held": []})
    items = api.get(f"{at}/changes/").json()["items"]
    assert [item["words"] for item in items][:2] == ["cordon 2 Nodes", "create Pod default/new"]
    assert api.get(f"{at}/changes/?limit=1").json()["items"] == items[:1]
    stale = api.post(f"{at}/undo", {"change": items[1]["change"]})
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")
    undone = api.post(f"{at}/undo", {"change": items[0]["change"]})
    assert undone.json() == {"undone": "cordon 2 Nodes", "cycles": 0}
    assert not Node.objects.filter(unschedulable=True).exists()
    assert api.post(f"{at}/undo", {}).json()["undone"] == "create Pod default/new"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    table(__file__, "a_bad_action_is_refused_by_name"),
)
def test_a_bad_action_is_refused_by_name(
    api: Api, cluster: Cluster, body: dict[str, Any], status: int, words: str
) -> None:
    before = Cluster.objects.get(pk=cluster.pk).next_seq
    refused = api.post(f"/clusters/{cluster.public_id}/actions", body)
    problem = refused.json()
    assert (refused.status_code, words in f"{problem['detail']} {problem.get('causes')}") == (status, True)
    assert Cluster.objects.get(pk=cluster.pk).next_seq == before


def test_a_branch_is_applied_to_its_parent(api: Api, cluster: Cluster) -> None:
    branch = clone_cluster(cluster=cluster, name="what if")
    at = f"/clusters/{branch.public_id}/apply-to-parent"
    assert api.post(at).status_code == 409
    apply_documents(cluster=branch, objects=[make_pod("new")])
    applied = api.post(at)
    assert applied.json() == {
        "parent": cluster.public_id,
        "done": 'apply the edits of branch "what if"',
        "edits": 1,
    }
    assert Pod.objects.filter(cluster=cluster, name="new").exists()
    again = api.post(at)
    assert (again.status_code, "is in the parent by now" in again.json()["detail"]) == (409, True)
    lone = api.post(f"/clusters/{cluster.public_id}/apply-to-parent")
    assert (lone.status_code, "is no branch of another cluster" in lone.json()["detail"]) == (409, True)


def test_a_branch_is_compared_with_its_parent(api: Api, cluster: Cluster, visit: Any) -> None:
    branch = clone_cluster(cluster=cluster, name="what if")
    act_on_nodes(cluster=branch, action="cordon", nodes=["n1"])
    for each in (cluster, branch):
        apply_documents(cluster=each, objects=[make_pod("new")])
        request_run(cluster=each)
        visit(each)
    found = api.get(f"/clusters/{branch.public_id}/difference").json()
    was, now = (Pod.objects.get(cluster=each, name="new").node_name for each in (cluster, branch))
    assert now == "n2"
    assert found["counts"] == ({"moved": 1} if was == "n1" else {})
    assert (found["first"] is not None) == (was == "n1")
    assert found["decisions"] >= 1 and found["parent"] == cluster.public_id
    lone = api.get(f"/clusters/{cluster.public_id}/difference")
    assert (lone.status_code, lone.json()["reason"]) == (409, "Conflict")
