"""Recorded decisions of the real scheduler: a share of each family, run as the command line runs them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.conformance import read_cases, run_case
from scheduler_core.cli.conformance_cycles import sequence_cycle
from scheduler_core.cli.conformance_devices import DeviceCluster, DeviceSequence
from scheduler_core.cli.main import main

DATA = sorted((Path(__file__).parent / "data").glob("*.jsonl.gz"))
RELEASES = sorted((Path(__file__).parent / "data" / "releases").glob("*.jsonl.gz"))
CONTROLLERS = sorted((Path(__file__).parent / "data" / "controllers").glob("*.jsonl.gz"))
V1_36 = Path(__file__).parent / "data" / "releases" / "v1.36.jsonl.gz"


def family_of(path: Path) -> str:
    return path.name.removesuffix(".jsonl.gz")


@pytest.mark.usefixtures("every_threshold")
@pytest.mark.parametrize("path", DATA, ids=family_of)
def test_every_recorded_case_agrees(path: Path) -> None:
    cases = list(read_cases(path))
    assert cases
    assert {case["family"] for case in cases} == {family_of(path)}
    assert all(case["expect"] for case in cases), "a case that expects nothing would pass unrun"
    differing = {case["name"]: found[0] for case in cases if (found := run_case(case))}
    assert not differing


@pytest.mark.usefixtures("every_threshold")
@pytest.mark.parametrize("path", RELEASES, ids=family_of)
def test_every_release_decides_as_it_was_recorded(path: Path) -> None:
    cases = list(read_cases(path))
    assert len({case["family"] for case in cases}) > 0
    # The gates of 1.37 were recorded of 1.36.3 with these gates on.
    recorded = family_of(path).replace("1.37-gates", "1.36")
    assert {"v" + case["version"].removeprefix("v").rpartition(".")[0] for case in cases} == {recorded}
    differing = {case["name"]: found[0] for case in cases if (found := run_case(case))}
    assert not differing


@pytest.mark.parametrize("path", CONTROLLERS, ids=family_of)
def test_every_controller_decides_as_it_was_recorded(path: Path) -> None:
    cases = list(read_cases(path))
    assert {case["version"].partition(" ")[0] for case in cases} == {family_of(path)}
    differing = {case["name"]: found[0] for case in cases if (found := run_case(case))}
    assert not differing
    for case in cases[::6]:
        if case["expect"].get("evictions"):
            case["expect"]["evictions"].pop()
        elif grown := [
            one for step in case["expect"].get("steps", ()) for one in step["scaleUp"] if one["infos"]
        ]:
            grown[0]["infos"][0]["to"] += 1
        else:
            continue
        assert run_case(case), "an eviction too many or a node too few is a difference"


def test_a_program_that_is_not_modelled_fails() -> None:
    case = {"name": "x", "family": "loop", "version": "some-controller 1.2", "expect": {}}
    assert [found.got for found in run_case(case)] == ["it is not modelled"]


def test_the_recordings_of_a_release_are_not_those_of_the_one_before() -> None:
    older = [{**case, "version": "v1.35.4"} for case in [*read_cases(V1_36)][::3]]
    assert sum(bool(run_case(case)) for case in older) > len(older) // 4


@pytest.mark.parametrize("path", DATA, ids=family_of)
def test_a_case_whose_recording_says_otherwise_fails(path: Path) -> None:
    first = next(iter(read_cases(path)))
    assert run_case({**first, "expect": altered(first["expect"])})


def altered(expect: Mapping[str, Any]) -> dict[str, Any]:
    """The same recording with a first key that cannot have been recorded."""
    key = next(iter(expect))
    return {**expect, key: "something else"}


def test_a_case_that_cannot_be_run_has_failed() -> None:
    found = run_case({"name": "mixed/broken", "family": "mixed", "objects": [], "expect": {}})
    assert [difference.key for difference in found] == ["(run)"]


def test_a_folder_means_all_files_of_cases_below_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "quantities.jsonl.gz").write_bytes(
        next(path for path in DATA if family_of(path) == "quantities").read_bytes()
    )
    (tmp_path / "FORMAT.md").write_text("# Not cases\n")
    assert main(["conformance", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("quantities.jsonl.gz: ")
    (tmp_path / "older" / "quantities.jsonl.gz").unlink()
    assert main(["conformance", str(tmp_path)]) == 2
    assert "no file of cases" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"kind: Scenario\n", "line 1: not JSON: Expecting value"),
        (b'{"name": "a"}\n', "line 1: a case is an object with a name and a family"),
        (b"\xff\xfe\x00", "codec can't decode"),
    ],
)
def test_a_file_of_something_else_is_named_and_nothing_is_counted(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    assert main(["conformance", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{path}: ") and words in said.err


@pytest.mark.parametrize("name", ["dra-cycle/bs-11", "dra-cycle/bs-41"])
def test_a_sequence_lists_what_was_written_before_a_failing_pre_bind(name: str) -> None:
    [case] = [case for case in read_cases(V1_36) if case["name"] == name]
    [node] = case["expect"]["best"]
    recorded = case["expect"]["onNode"][node]
    [cycle] = DeviceSequence({**case, "sequence": [case["pod"]]}, DeviceCluster.of(case)).cycles(
        sequence_cycle
    )
    assert cycle["preBind"] == recorded["preBind"]
    assert cycle["claims"] == recorded["claims"]
