"""Loops and failures: each published case is found from its file, and a replay proves what is wrong and the cure."""

import dataclasses
import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml

from scheduler_core.cli.main import main
from scheduler_core.scenario import Scenario, dump_scenario, load_scenario, run_scenario, verify
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.loops import find_loops, lines_of, recorded
from scheduler_core.scenario.watch import BELOW, LOOP, PENDING, SWING
from scheduler_core.sim.controllers.autoscaler import KIND as SCALER
from tests.tables import table

OTHERS = Path(__file__).parents[3] / "examples" / "loops"
HOUR_NS = 3600 * 10**9
CASES = table(__file__, "CASES")
"""File -> what the round begins with, or what is wrong, and the cure."""
AS_GIVEN = ("loops-maintenance", "loops-replicas-left-out")
"""What is wrong there comes of its steps."""


def test_every_file_is_a_case() -> None:
    files = {path.stem for path in OTHERS.glob("*.yaml")}
    assert {name for name in ORDER if name.startswith("loops-")} | files == set(CASES)


def case(name: str) -> Scenario:
    """A lesson, or a file of an example, before its steps where they only let time pass."""
    scenario = load_scenario(gallery_text(name) if name in ORDER else (OTHERS / f"{name}.yaml").read_text())
    return scenario if name in AS_GIVEN else dataclasses.replace(scenario, steps=(), path=(), expect=())


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_case_is_found_with_its_smallest_cure(name: str) -> None:
    scenario = case(name)
    search = find_loops(scenario, horizon_ns=2 * HOUR_NS)
    begins, cure = CASES[name]
    assert search.wrong is not None and search.proof is not None
    assert begins in (search.wrong.arrows[0].what, search.wrong.sentence[: len(begins)])
    assert search.cures[0].words.startswith(cure)
    for proof in (search.proof, search.cures[0].scenario):
        found = verify(run_scenario(load_scenario(dump_scenario(recorded(proof)))))
        assert found is not None and found.same
    rest = find_loops(search.cures[0].scenario, horizon_ns=HOUR_NS, n_seeds=1)
    assert rest.wrong is None or (search.wrong.kind == LOOP and rest.wrong.kind == PENDING)
    began_s = process_time()
    find_loops(scenario, horizon_ns=search.wrong.found_ns + 300 * 10**9, n_seeds=1)
    assert process_time() - began_s < 1, "it is found, and its cure, within a second"


def test_a_pod_that_moves_once_is_no_loop() -> None:
    """RemoveDuplicates moves one of two replicas to a node that is as good: the state is that of rest."""
    scenario = case("loops-duplicates")
    deployment = json.loads(json.dumps(scenario.objects[-1]))
    del deployment["spec"]["template"]["spec"]["affinity"]
    calm = dataclasses.replace(scenario, objects=(*scenario.objects[:-1], deployment))
    search = find_loops(calm, horizon_ns=HOUR_NS)
    assert search.wrong is None
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


def changed(name: str, kind: str, **spec: Any) -> Scenario:
    """A case with fields of the spec of its object of a kind set."""
    scenario = case(name)
    objects = (
        {**one, "spec": {**one["spec"], **spec}} if one["kind"] == kind else one for one in scenario.objects
    )
    return dataclasses.replace(scenario, objects=tuple(objects))


@pytest.mark.parametrize(
    ("calm", "before"),
    [
        (changed("loops-conflicting-spread", SCALER, maxReplicas=5), PENDING),
        (changed("loops-maintenance", "PodDisruptionBudget", maxUnavailable=2), BELOW),
        (changed("loops-replicas-left-out", SCALER, minReplicas=1), BELOW),
        (changed("loops-startup-load", SCALER, maxReplicas=2), SWING),
        (changed("loops-crashing-nodes", "Deployment", replicas=6), LOOP),
    ],
)  # fmt: skip
def test_what_objects_do_not_ask_for_is_no_failure(calm: Scenario, before: str) -> None:
    """The same runs with less promised, or fewer pods; each is wrong with one more."""
    found = find_loops(calm, horizon_ns=HOUR_NS // 2, n_seeds=1)
    assert found.wrong is None
    name = f"loops-{calm.name.removeprefix('loops-')}"
    wrong = find_loops(case(name), horizon_ns=HOUR_NS, n_seeds=1).wrong
    assert wrong is not None and wrong.kind == before


def test_nodes_that_are_alike_take_turns() -> None:
    """Ten nodes, of which four have room: pods go round among these, never on the same ones twice."""
    document = yaml.safe_load(gallery_text("loops-duplicates"))
    document |= table(__file__, "nodes_that_are_alike_take_turns") | {"steps": [], "path": [], "expect": []}
    search = find_loops(load_scenario(yaml.safe_dump(document)), horizon_ns=HOUR_NS)
    assert search.wrong is not None and search.wrong.kind == LOOP
    assert len({arrow.what for arrow in search.wrong.arrows if arrow.by == "descheduler"}) > 1
    assert search.cures[0].words.startswith("RemoveDuplicates: leave out pods of ReplicaSets")


def test_an_outside_load_that_rises_and_falls_is_no_swing() -> None:
    scenario = case("loops-startup-load")
    web, scaler = scenario.objects[-2:]
    template = json.loads(json.dumps(web["spec"]["template"]))
    del template["metadata"]["annotations"]
    meta = {**web["metadata"], "annotations": {"playground.dev/load": "0s cpu=3; 1m cpu=30; 10m cpu=3"}}
    daily = {**web, "metadata": meta, "spec": {**web["spec"], "template": template}}
    day = dataclasses.replace(scenario, objects=(*scenario.objects[:-2], daily, scaler))
    assert find_loops(day, horizon_ns=HOUR_NS, n_seeds=1).wrong is None


def test_the_answer_names_steps_and_is_the_same_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "lesson.yaml"
    place.write_text(gallery_text("loops-replicas-left-out"))
    assert main(["loops", str(place)]) == 1
    with pytest.raises(SystemExit):
        main(["loops", str(place), "--seeds", "0"])
    said = capsys.readouterr().out
    assert said.startswith("After 5m0s Deployment default/web has 1 ready pod, and minReplicas of")
    assert "step 2: apply Deployment default/web" in said
    assert main(["loops", str(place), "--json", "--all"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["loop"] is None and found["failure"]["kind"] == BELOW
    assert [one["by"] for one in found["failure"]["arrows"]].count("step 2") == 1
    assert found["cures"][0]["change"]["write"][0]["spec"]["replicas"] == 3
