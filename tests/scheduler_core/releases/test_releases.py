"""Releases: what each of them is, what may be switched, and what a new one costs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scheduler_core
from scheduler_core.cli.conformance import read_cases
from scheduler_core.errors import ConfigurationError, InvalidObject
from scheduler_core.objects.defaults import prepare
from scheduler_core.plugins import REGISTRY, default_configuration, load_configuration
from scheduler_core.releases import (
    DEFAULT,
    NOT_MODELLED,
    OLDEST,
    RELEASES,
    Release,
    release_named,
    release_nearest,
)
from scheduler_core.releases.draft import draft
from scheduler_core.scenario import ScenarioError, dump_scenario, load_scenario, scenario_digest
from scheduler_core.sim.changes import WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.manifests import make_object, scheduler_config
from tests.scheduler_core.sim.builders import make_node
from tests.tables import table

SCENARIO = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario"}
REASON = "didn't match Pod's required features"


RECORDED = RELEASES["1.36"]


@pytest.mark.parametrize(("written", "name"), table(__file__, "a_patch_is_the_last_known_level_up_to_it"))
def test_a_patch_is_the_last_known_level_up_to_it(written: str, name: str) -> None:
    assert release_named(written) is RELEASES[name]


@pytest.mark.parametrize(
    ("said", "name"),
    [("v1.36.4-eks-1", "1.36.3"), ("v1.28.3", "1.34"), ("v1.99.0", [*RELEASES][-1]), ("?", DEFAULT.name)],
)
def test_a_live_version_is_judged_by_the_nearest_release(said: str, name: str) -> None:
    assert release_nearest(said) is RELEASES[name]


def test_a_patch_level_is_what_it_changes_of_the_recorded_one() -> None:
    assert RECORDED.name == "1.36" and RECORDED.patch == "v1.36.2"
    assert RELEASES["1.35.6"].gates == RELEASES["1.35"].gates
    assert set(RELEASES["1.35.6"].changes) - set(RELEASES["1.35"].changes) == {"AllocatedClaimsScored"}
    assert set(RELEASES["1.36.3"].changes) - set(RECORDED.changes) == {"RefusedDevicesGiveBack"}


@pytest.mark.parametrize("written", ["1.33", "1", "", "1.36.x", "latest", None, 1.36])
def test_an_unknown_release_is_refused_by_name_with_those_that_are_known(written: object) -> None:
    with pytest.raises(
        InvalidObject, match=r"kubernetesRelease.*known here: 1\.34, 1\.35, 1\.35\.6, 1\.36, 1\.36\.3, 1\.37"
    ):
        release_named(written)


def test_a_gate_is_at_its_default_until_it_is_switched() -> None:
    assert not RECORDED.gate("GangScheduling")
    switched = RECORDED.with_gates({"GangScheduling": True})
    assert switched.gate("GangScheduling")
    assert switched.switched == {"GangScheduling": True}
    assert switched.with_gates({"GangScheduling": False}) == RECORDED


def test_every_gate_that_cannot_be_switched_is_named() -> None:
    with pytest.raises(ConfigurationError) as refused:
        RECORDED.with_gates({"Nonsense": True, "SidecarContainers": False, "GangScheduling": 1})  # type: ignore[dict-item]
    assert [(error.field, error.detail) for error in refused.value.errors] == [
        ("featureGates.Nonsense", "is no feature gate of 1.36"),
        ("featureGates.SidecarContainers", "cannot be set, the feature is locked to true"),
        ("featureGates.GangScheduling", "must be true or false"),
    ]


def test_every_change_that_is_modelled_is_asked_for_and_no_other_is() -> None:
    root = Path(__file__).parents[3]
    files = [file for folder in ("scheduler_core", "playground") for file in (root / folder).rglob("*.py")]
    asked = set(re.findall(r'\.has\(\s*"(\w+)"', "".join(file.read_text() for file in files)))
    changes = {name: change for release in RELEASES.values() for name, change in release.changes.items()}
    modelled = {name for name, change in changes.items() if change.known != NOT_MODELLED}
    # The first gives a plugin its score, by the release's own table; the second is in the table of served versions.
    assert modelled - asked == {"DynamicResourcesScores", "TaintRulesInV1"}
    assert not asked & (set(changes) - modelled)


def test_the_default_sets_are_those_of_the_releases() -> None:
    # Source: pkg/scheduler/apis/config/v1/default_plugins.go, v1.34, v1.35, v1.36
    sets = {name: REGISTRY.in_release(release).catalog.defaults for name, release in RELEASES.items()}
    assert dict(sets["1.34"])["DynamicResources"] == 0
    assert dict(sets["1.35"])["DynamicResources"] == 2
    assert sets["1.36"] == (*sets["1.35"], ("NodeDeclaredFeatures", 0))
    plans = {name: default_configuration(release).plans[0] for name, release in RELEASES.items()}
    assert "DynamicResources" not in plans["1.34"].weights
    last = ["DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality"]
    assert list(plans["1.36"].weights)[-3:] == last


def test_a_plugin_that_a_gate_brings_follows_the_gate() -> None:
    def names(release: Release) -> set[str]:
        return set(default_configuration(release).plans[0].plugin_names)

    assert "NodeDeclaredFeatures" in names(RECORDED)
    assert "NodeDeclaredFeatures" not in names(RECORDED.with_gates({"NodeDeclaredFeatures": False}))
    assert "NodeDeclaredFeatures" in names(release_named("1.35").with_gates({"NodeDeclaredFeatures": True}))
    assert "NodeDeclaredFeatures" not in REGISTRY.in_release(OLDEST)


def test_an_argument_of_a_later_release_is_unknown_to_an_earlier_one() -> None:
    plugin = {"name": "DynamicResources", "args": {"bindingTimeout": "0s"}}
    document = scheduler_config(profiles=[{"pluginConfig": [plugin]}])
    with pytest.raises(ConfigurationError, match="bindingTimeout"):
        load_configuration(document, release=OLDEST)
    with pytest.raises(ConfigurationError, match="must be at least 1 second"):
        load_configuration(document, release=RECORDED)


MADE_UP = """\
follows: "1.36"
patch: v9.99.0
from_notes: {NodeDeclaredFeatures: GA off}
"""
DATA = Path(__file__).parent / "data"
ALPHA = draft(
    "1.38",
    (DATA / "gates-1.38.0-alpha.2.yaml").read_text(),
    (DATA / "notes-1.38.0-alpha.2.md").read_text(),
    patch="v1.38.0-alpha.2",
).text
COMMANDS = table(__file__, "COMMANDS")


@pytest.fixture
def one_more_file(tmp_path: Path) -> Path:
    """A folder from which the package is imported as it stands, with one file more among its releases."""
    package, copied = Path(scheduler_core.__file__).parent, tmp_path / "scheduler_core"
    (copied / "releases").mkdir(parents=True)
    for source in (package, package / "releases"):
        for entry in source.iterdir():
            if entry.name not in ("__pycache__", "releases"):
                (copied / entry.relative_to(package)).symlink_to(entry)
    (copied / "releases" / "v9_99.yaml").write_text(MADE_UP)
    (copied / "releases" / "v1_38.yaml").write_text(ALPHA)
    return tmp_path


def test_a_release_that_only_flips_a_gate_is_one_file(one_more_file: Path) -> None:
    """Every command knows it: it decides, compares, and is checked by recordings, as it says of itself."""
    needs = pod("needs", {"cpu": "1"}, hostNetwork=True, hostUsers=False)
    scenario = {**SCENARIO, "kubernetesRelease": "9.99", "objects": [make_node("n"), needs]}
    case = next(
        case
        for case in read_cases(Path(__file__).parents[1] / "conformance/data/releases/v1.36.jsonl.gz")
        if case["family"] == "node-declared-features" and REASON in json.dumps(case["expect"])
    )
    without = {**case, "version": "v9.99.0", "features": {"NodeDeclaredFeatures": True}}
    for name, document in (
        ("s.json", scenario), ("on.jsonl", without), ("off.jsonl", {**case, "version": "v9.99.0"})
    ):  # fmt: skip
        (one_more_file / name).write_text(json.dumps(document) + "\n")
    commands = table(__file__, "a_release_that_only_flips_a_gate_is_one_file")
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=one_more_file, env={**os.environ, "PYTHONPATH": str(one_more_file), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    newest, plugins, decided, on, later, across, agrees, differs, alpha, versions = json.loads(done.stdout)
    assert newest == "9.99" and "NodeDeclaredFeatures" not in plugins
    told = [json.loads(said) for _, said in (decided, on)]
    assert [one["emulates"] for one in told] == ["v9.99.0", "v9.99.0"]
    assert [one["figures"]["bound"] for one in told] == [1, 0]
    compared = json.loads(later[1])
    assert [cause["name"] for cause in compared["causes"]] == ["NodeDeclaredFeatures"]
    assert json.loads(across[1])["same"]
    assert (agrees[0], differs[0]) == (0, 1)
    up = json.loads(alpha[1])
    assert [step["after"]["name"] for step in up["steps"]] == ["1.37", "1.38"]
    known = {one["name"]: one["known"] for one in up["between"]}
    assert known["Note141340"] == "not modelled" and known["DRADeviceTaints"] == "from release notes"
    assert "as Kubernetes 9.99 with NodeDeclaredFeatures=true: 1 passed, 0 failed" in versions[1]
    assert "9.99 (v9.99.0): no recorded decisions, changes of 1.36: 1 from release notes" in versions[1]
    assert "  not modelled: Note141340: A topology spread constraint" in versions[1]


def cluster(release: Release) -> Simulation:
    """Two nodes, one of them half full in cpu alone, and a pod that asks for memory alone."""
    simulation = Simulation(seed=1, release=release)
    for name in ("even", "uneven"):
        simulation.submit(WriteObject(prepare(make_node(name))))
    simulation.submit(WriteObject(prepare(pod("there", {"cpu": "2"}, nodeName="uneven"))))
    return simulation


def pod(name: str, requests: dict[str, str], **spec: object) -> dict[str, object]:
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return make_object("v1", "Pod", name, spec={"containers": containers, **spec})


def test_a_simulation_decides_as_its_release_does_and_goes_on_so_from_a_checkpoint() -> None:
    scores = {}
    for release in (OLDEST, RECORDED):
        simulation = cluster(release)
        restored = Simulation.restore(simulation.checkpoint())
        assert restored.release == release
        for one in (simulation, restored):
            one.submit(WriteObject(prepare(pod("web", {"memory": "4Gi"}))))
            one.run_until_idle()
        first, second = simulation.drain_cycles()[-1], restored.drain_cycles()[-1]
        assert first.digest == second.digest
        scores[release.name] = first.explain()["rawScores"]["NodeResourcesBalancedAllocation"]
    assert scores == {"1.34": {"even": 87, "uneven": 87}, "1.36": {"even": 68, "uneven": 81}}


def test_a_checkpoint_without_a_release_goes_on_as_the_oldest() -> None:
    document = {key: value for key, value in cluster(OLDEST).checkpoint().items() if key != "release"}
    assert Simulation.restore(document).release == OLDEST


def test_a_scenario_names_its_release_and_the_older_name_of_it_is_read() -> None:
    plain, old = load_scenario({**SCENARIO}), load_scenario({**SCENARIO, "emulates": "v1.34.1"})
    assert scenario_digest(plain) == scenario_digest(old)
    new = load_scenario({**SCENARIO, "kubernetesRelease": "1.36", "featureGates": {"GangScheduling": True}})
    assert new.release == release_named("1.36").with_gates({"GangScheduling": True})
    assert load_scenario(dump_scenario(new)) == new
    other = load_scenario({**SCENARIO, "emulates": "1.36"})
    assert len({scenario_digest(one) for one in (plain, new, other)}) == 3


@pytest.mark.parametrize(
    ("part", "path"), table(__file__, "a_scenario_with_a_release_that_cannot_be_is_refused_with_its_place")
)
def test_a_scenario_with_a_release_that_cannot_be_is_refused_with_its_place(part: object, path: str) -> None:
    assert isinstance(part, dict)
    with pytest.raises(ScenarioError) as refused:
        load_scenario({**SCENARIO, **part})
    assert [problem.path for problem in refused.value.problems] == [path]
