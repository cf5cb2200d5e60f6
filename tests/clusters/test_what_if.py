"""One action on many pods or nodes, and a branch's edits applied to its parent."""

import json
from typing import Any

import pytest

from playground.clusters.branches import apply_branch, edits_of
from playground.clusters.drive.config import set_assumed_expiry, set_config, set_release
from playground.clusters.errors import Conflict, InvalidInput
from playground.clusters.history.undo import last_change, undo
from playground.clusters.kinds import named
from playground.clusters.models import Cluster, LogEntry, Node, Pod
from playground.clusters.objects import actions
from playground.clusters.objects.actions import act_on_nodes, act_on_pods
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.write import create_object, delete_object, patch_object, set_cordon
from playground.scenarios.services.moments import branch
from tests.clusters.builders import make_cluster, make_node, make_pod, run, same_objects, stored, work
from tests.manifests import budget, deployment, scheduler_config
from tests.tables import table

pytestmark = pytest.mark.django_db

DEPLOYMENT = deployment("api", 2)
BUDGET = budget(minAvailable=1)


def a_cluster() -> Cluster:
    pods = [make_pod(f"web-{number}") for number in range(3)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    cluster = make_cluster(make_node("n1"), make_node("n2"), *pods, DEPLOYMENT)
    run(cluster)
    return cluster


def nodes(cluster: Cluster) -> dict[str, Any]:
    return {row.name: row.manifest for row in Node.objects.filter(cluster=cluster)}


# ---- actions on many


@pytest.mark.dialect
def test_many_pods_are_deleted_by_one_change_that_is_undone_at_once() -> None:
    cluster = a_cluster()
    before = stored(cluster)
    acted = act_on_pods(cluster=cluster, action="delete", pods=["default/web-0", "default/web-2"])
    assert (acted.words, acted.n_changed) == ("delete 2 Pods", 2)
    assert set(Pod.objects.filter(terminating=True).values_list("name", flat=True)) == {"web-0", "web-2"}
    last = last_change(cluster)
    assert last is not None and last.words == "delete 2 Pods"
    undo(cluster=cluster)
    assert same_objects(stored(cluster), before)


@pytest.mark.parametrize(
    ("action", "value", "words", "changed"),
    table(__file__, "nodes_are_changed_alike_and_back_again"),
)
def test_nodes_are_changed_alike_and_back_again(
    action: str, value: str, words: str, changed: dict[str, Any]
) -> None:
    cluster = a_cluster()
    before = stored(cluster)
    acted = act_on_nodes(cluster=cluster, action=action, nodes=["n1", "n2"], value=value)
    assert (acted.words, acted.n_changed) == (words, 2)
    assert {name: {"spec": node["spec"]} for name, node in nodes(cluster).items()} == dict.fromkeys(
        ("n1", "n2"), changed
    )
    back = {"cordon": ("uncordon", ""), "taint": ("taint", "team:NoSchedule-")}[action]
    act_on_nodes(cluster=cluster, action=back[0], nodes=["n1", "n2"], value=back[1])
    assert [node["spec"] for node in nodes(cluster).values()] == [{}, {}]
    for _ in range(2):
        undo(cluster=cluster)
    assert same_objects(stored(cluster), before)


def test_labels_are_set_and_taken_off() -> None:
    cluster = a_cluster()
    act_on_nodes(cluster=cluster, action="label", nodes=["n1", "n2"], value="disk=ssd")
    assert [node["metadata"]["labels"]["disk"] for node in nodes(cluster).values()] == ["ssd", "ssd"]
    act_on_nodes(cluster=cluster, action="label", nodes=["n2"], value="disk-")
    assert "disk" not in nodes(cluster)["n2"]["metadata"]["labels"]
    act_on_nodes(cluster=cluster, action="delete", nodes=["n2"])
    assert list(nodes(cluster)) == ["n1"]


def test_a_drain_cordons_evicts_what_budgets_let_go_and_names_what_they_hold() -> None:
    cluster = a_cluster()
    apply_documents(cluster=cluster, objects=[BUDGET])
    run(cluster)
    acted = act_on_nodes(cluster=cluster, action="drain", nodes=["n1", "n2"])
    assert acted.words == "drain 2 Nodes"
    assert [reason for _, reason in acted.held] == [
        "Cannot evict pod as it would violate the pod's disruption budget."
    ]
    assert Pod.objects.filter(terminating=True).count() == 4  # two of web, two of api
    assert all(node["spec"]["unschedulable"] for node in nodes(cluster).values())
    assert undo(cluster=cluster).words == "drain 2 Nodes"
    assert not Pod.objects.filter(terminating=True).exists()


def test_a_drain_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST_EVICTIONS", 2)
    cluster = a_cluster()
    with pytest.raises(InvalidInput, match="hold more than 2 pods: drain fewer at once"):
        act_on_nodes(cluster=cluster, action="drain", nodes=["n1", "n2"])
    assert not any(node["spec"].get("unschedulable") for node in nodes(cluster).values())


# ---- a branch's edits, applied to its parent


def branched(cluster: Cluster) -> Cluster:
    made = branch(cycle=cluster.next_cycle - 1, cluster=cluster, name="what if")
    work(made)
    return made


def test_all_kinds_of_edits_are_applied_as_one_change_of_the_parent() -> None:
    parent = a_cluster()
    before = stored(parent)
    made = branched(parent)
    assert not edits_of(made).exists()
    set_cordon(cluster=made, node="n1", unschedulable=True)
    apply_documents(cluster=made, objects=[make_node("n3"), make_pod("new", namespace="team")])
    api = {"kind": named("Deployment"), "namespace": "default", "name": "api"}
    patch_object(cluster=made, **api, patch={"spec": {"replicas": 3}})
    delete_object(cluster=made, kind=named("Pod"), namespace="default", name="web-1")
    set_release(cluster=made, name="1.35")
    set_config(cluster=made, config=scheduler_config())
    set_assumed_expiry(cluster=made, after_ns=30 * 10**9)
    run(made)

    applied = apply_branch(branch=made, parent=parent)

    assert applied.words == 'apply the edits of branch "what if"'
    assert nodes(parent)["n1"]["spec"]["unschedulable"] and "n3" in nodes(parent)
    assert Pod.objects.get(cluster=parent, name="new").namespace == "team"
    assert Pod.objects.get(cluster=parent, name="web-1").terminating
    assert (parent.kubernetes_release, parent.assumed_expiry_ns) == ("1.35", 30 * 10**9)
    assert parent.config is not None
    run(parent)
    assert placed(parent) == placed(made)
    while undo(cluster=parent).words != applied.words:
        pass
    assert same_objects(stored(parent), before)


def placed(cluster: Cluster) -> dict[str, str]:
    return dict(Pod.objects.filter(cluster=cluster).values_list("name", "node_name"))


def test_an_owner_that_is_deleted_takes_its_pods_along_in_the_parent_too() -> None:
    parent = a_cluster()
    made = branched(parent)
    delete_object(cluster=made, kind=named("Deployment"), namespace="default", name="api")
    create_object(cluster=made, manifest=make_pod("shortlived"))
    delete_object(cluster=made, kind=named("Pod"), namespace="default", name="shortlived")
    apply_branch(branch=made, parent=parent)
    run(parent)
    assert set(placed(parent)) == {"web-0", "web-1", "web-2"}


def test_an_edit_keeps_what_the_parent_changed_elsewhere_in_the_object() -> None:
    parent = a_cluster()
    made = branched(parent)
    set_cordon(cluster=made, node="n1", unschedulable=True)
    act_on_nodes(cluster=parent, action="label", nodes=["n1"], value="disk=ssd")
    with pytest.raises(Conflict, match='"test" is no branch of "what if"'):
        apply_branch(branch=parent, parent=made)
    apply_branch(branch=made, parent=parent)
    assert nodes(parent)["n1"]["spec"] == {"unschedulable": True}
    assert nodes(parent)["n1"]["metadata"]["labels"]["disk"] == "ssd"


CONFLICTS = {
    "another value": (
        lambda made: act_on_nodes(cluster=made, action="label", nodes=["n1"], value="disk=ssd"),
        lambda parent: act_on_nodes(cluster=parent, action="label", nodes=["n1"], value="disk=hdd"),
        r"Node n1 has another metadata.labels.disk in the parent than where the branch was made; nothing was applied",
    ),
    "gone": (
        lambda made: set_cordon(cluster=made, node="n1", unschedulable=True),
        lambda parent: act_on_nodes(cluster=parent, action="delete", nodes=["n1"]),
        "Node n1, which the branch changes, is not in the parent",
    ),
    "there already": (
        lambda made: apply_documents(cluster=made, objects=[make_node("n3")]),
        lambda parent: apply_documents(cluster=parent, objects=[make_node("n3")]),
        "Node n3, which the branch creates, is in the parent by now",
    ),
    "deleted twice": (
        lambda made: act_on_nodes(cluster=made, action="delete", nodes=["n2"]),
        lambda parent: act_on_nodes(cluster=parent, action="delete", nodes=["n2"]),
        "Node n2, which the branch deletes, is not in the parent",
    ),
    "another release": (
        lambda made: set_release(cluster=made, name="1.35"),
        lambda parent: set_release(cluster=parent, name="1.36"),
        "the parent follows another release of Kubernetes by now",
    ),
    "nothing": (lambda made: None, lambda parent: None, 'nothing was changed in "what if"'),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_where_the_parent_has_changed_in_that_nothing_is_applied(name: str) -> None:
    edit, change, words = CONFLICTS[name]
    parent = a_cluster()
    made = branched(parent)
    if name != "nothing":
        apply_documents(cluster=made, objects=[make_pod("first")])
    edit(made)
    change(parent)
    before, seq = json.dumps(nodes(parent)), LogEntry.objects.filter(cluster=parent).count()
    with pytest.raises(Conflict, match=words):
        apply_branch(branch=made, parent=parent)
    assert not Pod.objects.filter(cluster=parent, name="first").exists()
    assert (json.dumps(nodes(parent)), LogEntry.objects.filter(cluster=parent).count()) == (before, seq)


def test_a_pod_that_was_deleted_and_made_anew_is_so_in_the_parent_too() -> None:
    parent = a_cluster()
    made = branched(parent)
    act_on_pods(cluster=made, action="delete", pods=["default/web-0"])
    run(made)
    create_object(cluster=made, manifest=make_pod("web-0", "2"))
    apply_branch(branch=made, parent=parent)
    pod = Pod.objects.get(cluster=parent, name="web-0")
    assert (pod.cpu_milli, pod.node_name, pod.terminating) == (2000, "", False)
