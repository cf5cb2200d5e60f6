"""`diff A B`: who lands elsewhere, why the first of them does, and the same for a continuous integration."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scheduler_core.cli.main import main
from scheduler_core.scenario import dump_scenario
from tests import manifests
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario
from tests.scheduler_core.whatif.clusters import node
from tests.tables import table

PACKED = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
    "- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
)


def deployment(replicas: int, **spec: Any) -> dict[str, Any]:
    return manifests.deployment("web", replicas, **spec) | {"metadata": {"name": "web", "namespace": "shop"}}


def written(folder: Path, name: str, *objects: dict[str, Any]) -> str:
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


NODES = (node("a-1", zone="a"), node("b-1", zone="b"), node("b-2", zone="b"))
UNEVEN = (node("small"), node("large", cpu="32"))


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main(["diff", "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_pods_of_a_changed_template_are_the_same_pods_and_the_rejecting_plugin_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = written(tmp_path, "nodes.json", *NODES)
    main_branch = written(tmp_path, "main.json", deployment(3))
    here = written(tmp_path, "here.json", deployment(3, nodeSelector={"topology.kubernetes.io/zone": "b"}))
    status, found = told(capsys, main_branch, here, "--cluster", cluster)
    assert (status, found["counts"]["moved"], found["same"]) == (1, 1, 2)
    [moved] = found["pods"]
    assert moved["before"] == "a-1" and moved["after"].startswith("b-")
    assert moved["workload"] == "Deployment shop/web" and moved["pod"] != moved["was"]
    assert found["first"]["why"]["plugin"] == "NodeAffinity"
    assert found["sentence"] == (
        "1 pod would land elsewhere because NodeAffinity now rejects a-1 (node(s) didn't match Pod's node "
        "affinity/selector)."
    )
    assert main(["diff", main_branch, here, "--cluster", cluster, "--at-most", "1"]) == 0
    assert main(["diff", main_branch, main_branch, "--cluster", cluster]) == 0
    assert "No pod would land elsewhere; all 3 stay." in capsys.readouterr().out


def test_a_change_is_applied_to_a_cluster_whose_pods_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = written(tmp_path, "cluster.json", *NODES, deployment(3))
    larger = written(tmp_path, "change.json", deployment(14))
    status, found = told(capsys, before, "--apply", larger)
    assert status == 1 and found["counts"]["moved"] == 0
    assert (found["counts"]["new"], found["counts"]["newPending"]) == (9, 2)
    assert [one["holds"] for one in found["expectations"]] == [True, False]
    [text, *_] = found["sentence"].split(" because ")
    assert text.startswith("2 pods are new and wait and 9 are new and land; the first,")
    assert "Insufficient cpu" in found["sentence"]


def test_one_dump_under_two_configurations_is_parted_by_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "packed.yaml"
    config.write_text(PACKED)
    dump = written(tmp_path, "dump.json", *UNEVEN, make_pod("web"), make_pod("db"))
    status, found = told(capsys, dump, "--config", str(config))
    assert found["pods"][0]["before"] == "large" and found["pods"][0]["after"] == "small"
    assert status == 1 and found["first"]["why"]["kind"] == "points"
    assert found["first"]["why"]["plugin"] == "NodeResourcesFit"
    assert told(capsys, dump, "--config", str(config), "--config", str(config))[0] == 0


def test_what_runs_stays_unless_it_is_decided_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "packed.yaml"
    config.write_text(PACKED)
    pods = [make_pod("web"), make_pod("db"), make_pod("static")]
    for one in pods:
        one["spec"]["nodeName"], one["status"] = "large", {"phase": "Running"}
    pods[2]["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    dump = written(tmp_path, "dump.json", *UNEVEN, *pods)
    assert told(capsys, dump, "--config", str(config))[0] == 0
    status, found = told(capsys, dump, "--config", str(config), "--anew")
    assert status == 1 and found["counts"]["moved"] == 2
    assert found == told(capsys, dump, "--config", str(config), "--anew")[1]


def test_a_node_that_goes_a_node_that_comes_and_a_pod_that_is_evicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [make_pod("web", "3")]
    one = written(tmp_path, "one.json", make_node("a", "4"), *pods)
    other = written(tmp_path, "other.json", make_node("b", "4"), *pods)
    assert told(capsys, one, other)[1]["sentence"] == (
        "1 pod would land elsewhere because its node a is not there any more."
    )
    none = written(tmp_path, "none.json", {**pods[0], "spce": {}})
    main(["diff", none, other])
    assert f"note: {none}: " in (err := capsys.readouterr().err) and "spce" in err
    assert "waits no longer because b is a new node" in told(capsys, none, other)[1]["sentence"]
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    boss = make_pod("boss", "3")
    boss["spec"]["priorityClassName"] = "high"
    placed = [make_node("a", "4"), *pods]
    placed[1] = {**pods[0], "spec": {**pods[0]["spec"], "nodeName": "a"}}
    change = written(tmp_path, "change.json", {**high, "value": 1000}, boss)
    status, found = told(capsys, written(tmp_path, "placed.json", *placed), "--apply", change)
    assert status == 1 and found["counts"]["newlyEvicted"] == 1
    assert "because default/boss preempts it" in found["sentence"]


def test_an_expectation_that_failed_before_is_known_and_fails_nothing_but_strictly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = [{"pod": "web", "node": "b"}, {"metric": "pending", "count": 0}]
    scenario = make_scenario(make_node("a"), make_pod("web"), expect=expect)
    path = tmp_path / "one.yaml"
    path.write_text(dump_scenario(scenario))
    junit, markdown = tmp_path / "out.xml", tmp_path / "out.md"
    reports = ["--junit", str(junit), "--markdown", str(markdown), "--annotations"]
    words = ["diff", str(path), str(path), *reports]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert f"::warning file={path},title=expect[0] fails%2C as before::" in out and "::error" not in out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "0", "1")
    text = markdown.read_text()
    assert text.startswith("## Scheduling: No pod would land elsewhere; the one pod stays.\n")
    assert "| expect\\[0\\] | **fails, as before** |" in text
    assert main([*words, "--strict"]) == 1
    assert markdown.read_text() == text * 2


def test_the_summary_names_the_decisions_and_a_replay_writes_one_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path, "one.json", make_node("a"), make_pod("web", "9"))
    other = written(tmp_path, "other.json", make_node("a", "16"), make_pod("web", "9"))
    markdown = tmp_path / "out.md"
    assert main(["diff", other, one, "--markdown", str(markdown), "--annotations"]) == 1
    text = markdown.read_text()
    assert text.startswith(
        "## Scheduling: 1 pod newly waits because NodeResourcesFit now rejects a (Insufficient cpu)."
    )
    assert f"- {other}, cycle 1: default/web bound to a" in text.replace("\\", "")
    assert "| default/web | a | no node |" in text
    assert (
        f"::error file={one},title=nothing-newly-waits fails::1 newly wait: default/web"
        in capsys.readouterr().out
    )
    scenario = tmp_path / "scenario.yaml"
    expect = [{"pod": "web", "node": "b"}]
    scenario.write_text(dump_scenario(make_scenario(make_node("a"), make_pod("web"), expect=expect)))
    assert main(["replay", str(scenario), "--markdown", str(markdown), "--annotations"]) == 1
    assert f"::error file={scenario},title=expect[0] fails::" in capsys.readouterr().out
    assert "0 of 1 expectations hold" in markdown.read_text()


@pytest.mark.parametrize(("words", "said"), table(__file__, "what_cannot_be_used_is_told_by_file_and_place"))
def test_what_cannot_be_used_is_told_by_file_and_place(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "one.json", make_node("a"))
    written(tmp_path, "bad.json", make_node("a", "x"))
    (tmp_path / "bad.yaml").write_text("items: [")
    written(tmp_path, "wrong.json", {**make_pod("web"), "status": "gone"})
    (tmp_path / "scenario.yaml").write_text(dump_scenario(make_scenario(make_node("a"))))
    assert main(["diff", *words, "--junit", "out.xml", "--annotations", "--markdown", "out.md"]) == 2
    output = capsys.readouterr()
    assert said in output.err and "::error " in output.out
    assert ElementTree.parse("out.xml").getroot().get("errors") == "1"
    assert "cannot be used" in Path("out.md").read_text()
