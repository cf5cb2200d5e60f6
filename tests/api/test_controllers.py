"""What controllers decided is kept beside the log: told by REST and in stories, gone with an undo and a reset."""

import pytest

from playground.clusters import questions
from playground.clusters.drive import commit
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.history.controllers import controllers_now
from playground.clusters.history.story import pod_story
from playground.clusters.history.undo import undo
from playground.clusters.lifecycle import reset_cluster
from playground.clusters.models import Cluster, ControllerRecord, Question
from playground.clusters.objects.apply import apply_documents
from tests.api.conftest import Api
from tests.clusters.builders import make_pod, run, with_programs

pytestmark = pytest.mark.django_db


def kept(cluster: Cluster) -> list[tuple[int, str, str]]:
    rows = ControllerRecord.objects.filter(cluster=cluster).order_by("pk")
    return [(row.at_ns - cluster.start_ns, row.effect, row.mentions) for row in rows]


def test_runs_are_kept_told_and_undone(api: Api, wakes: list[object]) -> None:
    cluster = with_programs(make_pod("web", cpu="3"), make_pod("large", cpu="9"))
    run(cluster, until="30s")
    before = kept(cluster)
    assert [effect for _, effect, _ in before] == ["looks"]
    base = f"/clusters/{cluster.public_id}/controllers"
    found = api.get(f"{base}/").json()
    assert found["state"] == "changing" and list(found["programs"]) == ["cluster-autoscaler"]
    texts = sorted(one["text"].partition(":")[0] for one in found["nodes"])
    assert texts == ["Goes at 1m10s at the earliest", "Stays"]
    assert [(one["pod"], one["helps"]) for one in found["pods"]] == [("default/large", [])]
    assert found["pods"][0]["text"] == "no group helps; web: Insufficient cpu."
    apply_documents(cluster=cluster, objects=[make_pod("more", cpu="3"), make_pod("most", cpu="3")])
    run(cluster, until="90s")
    [grown] = [
        one
        for one in api.get(f"{base}/runs/?about=Pod default/most").json()["items"]
        if one["effect"] == "acts"
    ]
    assert grown["did"][0]["text"] == "web is resized by +1"
    assert grown["did"][0]["options"][0] | {"price": None} == {
        "group": "web", "type": "", "nodes": 1, "pods": 1, "price": None, "leftOver": None, "priority": None,
    }  # fmt: skip
    assert grown["did"][0]["byExpander"] == dict.fromkeys(
        ("least-waste", "most-pods", "least-nodes", "price"), "web"
    )
    assert api.get(grown["url"].removeprefix("/api/v1")).json() == grown
    assert api.get(f"{base}/runs/1{grown['id']}/").status_code == 404
    first = api.get(f"{base}/runs/?limit=1").json()
    assert api.get(first["next"].removeprefix("/api/v1")).json()["items"][0]["id"] < first["items"][0]["id"]
    steps = pod_story(cluster, "default", "most").steps
    told = next(step.detail for step in steps if step.what == "controller")
    assert told.startswith("web is resized by +1")
    assert [step.at_ns for step in steps] == sorted(step.at_ns for step in steps)
    undo(cluster=cluster)
    undo(cluster=cluster)
    assert kept(cluster) == before
    reset_cluster(cluster=cluster)
    assert kept(cluster) == [] and controllers_now(cluster).state == "waiting"
    run(cluster, until="30s")
    assert kept(cluster) == before


def test_as_many_are_kept_however_the_work_is_cut(
    monkeypatch: pytest.MonkeyPatch, wakes: list[object]
) -> None:
    """Batches of one cycle, each by an engine that replays what came since its checkpoint, keep the same runs."""
    pods = [make_pod(f"p{number}", cpu="1500m") for number in range(7)]
    whole, parts = with_programs(*pods), with_programs(*pods)
    run(whole, until="5m")
    for seconds in (5, 20, 35, 60, 60, 120):
        run(parts, until=f"{seconds}s", max_cycles=1)
    assert kept(whole) == kept(parts) and len(kept(whole)) == 3
    monkeypatch.setattr(commit, "MOST_RUNS_OF_A_CLUSTER", 2)
    monkeypatch.setattr(commit, "TRIM_EVERY", 1)
    apply_documents(cluster=whole, objects=[make_pod("last", cpu="3")])
    run(whole, until="5m")
    assert len(kept(whole)) == 2


def test_a_loop_is_looked_for_and_read_and_cancelled(api: Api, wakes: list[object]) -> None:
    cluster = with_programs(make_pod("web", cpu="3"))
    base = f"/clusters/{cluster.public_id}/loops/"
    assert api.get(base).status_code == 404
    assert api.post(base).json()["state"] == "queued"
    assert api.send("DELETE", base).json()["state"] == "cancelled"
    asked = api.post(base).json()
    assert asked["page"].endswith(f"/c/{cluster.public_id}/controllers/")
    questions.answer(question_id=Question.objects.get(public_id=asked["question"]).pk, memory=EngineMemory())
    found = api.get(base).json()
    assert found["state"] == "done" and found["answer"]["loop"] is None
