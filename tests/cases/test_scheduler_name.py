"""`scheduler-name.yaml`: a pod of another scheduler waits with the site's sentence."""

import json
from pathlib import Path

import pytest
import yaml

from playground.engine.columns import why_it_waits
from scheduler_core.cli.main import main
from scheduler_core.releases import DEFAULT
from scheduler_core.schema.tables import table_of
from tests.manifests import scenario

CASE = Path(__file__).parent / "data" / "scheduler-name.yaml"
ODD = table_of(CASE.read_text().partition("---")[0])
SENTENCE = (
    'spec.schedulerName "my-scheduler" is no profile of this cluster\'s scheduler (it has default-scheduler)'
)


def test_scheduler_name_simulate_says_the_sites_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(CASE), "--json"]) == 1
    waiting = {one["pod"]: one["message"] for one in json.loads(capsys.readouterr().out)["waiting"]}
    assert waiting["default/odd"] == SENTENCE == why_it_waits(ODD, ["default-scheduler"])
    assert waiting["default/plain"] == "no nodes available to schedule pods"


def test_scheduler_name_replay_gives_each_pending_pod_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gated = {"metadata": {"name": "gated"}, "spec": {**ODD["spec"], "schedulingGates": [{"name": "a.b/c"}]}}
    del gated["spec"]["schedulerName"]
    document = scenario(objects=[*yaml.safe_load_all(CASE.read_text()), {**ODD, **gated}])
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(document))
    assert main(["replay", str(file), "--json"]) == 0
    waiting = json.loads(capsys.readouterr().out)["waiting"]
    assert waiting == {
        "default/odd": SENTENCE,
        "default/plain": "no nodes available to schedule pods",
        "default/gated": "waiting for scheduling gates: [a.b/c]",
    }
    assert main(["replay", str(file)]) == 0
    said = capsys.readouterr().out
    for pod, reason in waiting.items():
        assert f"  1 waits: {reason}\n    {pod}\n" in said


def test_every_command_decides_a_dump_as_the_default_release_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:

    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}
    dump = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", **node}]}
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    title = f"Kubernetes {DEFAULT.name}"
    main(["simulate", str(file)])
    assert title in capsys.readouterr().out
    main(["plan", str(file), "any-node"])
    assert f"Decided as {title}." in capsys.readouterr().out
    main(["plan", "--release", "1.35", str(file), "any-node"])
    assert "Decided as Kubernetes 1.35." in capsys.readouterr().out
    main(["diff", str(file), str(file)])
    assert f"as kube-scheduler {DEFAULT.patch}" in capsys.readouterr().out
