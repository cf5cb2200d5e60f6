"""Settings of autoscaler and descheduler side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core import load_scenario, run_scenario
from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidObject
from scheduler_core.scenario.gallery import gallery_text
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif import variants
from scheduler_core.whatif.answers import answer_question, answer_text
from tests.scheduler_core.sim.test_programs import policy
from tests.tables import table

TYPE = "node.kubernetes.io/instance-type"
SMALL = {"name": "web", "minSize": 1, "maxSize": 8}
LARGE = {"name": "large", "minSize": 0, "maxSize": 4, "instanceType": "m6i.4xlarge"}
SCENARIO = table(__file__, "SCENARIO")


def loaded() -> Simulation:
    return run_scenario(load_scenario(SCENARIO)).simulation


def expander(name: str) -> dict[str, Any]:
    fast = {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "1m"}
    return {
        "name": name,
        "cluster-autoscaler": {"options": {"expander": name, **fast}, "nodeGroups": [SMALL, LARGE]},
    }


def compared(*given: dict[str, Any], time: str = "10m") -> dict[str, Any]:
    return answer_question(loaded(), {"ask": "compare", "variants": list(given), "time": time})


def test_expanders_are_compared_by_cost_disruptions_and_waiting() -> None:
    off = {"name": "off", "cluster-autoscaler": None}
    answer = compared(expander("least-waste"), expander("price"), off)
    figures = answer["comparison"]["figures"]
    assert figures["nodes added"] == [1, 1, 0] and figures["nodes in the end"] == [2, 2, 1]
    assert figures["pending in the end"] == [0, 0, 2] and answer["tone"] == "good"
    small, large, none = figures["cost"]
    assert none == pytest.approx(0.23 / 6, abs=1e-4) and large > small > none
    hours = (figures["cost"][1] - none) / 0.92
    assert figures["node-hours"][1] == pytest.approx(1 / 6 + hours, abs=2e-3)
    assert figures["pod-hours pending"][2] == pytest.approx(max(figures["pod-hours pending"]))
    assert answer["verdict"].startswith(
        "In 10m off costs least; least-waste and price keep pods waiting least"
    )
    points = answer["comparison"]["pending"]
    assert [len(one) for one in points] == [48] * 3 and points[2][-1] == 2 == max(points[0])
    again = compared(expander("least-waste"), expander("price"), off)
    assert answer_text(again) == answer_text(answer)


def test_evictions_are_counted_by_who_evicts() -> None:
    text = gallery_text("loops-duplicates").partition("\nsteps:")[0]
    simulation = run_scenario(load_scenario(text)).simulation
    given = [
        {"name": "as it is"},
        {"name": "dry", "descheduler": {"policy": policy("RemoveDuplicates"), "dry-run": True}},
    ]
    answer = answer_question(simulation, {"ask": "compare", "variants": given, "time": "31m"})
    assert answer["comparison"]["figures"]["evictions by the descheduler"] == [7, 0]
    assert answer["verdict"] == "In 31m dry evicts fewest."


def test_a_limit_ends_a_variant_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "MOST_LOOKS", 20)
    answer = compared(expander("price"), {"name": "other"})
    assert answer["verdict"] == "Not to be compared: a limit ended price and other before 10m were over."
    assert answer["tone"] == "warning" and "as the cluster is large" in answer["lines"][0]["note"]


@pytest.mark.parametrize(("asked", "said"), table(__file__, "what_cannot_be_compared_is_named"))
def test_what_cannot_be_compared_is_named(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidObject, match=said):
        answer_question(loaded(), {"ask": "compare", **asked})


def test_the_command_reads_a_document_a_variant_and_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, given = tmp_path / "cluster.yaml", tmp_path / "variants.yaml"
    cluster.write_text(json.dumps(SCENARIO))
    given.write_text(f"{json.dumps(expander('price'))}\n---\nname: none\ncluster-autoscaler: null\n")
    assert main(["plan", str(cluster), "compare", str(given), "--time", "5m"]) == 0
    out = capsys.readouterr().out
    assert "nodes added" in out and out.index("price        none") < out.index("\ncost")
    assert main(["plan", str(cluster), "autoscale", "--node", "a"]) == 1
    assert capsys.readouterr().out.startswith("a stays")
