"""Loops of controllers: each published case is found from its file, with the circle and the cure proved by a replay."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from time import process_time

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import Scenario, dump_scenario, load_scenario, run_scenario, verify
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.loops import find_loops, lines_of

OTHERS = Path(__file__).parents[3] / "examples" / "loops"
HOUR_NS = 3600 * 10**9
SPREAD, AFFINITY = "RemovePodsViolatingTopologySpreadConstraint", "RemovePodsViolatingNodeAffinity"
TAINTS = "RemovePodsViolatingNodeTaints"
A_POD = "a pod of Deployment default"
CASES = {
    "loops-consolidation": (
        f"HighNodeUtilization evicts {A_POD}/web from Node a",
        "descheduler: disable HighNodeUtilization",
    ),
    "loops-duplicates": (
        f"RemoveDuplicates evicts {A_POD}/web from Node a",
        "RemoveDuplicates: leave out pods of ReplicaSets",
    ),
    "loops-high-node-utilization": (
        f"HighNodeUtilization evicts {A_POD}/small from Node b",
        "NodeResourcesFit: score by MostAllocated",
    ),
    "loops-low-node-utilization": (
        f"LowNodeUtilization evicts {A_POD}/large from Node worker-0",
        "LowNodeUtilization: raise targetThresh",
    ),
    "node_name": (f"refuses {A_POD}/web on Node a", "Deployment web: drop nodeName"),
    "loops-preferred-affinity": (
        f"{AFFINITY} evicts {A_POD}/web from Node b",
        f"{AFFINITY}: let it enforce required affinity only",
    ),
    "loops-preferred-spread": (
        f"{SPREAD} evicts {A_POD}/web from Node a",
        f"{SPREAD}: let it enforce hard constraints only",
    ),
    "loops-soft-taint": (
        f"{TAINTS} evicts {A_POD}/web from Node a",
        f"{TAINTS}: let it enforce hard taints only",
    ),
    "loops-vertical-resize": (
        f"resizes {A_POD}/web: cpu=1250m is recommended",
        "vertical pod autoscaler: leave cpu to the Horizontal",
    ),
}
"""File -> what the round begins with, and the cure."""


def test_every_file_is_a_case() -> None:
    files = {path.stem for path in OTHERS.glob("*.yaml")}
    assert {name for name in ORDER if name.startswith("loops-")} | files == set(CASES)


def case(name: str) -> Scenario:
    """A lesson, or a file of an example, before its steps."""
    text = gallery_text(name) if name in ORDER else (OTHERS / f"{name}.yaml").read_text()
    return dataclasses.replace(load_scenario(text), steps=(), path=(), expect=())


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_case_is_found_with_its_circle_and_its_smallest_cure(name: str) -> None:
    scenario = case(name)
    search = find_loops(scenario, horizon_ns=2 * HOUR_NS)
    begins, cure = CASES[name]
    assert search.circle is not None and search.circle.round[0].what == begins
    assert search.cures[0].words.startswith(cure)
    for proof in (search.circle.scenario, search.cures[0].scenario):
        found = verify(run_scenario(load_scenario(dump_scenario(proof))))
        assert found is not None and found.same
    rest = find_loops(dataclasses.replace(search.cures[0].scenario, decisions=None), horizon_ns=2 * HOUR_NS)
    assert rest.circle is None
    began_s = process_time()
    find_loops(scenario, horizon_ns=search.circle.found_ns, n_seeds=1)
    assert process_time() - began_s < 1, "the circle is found, and its cure, within a second"


def test_a_pod_that_moves_once_is_no_loop() -> None:
    """RemoveDuplicates moves one of two replicas to a node that is as good: the state is that of rest."""
    scenario = case("loops-duplicates")
    deployment = json.loads(json.dumps(scenario.objects[-1]))
    del deployment["spec"]["template"]["spec"]["affinity"]
    calm = dataclasses.replace(scenario, objects=(*scenario.objects[:-1], deployment))
    search = find_loops(calm, horizon_ns=HOUR_NS)
    assert search.circle is None
    assert list(lines_of(search)) == ["No loop in 1h0m0s with 3 seeds."]


def test_the_command_writes_both_proofs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circle, cure = tmp_path / "circle.yaml", tmp_path / "cure.yaml"
    place = tmp_path / "lesson.yaml"
    place.write_text(gallery_text("loops-duplicates"))
    assert main(["loops", str(place), "--circle", str(circle), "--cure", str(cure)]) == 1
    assert "The smallest change that ends it: RemoveDuplicates" in capsys.readouterr().out
    assert main(["replay", str(circle), "--check"]) == 0 and main(["replay", str(cure), "--check"]) == 0
    capsys.readouterr()
    assert main(["loops", str(cure), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loop"] is None
