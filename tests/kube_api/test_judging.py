"""Three schedulers of other people decide over HTTP, and each decision stands beside ours."""

from collections import Counter
from typing import Any

import pytest

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.lifecycle import reset_cluster
from playground.clusters.models import Cluster, ForeignDecision, LogEntry, Pod, Question
from playground.clusters.objects.apply import apply_documents
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.kube_api.conftest import PODS, Kube, Work
from tests.kube_api.schedulers import RECORDED, Faulty, Packing, pass_time, replay


def judge(cluster: Cluster) -> list[ForeignDecision]:
    """Have all decisions judged, as a worker does."""
    while (asked := questions.ask_for_verdicts(cluster)) is not None:
        assert questions.answer(question_id=asked.pk, memory=EngineMemory()) == Question.State.DONE
    rows = ForeignDecision.objects.filter(cluster=cluster)
    return list(rows.order_by("seq", "pk"))


def told(rows: list[ForeignDecision]) -> list[tuple[str, ...]]:
    return [(row.pod_name, row.kind, row.node, row.verdict) for row in rows]


@pytest.fixture
def real(db: None, wakes: list[Any]) -> Cluster:
    return make_cluster(*RECORDED["d-preemption"]["objects"])


def test_the_recorded_real_scheduler_agrees_in_all_it_decided(
    client: Any, real: Cluster, visit: Work
) -> None:
    visit(real)
    replay(Kube(client, f"/k8s/{real.public_id}"), "d-preemption", lambda: pass_time(real, visit))
    rows = judge(real)
    assert told(rows) == [
        ("filler-1", "bind", "n2", "agree"),
        ("guarded-1", "bind", "n1", "agree"),
        ("guarded-2", "bind", "n1", "agree"),
        ("filler-2", "bind", "n2", "agree"),
        ("vip-1", "preempt", "n2", "agree"),
        ("vip-1", "no-node", "", "agree"),
        ("vip-1", "bind", "n2", "agree"),
        ("vip-2", "preempt", "n1", "agree"),
        ("vip-2", "bind", "n1", "agree"),
    ]
    stamps = {
        condition["lastTransitionTime"]
        for row in Pod.objects.filter(cluster=real, name__startswith="vip")
        for condition in row.manifest["status"]["conditions"]
    }
    # The recording's clock is of another year than the cluster's.
    assert stamps and all(stamp.startswith("2027-") for stamp in stamps), stamps
    preemption = rows[4]
    assert preemption.victims == ["default/filler-2", "default/filler-1"]
    assert sorted(preemption.our_victims) == ["default/filler-1", "default/filler-2"]
    assert {row.program for row in rows} == {"kube-scheduler/v1.34.1"}
    assert {row.scheduler for row in rows} == {"byo-scheduler"}
    assert all(row.trace for row in rows)


def test_the_recorded_real_scheduler_agrees_in_a_dozen_binds(client: Any, wakes: list[Any], db: None) -> None:
    cluster = make_cluster(*RECORDED["b-bind"]["objects"])
    replay(Kube(client, f"/k8s/{cluster.public_id}"), "b-bind")
    rows = judge(cluster)
    counts = Counter(row.verdict for row in rows)
    assert set(counts) <= {"agree", "tie"}, [(row.pod, row.node, row.our_node, row.verdict) for row in rows]
    assert counts.total() == 12


def packed(*pods: dict[str, Any]) -> Cluster:
    nodes = [make_node(name, cpu="4") for name in ("n1", "n2", "n3")]
    return make_cluster(*nodes, make_pod("there", cpu="2", nodeName="n1"), *pods)


def test_a_packing_scheduler_differs_by_the_plugin_that_spreads(
    client: Any, db: None, wakes: list[Any]
) -> None:
    cluster = packed(*(make_pod(name, cpu=cpu, schedulerName="bin-packer")
                       for name, cpu in (("a", "1"), ("b", "1"), ("c", "4"), ("d", "3"), ("e", "9"))))  # fmt: skip
    Packing(Kube(client, f"/k8s/{cluster.public_id}")).decide()
    rows = judge(cluster)
    assert told(rows) == [
        ("a", "bind", "n1", "different"),
        ("b", "bind", "n1", "different"),
        ("c", "bind", "n2", "agree" if rows[2].our_node == "n2" else "tie"),
        ("d", "bind", "n3", "agree"),
        ("e", "no-node", "", "agree"),
    ]
    first = rows[0]
    assert first.plugin == "NodeResourcesFit" and first.points < first.our_points
    assert first.our_node in ("n2", "n3") and first.n_tied == 2 and first.n_feasible == 3
    assert first.engine_version


def test_a_faulty_scheduler_binds_where_a_filter_says_no(client: Any, db: None, wakes: list[Any]) -> None:
    cluster = packed(*(make_pod(name, cpu="3", schedulerName="faulty") for name in ("a", "b")))
    Faulty(Kube(client, f"/k8s/{cluster.public_id}")).decide()
    first, second = judge(cluster)
    assert (first.node, second.node) == ("n3", "n3")
    assert (second.verdict, second.plugin, second.reasons) == (
        "infeasible", "NodeResourcesFit", ["Insufficient cpu"],
    )  # fmt: skip


def test_verdicts_do_not_depend_on_batches_or_on_checkpoints(
    client: Any, real: Cluster, visit: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(real)
    replay(Kube(client, f"/k8s/{real.public_id}"), "d-preemption", lambda: pass_time(real, visit))
    at_once = [(row.verdict, row.our_node, bytes(row.trace or b"")) for row in judge(real)]
    ForeignDecision.objects.update(verdict="", trace=None)
    monkeypatch.setattr("playground.clusters.foreign.decisions.CHUNK_S", 0.0)
    one_by_one = [(row.verdict, row.our_node, bytes(row.trace or b"")) for row in judge(real)]
    ForeignDecision.objects.update(verdict="", trace=None)
    real.checkpoints.all().delete()
    assert (
        [(row.verdict, row.our_node, bytes(row.trace or b"")) for row in judge(real)] == at_once == one_by_one
    )


def test_a_scheduler_that_makes_room_by_itself_is_told_as_a_preemption(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    apply_documents(cluster=cluster, objects=[make_pod("big", cpu="4", schedulerName="mine")])
    for name in ("x", "y"):
        apply_documents(cluster=cluster, objects=[make_pod(name, cpu="3", nodeName="n1")])
    agent = "my-scheduler/1.0"
    gone = kube.send("DELETE", f"{PODS}/x", {"gracePeriodSeconds": 0}, user_agent=agent)
    assert gone.status_code == 200
    binding = {"metadata": {"name": "big"}, "target": {"name": "n1"}}
    assert kube.send("POST", f"{PODS}/big/binding", binding, user_agent=agent).status_code == 201
    rows = judge(cluster)
    assert [(row.kind, row.victims, row.verdict, row.our_node) for row in rows] == [
        ("preempt", ["default/x"], "different", "n2"),
        ("bind", [], "infeasible", "n2"),
    ]


def test_what_people_and_our_own_engine_do_is_no_other_schedulers_decision(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    request_run(cluster=cluster)
    visit(cluster)
    assert kube.send("DELETE", f"{PODS}/p1", user_agent="kubectl/v1.34.1").status_code == 200
    apply_documents(cluster=cluster, objects=[make_pod("p2", schedulerName="mine")])
    patch = {"status": {"nominatedNodeName": "n1", "conditions": []}}
    assert kube.patch(f"{PODS}/p2/status", patch).status_code == 200
    assert not ForeignDecision.objects.exists()
    assert questions.ask_for_verdicts(cluster) is None


def test_a_binding_that_is_refused_or_dry_leaves_no_decision(kube: Kube, cluster: Cluster) -> None:
    binding = {"metadata": {"name": "p1"}, "target": {"name": "n1"}}
    dry = kube.send("POST", f"{PODS}/p1/binding?dryRun=All", binding, user_agent="mine/1")
    assert dry.status_code == 201
    assert not ForeignDecision.objects.exists()
    assert kube.send("POST", f"{PODS}/p1/binding", binding, user_agent="mine/1 \n\x07").status_code == 201
    assert kube.send("POST", f"{PODS}/p1/binding", binding, user_agent="mine/1").status_code == 409
    assert [row.author.strip() for row in ForeignDecision.objects.all()] == ["mine/1"]
    entry = LogEntry.objects.filter(cluster=cluster, object_kind="Pod").order_by("-seq")[0]
    assert entry.payload["by"].startswith("mine/1")


def test_a_reset_forgets_decisions_and_leaves_nothing_bound(
    kube: Kube, cluster: Cluster, visit: Work
) -> None:
    binding = {"metadata": {"name": "p1"}, "target": {"name": "n1"}}
    assert kube.send("POST", f"{PODS}/p1/binding", binding, user_agent="mine/1").status_code == 201
    visit(cluster)
    reset_cluster(cluster=cluster)
    assert not ForeignDecision.objects.exists()
    pod = kube.get(f"{PODS}/p1").json()
    assert "nodeName" not in pod["spec"]
    assert pod["status"].get("phase", "Pending") == "Pending"
