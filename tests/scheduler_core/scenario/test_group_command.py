"""`group`: the story of a pod group of a scenario, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler_core.cli.main import main
from tests.tables import table


def scenario(tmp_path: Path, *, gates: bool = True, nodes: int = 1) -> str:
    objects = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{place}"},
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        }
        for place in range(nodes)
    ]
    objects.append(table(__file__, "scenario"))
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "3"}}}
    objects += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"train-{place}", "namespace": "ml"},
            "spec": {"containers": [container], "schedulingGroup": {"podGroupName": "train"}},
        }
        for place in range(2)
    ]
    document = {
        "apiVersion": "scheduling.playground/v1",
        "kind": "Scenario",
        "name": "gang",
        "title": "A gang on too few nodes",
        "kubernetesRelease": "1.36",
        **({"featureGates": {"GenericWorkload": True, "GangScheduling": True}} if gates else {}),
        "objects": objects,
        "steps": [{"run": "idle"}],
    }
    path = tmp_path / "gang.yaml"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_group_that_waits_is_told_with_what_would_place_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["group", scenario(tmp_path), "ml/train"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "ml/train waits: 1 of the 2 members it needs fit at once, 1 too few."
    assert "  -> Add 1 node like node-0: 2 members fit." in said
    assert main(["group", scenario(tmp_path, nodes=2), "ml/train", "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert story["scheduled"] == 2
    assert story["condition"]["reason"] == "Scheduled"


def test_what_cannot_be_told_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["group", scenario(tmp_path), "ml/other"]) == 2
    assert 'podgroups.scheduling.k8s.io "other" not found' in capsys.readouterr().err
    assert main(["group", scenario(tmp_path, gates=False), "ml/train"]) == 2
    assert "GenericWorkload of 1.36 is off" in capsys.readouterr().err
