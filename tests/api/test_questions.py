"""Questions over the API: 202 and a place to poll, one answer for equal questions, problems like everywhere."""

from typing import Any

import pytest

from playground.clusters import questions
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.models import Cluster, Question
from playground.clusters.objects.apply import apply_documents
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.tables import table

POD = table(__file__, "POD")


@pytest.fixture
def cluster(db: None, wakes: list[Any]) -> Cluster:
    made = make_cluster(
        make_node("n1", cpu="2"),
        make_node("n2", cpu="2"),
        make_pod("small", cpu="1"),
        make_pod("large", cpu="3"),
    )
    run(made)
    return made


def answer(api: Api, asked: Any) -> dict[str, Any]:
    assert asked.status_code == 202, asked.content
    assert asked["Location"] == asked.json()["url"]
    questions.answer(question_id=Question.objects.get(public_id=asked.json()["id"]).pk, memory=EngineMemory())
    found = api.get(asked.json()["url"].removeprefix("/api/v1"))
    assert found.status_code == 200
    body: dict[str, Any] = found.json()
    assert (body["state"], body["error"]) == ("done", None)
    return body


def test_every_question_is_asked_polled_and_answered(api: Api, cluster: Cluster) -> None:
    base = f"/clusters/{cluster.public_id}"
    edits = answer(api, api.post(f"{base}/fix", {"pod": "default/large"}))
    assert "lower-request" in {fix["what"] for fix in edits["answer"]["fixes"]}
    assert (edits["stale"], edits["resourceVersion"]) == (False, str(cluster.last_seq))
    why = answer(api, api.post(f"{base}/pods/default/large/why-not?node=n1"))
    assert why["answer"]["rejectedBy"] == "NodeResourcesFit"
    number = api.get(f"{base}/cycles/?pod=default/small").json()["items"][-1]["cycle"]
    weights = answer(api, api.post(f"{base}/cycles/{number}/weights"))
    assert weights["answer"]["plugins"]
    assert weights["resourceVersion"] is None
    then = answer(api, api.post(f"{base}/cycles/{number}/why-not/?node=n1"))
    assert then["answer"]["cycle"] == number
    tried = answer(api, api.yaml(f"{base}/try", POD))
    assert tried["answer"]["outcome"] == "bound"


def test_the_answer_of_an_equal_question_is_there_at_once(api: Api, cluster: Cluster) -> None:
    path, asked = f"/clusters/{cluster.public_id}/fix", {"pod": "default/large"}
    first = answer(api, api.post(path, asked))
    again = api.post(path, asked).json()
    assert (again["id"], again["state"]) == (first["id"], "done")
    apply_documents(cluster=cluster, objects=[make_node("n3", cpu="8")])
    assert api.get(first["url"].removeprefix("/api/v1")).json()["stale"] is True
    assert api.post(path, asked).json()["id"] != first["id"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    table(__file__, "what_cannot_be_asked_is_a_problem"),
)
def test_what_cannot_be_asked_is_a_problem(
    api: Api, cluster: Cluster, path: str, status: int, reason: str
) -> None:
    path, _, pod = path.partition(" ")
    full, body = f"/clusters/{cluster.public_id}/{path}", {"pod": pod} if pod else None
    found = api.yaml(full, "# nothing") if path == "try" else api.post(full, body)
    assert (found.status_code, found.json()["reason"]) == (status, reason)
    assert found["Content-Type"] == "application/problem+json"


def test_no_web_process_runs_a_cycle(api: Api, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a cycle was run in the web process")

    monkeypatch.setattr("scheduler_core.schedule_one.Algorithm.schedule", never)
    base = f"/clusters/{cluster.public_id}"
    for path in ("fix", "cycles/1/weights", "seeds"):
        assert api.post(f"{base}/{path}").status_code == 202
    assert api.yaml(f"{base}/try", POD).status_code == 202
