"""What an upgrade changes: every difference has a cause, and each cause is proved by a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from scheduler_core.releases import RELEASES, Release, release_named, steps_between
from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario
from scheduler_core.scenario.gallery import ORDER, gallery_text
from scheduler_core.scenario.upgrade import preview, toggles_between
from tests.manifests import node
from tests.tables import table

OLD, NEW = RELEASES["1.34"], RELEASES["1.36"]


def pod(name: str, namespace: str = "default", **requests: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "a", "resources": {"requests": requests}}]
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def document(*objects: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = table(__file__, "document")
    return {**head, "objects": list(objects), **more}


UNEVEN = [node("lean", "4", "32Gi"), node("wide", "16", "16Gi"), node("even", "8", "16Gi")]
TAINT = {"taints": [{"key": "disk", "value": "full", "effect": "NoSchedule"}]}
PODS = [
    pod(f"p{number}", "payments" if number % 2 else "batch", cpu=f"{300 + 400 * (number % 3)}m",
        memory=f"{1 + number % 4}Gi")
    for number in range(12)
]  # fmt: skip
TOO_LARGE = pod("large", cpu="100")


def found(release: Release = NEW, **more: Any) -> Any:
    objects = [*UNEVEN, node("full", "64", "64Gi", **TAINT), *PODS, TOO_LARGE]
    return preview(load_scenario(document(*objects, **more)), OLD, release)


def test_a_downgrade_has_the_same_causes_with_the_sides_changed() -> None:
    up = found()
    back = preview(
        load_scenario(document(*UNEVEN, node("full", "64", "64Gi", **TAINT), *PODS, TOO_LARGE)), NEW, OLD
    )
    assert {cause.name for cause in back.causes} == {cause.name for cause in up.causes}
    assert {(one.pod, one.after, one.before) for one in back.differences} == {
        (one.pod, one.before, one.after) for one in up.differences
    }
    assert back.unexplained == ()


def test_one_switched_gate_is_the_only_cause() -> None:
    needs = pod("needs", cpu="1")
    needs["spec"] |= {"hostNetwork": True, "hostUsers": False}
    on = release_named("1.36")
    off = on.with_gates({"NodeDeclaredFeatures": False})
    scenario = load_scenario(document(*UNEVEN, needs))
    result = preview(scenario, off, on)
    assert [cause.name for cause in result.causes] == ["NodeDeclaredFeatures"]
    assert [(one.pod, one.kind) for one in result.differences] == [("default/needs", "newlyPending")]
    same = preview(scenario, on, on)
    assert same.differences == [] and same.causes == () and same.sentence.endswith("pods end the same.")


@pytest.mark.parametrize(
    "name", ["backoff-and-flush", "preemption-budget", "gang-timeout", "spread-surprises"]
)
def test_every_difference_of_a_lesson_is_explained(name: str) -> None:
    assert name in ORDER
    result = preview(load_scenario(gallery_text(name)), OLD, NEW)
    assert result.unexplained == ()


def test_all_that_differs_between_releases_can_be_put_back() -> None:
    names = {toggle.name for toggle in toggles_between(OLD, NEW)}
    assert {"BalancedAllocationByChange", "DynamicResourcesScores", "DRAPartitionableDevices"} <= names
    assert toggles_between(NEW, NEW) == []


def test_between_adjacent_releases_there_is_no_step() -> None:
    assert steps_between(RELEASES["1.36"], RELEASES["1.36.3"])[1:-1] == []
    assert steps_between(RELEASES["1.36.3"], RELEASES["1.36"])[1:-1] == []
    assert [one.name for one in steps_between(RELEASES["1.37"], RELEASES["1.34"])][1:-1] == ["1.36", "1.35"]


@pytest.mark.parametrize(
    ("expected", "holds"), table(__file__, "a_scenario_may_expect_what_an_upgrade_leaves_alone")
)
def test_a_scenario_may_expect_what_an_upgrade_leaves_alone(expected: dict[str, Any], holds: bool) -> None:
    [finding] = run_scenario(load_scenario(document(*UNEVEN, *PODS, expect=[expected]))).findings
    assert finding.holds is holds, finding.sentence
    if not holds:
        assert "BalancedAllocationByChange" in finding.sentence and "payments/" in finding.sentence


def test_a_gate_that_a_release_lacks_is_told_where_it_is_expected() -> None:
    wrong = {"upgrade": {"kubernetesRelease": "1.36", "featureGates": {"Nonsense": True}}}
    with pytest.raises(ScenarioError, match=r"expect\[0\]\.upgrade\.featureGates\.Nonsense"):
        load_scenario(document(*UNEVEN, expect=[wrong]))


def test_the_command_compares_one_file_in_two_releases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(document(*UNEVEN, *PODS)))
    assert main(["compare", str(file), "--release", "1.34", "--release", "1.36", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [cause["name"] for cause in told["causes"]] == ["BalancedAllocationByChange"]
    assert told["unexplained"] == [] and told["firstDivergence"]["scores"]
    assert [step["after"]["name"] for step in told["steps"]] == ["1.35", "1.36"]
    three = [item for name in ("1.34", "1.36", "1.37") for item in ("--release", name)]
    assert main(["compare", str(file), *three]) == 1
    said = capsys.readouterr().out
    assert (
        "from 1.34 to 1.36: Upgrading to 1.36 changes" in said
        and "from 1.36 to 1.37: Upgrading to 1.37 changes no decision" in said
    )
    assert "  StorageCapacityScoring (proved): Alpha, off -> Beta, on. VolumeBinding" in said
    assert "  CompositePodGroup (not modelled): none -> Alpha, off." in said
    assert main(["compare", str(file), "--release", "1.35"]) == 0
    assert "Upgrading to 1.35 changes no decision" in capsys.readouterr().out
    assert main(["compare", str(file), "--release", "1.99"]) == 2
