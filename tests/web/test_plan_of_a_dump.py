"""A dump of 200 nodes and 3,000 pods with a cloud provider's names: each question by page, REST and command line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from playground.clusters import questions
from playground.clusters.drive.advance import advance
from playground.clusters.drive.memory import EngineMemory
from playground.clusters.drive.runs import request_run
from playground.clusters.models import Cluster, Question, Run
from playground.clusters.objects.apply import apply_documents
from scheduler_core.cli import plan
from scheduler_core.cli.main import main
from tests.clusters.builders import make_cluster
from tests.scheduler_core.whatif import cloud
from tests.web.test_advice_pages import page

ZONE = "topology.kubernetes.io/zone"
NODE = "ip-10-0-128-{}.eu-central-1.compute.internal"
Asked = tuple[dict[str, Any], list[str]]

# What a question costs grows with the cluster: of the large one those that a person waits for, of a small one the rest.
OF_200: list[Asked] = [
    (
        {"ask": "drain", "nodes": [NODE.format(3), NODE.format(150)]},
        ["drain", NODE.format(3), NODE.format(150)],
    ),
    ({"ask": "lose", "nodes": [NODE.format(7)]}, ["lose", NODE.format(7)]),
    ({"ask": "any-domain", "label": ZONE}, ["any-domain", "-l", ZONE]),
    ({"ask": "headroom"}, ["headroom"]),
]
OF_20: list[Asked] = [
    ({"ask": "any-node"}, ["any-node"]),
    ({"ask": "backlog"}, ["backlog"]),
    ({"ask": "consolidate"}, ["consolidate"]),
]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.nightly("scheduler_core/whatif/", "scheduler_core/cli/", "playground/engine/")
@pytest.mark.parametrize(
    ("size", "asked"), [((200, 3_000, 3), OF_200), ((20, 150, 3), OF_20)], ids=["200-nodes", "20-nodes"]
)
def test_page_rest_and_command_line_give_the_same_bytes(
    client: Client,
    db: None,
    wakes: list[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int, int],
    asked: list[Asked],
) -> None:
    cluster, memory = make_cluster(), EngineMemory()
    fill(cluster, cloud.cluster(*size), memory)
    cluster.refresh_from_db()
    # The file is read once; each question is a command of its own all the same.
    monkeypatch.setattr(plan, "_cluster", cache(plan._cluster))
    dump = tmp_path / "dump.json"
    for params, arguments in asked:
        row = ask(client, cluster, params, memory)
        html = page(client, "plan-answer", cluster.public_id, row.public_id)
        assert row.answer is not None and row.answer["verdict"] in html.replace("<wbr>", ""), params
        again = client.post(
            f"/api/v1/clusters/{cluster.public_id}/plan/", json.dumps(params), content_type="application/json"
        )
        assert again.json()["id"] == row.public_id
        body = client.get(f"{again.json()['url']}answer.json").content.decode()
        if not dump.exists():
            made = client.post(reverse("web:plan-share", args=[cluster.public_id, row.public_id]))
            dump.write_bytes(client.get(f"{made['Location']}cluster.json").content)
        capsys.readouterr()
        main(["plan", "--json", "--release", "1.34", str(dump), *arguments])
        assert capsys.readouterr().out == body, params


def fill(cluster: Cluster, objects: list[dict[str, Any]], memory: EngineMemory) -> None:
    """Bring the objects in, and have what waits decided."""
    apply_documents(cluster=cluster, objects=objects)
    run = request_run(cluster=cluster, until="idle")
    while run.state in Run.OPEN:  # a visit of a worker has an end, however slow the machine is
        advance(cluster_id=cluster.pk, memory=memory)
        run.refresh_from_db()


def ask(client: Client, cluster: Cluster, params: dict[str, Any], memory: EngineMemory) -> Question:
    """Ask by the form, and have a worker answer."""
    fields = {key: " ".join(value) if isinstance(value, list) else value for key, value in params.items()}
    response = client.post(reverse("web:plan", args=[cluster.public_id]), fields)
    row = Question.objects.get(public_id=response["Location"].rstrip("/").rpartition("/")[2])
    questions.answer(question_id=row.pk, memory=memory)
    row.refresh_from_db()
    assert row.state == Question.State.DONE, (params, row.error)
    return row


def test_what_a_pod_of_a_dump_takes_is_the_same_by_page_rest_and_command_line(
    client: Client,
    db: None,
    wakes: list[Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster, memory, objects = make_cluster(), EngineMemory(), cloud.cluster(20, 150, 3)
    fill(cluster, objects, memory)
    stays = cluster.pods.filter(node_name="").first()
    assert stays is not None
    asked = client.post(
        f"/api/v1/clusters/{cluster.public_id}/fix",
        {"pod": f"{stays.namespace}/{stays.name}"},
        content_type="application/json",
    )
    row = Question.objects.get(public_id=asked.json()["id"])
    questions.answer(question_id=row.pk, memory=memory)
    by_rest = client.get(asked.json()["url"]).json()["answer"]
    html = page(client, "fix", cluster.public_id, stays.namespace, stays.name).replace("<wbr>", "")
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    main(["plan", "--json", "--release", "1.34", str(dump), "fix", f"{stays.namespace}/{stays.name}"])
    by_command = json.loads(capsys.readouterr().out)
    assert by_rest["fixes"] and _without_draws(by_rest) == _without_draws(by_command)
    for found in by_command["fixes"]:
        assert found["title"].replace("'", "&#x27;") in html


def _without_draws(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what the next cycle's draw decides among nodes as good, and without the objects themselves."""
    kept = {key: answer[key] for key in ("subject", "pods", "headline", "causes", "nNodes", "tried")}
    fixes = [
        {key: one[key] for key in ("kind", "what", "title", "placed", "of", "price")}
        for one in answer["fixes"]
    ]
    return kept | {"fixes": fixes}
