"""Autoscalers and the descheduler in a site's cluster: whatever is done to it, the same is decided again."""

import pytest

from playground.clusters.history.undo import undo
from playground.clusters.lifecycle import reset_cluster
from playground.clusters.models import Cluster, ControllerRecord, Cycle, Node, Pod
from playground.clusters.objects.apply import apply_documents
from playground.engine.scenarios import run_fresh
from playground.scenarios.services.forking import make_text
from playground.scenarios.services.moments import branch
from tests.clusters.builders import make_cluster, make_pod, run
from tests.faults.people import deployment, machine, programs, scaler

pytestmark = pytest.mark.django_db


def decided(cluster: Cluster) -> list[str]:
    return list(Cycle.objects.filter(cluster=cluster).order_by("number").values_list("digest", flat=True))


def placed(cluster: Cluster) -> list[tuple[str, str]]:
    pods = Pod.objects.filter(cluster=cluster).order_by("name").values_list("name", "node_name")
    return [*pods, *Node.objects.filter(cluster=cluster).order_by("name").values_list("name", "name")]


def runs(cluster: Cluster) -> list[tuple[int, str, str, str, list[str]]]:
    """The kept runs of controllers: when, of which, and what they did."""
    rows = ControllerRecord.objects.filter(cluster=cluster).order_by("pk")
    return [
        (
            row.at_ns - cluster.start_ns,
            row.controller,
            row.subject,
            row.effect,
            [str(act) for act in row.run.did],
        )
        for row in rows
    ]


def begun() -> Cluster:
    """Four pods of a loaded Deployment in three minutes, one of which waited for a node that was added."""
    web = deployment("web", 2, cpu="1500m")
    web["metadata"]["annotations"] = {"playground.dev/load": "0s cpu=2\n60s cpu=9\n3m cpu=1"}
    cluster = make_cluster(programs(), machine("n0"), web, scaler("web"))
    run(cluster, "3m")
    assert Node.objects.filter(cluster=cluster, name__startswith="web-new-").exists()
    return cluster


def test_undone_reset_shared_and_branched_clusters_decide_the_same() -> None:
    cluster = begun()
    now, so_far = placed(cluster), runs(cluster)
    run(cluster, "9m")
    whole, later, all_runs = decided(cluster), placed(cluster), runs(cluster)
    assert all_runs[: len(so_far)] == so_far != all_runs
    assert later != now, "the load fell: a node and pods went"

    edited = begun()
    assert decided(edited) == whole[: len(decided(edited))]
    apply_documents(cluster=edited, objects=[make_pod(f"more-{n}", "2") for n in range(4)])
    run(edited, "2m")
    assert placed(edited) != now
    for _ in ("the run", "the pods"):
        undo(cluster=edited)
    edited.refresh_from_db()
    assert (placed(edited), runs(edited)) == (now, so_far)
    run(edited, "9m")
    assert (decided(edited), placed(edited), runs(edited)) == (whole, later, all_runs)

    shared = run_fresh(make_text(cluster=cluster).text)
    assert [cycle.digest for cycle in shared.cycles] == whole
    told = [
        (one.at_ns - cluster.start_ns, one.controller, one.subject, [*map(str, one.did)])
        for one in shared.timeline.runs
    ]
    assert told == [(*run[:3], run[4]) for run in all_runs], "a share shows them"

    first, second = (branch(cluster=cluster, cycle=len(whole) // 2) for _ in range(2))
    for one in (first, second):
        run(one, "5m")
    assert decided(first) == decided(second) and placed(first) == placed(second)
    assert runs(first) == runs(second)

    cluster = reset_cluster(cluster=cluster)
    assert runs(cluster) == []
    run(cluster, "12m")
    assert (decided(cluster), placed(cluster), runs(cluster)) == (whole, later, all_runs)
