"""`python -m scheduler_core compare`, and the GPU use case in four ways.

`group`: the story of a pod group of a scenario, on the command line.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import dump_scenario, run_scenario
from scheduler_core.scenario.gallery import four_ways
from tests import manifests
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.tables import table


def written(folder: Path, name: str, *objects: dict[str, Any]) -> str:
    path = folder / name
    path.write_text(dump_scenario(make_scenario(*objects)))
    return str(path)


def test_three_runs_stand_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = [make_pod("p"), make_pod("q")]
    one = written(tmp_path, "one.yaml", make_node("a"), *pods)
    same = written(tmp_path, "same.yaml", make_node("a"), *pods)
    other = written(tmp_path, "other.yaml", make_node("b", "1"), *pods)
    assert main(["compare", one, same]) == 0
    assert "B decides as A does" in capsys.readouterr().out
    assert main(["compare", one, same, other]) == 1
    out = capsys.readouterr().out
    assert "C parts from A at cycle 1, default/p" in out and "default/q: a, a, no node" in out
    assert main(["compare", one, same, other, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["figures"]["bound"] == [2, 2, 1]
    assert found["divergences"][0] is None and found["divergences"][1]["cycle"] == 1
    assert found["moved"] == [
        {"pod": "default/p", "nodes": ["a", "a", "b"]},
        {"pod": "default/q", "nodes": ["a", "a", None]},
    ]


def test_what_cannot_be_compared_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path, "one.yaml", make_node("a"))
    assert main(["compare", one]) == 2
    assert main(["compare", one, str(tmp_path / "absent.yaml")]) == 2
    said = capsys.readouterr().err
    assert "two to 6 scenarios are compared, not 1" in said and "absent.yaml: No such file" in said


def test_only_both_rules_keep_gpu_nodes_for_gpu_pods() -> None:
    wrong = {}
    for way, scenario in four_ways():
        placement = run_scenario(scenario).placement()
        assert len(placement) == 18
        uses = {pod: pod.startswith("default/train") for pod in placement}
        wrong[way.key] = (
            sum(node.startswith("gpu") and not uses[pod] for pod, node in placement.items()),
            sum(not node.startswith("gpu") and uses[pod] for pod, node in placement.items()),
        )
    assert all(wrong["no-rule"])
    assert wrong["taint"][0] == 0 < wrong["taint"][1]
    assert wrong["affinity"][1] == 0 < wrong["affinity"][0]
    assert wrong["both"] == (0, 0)


def scenario(tmp_path: Path, *, gates: bool = True, nodes: int = 2) -> str:
    """A group of two on one or two nodes, with the gates of pod groups on or off."""
    found = manifests.scenario(**table(__file__, "scenario"))
    if not gates:
        del found["featureGates"]
    del found["objects"][nodes:2]
    path = tmp_path / "gang.yaml"
    path.write_text(json.dumps(found))
    return str(path)


def test_a_group_that_waits_is_told_with_what_would_place_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["group", scenario(tmp_path, nodes=1), "ml/train"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "ml/train waits: 1 of the 2 members it needs fit at once, 1 too few."
    assert "  -> Add 1 node like node-0: 2 members fit." in said
    assert main(["group", scenario(tmp_path), "ml/train", "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert story["scheduled"] == 2
    assert story["condition"]["reason"] == "Scheduled"


def test_what_cannot_be_told_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["group", scenario(tmp_path), "ml/other"]) == 2
    assert 'podgroups.scheduling.k8s.io "other" not found' in capsys.readouterr().err
    assert main(["group", scenario(tmp_path, gates=False), "ml/train"]) == 2
    assert "GenericWorkload of 1.36 is off" in capsys.readouterr().err
