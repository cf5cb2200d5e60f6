"""Nodes and pods in the short form: what they stand for, at every door, and what is said of mistakes."""

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidManifest
from scheduler_core.objects.reading import read_posted
from scheduler_core.scenario import ScenarioError, dump_scenario, load_scenario, run_scenario, scenario_digest
from tests.tables import table

TEN = table(__file__, "TEN")


def manifests() -> dict[str, dict[str, Any]]:
    return {f"{one.kind}/{one.name}": one.manifest for one in read_posted(TEN)}


def test_it_stands_for_plain_manifests() -> None:
    found = manifests()
    assert [name for name in found if name.startswith("PriorityClass")] == ["PriorityClass/priority-1000"]
    assert found["Node/general-1"] == table(__file__, "it_stands_for_plain_manifests")
    gpu = found["Node/gpu"]
    assert gpu["spec"] == {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    assert gpu["metadata"]["labels"].items() >= {"pool": "gpu", "disk": "ssd"}.items()
    assert gpu["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert found["Pod/web-2"]["spec"] == {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "topology.kubernetes.io/zone",
            }
        ],
    }
    train = found["Pod/train"]["spec"]
    assert train["tolerations"] == [
        {"key": "gpu", "operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
    ]
    assert train["containers"][0]["resources"] == {
        "requests": {"nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert found["Pod/urgent"]["spec"]["priorityClassName"] == "priority-1000"
    assert set(found["Pod/cache"]["spec"]["affinity"]) == {"podAffinity", "podAntiAffinity"}


def test_the_digest_is_of_what_is_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = load_scenario(TEN)
    whole = load_scenario(dump_scenario(scenario))
    assert scenario_digest(scenario) == scenario_digest(whole)
    named = load_scenario("apiVersion: scheduling.playground/v1\nkind: Scenario\n" + TEN)
    assert scenario_digest(named) == scenario_digest(whole)
    assert "pods:" not in dump_scenario(scenario).splitlines()
    run = run_scenario(scenario)
    assert run.digest == run_scenario(whole).digest
    (tmp_path / "ten.yaml").write_text(TEN)
    assert main(["replay", str(tmp_path / "ten.yaml")]) == 0
    assert scenario_digest(scenario)[:12] in capsys.readouterr().out
    assert main(["simulate", str(tmp_path / "ten.yaml")]) in (0, 1)
    assert "default/train -> gpu" in capsys.readouterr().out


def test_what_it_cannot_say_stands_beside_it() -> None:
    manifest = "{metadata: {name: own}, spec: {schedulerName: other, containers: [{name: c}]}}"
    volume = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
    scenario = load_scenario(f"{TEN}- {manifest}\nobjects: [{volume}]\nsteps: [{{run: idle}}]\nseed: 3\n")
    names = [item["metadata"]["name"] for item in scenario.objects]
    assert names[:5] == ["general-0", "general-1", "general-2", "gpu", "shop"] and names[-1] == "own"
    with pytest.raises(ScenarioError, match=r"objects\[0\]\.spec"):
        load_scenario({"nodes": [{"name": "n", "cpu": 1, "memory": 1}], "objects": [{"apiVersion": "v1", "kind": "Pod",
                      "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": 3}]}}]})  # fmt: skip


WRONG = table(__file__, "WRONG")


@pytest.mark.parametrize(("key", "entry", "said"), WRONG)
def test_a_mistake_is_named_with_its_place(key: str, entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_scenario({key: [entry]})
    path, words = said.split(": ", 1)
    assert str(refused.value).startswith(path) and words in str(refused.value)
    assert refused.value.problems[0].path == path
    with pytest.raises(InvalidManifest) as unread:
        read_posted(f"{key}:\n- {entry}")
    assert unread.value.path == path and words in str(unread.value) and unread.value.line == 2


def test_a_text_stands_for_so_many_objects_at_most() -> None:
    entry = {"name": "n", "cpu": 1, "memory": 1, "count": 10_000}
    with pytest.raises(ScenarioError, match=r"nodes\[20\].*more than 200,000 objects"):
        load_scenario({"nodes": [{**entry, "name": f"n{n}"} for n in range(40)]})
