"""`python -m scheduler_core plan`, as a person or a CI job uses it."""

import json
from pathlib import Path

import pytest

from scheduler_core.cli.main import main
from tests.scheduler_core.whatif.clusters import Manifest, node, pod
from tests.tables import table


def _dump(folder: Path, *objects: Manifest) -> str:
    path = folder / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    owned = pod("web-1", on="a", owner="ReplicaSet/web")
    return _dump(tmp_path, node("a", zone="x"), node("b", zone="y"), owned, pod("bare", on="b"))


def test_a_harmless_drain_ends_with_0_and_a_loss_that_hurts_with_1(
    dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", dump, "drain", "a"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Its one pod finds another node.\n")
    assert "default/web-1: a -> b" in said
    assert main(["plan", dump, "lose", "-l", "topology.kubernetes.io/zone=y"]) == 1
    assert capsys.readouterr().out.startswith("default/bare has no owner that recreates it.\n")


def test_the_autoscaler_s_flags_are_a_file_or_left_out(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = tmp_path / "flags"
    flags.write_text("--nodes=1:3:nodes --scale-down-unneeded-time=1m")
    assert main(["plan", dump, "autoscale", str(flags)]) == 0
    assert "a: Goes at 1m10s: not needed since 0s; room for its 1 pod is on b." in capsys.readouterr().out
    assert main(["plan", dump, "autoscale"]) == 0
    flags.write_text("--expander=cheapest")
    assert main(["plan", dump, "autoscale", str(flags)]) == 2


def test_a_node_that_says_nothing_of_its_room_is_no_kind_to_add(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = node("a")
    del bare["status"]
    assert main(["plan", _dump(tmp_path, bare, pod("waits")), "fix"]) == 1
    assert "default/waits" in capsys.readouterr().out


def test_answers_as_json_are_the_same_bytes_twice(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    for question in (["any-node"], ["headroom", "--like", "default/web-1"]):
        main(["plan", "--json", dump, *question])
        first = capsys.readouterr().out
        main(["plan", "--json", dump, *question])
        assert capsys.readouterr().out == first
        assert json.loads(first)["verdict"]


@pytest.mark.parametrize(("arguments", "said"), table(__file__, "what_cannot_be_used_is_named"))
def test_what_cannot_be_used_is_named(
    dump: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", dump, *arguments]) == 2
    assert capsys.readouterr().err.strip() == said


def test_a_mangled_file_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text("kind: List\nitems:\n- kind: Node\n  metadata: {name: a\n")
    assert main(["plan", str(path), "any-node"]) == 2
    assert "line" in capsys.readouterr().err
    broken = node("a")
    broken["status"]["allocatable"]["cpu"] = "lots"
    assert main(["plan", _dump(tmp_path, broken), "any-node"]) == 2
    assert "allocatable.cpu" in capsys.readouterr().err


def test_what_it_takes_is_told_of_a_pending_pod_and_of_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _dump(tmp_path, node("a", cpu="2"), pod("large", cpu="3"), pod("there", on="a", cpu="100m"))
    assert main(["plan", path, "fix", "large"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "large needs 3 CPU on one node. The node it may use has 2 in all at most."
    assert "    Lower the CPU request from 3 to 1.9: 1 of 1 placed, no cost, nothing moves" in said
    assert main(["plan", "--json", path, "fix", "default/large"]) == 1
    found = json.loads(capsys.readouterr().out)
    lowered = [fix["lands"] for fix in found["fixes"] if fix["what"] == "lower-request"]
    assert lowered == [{"default/large": "a"}]
    for name, words in (("there", "default/there runs on a already."), ("x/y", "There is no pod x/y.")):
        assert main(["plan", path, "fix", name]) == 2
        assert capsys.readouterr().err == f"{words}\n"


def test_outcomes_are_words_and_a_missing_claim_is_offered_as_the_page_of_the_pod_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = pod("claims")
    claims["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    nodes = [node("a", zone="x"), node("b", zone="y")]
    dump = _dump(tmp_path, *nodes, claims, pod("agent", on="a", owner="DaemonSet/d"), pod("bare", on="a"))
    best = "Best fix: Create PersistentVolumeClaim default/data, with a volume, no cost\n"
    for name in (["default/claims"], []):
        assert main(["plan", dump, "fix", *name]) == 1
        assert best in capsys.readouterr().out
    assert main(["plan", dump, "backlog"]) == 1
    assert "  default/claims: finds no node\n" in capsys.readouterr().out
    main(["plan", dump, "drain", "a"])
    said = capsys.readouterr().out
    assert "  default/agent: a -> goes with its node\n" in said
    assert "  default/bare: a -> lost: nothing recreates it\n" in said


def test_counts_add_up_and_pods_of_one_owner_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    web = [pod(f"web-{number}", on="a", owner="ReplicaSet/web") for number in range(3)]
    agents = [pod("agent-1", on="a", owner="DaemonSet/agent")]
    main(["plan", _dump(tmp_path, node("a"), node("b"), *web, *agents), "drain", "a"])
    assert capsys.readouterr().out.splitlines()[:4] == [
        "All 3 of its pods find another node.",
        "  Pods on it: 4 (land elsewhere: 3, go with their node: 1).",
        "  default/agent-1: a -> goes with its node",
        "  ReplicaSet default/web: 3 pods land on b (3)",
    ]


def test_nodes_that_nothing_leaves_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = _dump(tmp_path, *(node(name) for name in "abc"), pod("web", on="c", owner="ReplicaSet/web"))
    main(["plan", dump, "consolidate"])
    assert "  a: and 1 more, steps 1 to 2: no pod moves" in capsys.readouterr().out.splitlines()


def test_a_lowered_request_is_a_clean_quantity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = node("a", cpu="4217m")
    small["status"]["allocatable"]["memory"] = "4194300Ki"
    main(["plan", _dump(tmp_path, small, pod("cpu", cpu="5")), "fix", "default/cpu"])
    assert "    Lower the CPU request from 5 to 4.21: 1 of 1 placed" in capsys.readouterr().out
    waits = pod("memory")
    waits["spec"]["containers"][0]["resources"]["requests"]["memory"] = "4Gi"
    main(["plan", _dump(tmp_path, small, waits), "fix", "default/memory"])
    said = capsys.readouterr().out
    assert "needs 4194304Ki memory on one node. The node it may use has 4194300Ki in all at most." in said
    assert "    Lower the memory request from 4096Mi to 4095Mi: 1 of 1 placed" in said
