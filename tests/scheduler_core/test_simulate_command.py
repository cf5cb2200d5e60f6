"""`simulate`: the pending pods of files, decided."""

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cli.main import main
from tests.real_dump import real_dump, with_few_waiting
from tests.scheduler_core.whatif.clusters import node, pod
from tests.tables import table


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main(["simulate", "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def _dump(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def _pod(name: str, **more: Any) -> dict[str, Any]:
    made = pod(name, **more)
    del made["spec"]["priority"]
    return made


def test_each_pod_lands_or_waits_for_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _dump(tmp_path, node("a"), node("b"), _pod("runs", on="a"), _pod("web"), _pod("big", cpu="9"))
    status, told = _told(capsys, path)
    assert (status, told["bound"][0]["pod"], len(told["bound"])) == (1, "default/web", 1)
    [waiting] = told["waiting"]
    assert waiting["pod"] == "default/big" and "2 Insufficient cpu" in waiting["message"]
    assert _told(capsys, path)[1] == told
    assert main(["simulate", path]) == 1
    text = capsys.readouterr().out
    assert text.startswith("1 pod bound in 2 cycles; 1 waits. Kubernetes 1.37, seed 0.\n")
    assert "default/web -> " in text and "1 waits: 0/2 nodes are available" in text
    misspelt = _pod("web")
    misspelt["spec"]["nodeSelectr"] = {"zone": "a"}
    assert main(["simulate", _dump(tmp_path, node("a"), misspelt)]) == 0
    words = 'unknown field "spec.nodeSelectr" (did you mean nodeSelector?), which has no effect'
    place = f"note: {tmp_path}/dump.json: line 1: Pod web: "
    assert capsys.readouterr().err == f"{place}{words}\n"
    assert main(["plan", str(tmp_path / "dump.json"), "any-node"]) in (0, 1)
    assert capsys.readouterr().err == f"{place}{words}\n"


def test_a_folder_of_manifests_makes_its_pods_under_a_configuration_and_a_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "nodes.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), node("b")]})
    )
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _pod("x")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (folder / "web.json").write_text(json.dumps(web))
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
    )
    status, told = _told(capsys, str(folder), "--config", str(config), "--release", "1.35")
    assert (status, told["kubernetesRelease"], len(told["bound"])) == (0, "1.35", 3)
    assert all(one["pod"].startswith("default/web-") for one in told["bound"])
    # A field that the kind does not have changes no template, whose hash is in the names of its pods.
    template["spec"]["nodeSelectr"] = {"zone": "a"}
    (folder / "web.json").write_text(json.dumps(web))
    again = _told(capsys, str(folder), "--config", str(config), "--release", "1.35")[1]
    assert again["bound"] == told["bound"]


def test_what_runs_under_its_owners_is_not_rolled_out_once_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = with_few_waiting(real_dump(8, 60))
    waiting = [item for item in objects if item["kind"] == "Pod" and not item["spec"].get("nodeName")]
    _, told = _told(capsys, _dump(tmp_path, *objects))
    names = {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in waiting}
    decided = {one["pod"] for one in (*told["bound"], *told["waiting"])}
    assert waiting and decided == names
    main(["plan", "--json", _dump(tmp_path, *objects), "backlog"])
    moves = json.loads(capsys.readouterr().out)["moves"]
    assert {move["pod"] for move in moves} <= names


@pytest.mark.parametrize(("text", "words"), table(__file__, "a_mangled_file_is_told_by_place"))
def test_a_mangled_file_is_told_by_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "mangled.yaml"
    path.write_text(text)
    assert main(["simulate", str(path)]) == 2
    assert words in capsys.readouterr().err
    assert main(["simulate", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("command", table(__file__, "a_scenario_is_one_document_told_by_place"))
def test_a_scenario_is_one_document_told_by_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    for text, words in table(__file__, "a_scenario_that_cannot_be_used"):
        path = tmp_path / "bad.yaml"
        path.write_text(text)
        assert main([str(path) if word == "F" else word for word in command]) == 2
        assert capsys.readouterr().err.startswith(f"{path}: {words}")


def test_a_packed_dump_is_read_as_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(_dump(tmp_path, node("a"), _pod("web")))
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert _told(capsys, str(packed)) == _told(capsys, str(path))
    packed.write_bytes(packed.read_bytes()[:40])
    assert main(["simulate", str(packed)]) == 2
    assert f"{packed}: is no whole gzip file" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no such signal here")
def test_a_command_whose_reader_has_gone_ends_quietly(tmp_path: Path) -> None:
    path = _dump(tmp_path, node("a"), _pod("web"))
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler_core", "simulate", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait(60) == -signal.SIGPIPE
