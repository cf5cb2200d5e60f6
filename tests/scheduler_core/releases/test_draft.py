"""The draft of a release from upstream's texts: Kubernetes 1.38.0-alpha.2 as the trial, 1.37 as the proof."""

import json
from pathlib import Path

import pytest

from scheduler_core.cli.main import main
from scheduler_core.errors import InvalidObject
from scheduler_core.releases import NOT_MODELLED, RELEASES, release_of_table
from scheduler_core.releases.draft import draft
from scheduler_core.schema.tables import table_of

DATA = Path(__file__).parent / "data"
GATES = (DATA / "gates-1.38.0-alpha.2.yaml").read_text()
NOTES = (DATA / "notes-1.38.0-alpha.2.md").read_text()
LEFT_OUT = {
    "DRAPartitionableDevicesType": "names the kind of a partition, for people",
    "InPlacePodVerticalScalingMemoryBackedVolumes": "the kubelet's",
    "PodLevelResourcesFixDefaulting": "the API server's",
    "PodLevelResourcesFixKubeletQOSClass": "the kubelet's",
}
"""Gates of 1.37 that sound like scheduling and that no table has."""
GO = """
const (
	// owner: @someone
	// kep: https://kep.k8s.io/1
	//
	// Enables the scheduler to think twice. It is slower.
	SchedulerThinksTwice featuregate.Feature = "SchedulerThinksTwice"
)

var defaultVersionedKubernetesFeatureGates = map[featuregate.Feature]featuregate.VersionedSpecs{
	SchedulerThinksTwice: {
		{Version: version.MustParse("1.38"), Default: true, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.39"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},

	genericfeatures.SchedulerAsyncPreemption: {
		{Version: version.MustParse("1.33"), Default: true, PreRelease: featuregate.Beta},
	},
}
"""


def test_what_of_a_release_is_new_known_and_not_modelled() -> None:
    made = draft("1.38", GATES, NOTES, patch="v1.38.0-alpha.2")
    assert made.new == ()
    assert made.changed == ("DRADeviceTaintRules", "DRADeviceTaints")
    assert made.gone == ("DynamicResourceAllocation", "SchedulerQueueingHints")
    others = {"CloudNodeAdditionalLabelsReconciliation", "EnvFiles", "WindowsCPUAndMemoryAffinity"}
    assert set(made.others) == others
    [known] = made.known_notes
    assert known.endswith("(140222)")
    numbers = [note.rpartition("(")[2].rstrip(")") for note in made.new_notes]
    assert "141340" in numbers and "140010" not in numbers and "140256" not in numbers


def test_the_draft_is_a_release_that_differs_by_what_it_lists() -> None:
    made = draft("1.38", GATES, NOTES, patch="v1.38.0-alpha.2")
    release = release_of_table("1.38", made.table, RELEASES)
    assert release.patch == "v1.38.0-alpha.2" and release.n_agreed == 0
    assert release.gates["DRADeviceTaints"].locked and release.gates["DRADeviceTaints"].sentence
    assert release.gate("DynamicResourceAllocation") and "DynamicResourceAllocation" not in release.gates
    assert release.changes["Note141340"].known == NOT_MODELLED


def test_the_gates_of_1_37_are_those_of_upstreams_list() -> None:
    made = draft("1.37", GATES, follows=RELEASES["1.36"])
    upstream = release_of_table("1.37", made.table, RELEASES).gates
    ours = RELEASES["1.37"].gates
    assert set(upstream) - set(ours) == set(LEFT_OUT)
    # The list is of 1.38, where these two are gone.
    assert set(ours) - set(upstream) == {"DynamicResourceAllocation", "SchedulerQueueingHints"}
    both = set(upstream) & set(ours)
    assert {name: upstream[name].state for name in both} == {name: ours[name].state for name in both}


def test_a_go_file_says_as_much_with_what_a_gate_does() -> None:
    made = draft("1.38", GO)
    assert made.new == ("SchedulerThinksTwice",)
    thinks = "Beta on. Enables the scheduler to think twice."
    assert made.table["not_modelled"] == {"SchedulerThinksTwice": thinks}
    assert "SchedulerAsyncPreemption" not in (*made.changed, *made.gone)


@pytest.mark.parametrize(("name", "gates"), [("1.38", "hello"), ("1.38", "- a: 1"), ("next", GATES)])
def test_what_is_no_list_of_gates_is_refused(name: str, gates: str) -> None:
    with pytest.raises(InvalidObject):
        draft(name, gates)


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "v1_38.yaml"
    gates, notes = (
        str(DATA / f"{name}-1.38.0-alpha.2.{kind}") for name, kind in (("gates", "yaml"), ("notes", "md"))
    )
    assert main(["release", "draft", "1.38", "--gates", gates, "--notes", notes, "-o", str(file)]) == 0
    said = capsys.readouterr().out
    assert "1.38 follows 1.37" in said and "  DRADeviceTaints: GA on locked" in said
    assert table_of(file.read_text()) == draft("1.38", GATES, NOTES).table
    assert main(["release", "draft", "1.38", "--gates", str(file)]) == 2


def test_the_command_shows_how_each_difference_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "show", "1.37", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["since"] == "1.36"
    assert {one["known"] for one in shown["differences"]} == {"proved", "from release notes", "not modelled"}
    assert main(["release", "list"]) == 0
    assert "1.37 (v1.37.0): 226 recorded decisions agree" in capsys.readouterr().out
    assert main(["release", "show", "1.99"]) == 2
