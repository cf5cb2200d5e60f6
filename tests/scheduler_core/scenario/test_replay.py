"""`python -m scheduler_core replay`: exit status, words, JSON and JUnit."""

import json
import os
import resource
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import scheduler_core.scenario
from scheduler_core.cli.main import main
from scheduler_core.scenario import dump_scenario, run_scenario
from tests.manifests import scheduler_config
from tests.scheduler_core.scenario.builders import document, make_node, make_pod, make_scenario
from tests.tables import table

GALLERY = Path(scheduler_core.scenario.__file__).parent / "gallery"


def openb(arguments: list[str]) -> int:
    """The example that reads the trace."""
    found = runpy.run_path(str(Path(__file__).parents[3] / "examples/openb/openb.py"))
    status: int = found["main"](arguments)
    return status


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        dump_scenario(make_scenario(make_node("n"), make_pod("p"), expect=[{"pod": "p", "node": "n"}]))
    )
    return path


def test_a_scenario_that_holds_exits_0(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--check", "--cycles"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 expectations hold" in out and "default/p bound n" in out


def test_check_wants_something_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text(dump_scenario(make_scenario(make_node("n"))))
    assert main(["replay", str(path)]) == 0
    assert main(["replay", str(path), "--check"]) == 1
    assert "nothing to check" in capsys.readouterr().out
    report = tmp_path / "out.xml"
    assert main(["replay", str(path), "--check", "--junit", str(report)]) == 1
    assert ElementTree.parse(report).getroot().get("failures") == "1"


def test_whatever_an_extender_said_the_report_is_xml(tmp_path: Path) -> None:
    said = "\x1b[31mno <room> & \ufffe"
    config = scheduler_config(
        extenders=[{"urlPrefix": "http://x.example", "filterVerb": "filter", "nodeCacheCapable": True}]
    )
    deny = {"mock": [{"rules": [{"deny": {"nodes": ["n"], "reason": said}}]}]}
    path, report = tmp_path / "said.json", tmp_path / "out.xml"
    fields = {"scheduler": config, "extenders": deny, "expect": [{"pod": "p", "node": "n"}]}
    path.write_text(json.dumps({**document(make_node("n"), make_pod("p")), **fields}))
    assert main(["replay", str(path), "--junit", str(report)]) == 1
    failure = ElementTree.parse(report).getroot().find("testcase/failure")
    assert failure is not None and "[31mno" in (failure.text or "") and "<room> & " in (failure.text or "")


def test_what_was_recorded_is_proved_and_a_change_is_found(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = file.parent / "recorded.yaml"
    assert main(["replay", str(file), "--record", str(recorded)]) == 0
    assert main(["replay", str(recorded), "--check"]) == 0
    assert "reproduced 1/1 decisions" in capsys.readouterr().out
    recorded.write_text(
        recorded.read_text().replace("cpu: '1'", "cpu: '9'").replace("expect:", "path: []\nexpect:")
    )
    assert main(["replay", str(recorded)]) == 1
    out = capsys.readouterr().out
    assert "cycle 1 differs. Recorded: default/p bound n. Now: default/p fits no node" in out


def test_json_tells_everything(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "holds" and document["placement"] == {"default/p": "n"}
    assert document["findings"][0]["holds"] and document["figures"]["bound"] == 1


def test_another_seed_leaves_recorded_decisions_aside(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = file.parent / "recorded.yaml"
    assert main(["replay", str(file), "--record", str(recorded)]) == 0
    assert main(["replay", str(recorded), "--seed", "9"]) == 0
    assert "reproduced" not in capsys.readouterr().out


@pytest.mark.nightly("scheduler_core/scenario/", "scheduler_core/cli/")
@pytest.mark.slow
def test_a_scenario_of_production_size_replays_whole_in_seconds(tmp_path: Path) -> None:
    """1,523 nodes, 8,152 pods, every node scored: reading, digest, run, expectations and recorded decisions."""
    path = tmp_path / "large.yaml"
    assert openb(["--lookalike", "--record", "-o", str(path)]) == 0
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "scheduler_core", "replay", str(path), "--check", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COVERAGE_PROCESS_START": ""},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["figures"]["cycles"] == 8152 and result["reproduced"]["same"]
    assert [finding["holds"] for finding in result["findings"]] == [True] * 5
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took_s < 15, f"{took_s:.1f} s of processor time"


def test_it_needs_nothing_but_numpy_and_a_yaml_library(file: Path) -> None:
    code = table(__file__, "it_needs_nothing_but_numpy_and_a_yaml_library")
    done = subprocess.run(
        [sys.executable, "-c", code, "replay", str(file), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_lookalike_of_the_trace_is_drawn_from_its_seed(tmp_path: Path) -> None:
    from scheduler_core.scenario.openb import lookalike

    assert lookalike(3, n_nodes=20, n_pods=50) == lookalike(3, n_nodes=20, n_pods=50)
    assert lookalike(3, n_nodes=20, n_pods=50) != lookalike(4, n_nodes=20, n_pods=50)
    path = tmp_path / "small.yaml"
    path.write_text(dump_scenario(lookalike(3, n_nodes=20, n_pods=50)))
    assert main(["replay", str(path), "--check"]) == 0


BAD = table(__file__, "BAD") | {
    "too many steps": ({"steps": [{"run": "cycle"}] * 50_001}, "steps", "at most 50,000 are run")
}
"""What is wrong -> fields of a document, the path that is named, words of the reason."""


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
def test_each_bad_input_exits_2_and_names_its_path(
    fields: tuple[dict[str, object], str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, place, words = fields
    path, report = tmp_path / "bad.yaml", tmp_path / "out.xml"
    path.write_text(json.dumps({**document(make_node("n"), make_pod("p")), **changes}))
    assert main(["replay", str(path), "--check", "--junit", str(report)]) == 2
    said = capsys.readouterr().err
    assert f"{place}: " in said.replace(f"{path}: ", "") and words in said
    assert ElementTree.parse(report).getroot().get("errors") == "1"
    assert main(["replay", str(path), "--json"]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    "n", [2_000, pytest.param(25_000, marks=pytest.mark.nightly("scheduler_core/scenario/"))]
)
def test_thousands_of_steps_are_run_and_end(n: int) -> None:
    steps = [{"cordon": "n"}, {"uncordon": "n"}] * n
    run = run_scenario(make_scenario(make_node("n"), make_pod("p"), steps=[{"run": "idle"}, *steps[1:]]))
    assert run.placement() == {"default/p": "n"} and len(run.cycles) == 1


NODES_CSV = table(__file__, "NODES_CSV")
PODS_CSV = table(__file__, "PODS_CSV")


def test_a_bad_line_of_the_trace_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "openb_node_list_all_node.csv").write_text(NODES_CSV.replace("64000", "many", 1))
    (tmp_path / "openb_pod_list_gpuspec33.csv").write_text(PODS_CSV)
    assert openb([str(tmp_path), "--scenario"]) == 2
    said = capsys.readouterr().err
    assert 'openb_node_list_all_node.csv:3: cpu_milli: "many" is not a whole number' in said
